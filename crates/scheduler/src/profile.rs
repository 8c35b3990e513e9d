//! What an operator took in, gave out and cost.
//!
//! One thread at a time adds, any thread reads: a reader sees each number by itself as it was a moment ago.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that one thread at a time raises and any thread reads.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds. The caller is alone in doing so: there is no lost update, and no locked instruction.
    #[inline]
    pub fn add(&self, more: u64) {
        self.0.store(self.get().wrapping_add(more), Ordering::Relaxed);
    }

    /// Replaces the number.
    #[inline]
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Returns the number.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counters of one operator. Time is told by the caller: nothing here reads a clock.
#[derive(Debug, Default)]
pub struct Profile {
    rows_in: Counter,
    rows_out: Counter,
    runs: Counter,
    busy_ns: Counter,
}

/// What a [`Profile`] said at some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Rows taken in.
    pub rows_in: u64,
    /// Rows given out.
    pub rows_out: u64,
    /// Runs.
    pub runs: u64,
    /// Nanoseconds spent.
    pub busy_ns: u64,
}

impl Profile {
    /// Adds one run.
    #[inline]
    pub fn record(&self, rows_in: usize, rows_out: usize, busy_ns: u64) {
        self.rows_in.add(rows_in as u64);
        self.rows_out.add(rows_out as u64);
        self.runs.add(1);
        self.busy_ns.add(busy_ns);
    }

    /// Adds rows that came out of what was taken in before.
    #[inline]
    pub fn emitted(&self, rows: usize, busy_ns: u64) {
        self.rows_out.add(rows as u64);
        self.busy_ns.add(busy_ns);
    }

    /// Returns what it says now.
    pub fn read(&self) -> Reading {
        Reading {
            rows_in: self.rows_in.get(),
            rows_out: self.rows_out.get(),
            runs: self.runs.get(),
            busy_ns: self.busy_ns.get(),
        }
    }
}

impl Reading {
    /// Returns rows out per row in; `None` before the first row.
    pub fn selectivity(&self) -> Option<f64> {
        (self.rows_in > 0).then(|| self.rows_out as f64 / self.rows_in as f64)
    }

    /// Returns nanoseconds per row in; `None` before the first row.
    pub fn cost_ns(&self) -> Option<f64> {
        (self.rows_in > 0).then(|| self.busy_ns as f64 / self.rows_in as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_and_selectivity_are_per_row_taken_in() {
        let profile = Profile::default();
        assert_eq!((profile.read().selectivity(), profile.read().cost_ns()), (None, None));
        profile.record(100, 25, 1_000);
        profile.record(100, 65, 2_000);
        profile.emitted(10, 1_000);
        assert_eq!((profile.read().selectivity(), profile.read().cost_ns()), (Some(0.5), Some(20.0)));
        assert_eq!(profile.read().runs, 2);
    }
}
