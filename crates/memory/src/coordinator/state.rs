//! The state of one operator: charged to the budget, and never made to wait.
//!
//! Making state wait would end in a deadlock: without input no watermark, without a watermark no state is released.
//! So state that does not fit is an error of its query.

use std::sync::Arc;

use super::limit::MemoryLimit;
use super::source::CoordinatorCore;

/// Bytes of one operator's state. They are given back when it is dropped.
#[derive(Debug)]
pub struct StateAccount {
    source: Arc<CoordinatorCore>,
    bytes: usize,
}

impl StateAccount {
    pub(super) fn new(source: Arc<CoordinatorCore>) -> Self {
        Self { source, bytes: 0 }
    }

    /// Says how large the state is now. When that does not fit, the account stays as it was.
    pub fn set(&mut self, bytes: usize) -> Result<(), MemoryLimit> {
        let state_bytes = &self.source.tally.state_bytes;
        if bytes > self.bytes {
            self.source.budget.try_state(bytes - self.bytes)?;
            state_bytes.add((bytes - self.bytes) as u64);
        } else {
            state_bytes.sub((self.bytes - bytes) as u64);
            self.source.budget.release(self.bytes - bytes);
        }
        self.bytes = bytes;
        Ok(())
    }

    /// An account for a part of the state that is split off, with so many of its bytes, as far as it has them.
    pub fn split(&mut self, bytes: usize) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self { source: Arc::clone(&self.source), bytes }
    }

    /// Takes over all that the other one has.
    pub fn absorb(&mut self, other: &mut Self) {
        debug_assert!(Arc::ptr_eq(&self.source, &other.source), "both are of one budget");
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// How large the state was said to be.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for StateAccount {
    fn drop(&mut self) {
        self.source.tally.state_bytes.sub(self.bytes as u64);
        self.source.budget.release(self.bytes);
    }
}
