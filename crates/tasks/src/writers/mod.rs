//! Where the results of an output go.
//!
//! A [`SinkWriter`] takes batches from the sink task, which makes Arrow of the rows of the last edge and knows nothing of
//! where they go. A new kind of output is a new file here, and a constructor in the engine.
//!
//! - [`collect`]: into a list that is handed over when the query has ended
//! - [`results`]: into a bounded queue that readers take from
//! - [`function`]: to code of the caller's
//! - [`discard`]: nowhere: rows are counted only
//!
//! WRITERS-1. A writer that gives a batch back wakes the task of the sink when it may take the batch.

pub mod collect;
pub mod discard;
pub mod function;
pub mod results;

use std::sync::Arc;

use penstock_memory::Parcel;
use penstock_queue::wake::Wake;

use crate::account::Latencies;
use crate::clock::{Clock, elapsed_ns};
use crate::error::RunError;
use crate::waker::Waker;

/// Takes the batches of one output.
pub trait SinkWriter: Send {
    /// Says whom to wake when a batch that was given back may be taken, and when memory of results that were read has
    /// left its account. Called once, before the first write.
    fn connect(&mut self, waker: &Arc<dyn Waker>, room: &Arc<dyn Wake>) {
        let _ = (waker, room);
    }

    /// Takes a batch, or gives it back when it has to wait (WRITERS-1).
    ///
    /// # Errors
    /// An output that has failed.
    fn write(&mut self, parcel: Parcel) -> Result<Option<Parcel>, RunError>;

    /// Writes what the writer itself holds back, at the end of the input. Returns true if nothing is left; otherwise it
    /// is called again when the task is woken (WRITERS-1).
    ///
    /// # Errors
    /// An output that has failed.
    fn flush(&mut self) -> Result<bool, RunError> {
        Ok(true)
    }

    /// Returns true if few rows now are better than more of them later.
    fn wants_partial_batches(&self) -> bool {
        true
    }

    /// Returns the rows that are worth waking the sink for, where rows can wait in the edge.
    fn worthwhile_rows(&self) -> u64 {
        1
    }

    /// Returns true if rows are counted only, and no batches are made of them.
    fn only_counts(&self) -> bool {
        false
    }

    /// Records the time from `since_ns` until what was written so far has been handed over, and `held` batches that the
    /// sink has yet to write.
    fn record_latency(&mut self, since_ns: u64, held: u64, latencies: &Arc<Latencies>, clock: &dyn Clock) {
        let _ = held;
        latencies.record(elapsed_ns(clock, since_ns));
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int64Array, RecordBatch};
    use penstock_memory::coordinator::{Coordinator, CoordinatorOptions};

    use super::*;

    pub(super) fn coordinator() -> Coordinator {
        Coordinator::new(CoordinatorOptions::default()).unwrap()
    }

    /// A batch of so many rows, charged as a copy.
    pub(super) fn parcel(memory: &Coordinator, rows: i64) -> Parcel {
        let column = Arc::new(Int64Array::from_iter_values(0..rows)) as _;
        let batch = RecordBatch::try_from_iter([("x", column)]).unwrap();
        Parcel::copied(batch, &memory.result_account())
    }
}
