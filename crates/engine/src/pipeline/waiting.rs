//! What waits for a source that replays batches, as others see it.
//!
//! Rows count from when they are due until the task is done with them: those of the batch at hand, too.

use std::sync::Arc;

use penstock_queue::log::Work;
use penstock_scheduler::profile::Counter;
use penstock_scheduler::table::Pending;

use crate::clock::now_ns;
use crate::replay::Due;

/// What waits for a replay. Its source writes.
#[derive(Default)]
pub(super) struct Waiting {
    /// Rows that are not done with, of this round and the next.
    rows: Counter,
    /// 1 once no other batch follows: then the end waits as well.
    is_last: Counter,
    /// When the batch at hand was taken up.
    opened_ns: Counter,
    /// When rows are due, if not at once.
    due: Option<Arc<Due>>,
    /// 1 once the source is gone.
    gone: Counter,
}

impl Waiting {
    /// Of a replay with so many rows.
    pub(super) fn new(rows: u64, due: Option<Arc<Due>>) -> Self {
        let waiting = Self { due, ..Self::default() };
        waiting.rows.set(rows);
        waiting
    }

    /// A batch is taken up; so many rows wait, those of the batch among them.
    pub(super) fn open(&self, rows: u64, is_last: bool, now_ns: u64) {
        self.rows.set(rows);
        self.is_last.set(u64::from(is_last));
        self.opened_ns.set(now_ns);
    }

    /// So many rows were not taken, and count no more.
    pub(super) fn skip(&self, rows: u64) {
        self.rows.set(self.rows.get().saturating_sub(rows));
    }

    /// The task is done with so many rows.
    pub(super) fn done(&self, rows: u64) {
        self.skip(rows);
        if let Some(due) = &self.due {
            due.done(rows);
        }
    }

    /// Nothing waits any more.
    pub(super) fn leave(&self) {
        self.gone.set(1);
    }
}

/// Looks it up.
pub(super) struct Replayed(pub(super) Arc<Waiting>);

impl Pending for Replayed {
    fn work(&self) -> Work {
        let waiting = &self.0;
        if waiting.gone.get() > 0 {
            return Work::default();
        }
        let rows = waiting.rows.get();
        let due = waiting.due.as_ref().map_or(rows, |due| due.rows(now_ns()).min(rows));
        Work { rows: due, signals: waiting.is_last.get() }
    }

    fn arrived_ns(&self) -> Option<u64> {
        Some(self.0.due.as_ref().map_or_else(|| self.0.opened_ns.get(), |due| due.next_ns()))
    }
}
