//! When the rows of a paced replay are due.
//!
//! PACER-1. At most [`MOST_BACKLOG_NS`] worth of rows are due and not taken. An engine that falls further behind slows the
//!     source down; by how much is counted as slip.

use std::sync::Arc;

use penstock_scheduler::profile::Counter;

/// How far the engine may fall behind before the source slows down.
const MOST_BACKLOG_NS: u64 = 1_000_000_000;
/// Rows of so much time become available together.
const SLICE_NS: u64 = 500_000;

/// Which rows are due, for threads other than that of the source, which writes.
#[derive(Debug)]
pub struct DueRows {
    ns_per_row: f64,
    /// When the first row was due; 0 before the replay has begun.
    start_ns: Counter,
    /// Rows that are done with.
    done: Counter,
}

impl DueRows {
    /// Returns the rows that are due and not done with: at most [`MOST_BACKLOG_NS`] worth of them, beside those that were
    /// taken (PACER-1).
    pub fn rows(&self, now_ns: u64) -> u64 {
        let start_ns = self.start_ns.get();
        if start_ns == 0 {
            return 0;
        }
        let due = (now_ns.saturating_sub(start_ns) as f64 / self.ns_per_row) as u64;
        due.saturating_sub(self.done.get())
    }

    /// Returns when the oldest row that is not done with was due.
    pub fn next_ns(&self) -> u64 {
        self.start_ns.get() + (self.done.get() as f64 * self.ns_per_row) as u64
    }

    /// Notes that so many more are done with.
    pub fn done(&self, rows: u64) {
        self.done.add(rows);
    }
}

/// Paces rows.
#[derive(Clone, Debug)]
pub struct Pacer {
    ns_per_row: f64,
    start_ns: Option<u64>,
    /// Rows taken so far, and since the start was moved.
    taken: u64,
    slipped_ns: u64,
    shown: Arc<DueRows>,
}

impl Pacer {
    /// Paces rows at that rate.
    pub fn new(rows_per_second: f64) -> Self {
        let ns_per_row = 1e9 / rows_per_second;
        let shown = Arc::new(DueRows { ns_per_row, start_ns: Counter::default(), done: Counter::default() });
        Self { ns_per_row, start_ns: None, taken: 0, slipped_ns: 0, shown }
    }

    /// Returns the same for other threads.
    pub fn shown(&self) -> &Arc<DueRows> {
        &self.shown
    }

    /// Returns the rows that are due and not taken.
    pub fn due(&mut self, now_ns: u64) -> u64 {
        let start = *self.start_ns.get_or_insert(now_ns);
        let late_ns = now_ns.saturating_sub(self.due_ns(0));
        if late_ns > MOST_BACKLOG_NS {
            // PACER-1: the schedule gives way.
            let slip = late_ns - MOST_BACKLOG_NS;
            self.slipped_ns += slip;
            self.start_ns = Some(start + slip);
        }
        self.shown.start_ns.set(self.start_ns.unwrap_or(now_ns).max(1));
        let elapsed = now_ns.saturating_sub(self.start_ns.unwrap_or(now_ns));
        ((elapsed as f64 / self.ns_per_row) as u64).saturating_sub(self.taken)
    }

    /// Returns when the row after so many more is due.
    pub fn due_ns(&self, rows: u64) -> u64 {
        self.start_ns.unwrap_or(0) + ((self.taken + rows) as f64 * self.ns_per_row) as u64
    }

    /// Returns the rows that are worth a run.
    pub fn slice_rows(&self) -> u64 {
        ((SLICE_NS as f64 / self.ns_per_row) as u64).max(1)
    }

    /// Takes rows.
    pub fn take(&mut self, rows: u64) {
        self.taken += rows;
    }

    /// Returns how much time the schedule has given way.
    pub fn slipped_ns(&self) -> u64 {
        self.slipped_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_due_at_their_rate() {
        let mut pacer = Pacer::new(1_000_000.0);
        assert_eq!(pacer.due(5_000), 0);
        assert_eq!(pacer.due(5_000 + 1_500_000), 1_500);
        pacer.take(1_000);
        assert_eq!(pacer.due(5_000 + 1_500_000), 500);
        assert_eq!(pacer.due_ns(500), 5_000 + 1_500_000);
        assert_eq!(pacer.slice_rows(), 500);
    }

    #[test]
    fn others_see_which_rows_are_due_until_they_are_done_with() {
        let mut pacer = Pacer::new(1_000_000.0);
        let due = Arc::clone(pacer.shown());
        assert_eq!(due.rows(5_000_000), 0, "it has not begun");
        assert_eq!(pacer.due(5_000), 0);
        assert_eq!((due.rows(2_005_000), due.next_ns()), (2_000, 5_000));
        pacer.take(1_500);
        assert_eq!(due.rows(2_005_000), 2_000, "what was taken is not done with");
        due.done(1_500);
        assert_eq!((due.rows(2_005_000), due.next_ns()), (500, 1_505_000));
    }

    #[test]
    fn a_slow_engine_slows_the_source_down() {
        let mut pacer = Pacer::new(1_000.0);
        assert_eq!(pacer.due(0), 0);
        assert_eq!(pacer.due(3_000_000_000), 1_000);
        assert_eq!(pacer.slipped_ns(), 2_000_000_000);
        pacer.take(1_000);
        assert_eq!(pacer.due(3_000_000_000), 0);
    }
}
