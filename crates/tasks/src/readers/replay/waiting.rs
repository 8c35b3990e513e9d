//! What waits for a source that replays batches, as other threads see it.
//!
//! Rows count from when they are due until the task is done with them: those of the batch at hand, too (READERS-1).

use std::sync::Arc;

use penstock_queue::log::Work;
use penstock_scheduler::profile::Counter;
use penstock_scheduler::table::Pending;

use super::pacer::DueRows;
use crate::clock::SharedClock;

/// What waits for a replay. Its source writes.
#[derive(Default)]
pub struct Waiting {
    /// Rows that are not done with, of this round and the next.
    rows: Counter,
    /// 1 once no other batch follows: then the end waits as well.
    is_last: Counter,
    /// When the batch at hand was taken up.
    opened_ns: Counter,
    /// When rows are due, if not at once.
    due: Option<Arc<DueRows>>,
    /// 1 once the source is gone.
    gone: Counter,
}

impl Waiting {
    /// Of a replay with so many rows.
    pub fn new(rows: u64, due: Option<Arc<DueRows>>) -> Self {
        let waiting = Self { due, ..Self::default() };
        waiting.rows.set(rows);
        waiting
    }

    /// Notes that a batch is taken up; so many rows wait, those of the batch among them.
    pub fn open(&self, rows: u64, is_last: bool, now_ns: u64) {
        self.rows.set(rows);
        self.is_last.set(u64::from(is_last));
        self.opened_ns.set(now_ns);
    }

    /// Notes that so many rows wait from now on.
    pub fn set_rows(&self, rows: u64) {
        self.rows.set(rows);
        self.is_last.set(0);
    }

    /// Notes that so many rows were not taken, and count no more.
    pub fn skip(&self, rows: u64) {
        self.rows.set(self.rows.get().saturating_sub(rows));
    }

    /// Notes that the task is done with so many rows.
    pub fn done(&self, rows: u64) {
        self.skip(rows);
        if let Some(due) = &self.due {
            due.done(rows);
        }
    }

    /// Notes that nothing waits any more.
    pub fn leave(&self) {
        self.gone.set(1);
    }
}

/// Looks up what waits for a replay.
pub struct ReplayPending {
    waiting: Arc<Waiting>,
    clock: SharedClock,
}

impl ReplayPending {
    /// Looks up what waits there, by the time of that clock.
    pub fn new(waiting: Arc<Waiting>, clock: SharedClock) -> Self {
        Self { waiting, clock }
    }
}

impl Pending for ReplayPending {
    fn work(&self) -> Work {
        let waiting = &self.waiting;
        if waiting.gone.get() > 0 {
            return Work::default();
        }
        let rows = waiting.rows.get();
        let due = waiting.due.as_ref().map_or(rows, |due| due.rows(self.clock.system_ns()).min(rows));
        Work { rows: due, signals: waiting.is_last.get() }
    }

    fn arrived_ns(&self) -> Option<u64> {
        let waiting = &self.waiting;
        Some(waiting.due.as_ref().map_or_else(|| waiting.opened_ns.get(), |due| due.next_ns()))
    }
}
