//! How a task is woken, whatever runs it.
//!
//! R1. A task has one bell from the moment that it is drafted, and everything that wakes it rings that one.
//! R2. Edges, feeds and timers are made before the task that they wake is installed: until then its bell wakes nobody, and
//!     whoever installs a task rings it once afterwards. Whoever finds nobody to wake looks again behind a fence, and
//!     whoever installs a task has one between that and the ring: one of the two sees what the other did.

use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use penstock_queue::gate::Gate;
use penstock_queue::schedule::TaskId;
use penstock_queue::wake::Wake;
use penstock_scheduler::Rules;
use penstock_scheduler::table::{Pending, TaskRow};

use super::cell::TaskQueue;
use crate::tasks::waker::Waker;

/// Wakes one task.
pub(crate) struct Bell {
    /// The task's row of the table.
    pub(crate) row: TaskRow,
    /// Fewer rows than this, and no signal, are not worth a wake-up.
    least_rows: u64,
    way: OnceLock<Way>,
    trim: AtomicBool,
}

/// Who runs the task.
enum Way {
    Workers { queue: Arc<TaskQueue>, task: TaskId, rules: Arc<Rules> },
    Thread(Gate),
}

impl Bell {
    /// The bell of a task that is not installed yet.
    pub(crate) fn new() -> Arc<Self> {
        Self::for_rows(1)
    }

    /// One that lets rows wait until there are so many, or a signal stands behind them.
    pub(crate) fn for_rows(least_rows: u64) -> Arc<Self> {
        Arc::new(Self {
            row: TaskRow::default(),
            least_rows,
            way: OnceLock::new(),
            trim: AtomicBool::new(false),
        })
    }

    /// From now on it wakes that task of the queue.
    pub(crate) fn connect(&self, queue: &Arc<TaskQueue>, task: TaskId, rules: &Arc<Rules>) {
        let way = Way::Workers { queue: Arc::clone(queue), task, rules: Arc::clone(rules) };
        self.settle(way);
    }

    /// From now on it wakes the thread that waits here.
    pub(crate) fn connect_thread(&self) {
        self.settle(Way::Thread(Gate::new()));
    }

    fn settle(&self, way: Way) {
        assert!(self.way.set(way).is_ok(), "a task is installed once");
        fence(Ordering::SeqCst); // R2
    }

    /// Its place in the queue, if it has one: neither before it is installed nor once it is gone.
    pub(crate) fn task(&self) -> Option<TaskId> {
        match self.way.get() {
            Some(Way::Workers { task, .. }) if !self.row.is_gone() => Some(*task),
            _ => None,
        }
    }

    /// Wakes the task, whatever waits for it. There may be room for its output again: until it has looked, it does not
    /// count as blocked.
    pub(crate) fn ring(&self) {
        self.row.unblock();
        match settled(&self.way) {
            Some(Way::Workers { queue, task, rules }) => {
                queue.wake(*task, || rules.level(&self.row));
            }
            Some(Way::Thread(gate)) => gate.signal(),
            None => {}
        }
    }

    /// Wakes the task for something that no counter tells, such as a stop or a timer: whatever the thresholds say.
    pub(crate) fn call(&self) {
        self.row.request_run();
        self.ring();
    }

    /// Asks the task to give memory back that a burst has left behind.
    pub(crate) fn ask_to_trim(&self) {
        self.trim.store(true, Ordering::Release);
        self.ring();
    }

    /// Whether it was asked to: true once.
    pub(crate) fn take_trim(&self) -> bool {
        self.trim.load(Ordering::Relaxed) && self.trim.swap(false, Ordering::AcqRel)
    }

    /// Sleeps until it rings, or `timeout` is over: for the thread of its task.
    pub(crate) fn wait(&self, timeout: Duration) {
        if let Some(Way::Thread(gate)) = self.way.get() {
            gate.wait(timeout);
        }
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

/// What has been settled, as R2 says.
fn settled<T>(cell: &OnceLock<T>) -> Option<&T> {
    cell.get().or_else(|| {
        fence(Ordering::SeqCst);
        cell.get()
    })
}
