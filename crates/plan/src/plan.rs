//! One plan: its last step, and what can be asked of all of them.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use penstock_types::PlanError;

use crate::step::{Graph, Node, Step};
use crate::stream::StreamStep;

/// An immutable pipeline.
#[derive(Clone, Debug)]
pub struct Plan {
    root: Arc<Node>,
}

impl PartialEq for Plan {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.root, &other.root) || self.graph().is_same(&other.graph())
    }
}

impl Eq for Plan {}

impl From<Arc<Node>> for Plan {
    fn from(root: Arc<Node>) -> Self {
        Self { root }
    }
}

impl Plan {
    /// Puts a step over these nodes, if it fits them.
    pub(crate) fn of(step: impl Step, inputs: Vec<Arc<Node>>) -> Result<Self, PlanError> {
        Ok(Self { root: Node::new(Arc::new(step), inputs)? })
    }

    /// Adds a step that reads this plan, if it fits.
    pub(crate) fn then(&self, step: impl Step) -> Result<Self, PlanError> {
        Self::of(step, vec![Arc::clone(&self.root)])
    }

    /// The last step.
    pub fn root(&self) -> &Arc<Node> {
        &self.root
    }

    /// Collects all steps.
    pub fn graph(&self) -> Graph {
        Graph::of([&self.root]).expect("streams were checked when they came together")
    }

    /// The columns of the result.
    pub fn schema(&self) -> &SchemaRef {
        self.root.schema()
    }

    /// The time column, when event time is still known.
    pub fn time(&self) -> Option<&str> {
        self.root.time().map(|time| time.column.as_str())
    }

    /// Lists the names of its streams, in the order in which they were written.
    pub fn streams(&self) -> Vec<String> {
        let graph = self.graph();
        graph.nodes().iter().filter_map(|node| node.step().stream_name().map(str::to_owned)).collect()
    }

    /// Returns the stream, when nothing else follows.
    pub fn as_stream(&self) -> Option<&StreamStep> {
        self.root.step().as_stream()
    }

    /// Returns the plan as far as the declaration of its one stream; `None` when it has several.
    pub fn declaration(&self) -> Option<Self> {
        let graph = self.graph();
        let mut streams = graph.nodes().iter().filter(|node| node.step().as_stream().is_some());
        match (streams.next(), streams.next()) {
            (Some(stream), None) => Some(Self { root: Arc::clone(stream) }),
            _ => None,
        }
    }

    /// Visits the steps that no other plan has.
    pub fn visit_own(&self, visit: &mut dyn FnMut(&dyn Step)) {
        let mut nodes = vec![&self.root];
        while let Some(node) = nodes.pop() {
            if Arc::strong_count(node) == 1 {
                visit(node.step());
                nodes.extend(node.inputs());
            }
        }
    }
}
