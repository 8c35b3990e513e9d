//! Results on their way to their reader.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;

use crate::coordinator::{Claim, Hold, ResultAccount};

/// A batch that waits to be read, and its charge meanwhile.
pub struct Parcel {
    // First, so that the memory is released before the charge falls.
    batch: RecordBatch,
    claim: Option<Claim>,
    hold: Option<Hold>,
}

impl Parcel {
    pub(crate) fn new(batch: RecordBatch, claim: Option<Claim>, hold: Option<Hold>) -> Self {
        Self { batch, claim, hold }
    }

    /// Charges a batch that owns its values.
    pub fn copied(batch: RecordBatch, account: &ResultAccount) -> Self {
        // Only the slice's own part: its buffers may be shared.
        let bytes = |column: &ArrayRef| {
            let data = column.to_data();
            let own = data.get_slice_memory_size().unwrap_or_else(|_| data.get_array_memory_size());
            // Arrow does not count the buffers that views point to.
            own + match column.data_type() {
                DataType::Utf8View => column.as_string_view().total_buffer_bytes_used(),
                DataType::BinaryView => column.as_binary_view().total_buffer_bytes_used(),
                _ => 0,
            }
        };
        let hold = account.hold(batch.columns().iter().map(bytes).sum());
        Self { batch, claim: None, hold: Some(hold) }
    }

    /// Returns the rows.
    pub fn batch(&self) -> &RecordBatch {
        &self.batch
    }

    /// Returns the bytes of copies. Rows in the memory of a log are charged there.
    pub fn bytes(&self) -> usize {
        self.hold.as_ref().map_or(0, Hold::bytes)
    }

    /// Takes the batch off the budget: for a reader that may outlive the engine.
    #[must_use]
    pub fn off_budget(self) -> Self {
        Self { batch: self.hand_out(), claim: None, hold: None }
    }

    /// Returns the rows, off the budget: the user may keep them for any time.
    pub fn hand_out(self) -> RecordBatch {
        let Self { batch, claim, hold } = self;
        drop((claim, hold));
        batch
    }
}
