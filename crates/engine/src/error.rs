//! Why a query cannot be started.

use penstock_memory::{MemoryLimit, OpenError};
use penstock_types::{ByteSize, OutsideError, PlanError};
use thiserror::Error;

pub use penstock_tasks::error::{RunError, panic_text};

/// Why a plan cannot be started.
#[derive(Debug, Error)]
pub enum StartError {
    /// The plan does not compile.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// There is not enough memory for its streams.
    #[error("the query cannot start: {0}")]
    Memory(#[from] OpenError),
    /// There is not enough memory for a table.
    #[error("the query cannot start: the table of {operator} takes {}: {limit}", ByteSize(*.bytes as u64))]
    Table {
        /// The operator that looks rows up in it.
        operator: String,
        /// How large it is.
        bytes: usize,
        /// What it does not fit.
        limit: MemoryLimit,
    },
    /// The shared source that it was to read has ended.
    #[error("the query cannot start: the shared source \"{name}\" has ended")]
    SourceEnded {
        /// The source.
        name: String,
    },
    /// A function that runs on the engine joins one of its shared sources.
    #[error(
        "a function that runs on the engine cannot submit a query that reads the shared source \"{name}\" of it: it would wait for itself"
    )]
    WaitsForItself {
        /// The source.
        name: String,
    },
    /// A query of that name runs already.
    #[error("a query or source named \"{name}\" is running; choose another name, or none at all")]
    NameTaken {
        /// The name.
        name: String,
    },
    /// The engine has been stopped.
    #[error("the engine has been stopped; start another one")]
    EngineStopped,
    /// More tasks than an engine can have.
    #[error(
        "the engine runs {most} operators already, and takes no more; stop some queries, or start another engine"
    )]
    TooManyTasks {
        /// How many it takes.
        most: usize,
    },
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
    /// A function from outside failed.
    #[error("the {what} failed: {error}")]
    Outside {
        /// Which one.
        what: &'static str,
        /// Why.
        error: OutsideError,
    },
}
