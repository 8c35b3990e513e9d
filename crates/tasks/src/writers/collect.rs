//! Results that are kept whole, and handed over when the query has ended.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use penstock_memory::Parcel;

use super::SinkWriter;
use crate::error::RunError;

/// Rows that are worth handing out to a result that is kept whole.
const WORTHWHILE_ROWS: u64 = 4096;

/// The batches of a result that is kept whole.
pub type Collected = Arc<Mutex<Vec<RecordBatch>>>;

/// Keeps all batches.
pub struct CollectWriter(Collected);

impl CollectWriter {
    /// Keeps them there.
    pub fn new(batches: Collected) -> Self {
        Self(batches)
    }
}

impl SinkWriter for CollectWriter {
    fn write(&mut self, parcel: Parcel) -> Result<Option<Parcel>, RunError> {
        // A user who wants all of it keeps it: it is off the budget from now on.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(parcel.hand_out());
        Ok(None)
    }

    fn wants_partial_batches(&self) -> bool {
        false
    }

    fn worthwhile_rows(&self) -> u64 {
        WORTHWHILE_ROWS
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{coordinator, parcel};
    use super::*;

    #[test]
    fn collected_batches_are_off_the_budget() {
        let memory = coordinator();
        let batches = Collected::default();
        let mut writer = CollectWriter::new(Arc::clone(&batches));
        assert!(writer.write(parcel(&memory, 3)).unwrap().is_none());
        assert!(writer.write(parcel(&memory, 4)).unwrap().is_none());
        assert!(writer.flush().unwrap() && !writer.wants_partial_batches());
        let rows: Vec<usize> = batches.lock().unwrap().iter().map(RecordBatch::num_rows).collect();
        assert_eq!(rows, [3, 4]);
        assert_eq!(memory.snapshot().used_bytes, 0);
    }
}
