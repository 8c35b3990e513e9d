//! The steps of a plan, and how they hang together.
//!
//! D1. A node knows its inputs, never its readers: there is no way to write a cycle.
//! D2. Whoever uses the same node twice shares it: it is computed once, and read by several.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use penstock_types::{PlanError, Tick};

use super::Step;

/// What a row's event time is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventTime {
    /// The column that carries it.
    pub column: String,
    /// The unit of that column.
    pub tick: Tick,
    /// Whether the column is the end of a window, and the time the last tick before it.
    pub is_end: bool,
}

/// One step of a plan and everything before it.
#[derive(Debug)]
pub struct Node {
    step: Step,
    inputs: Vec<Arc<Node>>,
    schema: SchemaRef,
    time: Option<EventTime>,
}

impl Node {
    pub(super) fn new(
        step: Step,
        inputs: Vec<Arc<Self>>,
        schema: SchemaRef,
        time: Option<EventTime>,
    ) -> Arc<Self> {
        Arc::new(Self { step, inputs, schema, time })
    }

    /// What is done.
    pub fn step(&self) -> &Step {
        &self.step
    }

    /// Where its rows come from.
    pub fn inputs(&self) -> &[Arc<Self>] {
        &self.inputs
    }

    /// The columns that come out.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The event time of the rows that come out, when it is known.
    pub fn time(&self) -> Option<&EventTime> {
        self.time.as_ref()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // A long plan is a long list: dropped one by one, or the stack would not hold it.
        let mut left = std::mem::take(&mut self.inputs);
        while let Some(node) = left.pop() {
            if let Some(mut node) = Arc::into_inner(node) {
                left.append(&mut node.inputs);
            }
        }
    }
}

/// The nodes that some others need, each once and behind its inputs, by number.
pub struct Graph {
    nodes: Vec<Arc<Node>>,
    inputs: Vec<Vec<usize>>,
    roots: Vec<usize>,
}

impl Graph {
    /// The graph behind these nodes. Streams of the same name are one.
    pub fn of<'a>(roots: impl IntoIterator<Item = &'a Arc<Node>>) -> Result<Self, PlanError> {
        let mut graph = Self { nodes: Vec::new(), inputs: Vec::new(), roots: Vec::new() };
        let (mut numbers, mut named) = (HashMap::new(), HashMap::new());
        for root in roots {
            let number = graph.add(root, &mut numbers, &mut named)?;
            graph.roots.push(number);
        }
        Ok(graph)
    }

    fn add(
        &mut self,
        root: &Arc<Node>,
        numbers: &mut HashMap<*const Node, usize>,
        named: &mut HashMap<String, usize>,
    ) -> Result<usize, PlanError> {
        // The node at hand, and how many of its inputs have been added.
        let mut path: Vec<(&Arc<Node>, usize)> = vec![(root, 0)];
        while let Some((node, done)) = path.last_mut() {
            let pointer = Arc::as_ptr(node);
            if numbers.contains_key(&pointer) {
                path.pop();
                continue;
            }
            if let Some(input) = node.inputs.get(*done) {
                *done += 1;
                path.push((input, 0));
                continue;
            }
            let number = match node.step.stream_name() {
                Some(name) => match named.get(name) {
                    Some(&number) => {
                        self.check_same(number, node, name)?;
                        Some(number)
                    }
                    None => {
                        named.insert(name.to_owned(), self.nodes.len());
                        None
                    }
                },
                None => None,
            };
            let number = number.unwrap_or_else(|| {
                self.inputs.push(node.inputs.iter().map(|input| numbers[&Arc::as_ptr(input)]).collect());
                self.nodes.push(Arc::clone(node));
                self.nodes.len() - 1
            });
            numbers.insert(pointer, number);
            path.pop();
        }
        Ok(numbers[&Arc::as_ptr(root)])
    }

    /// Refuses two streams of one name that are not the same stream.
    fn check_same(&self, number: usize, node: &Node, name: &str) -> Result<(), PlanError> {
        let Step::Stream(stream) = &node.step else { unreachable!("only streams have names") };
        let Step::Stream(first) = self.nodes[number].step() else { unreachable!("only streams have names") };
        if stream.name.is_none() {
            return Err(PlanError::Invalid(
                "two streams without a name come together, and nobody could say which data belongs to which; name them: ps.stream(..., name=\"...\")".to_owned(),
            ));
        }
        if stream != first {
            return Err(PlanError::Invalid(format!(
                "two different streams are named \"{name}\"; give one of them another name"
            )));
        }
        Ok(())
    }

    /// The nodes, each behind its inputs.
    pub fn nodes(&self) -> &[Arc<Node>] {
        &self.nodes
    }

    /// The inputs of a node, by number.
    pub fn inputs(&self, number: usize) -> &[usize] {
        &self.inputs[number]
    }

    /// The nodes that were asked for, by number.
    pub fn roots(&self) -> &[usize] {
        &self.roots
    }

    /// The nodes that read each node; several times if they read it several times.
    pub fn readers(&self) -> Vec<Vec<usize>> {
        let mut readers = vec![Vec::new(); self.nodes.len()];
        for (number, inputs) in self.inputs.iter().enumerate() {
            inputs.iter().for_each(|&input| readers[input].push(number));
        }
        readers
    }

    /// Whether both do the same in the same order.
    pub fn is_same(&self, other: &Self) -> bool {
        self.roots == other.roots
            && self.inputs == other.inputs
            && self.nodes.iter().zip(&other.nodes).all(|(one, another)| one.step == another.step)
    }
}
