//! What can go wrong while rows are running.

use arrow_schema::ArrowError;
use penstock_memory::{BatchError, MemoryLimit, OpenError};
use penstock_types::{ByteSize, ComputeError, OutsideError, PlanError};
use thiserror::Error;

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

/// Why a run ended without an answer.
#[derive(Debug, Error)]
pub enum RunError {
    /// A batch that does not fit the declared schema.
    #[error("batch {number}: {error}")]
    Batch {
        /// Which batch, from 0.
        number: u64,
        /// What is wrong with it.
        error: BatchError,
    },
    /// A null in the time column.
    #[error(
        "row {row} has no time: column \"{column}\" is null there; filter such rows out before the stream, or fill them"
    )]
    NullTime {
        /// The time column.
        column: String,
        /// Which row of the whole input, from 0.
        row: u64,
    },
    /// A time that lies further ahead of the watermark than the stream allows.
    #[error("row {row}: {reason}")]
    TimeAhead {
        /// What is wrong with it: the column, the time, and the watermark.
        reason: String,
        /// Which row of the whole input, from 0.
        row: u64,
    },
    /// A value that cannot be computed.
    #[error("in {operator}: {error}")]
    Compute {
        /// The operator that failed.
        operator: String,
        /// Why.
        error: ComputeError,
    },
    /// State that does not fit the budget.
    #[error("in {operator}: its state has grown to {}: {limit}", ByteSize(*.bytes as u64))]
    MemoryLimit {
        /// The operator whose state it is.
        operator: String,
        /// How large the state is.
        bytes: usize,
        /// What it does not fit.
        limit: MemoryLimit,
    },
    /// Results that cannot be handed out as Arrow.
    #[error("the result cannot be written as Arrow: {0}")]
    Export(#[from] ArrowError),
    /// The source or the sink failed, outside of the engine.
    #[error("the {what} failed: {error}")]
    Outside {
        /// Which of them.
        what: &'static str,
        /// Why.
        error: OutsideError,
    },
    /// The query held its shared source up, and was submitted to fail then.
    #[error(
        "the query lagged behind its shared source: {rows} rows wait for it, and it was submitted with on_lag=\"fail\""
    )]
    Lagged {
        /// Rows that wait for it.
        rows: u64,
    },
    /// The shared source failed or was stopped.
    #[error("the shared source of the query has failed or was stopped")]
    SourceEnded,
    /// Somebody asked to stop.
    #[error("the run was stopped")]
    Stopped,
    /// A bug: an operator panicked.
    #[error("the engine failed in {operator}: {text}")]
    Panicked {
        /// The task that it stands in.
        operator: String,
        /// What the panic said.
        text: String,
    },
}

/// Returns the message of a panic.
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic with a non-string payload".to_owned())
}
