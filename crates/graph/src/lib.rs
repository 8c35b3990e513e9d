//! The physical plan as a value: from a plan to the tasks that run it.
//!
//! A [`TaskGraph`] holds steps and the slots that they are bound to, never operators: it can be cloned, compared, printed
//! and tested, and instantiated any number of times. Pure passes make it, one after the other:
//!
//! 1. [`strands`]: the plan is cut where rows come together or apart; each strand gets slots of its own
//! 2. [`spread`]: which operators run on several workers, how, and why
//! 3. [`chain`]: which pieces of strands run together as a task
//! 4. [`layout`]: what each edge carries, who reads it, and which slots it fills
//! 5. [`judging`]: how readers of an edge learn which watermark a row is judged by
//! 6. [`order`]: lanes, splitters and sinks take their places, and tasks are numbered in the order in which rows pass them
//!
//! [`TaskGraph::of`] runs them as a [`GraphRequest`] asks; [`explain`] puts the result into words.

#![forbid(unsafe_code)]

mod build;
pub mod chain;
pub mod explain;
pub mod graph;
pub mod judging;
pub mod layout;
pub mod options;
pub mod order;
pub mod request;
#[cfg(test)]
mod samples;
pub mod spread;
pub mod strands;

pub use explain::{explain, explain_physical};
pub use graph::{
    Edge, EdgeId, EdgeKind, InputPlace, InputSource, LaneSpec, OperatorSpec, OperatorUse, Part, Port,
    SinkSpec, SplitterSpec, TaskGraph, TaskKind, TaskNode, TaskNumber,
};
pub use judging::EdgeJudging;
pub use options::{Chaining, Spreading, Strategy};
pub use request::{GraphRequest, SharedLog};
pub use spread::Spread;
pub use strands::{OperatorId, Strand, StrandId, Strands};
