//! Why a run ends without a result.

use arrow_schema::ArrowError;
use penstock_memory::{BatchError, MemoryLimit};
use penstock_types::{ByteSize, ComputeError, OutsideError};
use thiserror::Error;

/// Why a run ended without a result.
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
    /// The source or the sink failed, in code outside the project.
    #[error("the {what} failed: {error}")]
    Outside {
        /// Which of the two.
        what: &'static str,
        /// Why.
        error: OutsideError,
    },
    /// The query kept its shared source waiting, and was submitted to fail in that case.
    #[error(
        "the query lagged behind its shared source: {rows} rows wait for it, and it was submitted with on_lag=\"fail\""
    )]
    Lagged {
        /// Rows that wait for the query.
        rows: u64,
    },
    /// The shared source failed or was stopped.
    #[error("the shared source of the query has failed or was stopped")]
    SourceEnded,
    /// The run was asked to stop.
    #[error("the run was stopped")]
    Stopped,
    /// A bug: an operator panicked.
    #[error("the engine failed in {operator}: {text}")]
    Panicked {
        /// The task that panicked.
        operator: String,
        /// The payload of the panic.
        text: String,
    },
}

/// Returns the message of a panic.
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic with a non-string payload".to_owned())
}
