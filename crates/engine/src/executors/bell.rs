//! How a task is woken, whatever runs it.
//!
//! BELL-1. A task has one bell, which its executor reserves before the task is made, and everything that wakes the task
//!     rings that one.
//! BELL-2. A bell that rings before its task is installed is kept: the task runs once it is there.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use penstock_queue::schedule::TaskId;
use penstock_queue::wake::Wake;
use penstock_scheduler::table::{Pending, TaskRow};

use super::group::Activity;
use penstock_tasks::waker::Waker;

/// How an executor makes a task run.
pub(crate) trait Way: Send + Sync + Any {
    /// Makes the task of that row run, now or once it is installed.
    fn wake(&self, row: &TaskRow);

    /// Returns its id in the scheduling queue, if it has one.
    fn task(&self) -> Option<TaskId>;

    /// Joins the group that it belongs to: it is listed when the task has something to do.
    fn join(&self, activity: &Arc<Activity>);

    /// Returns whether the task rests, or is gone. A wake-up that comes later sees what the caller did before.
    fn is_idle(&self, row: &TaskRow) -> bool;
}

/// Wakes one task.
pub(crate) struct Bell {
    /// The task's row of the table.
    pub(crate) row: TaskRow,
    /// Fewer rows than this, and no signal, are not worth a wake-up.
    least_rows: u64,
    way: Box<dyn Way>,
    trim: AtomicBool,
}

impl Bell {
    /// Makes the bell of a task that is not installed yet. Rows wait until there are so many, or a signal comes after them.
    pub(super) fn new(least_rows: u64, way: Box<dyn Way>) -> Arc<Self> {
        Arc::new(Self { row: TaskRow::default(), least_rows, way, trim: AtomicBool::new(false) })
    }

    /// Returns its way, if that is one of type `W`: each executor knows its own.
    pub(super) fn way<W: Way>(&self) -> Option<&W> {
        (&*self.way as &dyn Any).downcast_ref()
    }

    /// Joins the group of its task.
    pub(super) fn join(&self, activity: &Arc<Activity>) {
        self.way.join(activity);
    }

    /// Returns the place of its task in the queue, if it has one: not once the task is gone.
    pub(crate) fn task(&self) -> Option<TaskId> {
        if self.row.is_gone() { None } else { self.way.task() }
    }

    /// Returns the place that its task has or had.
    #[cfg(test)]
    pub(super) fn place(&self) -> Option<TaskId> {
        self.way.task()
    }

    /// Returns whether its task rests, or is gone.
    pub(super) fn is_idle(&self) -> bool {
        self.row.is_gone() || self.way.is_idle(&self.row)
    }

    /// Wakes the task, whatever waits for it. There may be room for its output again: until it has looked, it does not
    /// count as blocked.
    pub(crate) fn ring(&self) {
        self.row.unblock();
        self.way.wake(&self.row);
    }

    /// Wakes the task for something that no counter tells, such as a stop or a timer: whatever the thresholds say.
    pub(crate) fn call(&self) {
        self.row.request_run();
        self.ring();
    }

    /// Asks the task to give memory back that a burst has left over. By a request: nothing else waits for it, and
    /// until it has run its group counts as active.
    pub(super) fn ask_to_trim(&self) {
        self.trim.store(true, Ordering::Release);
        self.call();
    }

    /// Returns whether it was asked to: true once.
    pub(super) fn take_trim(&self) -> bool {
        self.trim.load(Ordering::Relaxed) && self.trim.swap(false, Ordering::AcqRel)
    }
}

impl Wake for Bell {
    fn wake(&self) {
        if self.least_rows > 1 {
            let work = self.row.work();
            if work.rows < self.least_rows && work.signals == 0 {
                return;
            }
        }
        self.ring();
    }
}

impl Waker for Bell {
    fn ring(&self) {
        self.ring();
    }

    fn request_run(&self) {
        self.call();
    }

    fn set_pending(&self, pending: Box<dyn Pending>) {
        self.row.set_pending(pending);
    }
}
