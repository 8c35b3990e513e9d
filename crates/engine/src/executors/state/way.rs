//! How the scheduling queue learns that there is something for a task.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use penstock_queue::schedule::{Reserved, TaskId};
use penstock_scheduler::Rules;
use penstock_scheduler::table::TaskRow;

use crate::executors::bell::Way;
use crate::executors::cell::{TaskCell, TaskQueue};
use crate::executors::group::Activity;

/// Wakes a task of the queue.
pub(super) struct QueueWay {
    queue: Arc<TaskQueue>,
    task: TaskId,
    rules: Arc<Rules>,
    activity: OnceLock<Arc<Activity>>,
    /// The row of the task, until it is installed.
    reserved: Mutex<Option<Reserved<TaskCell>>>,
}

impl QueueWay {
    /// Makes the way to a row that is reserved.
    pub(super) fn new(reserved: Reserved<TaskCell>, queue: &Arc<TaskQueue>, rules: &Arc<Rules>) -> Self {
        Self {
            queue: Arc::clone(queue),
            task: reserved.id(),
            rules: Arc::clone(rules),
            activity: OnceLock::new(),
            reserved: Mutex::new(Some(reserved)),
        }
    }

    /// Returns the row for the task to be put in: once.
    pub(super) fn take_reserved(&self) -> Option<Reserved<TaskCell>> {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn is_installed(&self) -> bool {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}

impl Way for QueueWay {
    fn wake(&self, row: &TaskRow) {
        let is_ready = self.queue.wake(self.task, || self.rules.level(row));
        // A task that was ready, or ran, is of a group that is listed (LISTED-1).
        if is_ready && let Some(activity) = self.activity.get() {
            activity.note();
        }
    }

    fn task(&self) -> Option<TaskId> {
        Some(self.task)
    }

    fn join(&self, activity: &Arc<Activity>) {
        assert!(self.activity.set(Arc::clone(activity)).is_ok(), "a task is installed once");
    }

    fn is_idle(&self, _row: &TaskRow) -> bool {
        self.is_installed() && self.queue.is_idle(self.task)
    }
}
