//! Results that wait to be read: charged to the budget until a reader has them.
//!
//! Rows that are handed out in place keep the charge of their log, see [`Claim`](super::Claim). Copies are already in
//! memory when they are counted, like payload, and hold back their producer: at most one batch per output is made
//! regardless of the budget, so that no reader waits for another.

use std::sync::Arc;

use super::allocator::CoordinatorCore;

/// The copies of one output may take one part in this many of the budget while they are unread, up to the cap of a
/// log.
const RESULTS_SHARE: usize = 16;
/// One batch may take one part in this many of the budget, within these bounds.
const BATCH_SHARE: usize = 64;
const MIN_BATCH_BYTES: usize = 64 << 10;
const MAX_BATCH_BYTES: usize = 8 << 20;

/// Counts results that wait. A handle; clones share one budget.
#[derive(Clone, Debug)]
pub struct ResultAccount {
    core: Arc<CoordinatorCore>,
}

impl ResultAccount {
    pub(super) fn new(core: Arc<CoordinatorCore>) -> Self {
        Self { core }
    }

    /// Counts bytes in memory until the hold is dropped.
    pub fn hold(&self, bytes: usize) -> Hold {
        let mut hold = Hold { core: Arc::clone(&self.core), bytes: 0 };
        hold.set(bytes);
        hold
    }

    /// Returns true if that many bytes, with the `waiting` ones of the same output, should wait for a reader.
    pub fn is_too_much(&self, waiting: usize, bytes: usize) -> bool {
        let most = (self.core.budget.bytes() / RESULTS_SHARE).min(self.core.options.log_cap_bytes);
        waiting.saturating_add(bytes) > most || self.core.budget.is_over()
    }

    /// Returns the byte limit of a batch of copies.
    pub fn batch_bytes(&self) -> usize {
        (self.core.budget.bytes() / BATCH_SHARE).clamp(MIN_BATCH_BYTES, MAX_BATCH_BYTES)
    }
}

/// Bytes of waiting results. They are off the budget when this is dropped.
#[derive(Debug)]
pub struct Hold {
    core: Arc<CoordinatorCore>,
    bytes: usize,
}

impl Hold {
    /// Sets the number of bytes.
    pub fn set(&mut self, bytes: usize) {
        if bytes > self.bytes {
            self.core.budget.pin(bytes - self.bytes);
        } else {
            self.core.budget.unpin(self.bytes - bytes);
        }
        self.bytes = bytes;
    }

    /// Returns the number of bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.core.budget.unpin(self.bytes);
    }
}
