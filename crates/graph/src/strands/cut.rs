//! Where a plan is cut into strands.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use penstock_plan::{Form, Graph, Node, Outputs};
use penstock_types::PlanError;

use super::{Begin, Goes, PlannedNode, PlannedOperator, Strand, StrandId, StrandSegment, Strands, Stream};

/// The strand that holds the rows of each node, while it is still growing.
struct StrandCutter<'a> {
    graph: &'a Graph,
    keeps_sight: bool,
    /// How often each node is read, as an output or by others.
    uses: Vec<usize>,
    /// The strand that ends at each node.
    at: Vec<StrandId>,
    built: Strands,
}

/// Cuts plans where rows come together or apart, and binds their steps.
pub(super) fn cut(outputs: &Outputs, keeps_sight: bool) -> Result<Strands, PlanError> {
    let graph = outputs.graph();
    let built = Strands { strands: Vec::new(), streams: Vec::new(), operators: Vec::new() };
    let uses = uses(&graph);
    let mut cutter = StrandCutter { graph: &graph, keeps_sight, uses, at: Vec::new(), built };
    for number in 0..graph.nodes().len() {
        cutter.add(number)?;
    }
    for (output, &root) in graph.roots().iter().enumerate() {
        let strand = cutter.at[root];
        cutter.built.strands[strand].goes.push(Goes::Output(output));
    }
    Ok(cutter.built)
}

/// How often each node is read.
fn uses(graph: &Graph) -> Vec<usize> {
    let mut uses: Vec<usize> = vec![0; graph.nodes().len()];
    for (number, node) in graph.nodes().iter().enumerate() {
        // Late rows leave by a way of their own.
        let reads = if node.step().form() == Form::LateRows { &[][..] } else { graph.inputs(number) };
        reads.iter().for_each(|&input| uses[input] += 1);
    }
    graph.roots().iter().for_each(|&root| uses[root] += 1);
    uses
}

impl StrandCutter<'_> {
    fn begin(&mut self, begin: Begin, schema: &SchemaRef, node: &Node, is_raw: bool) -> StrandId {
        let segment = StrandSegment::new(schema, node.time(), self.keeps_sight);
        self.built.strands.push(Strand { begin, segment, goes: Vec::new(), is_raw, live: Vec::new() });
        self.built.strands.len() - 1
    }

    /// Returns a strand that can grow after that node: the one that ends there, unless others read it too.
    fn after(&mut self, input: usize) -> StrandId {
        let strand = self.at[input];
        if self.uses[input] == 1 {
            return strand;
        }
        let node = Arc::clone(&self.graph.nodes()[input]);
        self.read(&[input], &node)
    }

    /// Begins a strand that reads the rows of these nodes, with the columns and the time of `node`.
    fn read(&mut self, inputs: &[usize], node: &Node) -> StrandId {
        let from: Vec<StrandId> = inputs.iter().map(|&input| self.at[input]).collect();
        let is_raw = from.iter().all(|&strand| self.built.strands[strand].is_raw);
        let strand = self.begin(Begin::Strands(from.clone()), node.schema(), node, is_raw);
        for from in from {
            self.built.strands[from].goes.push(Goes::Strand(strand));
        }
        strand
    }

    fn add(&mut self, number: usize) -> Result<(), PlanError> {
        let node = Arc::clone(&self.graph.nodes()[number]);
        let inputs = self.graph.inputs(number);
        let strand = match node.step().form() {
            Form::Source => self.stream(&node),
            Form::Stage => {
                let strand = self.after(inputs[0]);
                self.built.strands[strand].segment.bind(&node, 0)?;
                strand
            }
            Form::Union => self.read(inputs, &node),
            Form::LateRows => self.late(&node, inputs[0]),
            Form::Operator => self.operator(&node, inputs)?,
        };
        self.at.push(strand);
        Ok(())
    }

    fn stream(&mut self, node: &Arc<Node>) -> StrandId {
        let number = self.built.streams.len();
        let strand = self.begin(Begin::Stream(number), node.schema(), node, true);
        let clock = self.built.strands[strand].segment.scope.clock();
        let node = PlannedNode(Arc::clone(node));
        self.built.streams.push(Stream { node, strand, reads: Vec::new(), clock, ticks: None });
        strand
    }

    fn late(&mut self, node: &Arc<Node>, input: usize) -> StrandId {
        let before = &self.graph.nodes()[input];
        let is_it = |operator: &PlannedOperator| Arc::ptr_eq(&operator.node.0, before);
        let operator = self.built.operators.iter().position(is_it).expect("it reads an operator");
        if let Some(strand) = self.built.operators[operator].late {
            return strand;
        }
        let strand = self.begin(Begin::Late(operator), node.schema(), node, false);
        self.built.operators[operator].late = Some(strand);
        strand
    }

    fn operator(&mut self, node: &Arc<Node>, inputs: &[usize]) -> Result<StrandId, PlanError> {
        let operator = self.built.operators.len();
        let mut ports = Vec::new();
        for (port, &input) in inputs.iter().enumerate() {
            let strand = self.after(input);
            let strand = &mut self.built.strands[strand];
            ports.push(strand.segment.bind(node, port)?);
            strand.goes.push(Goes::Port(operator, port));
        }
        let results = self.begin(Begin::Results(operator), node.schema(), node, false);
        let node = PlannedNode(Arc::clone(node));
        self.built.operators.push(PlannedOperator { node, ports, results, late: None });
        Ok(results)
    }
}

#[cfg(test)]
mod tests {
    use penstock_plan::Plan;

    use super::*;
    use crate::samples::{counted, events, joined, outputs, positive};

    fn begins(plan: &Plan) -> Vec<Begin> {
        cut(&outputs(plan), false).unwrap().strands.into_iter().map(|strand| strand.begin).collect()
    }

    #[test]
    fn stages_grow_a_strand_and_an_operator_ends_it() {
        let strands = cut(&outputs(&counted(&positive(&events("a"), "v"))), false).unwrap();
        assert_eq!(strands.strands[0].begin, Begin::Stream(0));
        assert_eq!(strands.strands[0].goes, [Goes::Port(0, 0)]);
        let names: Vec<&str> = strands.strands[0].segment.stages.iter().map(|stage| stage.name).collect();
        assert_eq!(names, ["filter"]);
        assert_eq!(strands.strands[1].begin, Begin::Results(0));
        assert_eq!((strands.strands[0].is_raw, strands.strands[1].is_raw), (true, false));
    }

    #[test]
    fn a_stream_that_two_read_is_cut_once_and_read_by_two_strands() {
        let stream = events("a");
        let union = Plan::union(&[positive(&stream, "v"), positive(&stream, "k")]).unwrap();
        let read = || Begin::Strands(vec![0]);
        assert_eq!(begins(&union), [Begin::Stream(0), read(), read(), Begin::Strands(vec![1, 2])]);
    }

    #[test]
    fn a_join_of_a_stream_with_itself_has_a_strand_for_each_port() {
        let stream = events("a");
        let strands = cut(&outputs(&joined(&stream, &stream)), false).unwrap();
        assert_eq!(strands.strands[0].goes, [Goes::Strand(1), Goes::Strand(2)]);
        assert_eq!((strands.port_strand(0, 0), strands.port_strand(0, 1)), (1, 2));
    }

    #[test]
    fn late_rows_begin_a_strand_of_the_operator_however_often_they_are_read() {
        let late = counted(&events("a")).late().unwrap();
        let union = Plan::union(&[late.clone(), late]).unwrap();
        let begins = begins(&union);
        assert_eq!(begins.iter().filter(|begin| **begin == Begin::Late(0)).count(), 1);
    }
}
