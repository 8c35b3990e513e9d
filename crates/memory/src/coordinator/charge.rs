//! The numbers of an account, shared with every piece of the log's memory.
//!
//! The log grows its charge before it takes memory, on the thread of its writer. Memory and payload leave on the
//! thread of their last owner, which may be long after the log and its account are gone.
//!
//! LOG_CHARGE-1. `state` holds the bytes held and whether the account is CLOSED. The charge for chunks follows from
//!     this word: `held` when it is closed, else `max(reserved, held)`. Every change of the word goes with exactly the
//!     change of `used_bytes` that belongs to its two values: before it when it rises, after it when it falls
//!     (COORDINATOR-2). So the sum is right however changes of many threads interleave.
//! LOG_CHARGE-2. CLOSED is final. Closing releases what was reserved and not held; what is held stays charged until it
//!     is released, and nothing is added.
//! LOG_CHARGE-3. Bytes enter `held` by `try_grow` alone, ahead of the memory they are for. They leave it once: with
//!     that memory, when it is detached or else dropped; or by `shrink`, when no memory came of them.
//! LOG_CHARGE-4. Payload is off the charge when the owner that charged it releases it, whether the account is closed
//!     or not.
//!
//! All orderings are Relaxed: these numbers hand nothing over.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::allocator::CoordinatorCore;
use super::counters::SharedCounter;
use super::limit::MemoryLimit;

/// The top bit, which no size reaches.
const CLOSED: usize = !(usize::MAX >> 1);

fn held(state: usize) -> usize {
    state & !CLOSED
}

#[derive(Debug)]
pub(super) struct LogCharge {
    pub(super) core: Arc<CoordinatorCore>,
    reserved: usize,
    state: AtomicUsize,
    payload: AtomicUsize,
    /// Spare chunks, as the log reports them.
    pub(super) spare: SharedCounter,
}

impl LogCharge {
    pub(super) fn open(core: Arc<CoordinatorCore>, reserved: usize) -> Result<Self, MemoryLimit> {
        core.budget.try_reserve(reserved)?;
        Ok(Self {
            core,
            reserved,
            state: AtomicUsize::new(0),
            payload: AtomicUsize::new(0),
            spare: SharedCounter::default(),
        })
    }

    /// Returns the charge for chunks (LOG_CHARGE-1).
    fn for_chunks(&self, state: usize) -> usize {
        if state & CLOSED == 0 { state.max(self.reserved) } else { held(state) }
    }

    pub(super) fn held(&self) -> usize {
        held(self.state.load(Relaxed))
    }

    pub(super) fn payload(&self) -> usize {
        self.payload.load(Relaxed)
    }

    /// Returns the bytes of chunks and payload together.
    pub(super) fn all(&self) -> usize {
        self.for_chunks(self.state.load(Relaxed)) + self.payload()
    }

    /// Returns true if the log may have chunks of that many bytes, with its payload.
    pub(super) fn fits_cap(&self, held: usize) -> bool {
        held.saturating_add(self.payload()) <= self.core.options.log_cap_bytes
    }

    pub(super) fn try_grow(&self, bytes: usize) -> bool {
        let mut state = self.state.load(Relaxed);
        loop {
            let grown = held(state).saturating_add(bytes);
            // COORDINATOR-4: within the reservation the cap does not apply, and there is nothing more to charge.
            let allowed = grown <= self.reserved || self.fits_cap(grown);
            if (state | grown) & CLOSED != 0 || !allowed {
                return false;
            }
            let more = self.for_chunks(grown) - self.for_chunks(state);
            if !self.core.budget.try_grow(more) {
                return false;
            }
            match self.state.compare_exchange(state, grown, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) => {
                    self.core.budget.release(more);
                    state = now;
                }
            }
        }
    }

    pub(super) fn shrink(&self, bytes: usize) {
        let mut state = self.state.load(Relaxed);
        loop {
            debug_assert!(held(state) >= bytes, "only what was charged is taken off");
            let shrunk = held(state).saturating_sub(bytes) | state & CLOSED;
            match self.state.compare_exchange(state, shrunk, Relaxed, Relaxed) {
                Ok(_) => {
                    return self.core.budget.release(self.for_chunks(state) - self.for_chunks(shrunk));
                }
                Err(now) => state = now,
            }
        }
    }

    /// Releases what was reserved and is not held (LOG_CHARGE-2).
    pub(super) fn close(&self) {
        let state = self.state.fetch_or(CLOSED, Relaxed);
        self.core.budget.release(self.for_chunks(state) - self.for_chunks(state | CLOSED));
    }

    pub(super) fn charge_payload(&self, bytes: usize) {
        self.core.budget.pin(bytes);
        self.payload.fetch_add(bytes, Relaxed);
    }

    pub(super) fn release_payload(&self, bytes: usize) {
        let before = self.payload.fetch_sub(bytes, Relaxed);
        debug_assert!(before >= bytes, "only payload that was charged is released");
        self.core.budget.unpin(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordinator::CoordinatorOptions;

    fn charge(reserved: usize) -> LogCharge {
        let options =
            CoordinatorOptions { budget_bytes: 800, log_cap_bytes: 400, ..CoordinatorOptions::default() };
        LogCharge::open(Arc::new(CoordinatorCore::new(options)), reserved).unwrap()
    }

    #[test]
    fn closing_leaves_what_is_held() {
        for (held, before, after) in [(0, 100, 0), (60, 100, 60), (100, 100, 100), (300, 300, 300)] {
            let charge = charge(100);
            let used = || charge.core.budget.used();
            assert!(charge.try_grow(held));
            assert_eq!(used(), before);
            charge.close();
            assert_eq!((used(), charge.held(), charge.all()), (after, held, after));
            charge.shrink(held);
            assert_eq!(used(), 0);
        }
    }

    #[test]
    fn a_closed_charge_only_falls() {
        let charge = charge(100);
        assert!(charge.try_grow(50));
        charge.charge_payload(7);
        charge.close();
        assert!(!charge.try_grow(1));
        assert!(!charge.try_grow(0));
        charge.shrink(20);
        assert_eq!(charge.core.budget.used(), 37);
        charge.release_payload(7);
        charge.shrink(30);
        assert_eq!((charge.all(), charge.core.budget.used()), (0, 0));
    }

    #[test]
    fn no_size_reaches_the_mark() {
        let options = CoordinatorOptions {
            budget_bytes: usize::MAX,
            log_cap_bytes: usize::MAX,
            ..CoordinatorOptions::default()
        };
        let charge = LogCharge::open(Arc::new(CoordinatorCore::new(options)), usize::MAX).unwrap();
        assert!(charge.try_grow(CLOSED - 1));
        assert!(!charge.try_grow(1));
        assert!(!charge.try_grow(usize::MAX));
        assert_eq!(charge.held(), CLOSED - 1);
    }
}
