//! What can go wrong while rows are running.

use arrow_schema::ArrowError;
use penstock_memory::{BatchError, MemoryLimit, OpenError};
use penstock_types::{ByteSize, ComputeError, PlanError};
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
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
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
    /// Somebody asked to stop.
    #[error("the run was stopped")]
    Stopped,
    /// An error before this ended the run; what it was about to do is lost.
    #[error("the run has failed before and cannot go on")]
    Failed,
    /// A bug: the worker panicked.
    #[error("the engine failed: {0}")]
    Panicked(String),
}
