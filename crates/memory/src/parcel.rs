//! Results on their way to whoever reads them.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;

use crate::coordinator::{Claim, Hold, ResultAccount};

/// A batch that waits to be read, and what it is charged meanwhile.
pub struct Parcel {
    // First, so that what it holds has gone back when the charge falls.
    batch: RecordBatch,
    claim: Option<Claim>,
    hold: Option<Hold>,
}

impl Parcel {
    pub(crate) fn new(batch: RecordBatch, claim: Option<Claim>, hold: Option<Hold>) -> Self {
        Self { batch, claim, hold }
    }

    /// A batch of values of its own.
    pub fn copied(batch: RecordBatch, account: &ResultAccount) -> Self {
        // Of a slice, its own part: others have the rest.
        let bytes = |column: &ArrayRef| {
            let data = column.to_data();
            let own = data.get_slice_memory_size().unwrap_or_else(|_| data.get_array_memory_size());
            // Arrow leaves out what views point to.
            own + match column.data_type() {
                DataType::Utf8View => column.as_string_view().total_buffer_bytes_used(),
                DataType::BinaryView => column.as_binary_view().total_buffer_bytes_used(),
                _ => 0,
            }
        };
        let hold = account.hold(batch.columns().iter().map(bytes).sum());
        Self { batch, claim: None, hold: Some(hold) }
    }

    /// The rows.
    pub fn batch(&self) -> &RecordBatch {
        &self.batch
    }

    /// Bytes of copies. Those that stand in the memory of a log are charged there.
    pub fn bytes(&self) -> usize {
        self.hold.as_ref().map_or(0, Hold::bytes)
    }

    /// The same, off the budget: for somebody who may read it when the engine is gone.
    #[must_use]
    pub fn off_budget(self) -> Self {
        Self { batch: self.hand_out(), claim: None, hold: None }
    }

    /// The rows, for somebody who keeps them for as long as he likes: they are off the budget.
    pub fn hand_out(self) -> RecordBatch {
        let Self { batch, claim, hold } = self;
        drop((claim, hold));
        batch
    }
}
