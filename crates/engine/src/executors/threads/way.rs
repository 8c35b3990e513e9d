//! How the thread of a task learns that there is something for it.

use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use penstock_queue::gate::Gate;
use penstock_queue::schedule::TaskId;
use penstock_scheduler::table::TaskRow;

use crate::executors::bell::Way;
use crate::executors::group::Activity;

/// Wakes the thread that waits here. A wake-up before the thread is there is kept.
#[derive(Default)]
pub(super) struct ThreadWay {
    gate: Gate,
    activity: OnceLock<Arc<Activity>>,
}

impl ThreadWay {
    /// Sleeps until the task is woken, or `timeout` is over.
    pub(super) fn wait(&self, timeout: Duration) {
        self.gate.wait(timeout);
    }

    /// Notes that the task has run.
    pub(super) fn note(&self) {
        if let Some(activity) = self.activity.get() {
            // Between the counters of the run and the mark of the group, as in `is_idle` the other way round.
            fence(Ordering::SeqCst);
            activity.note();
        }
    }
}

impl Way for ThreadWay {
    fn wake(&self, _row: &TaskRow) {
        self.gate.signal();
    }

    fn task(&self) -> Option<TaskId> {
        None
    }

    fn join(&self, activity: &Arc<Activity>) {
        assert!(self.activity.set(Arc::clone(activity)).is_ok(), "a task is installed once");
    }

    fn is_idle(&self, row: &TaskRow) -> bool {
        fence(Ordering::SeqCst);
        row.did.running.get() == 0
    }
}
