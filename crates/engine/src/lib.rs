//! From a plan to its answer.
//!
//! A [`Plan`] is what a user built: immutable, checked at every step, comparable, serialisable. An [`Engine`] runs many of
//! them at a time: each becomes a [`Query`]: the graph of tasks and edges that it is planned as is made, and a few workers run the
//! tasks as a policy ranks them.
//!
//! - [`explain`]: how each operator of a plan is spread over workers
//! - [`options`]: how an engine runs plans
//! - `instantiate`: from the graph of a plan to logs, rings and tasks
//! - [`engine`]: queries that come and go; `executors`: the threads that run their tasks
//! - [`query`]: one query; [`output`]: its results; [`share`]: sources that several queries read
//! - [`checkpoint`]: the state of a query between two parts of its input
//! - [`metrics`]: counters of the engine; [`clock`]: its clocks

#![forbid(unsafe_code)]

pub mod checkpoint;
pub mod clock;
pub mod engine;
pub mod error;
mod executors;
mod groups;
pub mod input;
mod instantiate;
pub mod metrics;
pub mod options;
pub mod output;
pub mod query;
pub mod share;
pub mod sink;

pub use checkpoint::{Checkpoint, CheckpointError, InputPart, PartOptions};
pub use engine::{Engine, QueryOptions, RunFailure, ShareOptions, push};
pub use error::{RunError, StartError, panic_text};
pub use groups::key_groups;
pub use input::Input;
pub use metrics::{EngineMetrics, TaskMetrics, WorkerMetrics};
pub use options::{Chaining, EngineOptions, Mode, PolicyKind, RunOptions, Strategy};
pub use output::{OperatorReport, Output};
pub use penstock_graph::{explain, explain_physical};
pub use penstock_plan as plan;
pub use penstock_plan::{Aggregate, Plan};
pub use penstock_tasks::account::Latency;
pub use penstock_tasks::feed::{FEED_BATCHES, Feed, FeedEnd, FeedHandle, Pushed};
pub use penstock_tasks::readers::pull::{Demand, GiveError, Puller, RefusedBatch};
pub use penstock_tasks::readers::replay::Replay;
pub use penstock_tasks::rejects::{LETTER_COLUMNS, OnError};
pub use penstock_tasks::results::{self, Results};
pub use penstock_tasks::writers::function::{Deliver, Doorbell};
pub use penstock_types::OutsideError;
pub use query::{Query, QueryMetrics, Status, Waiting};
pub use share::{OnLag, SharedSource};
pub use sink::Sink;

/// Makes a feed in which up to `batches` batches wait.
///
/// # Panics
/// When `batches` is zero.
pub fn feed(batches: usize) -> (Feed, FeedEnd) {
    penstock_tasks::feed::feed(batches, clock::system())
}
