//! What a run gave: results, and where every row went.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use penstock_memory::coordinator::Counters;
use penstock_scheduler::profile::Reading;
use penstock_types::Tick;

use penstock_tasks::account::{DroppedLate, Latency};

/// What one operator did.
#[derive(Clone, Debug)]
pub struct OperatorReport {
    /// Its name, as in `explain()`.
    pub name: String,
    /// Its counters.
    pub profile: Reading,
}

/// The results of one output.
#[derive(Clone, Debug)]
pub struct OutputPart {
    /// The name of the output.
    pub name: String,
    /// The schema of the results.
    pub schema: SchemaRef,
    /// The results.
    pub batches: Vec<RecordBatch>,
}

impl OutputPart {
    /// Rows of the results.
    pub fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

/// The result of a run.
///
/// Every row taken in is accounted for:
/// `rows_in + rows_copied = rows_contributed + rows_filtered + rows_late + rows_shed + rows_rejected`.
#[derive(Clone, Debug)]
pub struct Output {
    /// The results of each output; there is one at least.
    pub parts: Vec<OutputPart>,
    /// Rows taken in.
    pub rows_in: u64,
    /// Rows that count once more for each reader but the first, where several read the same rows.
    pub rows_copied: u64,
    /// Rows that reached the result, or a window that counted them.
    pub rows_contributed: u64,
    /// Rows that a filter or an inner lookup dropped.
    pub rows_filtered: u64,
    /// Rows that came after their window had closed.
    pub rows_late: u64,
    /// Results that came after a window behind them had closed.
    pub late_results: u64,
    /// Rows that were skipped because the query lagged behind its source.
    pub rows_shed: u64,
    /// Rows that were left out because an operator rejected them.
    pub rows_rejected: u64,
    /// Results that an operator behind rejected.
    pub rejected_results: u64,
    /// Largest distance between a late row and the watermark it missed.
    pub late_by: Option<u64>,
    /// The unit of `late_by`.
    pub tick: Option<Tick>,
    /// Late rows and results that went nowhere.
    pub dropped_late: Option<DroppedLate>,
    /// Batches taken in.
    pub batches_in: u64,
    /// What each operator did.
    pub operators: Vec<OperatorReport>,
    /// What memory came to.
    pub memory: Counters,
    /// From the arrival of a row to the sink.
    pub event_latency: Latency,
    /// From the arrival of the watermark that closed a window to its results at the sink.
    pub output_latency: Latency,
}

impl Output {
    /// The first output.
    pub fn first(&self) -> &OutputPart {
        &self.parts[0]
    }

    /// The results of the first output.
    pub fn batches(&self) -> &[RecordBatch] {
        &self.first().batches
    }

    /// Rows of all outputs.
    pub fn rows_out(&self) -> usize {
        self.parts.iter().map(OutputPart::rows).sum()
    }

    /// `late_by` as people write it.
    pub fn late_by_text(&self) -> Option<String> {
        Some(self.tick?.describe(i128::from(self.late_by?)))
    }
}
