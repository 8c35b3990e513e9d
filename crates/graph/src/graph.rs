//! The tasks of a query, and the edges between them, as a value.
//!
//! TASKGRAPH-1. Tasks are numbered in the order in which rows pass them: a task has a larger number than those it reads.
//! TASKGRAPH-2. An edge has one writer, a task of the graph or another query, and any number of readers.
//! TASKGRAPH-3. A stream is read by one task.

use std::ops::Range;

use arrow_schema::SchemaRef;
use penstock_memory::{ColumnKind, SlotId};
use penstock_types::Tick;

use crate::judging::EdgeJudging;
use crate::options::{Chaining, Spreading};
use crate::spread::Spread;
use crate::strands::{OperatorId, StrandId, Strands};

/// The number of a task.
pub type TaskNumber = usize;
/// The number of an edge.
pub type EdgeId = usize;

/// The physical plan of a query.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskGraph {
    /// What does not depend on how it is run: streams, operators, and the stages between them.
    pub strands: Strands,
    /// How each operator runs.
    pub spreads: Vec<Spread>,
    /// How many workers an operator could take.
    pub spreading: Spreading,
    /// Which operators make up a task.
    pub chaining: Chaining,
    /// The shared source that each stream is read from, if it is one.
    pub shared: Vec<Option<u64>>,
    /// The outputs: their names and columns.
    pub outputs: Vec<(String, SchemaRef)>,
    /// The unit of event time.
    pub tick: Option<Tick>,
    /// The tasks (TASKGRAPH-1).
    pub tasks: Vec<TaskNode>,
    /// The edges.
    pub edges: Vec<Edge>,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskNode {
    /// What people call it: by the last of its operators.
    pub name: String,
    /// What it does.
    pub kind: TaskKind,
    /// The tasks that read what it writes, in order.
    pub readers: Vec<TaskNumber>,
    /// Which part of how many it is, where an operator has several.
    pub part: Option<Part>,
}

/// One of several parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its number.
    pub number: usize,
    /// How many there are.
    pub of: usize,
}

/// What a task does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskKind {
    /// Runs stages, and perhaps an operator.
    Operator(OperatorSpec),
    /// Reads a source, and hands portions of its batches to lanes.
    Splitter(SplitterSpec),
    /// Aggregates portions, and hands its state over when windows close.
    Lane(LaneSpec),
    /// Hands results out.
    Sink(SinkSpec),
}

/// Runs stages, and perhaps an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorSpec {
    /// Where rows come in; each port has slots of its own.
    pub ports: Vec<Port>,
    /// The operator behind the ports.
    pub operator: Option<OperatorUse>,
    /// The edge that it writes.
    pub writes: EdgeId,
}

/// Where rows come into a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// The strand whose slots they fill.
    pub strand: StrandId,
    /// The stages of the strand that they pass.
    pub stages: Range<usize>,
    /// Where they come from.
    pub inputs: Vec<InputSource>,
}

/// One input of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputSource {
    /// A stream of its own.
    Stream(usize),
    /// An edge, whose columns fill these slots.
    Edge {
        /// The edge.
        edge: EdgeId,
        /// The slot that each of its columns fills.
        fills: Vec<SlotId>,
        /// The slot of the key group, if only the rows of some groups are taken.
        group: Option<SlotId>,
    },
}

/// An operator in a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorUse {
    /// The operator.
    pub operator: OperatorId,
    /// The stages that its results pass, of their strand.
    pub tail: Range<usize>,
    /// The edge that late rows leave by, if they are read.
    pub late: Option<EdgeId>,
    /// Whether it merges the states of lanes, instead of taking rows in.
    pub merges: bool,
}

/// Reads a source, and hands portions of its batches to lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitterSpec {
    /// The stream.
    pub stream: usize,
    /// The strand whose slots it fills.
    pub strand: StrandId,
    /// The edges to the lanes.
    pub writes: Vec<EdgeId>,
}

/// Aggregates portions, and hands its state over when windows close.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneSpec {
    /// The stream whose batches it gets.
    pub stream: usize,
    /// The strand whose slots it fills, and the stages that rows pass.
    pub strand: StrandId,
    /// The stages.
    pub stages: Range<usize>,
    /// The operator of which it has a part.
    pub operator: OperatorId,
    /// The edge that portions come by.
    pub reads: EdgeId,
    /// The edge that states leave by.
    pub writes: EdgeId,
}

/// Hands results out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkSpec {
    /// The output.
    pub output: usize,
    /// The edge that it reads: its columns come first, in order.
    pub reads: EdgeId,
}

/// What an edge is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeKind {
    /// A log of rows.
    Log,
    /// A log of the rows that an operator finds late.
    LateLog,
    /// A ring of portions, from a splitter to a lane.
    Portions,
    /// A ring of states, from a lane to the task that merges them.
    States,
    /// The log of a shared source, which other queries read, too.
    Shared {
        /// The number of the source.
        source: u64,
        /// The stream that is read from it.
        stream: usize,
    },
}

/// What a reader of an edge is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputPlace {
    /// The task.
    pub task: TaskNumber,
    /// Which of its inputs.
    pub input: usize,
}

/// How the rows of an edge count in the account of the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitRole {
    /// How often each row is taken beyond once.
    pub copies: u64,
    /// How many of those that take a row give it out as it is.
    pub contributes: u64,
}

/// What is between two tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// What it is.
    pub kind: EdgeKind,
    /// The task that writes it; none for the log of another query.
    pub writer: Option<TaskNumber>,
    /// What reads it.
    pub readers: Vec<InputPlace>,
    /// The slots of the writer that it carries.
    pub slots: Vec<SlotId>,
    /// The names of its columns.
    pub columns: Vec<String>,
    /// How they are stored.
    pub kinds: Vec<ColumnKind>,
    /// How readers learn which watermark a row is judged by.
    pub judging: EdgeJudging,
    /// How its rows count in the account, where they leave the part of the plan that only filters.
    pub exit: Option<ExitRole>,
}

impl TaskGraph {
    /// The task that reads each shared source.
    pub fn shared_reads(&self) -> Vec<(u64, TaskNumber)> {
        let mut reads = Vec::new();
        for edge in &self.edges {
            if let EdgeKind::Shared { source, .. } = edge.kind {
                reads.extend(edge.readers.iter().map(|reader| (source, reader.task)));
            }
        }
        reads
    }

    /// Whether a task reads a source.
    pub fn is_source(&self, task: TaskNumber) -> bool {
        match &self.tasks[task].kind {
            TaskKind::Operator(operator) => operator.inputs().any(|(input, _)| match input {
                InputSource::Stream(_) => true,
                InputSource::Edge { edge, .. } => matches!(self.edges[*edge].kind, EdgeKind::Shared { .. }),
            }),
            TaskKind::Splitter(_) => true,
            TaskKind::Lane(_) | TaskKind::Sink(_) => false,
        }
    }
}

impl OperatorSpec {
    /// Its inputs, each with the number of its port.
    pub fn inputs(&self) -> impl Iterator<Item = (&InputSource, usize)> {
        let ports = self.ports.iter().enumerate();
        ports.flat_map(|(port, of)| of.inputs.iter().map(move |input| (input, port)))
    }
}
