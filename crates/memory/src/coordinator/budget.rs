//! The bytes in use, and the refusal of what does not fit.
//!
//! All orderings are Relaxed: the number hands nothing over, and read-modify-writes of one word are totally ordered.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::limit::MemoryLimit;

/// The budget, and how much of it is in use.
#[derive(Debug)]
pub(super) struct Budget {
    bytes: usize,
    used: AtomicUsize,
    peak: AtomicUsize,
}

impl Budget {
    pub(super) fn new(bytes: usize) -> Self {
        Self { bytes, used: AtomicUsize::new(0), peak: AtomicUsize::new(0) }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn used(&self) -> usize {
        self.used.load(Relaxed)
    }

    pub(super) fn peak(&self) -> usize {
        self.peak.load(Relaxed)
    }

    /// Bytes that are not in use.
    pub(super) fn free(&self) -> usize {
        self.bytes.saturating_sub(self.used())
    }

    /// Takes `bytes` into use if they fit.
    pub(super) fn try_charge(&self, bytes: usize) -> Result<(), MemoryLimit> {
        if bytes == 0 {
            return Ok(());
        }
        let fits = |used: usize| used.checked_add(bytes).filter(|used| *used <= self.bytes);
        match self.used.fetch_update(Relaxed, Relaxed, fits) {
            Ok(before) => {
                self.peak.fetch_max(before + bytes, Relaxed);
                Ok(())
            }
            Err(used_bytes) => Err(MemoryLimit { needed_bytes: bytes, used_bytes, budget_bytes: self.bytes }),
        }
    }

    /// Takes `bytes` into use whether they fit or not (M3).
    pub(super) fn charge(&self, bytes: usize) {
        let before = self.used.fetch_add(bytes, Relaxed);
        self.peak.fetch_max(before + bytes, Relaxed);
    }

    /// Says that `bytes` are no longer in use.
    pub(super) fn release(&self, bytes: usize) {
        let before = self.used.fetch_sub(bytes, Relaxed);
        debug_assert!(before >= bytes, "only what was charged is released");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused() {
        let budget = Budget::new(1 << 20);
        let most = (1 << 20) - (32 << 10);
        budget.try_charge(most).unwrap();
        let refusal = MemoryLimit { needed_bytes: 96 << 10, used_bytes: most, budget_bytes: 1 << 20 };
        assert_eq!(budget.try_charge(96 << 10), Err(refusal));
        budget.try_charge(32 << 10).unwrap();
        assert_eq!(budget.free(), 0);
        assert!(budget.try_charge(usize::MAX).is_err());
    }

    #[test]
    fn the_peak_stays() {
        let budget = Budget::new(100);
        budget.try_charge(60).unwrap();
        budget.charge(70);
        budget.release(130);
        assert_eq!((budget.used(), budget.peak(), budget.free()), (0, 130, 100));
    }
}
