//! The steps that some outputs need, and how they hang together.
//!
//! GRAPH-1. A node knows its inputs, never its readers: a cycle cannot be written.
//! GRAPH-2. A node that is used twice is shared: it is computed once, and read by several.

use std::collections::HashMap;
use std::sync::Arc;

use penstock_types::PlanError;

use super::Node;

/// The nodes that some roots need, by number: each once, after its inputs.
pub struct Graph {
    nodes: Vec<Arc<Node>>,
    inputs: Vec<Vec<usize>>,
    roots: Vec<usize>,
}

impl Graph {
    /// Collects the nodes that these roots need. Streams of the same name are one.
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
            if let Some(input) = node.inputs().get(*done) {
                *done += 1;
                path.push((input, 0));
                continue;
            }
            let number = match node.step().stream_name() {
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
                self.inputs.push(node.inputs().iter().map(|input| numbers[&Arc::as_ptr(input)]).collect());
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
        let (Some(stream), Some(first)) = (node.step().as_stream(), self.nodes[number].step().as_stream())
        else {
            unreachable!("only streams have names")
        };
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

    /// The nodes, each after its inputs.
    pub fn nodes(&self) -> &[Arc<Node>] {
        &self.nodes
    }

    /// Returns the inputs of a node, by number.
    pub fn inputs(&self, number: usize) -> &[usize] {
        &self.inputs[number]
    }

    /// The roots, by number.
    pub fn roots(&self) -> &[usize] {
        &self.roots
    }

    /// Lists the nodes that read each node; several times if they read it several times.
    pub fn readers(&self) -> Vec<Vec<usize>> {
        let mut readers = vec![Vec::new(); self.nodes.len()];
        for (number, inputs) in self.inputs.iter().enumerate() {
            inputs.iter().for_each(|&input| readers[input].push(number));
        }
        readers
    }

    /// Returns whether both do the same in the same order.
    pub fn is_same(&self, other: &Self) -> bool {
        self.roots == other.roots
            && self.inputs == other.inputs
            && self.nodes.iter().zip(&other.nodes).all(|(one, another)| one.step().is_same(another.step()))
    }
}
