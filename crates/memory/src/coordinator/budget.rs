//! The bytes in use, and the refusal of requests that do not fit.
//!
//! BUDGET-1. `used` is `owned + payload`. Owned bytes are requested first: reservations, chunks beyond them, state.
//!     They never exceed the budget. Payload is already in memory when it is counted, and may take `used` beyond the
//!     budget (COORDINATOR-3).
//! BUDGET-2. A reservation fits while `used` stays within the budget.
//! BUDGET-3. A log grows beyond its reservation while `used` stays within the part of the budget that is for logs.
//!     Logs can wait, and take all they may while their readers lag; the rest is left for state.
//! BUDGET-4. State fits while `owned` stays within the budget. It cannot wait, and payload is released when readers
//!     reach its rows: a query fails for memory that is kept, never for payload that passes through.
//!
//! All orderings are Relaxed: the numbers hand nothing over, and read-modify-writes of one word are totally ordered.
//! Only `owned` is bound by a limit, so one word decides; payload that arrives meanwhile counts after the decision.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::limit::MemoryLimit;

/// Growing logs leave one part in this many of the budget to state. An eighth of the default budget is a sixteenth of
/// the machine: enough for the state of most queries, and logs with seven eighths do not miss it.
const KEPT_FROM_LOGS: usize = 8;

/// The budget, and how much of it is in use.
#[derive(Debug)]
pub(super) struct Budget {
    bytes: usize,
    owned: AtomicUsize,
    payload: AtomicUsize,
    peak: AtomicUsize,
}

impl Budget {
    pub(super) fn new(bytes: usize) -> Self {
        let [owned, payload, peak] = [0; 3].map(AtomicUsize::new);
        Self { bytes, owned, payload, peak }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn used(&self) -> usize {
        self.owned.load(Relaxed) + self.payload()
    }

    pub(super) fn payload(&self) -> usize {
        self.payload.load(Relaxed)
    }

    /// Returns the most that was in use, as seen by the requests that took it.
    pub(super) fn peak(&self) -> usize {
        self.peak.load(Relaxed)
    }

    /// Returns the bytes not in use.
    pub(super) fn free(&self) -> usize {
        self.bytes.saturating_sub(self.used())
    }

    /// Returns true if more is in use than logs may grow to: a caller that can wait should.
    pub(super) fn is_over(&self) -> bool {
        self.used() > self.bytes - self.bytes / KEPT_FROM_LOGS
    }

    /// Takes a log's reservation, if it fits (BUDGET-2).
    pub(super) fn try_reserve(&self, bytes: usize) -> Result<(), MemoryLimit> {
        self.try_own(bytes, self.payload(), self.bytes)
    }

    /// Takes the growth of a log beyond its reservation, if it fits (BUDGET-3); returns false if it does not.
    pub(super) fn try_grow(&self, bytes: usize) -> bool {
        self.try_own(bytes, self.payload(), self.bytes - self.bytes / KEPT_FROM_LOGS).is_ok()
    }

    /// Takes the growth of state, if it fits (BUDGET-4).
    pub(super) fn try_state(&self, bytes: usize) -> Result<(), MemoryLimit> {
        self.try_own(bytes, 0, self.bytes)
    }

    /// Adds `bytes` to `owned` if the sum stays within `limit`, counting `beside` as well.
    fn try_own(&self, bytes: usize, beside: usize, limit: usize) -> Result<(), MemoryLimit> {
        if bytes == 0 {
            return Ok(());
        }
        let room = limit.saturating_sub(beside);
        let fits = |owned: usize| owned.checked_add(bytes).filter(|owned| *owned <= room);
        match self.owned.fetch_update(Relaxed, Relaxed, fits) {
            Ok(before) => {
                self.peak.fetch_max(before + bytes + self.payload(), Relaxed);
                Ok(())
            }
            Err(owned) => {
                Err(MemoryLimit { needed_bytes: bytes, used_bytes: owned + beside, budget_bytes: self.bytes })
            }
        }
    }

    /// Subtracts `bytes` from `owned`.
    pub(super) fn release(&self, bytes: usize) {
        let before = self.owned.fetch_sub(bytes, Relaxed);
        debug_assert!(before >= bytes, "only what was charged is released");
    }

    /// Counts payload, whether it fits or not (COORDINATOR-3).
    pub(super) fn pin(&self, bytes: usize) {
        let before = self.payload.fetch_add(bytes, Relaxed);
        self.peak.fetch_max(before + bytes + self.owned.load(Relaxed), Relaxed);
    }

    /// Subtracts released payload.
    pub(super) fn unpin(&self, bytes: usize) {
        let before = self.payload.fetch_sub(bytes, Relaxed);
        debug_assert!(before >= bytes, "only what was pinned is released");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused() {
        let budget = Budget::new(1 << 20);
        let most = (1 << 20) - (32 << 10);
        budget.try_reserve(most).unwrap();
        let refusal = MemoryLimit { needed_bytes: 96 << 10, used_bytes: most, budget_bytes: 1 << 20 };
        assert_eq!(budget.try_reserve(96 << 10), Err(refusal));
        assert_eq!(budget.try_state(96 << 10), Err(refusal));
        budget.try_state(32 << 10).unwrap();
        assert_eq!(budget.free(), 0);
        assert!(budget.try_reserve(usize::MAX).is_err());
    }

    #[test]
    fn the_peak_stays() {
        let budget = Budget::new(100);
        budget.try_reserve(60).unwrap();
        budget.pin(70);
        budget.unpin(70);
        budget.release(60);
        assert_eq!((budget.used(), budget.peak(), budget.free()), (0, 130, 100));
    }

    #[test]
    fn growth_leaves_an_eighth() {
        let budget = Budget::new(800);
        assert!(budget.try_grow(700));
        assert!(!budget.try_grow(1));
        assert!(budget.try_grow(0));
        budget.try_state(60).unwrap();
        budget.try_reserve(40).unwrap();
        assert!(budget.try_state(1).is_err());
    }

    #[test]
    fn payload_blocks_logs_but_not_state() {
        let budget = Budget::new(800);
        budget.pin(750);
        assert!(!budget.try_grow(1));
        let refusal = MemoryLimit { needed_bytes: 51, used_bytes: 750, budget_bytes: 800 };
        assert_eq!(budget.try_reserve(51), Err(refusal));
        budget.try_reserve(50).unwrap();
        budget.try_state(750).unwrap();
        let refusal = MemoryLimit { needed_bytes: 1, used_bytes: 800, budget_bytes: 800 };
        assert_eq!(budget.try_state(1), Err(refusal));
        assert_eq!((budget.used(), budget.free()), (1550, 0));
    }
}
