//! From strands to tasks: which stages and operators run together.
//!
//! With chaining, a strand that begins at a stream or with the results of an operator runs in one task with that; one that
//! reads others runs in one task with the operator that it goes to. Without, each operator has a task of its own.
//!
//! An operator whose rows are exchanged has several tasks, its *parts*. All of them read the one edge at the end of the
//! strand before, each the rows of its keys, and what reads results reads those of all parts.

use std::collections::HashMap;
use std::ops::Range;

use crate::options::{Chaining, Spreading};
use crate::spread::Spread;
use crate::strands::{Begin, Goes, OperatorId, StrandId, Strands};

/// An edge, known by where its rows leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EdgeKey {
    /// A strand, after so many stages.
    Strand(StrandId, usize),
    /// The results of one part of an operator: the strand that they begin, and the part.
    Part(StrandId, usize),
    /// The late rows of an operator, or of one part of it.
    Late(OperatorId, usize),
}

/// Where the rows of a task come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DraftInput {
    /// A stream.
    Stream(usize),
    /// An edge.
    Edge(EdgeKey),
}

/// Rows that come into a task, and the stages of a strand that they pass first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftPort {
    /// The strand.
    pub strand: StrandId,
    /// The stages.
    pub stages: Range<usize>,
    /// Where the rows come from.
    pub inputs: Vec<DraftInput>,
}

/// A task, before edges are laid out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// What it reads.
    pub ports: Vec<DraftPort>,
    /// An operator, and the stages that its results pass.
    pub operator: Option<(OperatorId, Range<usize>)>,
    /// Which part of how many the operator is, where its rows are exchanged.
    pub part: Option<(usize, usize)>,
    /// The strand that rows leave in, and how many of its stages they have passed by then.
    pub out: (StrandId, usize),
}

impl Draft {
    /// The edge that it writes.
    pub fn out_key(&self) -> EdgeKey {
        let (strand, done) = self.out;
        self.part.map_or(EdgeKey::Strand(strand, done), |(part, _)| EdgeKey::Part(strand, part))
    }

    /// The number of its part; the first where there are no others.
    pub fn part_number(&self) -> usize {
        self.part.map_or(0, |(part, _)| part)
    }

    /// Its inputs, each with its port.
    pub fn inputs(&self) -> Vec<(DraftInput, usize)> {
        let ports = self.ports.iter().enumerate();
        ports.flat_map(|(port, draft)| draft.inputs.iter().map(move |&input| (input, port))).collect()
    }

    /// The port of one of its inputs.
    pub fn port_of(&self, input: usize) -> &DraftPort {
        &self.ports[self.inputs()[input].1]
    }
}

/// All tasks but the sinks, in the order in which rows pass them, and the edge that each output reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drafts {
    /// The tasks.
    pub drafts: Vec<Draft>,
    /// The edge of each output.
    pub outputs: Vec<EdgeKey>,
}

/// Decides which stages and operators run together.
pub fn chain(
    strands: &Strands,
    outputs: usize,
    chaining: Chaining,
    is_shared: &[bool],
    (spreads, spreading): (&[Spread], Spreading),
) -> Drafts {
    let mut drafting = Drafting {
        strands,
        chain: chaining == Chaining::Auto,
        is_shared,
        spreads,
        parts: spreading.parts(),
        drafts: Vec::new(),
        ports: HashMap::new(),
        ends: HashMap::new(),
    };
    for strand in 0..strands.strands.len() {
        drafting.add(strand);
    }
    let mut keys: Vec<Option<EdgeKey>> = vec![None; outputs];
    for (number, strand) in strands.strands.iter().enumerate() {
        for goes in &strand.goes {
            if let Goes::Output(output) = goes {
                keys[*output] = Some(drafting.ends[&number]);
            }
        }
    }
    let outputs = keys.into_iter().map(|key| key.expect("every output is that of a strand")).collect();
    Drafts { drafts: drafting.drafts, outputs }
}

struct Drafting<'a> {
    strands: &'a Strands,
    chain: bool,
    /// Whether the stream is read from a log that others read, too.
    is_shared: &'a [bool],
    /// How each operator runs, and how many parts it has when its rows are exchanged.
    spreads: &'a [Spread],
    parts: usize,
    drafts: Vec<Draft>,
    ports: HashMap<(OperatorId, usize), DraftPort>,
    /// The edge at the end of each strand that has one.
    ends: HashMap<StrandId, EdgeKey>,
}

/// A strand while its tasks are made.
struct StrandRows {
    /// Where its rows are.
    inputs: Vec<DraftInput>,
    /// The stages that the operator at its end runs, if there is one.
    tail: Range<usize>,
}

impl Drafting<'_> {
    /// The stages of a strand in groups that run together, and those that prepare what the operator at its end reads.
    fn groups(&self, strand: StrandId) -> (Vec<Range<usize>>, Range<usize>) {
        let stages = &self.strands.strands[strand].segment.stages;
        let (mut groups, mut start) = (Vec::new(), 0);
        for (number, stage) in stages.iter().enumerate() {
            if !stage.prepares() {
                groups.push(start..number + 1);
                start = number + 1;
            }
        }
        (groups, start..stages.len())
    }

    fn push(&mut self, strand: StrandId, stages: Range<usize>, inputs: Vec<DraftInput>) -> DraftInput {
        let done = stages.end;
        let ports = vec![DraftPort { strand, stages, inputs }];
        self.drafts.push(Draft { ports, operator: None, part: None, out: (strand, done) });
        DraftInput::Edge(EdgeKey::Strand(strand, done))
    }

    /// Adds the task of an operator, or those of its parts. Returns the edges where results leave.
    fn push_operator(
        &mut self,
        operator: OperatorId,
        strand: StrandId,
        tail: Range<usize>,
    ) -> Vec<DraftInput> {
        let count = self.strands.operators[operator].ports.len();
        let port = |port: usize| self.ports.remove(&(operator, port)).expect("STRAND-2: ports come first");
        let ports: Vec<DraftPort> = (0..count).map(port).collect();
        let parts = self.parts_of(operator);
        let mut edges = Vec::new();
        for part in 0..parts {
            let draft = Draft {
                ports: ports.clone(),
                operator: Some((operator, tail.clone())),
                part: self.is_exchanged(operator).then_some((part, parts)),
                out: (strand, tail.end),
            };
            edges.push(DraftInput::Edge(draft.out_key()));
            self.drafts.push(draft);
        }
        edges
    }

    fn is_exchanged(&self, operator: OperatorId) -> bool {
        self.spreads[operator] == Spread::Exchanged
    }

    /// The number of tasks of an operator.
    fn parts_of(&self, operator: OperatorId) -> usize {
        if self.is_exchanged(operator) { self.parts } else { 1 }
    }

    /// Whether an operator can run in one task with the stream that it reads. Rows go to a function by an edge, where the
    /// watermark is exact before those that it matters for.
    fn takes_stream(&self, operator: OperatorId) -> bool {
        let to = &self.strands.operators[operator];
        to.ports.len() == 1 && !to.calls_function() && !self.is_exchanged(operator)
    }

    fn add(&mut self, number: StrandId) {
        let strand = &self.strands.strands[number];
        let count = strand.segment.stages.len();
        let port = match strand.goes[..] {
            [Goes::Port(operator, port)] => Some((operator, port)),
            _ => None,
        };
        let (groups, tail) = if self.chain { (Vec::new(), 0..count) } else { self.groups(number) };
        let mut at = self.begin(number, port.map(|(operator, _)| operator), tail);
        let is_begun = matches!(at.inputs[..], [DraftInput::Edge(EdgeKey::Strand(of, _))] if of == number);
        let is_plain = count == 0 && strand.segment.scope.is_as_begun();
        if self.chain && !is_begun && port.is_none() && (!is_plain || at.inputs.len() > 1) {
            at.inputs = vec![self.push(number, 0..count, at.inputs)];
        }
        for group in groups {
            at.inputs = vec![self.push(number, group, at.inputs)];
        }
        self.end(number, port, at);
    }

    /// Makes the task that a strand begins with, if it has one of its own.
    fn begin(&mut self, number: StrandId, to: Option<OperatorId>, tail: Range<usize>) -> StrandRows {
        let strand = &self.strands.strands[number];
        let count = strand.segment.stages.len();
        // What runs together with the beginning, and what is left then.
        let first = if self.chain { 0..count } else { 0..0 };
        let rest = if self.chain { count..count } else { tail.clone() };
        match &strand.begin {
            Begin::Stream(stream) => {
                let input = DraftInput::Stream(*stream);
                let is_chained = self.chain && to.is_some_and(|operator| self.takes_stream(operator));
                if is_chained || !self.chain && self.is_shared[*stream] {
                    StrandRows { inputs: vec![input], tail }
                } else {
                    StrandRows { inputs: vec![self.push(number, first, vec![input])], tail: rest }
                }
            }
            Begin::Results(operator) if self.is_exchanged(*operator) => {
                let parts = self.push_operator(*operator, number, 0..0);
                if self.chain {
                    StrandRows { inputs: vec![self.push(number, first, parts)], tail: rest }
                } else {
                    StrandRows { inputs: parts, tail }
                }
            }
            Begin::Results(operator) => {
                StrandRows { inputs: self.push_operator(*operator, number, first), tail: rest }
            }
            Begin::Strands(from) => {
                let inputs = from.iter().map(|from| DraftInput::Edge(self.ends[from])).collect();
                StrandRows { inputs, tail }
            }
            Begin::Late(operator) => {
                let late = |part| DraftInput::Edge(EdgeKey::Late(*operator, part));
                StrandRows { inputs: (0..self.parts_of(*operator)).map(late).collect(), tail }
            }
        }
    }

    /// Hands the rows of a strand to the operator at its end, or settles where its readers find them.
    fn end(&mut self, number: StrandId, port: Option<(OperatorId, usize)>, at: StrandRows) {
        let segment = &self.strands.strands[number].segment;
        let count = segment.stages.len();
        let is_plain = count == 0 && segment.scope.is_as_begun();
        let StrandRows { mut inputs, mut tail } = at;
        let is_at_end = matches!(inputs[..], [DraftInput::Edge(EdgeKey::Strand(of, done))] if of == number && done == count);
        let Some(port) = port else {
            // Without an operator, rows are read where they are; unless they are in several places, or have changed.
            let end = match inputs[..] {
                [DraftInput::Edge(key)] if is_at_end || is_plain => key,
                _ => {
                    self.push(number, count..count, inputs);
                    EdgeKey::Strand(number, count)
                }
            };
            self.ends.insert(number, end);
            return;
        };
        // All parts of an operator read one edge, where the keys are known.
        if self.is_exchanged(port.0) && !is_at_end {
            inputs = vec![self.push(number, tail, inputs)];
            tail = count..count;
        }
        self.ports.insert(port, DraftPort { strand: number, stages: tail, inputs });
    }
}

#[cfg(test)]
mod tests {
    use penstock_plan::Plan;

    use super::*;
    use crate::options::Strategy;
    use crate::samples::{counted, events, joined, outputs, positive};
    use crate::spread::spread;

    fn drafts(plan: &Plan, chaining: Chaining, parallelism: usize) -> Vec<Draft> {
        let mut strands = Strands::of(&outputs(plan), false).unwrap();
        let spreading = Spreading { parallelism, strategy: Strategy::Exchange };
        let shared = vec![false; strands.streams.len()];
        let spreads = spread(&strands, spreading, chaining == Chaining::Auto, &shared);
        strands.exchange(|operator| spreads[operator] == Spread::Exchanged);
        chain(&strands, 1, chaining, &shared, (&spreads, spreading)).drafts
    }

    #[test]
    fn with_chaining_a_source_and_its_window_are_one_task() {
        let plan = positive(&counted(&positive(&events("a"), "v")), "count");
        let chained = drafts(&plan, Chaining::Auto, 1);
        assert_eq!(chained.len(), 1);
        assert_eq!(
            (chained[0].operator.clone(), chained[0].ports[0].stages.clone()),
            (Some((0, 0..1)), 0..1)
        );
    }

    #[test]
    fn without_chaining_each_operator_is_a_task() {
        let plan = positive(&counted(&positive(&events("a"), "v")), "count");
        let outs: Vec<EdgeKey> = drafts(&plan, Chaining::Off, 1).iter().map(Draft::out_key).collect();
        let key = EdgeKey::Strand;
        assert_eq!(outs, [key(0, 0), key(0, 1), key(1, 0), key(1, 1)]);
    }

    #[test]
    fn parts_of_an_operator_read_one_edge_behind_the_key_groups() {
        let all = drafts(&joined(&events("a"), &events("b")), Chaining::Auto, 3);
        let parts: Vec<&Draft> = all.iter().filter(|draft| draft.operator.is_some()).collect();
        assert_eq!(
            parts.iter().map(|part| part.part).collect::<Vec<_>>(),
            [Some((0, 3)), Some((1, 3)), Some((2, 3))]
        );
        assert!(parts.windows(2).all(|pair| pair[0].ports == pair[1].ports));
        assert_eq!(parts[2].out_key(), EdgeKey::Part(2, 2));
    }
}
