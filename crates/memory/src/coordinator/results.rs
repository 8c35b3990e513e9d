//! Results that wait to be read: charged to the budget until somebody has them.
//!
//! What is handed out as it stands keeps the charge of its log, see [`Claim`](super::Claim). Copies are there already
//! when they are counted, like payload, and hold back whoever makes them: at most one batch for each output is made
//! whatever the budget says, so that no reader waits for another.

use std::sync::Arc;

use super::source::CoordinatorCore;

/// The part of the budget that copies for one output may take while nobody reads them, up to the cap of a log.
const RESULTS_SHARE: usize = 16;
/// The part of the budget that one batch may take, within these bounds.
const BATCH_SHARE: usize = 64;
const LEAST_BATCH_BYTES: usize = 64 << 10;
const MOST_BATCH_BYTES: usize = 8 << 20;

/// Who counts results that wait. A handle; clones speak of the same budget.
#[derive(Clone, Debug)]
pub struct ResultAccount {
    source: Arc<CoordinatorCore>,
}

impl ResultAccount {
    pub(super) fn new(source: Arc<CoordinatorCore>) -> Self {
        Self { source }
    }

    /// Counts bytes that are there, until the hold is dropped.
    pub fn hold(&self, bytes: usize) -> Hold {
        let mut hold = Hold { source: Arc::clone(&self.source), bytes: 0 };
        hold.set(bytes);
        hold
    }

    /// Whether so many bytes, beside `waiting` of the same output, should wait for a reader.
    pub fn is_too_much(&self, waiting: usize, bytes: usize) -> bool {
        let most = (self.source.budget.bytes() / RESULTS_SHARE).min(self.source.options.log_cap_bytes);
        waiting.saturating_add(bytes) > most || self.source.budget.is_over()
    }

    /// Bytes that a batch of copies should not go beyond.
    pub fn batch_bytes(&self) -> usize {
        (self.source.budget.bytes() / BATCH_SHARE).clamp(LEAST_BATCH_BYTES, MOST_BATCH_BYTES)
    }
}

/// Bytes of results that wait. They are off the budget when this is dropped.
#[derive(Debug)]
pub struct Hold {
    source: Arc<CoordinatorCore>,
    bytes: usize,
}

impl Hold {
    /// Says how many there are now.
    pub fn set(&mut self, bytes: usize) {
        if bytes > self.bytes {
            self.source.budget.pin(bytes - self.bytes);
        } else {
            self.source.budget.unpin(self.bytes - bytes);
        }
        self.bytes = bytes;
    }

    /// How many there are.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.source.budget.unpin(self.bytes);
    }
}
