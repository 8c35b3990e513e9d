//! The state of one operator: charged to the budget, and never made to wait.
//!
//! Making state wait would end in a deadlock: without input there is no watermark, and without a watermark no state is
//! released. So state that does not fit is an error of its query.

use std::sync::Arc;

use super::allocator::CoordinatorCore;
use super::limit::MemoryLimit;

/// Bytes of one operator's state. Released when it is dropped.
#[derive(Debug)]
pub struct StateAccount {
    core: Arc<CoordinatorCore>,
    bytes: usize,
}

impl StateAccount {
    pub(super) fn new(core: Arc<CoordinatorCore>) -> Self {
        Self { core, bytes: 0 }
    }

    /// Sets the size of the state. When it does not fit, the account is unchanged.
    pub fn set(&mut self, bytes: usize) -> Result<(), MemoryLimit> {
        let state_bytes = &self.core.tally.state_bytes;
        if bytes > self.bytes {
            self.core.budget.try_state(bytes - self.bytes)?;
            state_bytes.add((bytes - self.bytes) as u64);
        } else {
            state_bytes.sub((self.bytes - bytes) as u64);
            self.core.budget.release(self.bytes - bytes);
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Splits off an account for a part of the state, with that many of its bytes, at most all of them.
    pub fn split(&mut self, bytes: usize) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self { core: Arc::clone(&self.core), bytes }
    }

    /// Takes over all bytes of the other account.
    pub fn absorb(&mut self, other: &mut Self) {
        debug_assert!(Arc::ptr_eq(&self.core, &other.core), "both accounts share one budget");
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Returns the size that was set.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for StateAccount {
    fn drop(&mut self) {
        self.core.tally.state_bytes.sub(self.bytes as u64);
        self.core.budget.release(self.bytes);
    }
}
