//! A task that a worker has, from `pop` until it is handed back.
//!
//! By SCHED-2 and TABLE-2 a [`Running`] is the only one of its task, and the payload is its own.

use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::ops::{Deref, DerefMut};

use super::state::{FREE, IDLE, READY, RUNNING, ready_at};
use super::table::Row;
use super::{Level, ScheduleQueue, TaskId};
use crate::sync::{Ordering, ordering, planted};

/// A task that this worker runs, alone.
///
/// The worker that hands it back goes on with [`ScheduleQueue::pop`] or [`ScheduleQueue::park`], and so finds it itself
/// if no other worker is faster: none is woken for it. Dropping it, as a panic does, hands it back as ready at
/// [`Level::FIRST`], and wakes a worker.
pub struct Running<'a, T> {
    queue: &'a ScheduleQueue<T>,
    task: TaskId,
    row: &'a Row<T>,
    /// It stays on its thread: sharing it with another one would share a payload that need not be `Sync`.
    stays: PhantomData<*mut T>,
}

impl<'a, T> Running<'a, T> {
    /// The caller has turned the row's state from READY into RUNNING.
    pub(super) fn new(queue: &'a ScheduleQueue<T>, task: TaskId, row: &'a Row<T>) -> Self {
        Self { queue, task, row, stays: PhantomData }
    }

    /// Returns the id of the task.
    pub fn id(&self) -> TaskId {
        self.task
    }

    /// Hands it back: it still has work, and is ready at that level; or at the one that `again` returns, if it was woken
    /// during the run.
    pub fn ready(self, level: Level, again: impl FnMut(&T) -> Level) {
        self.hand_back(level, again);
        mem::forget(self);
    }

    /// Hands it back: it has no work, unless it was woken during the run. Then it is ready again, at the level that
    /// `level` returns.
    pub fn idle(self, mut level: impl FnMut(&T) -> Level) {
        // Release: hands over the payload, and pairs with the Acquire in `pop`.
        let give = ordering("schedule.idle", Ordering::Release);
        let slept = if planted("schedule.idle.check") {
            self.row.state.swap(IDLE, give);
            true
        } else {
            self.row.state.compare_exchange(RUNNING, IDLE, give, Ordering::Relaxed).is_ok()
        };
        if !slept {
            let first = self.ask(&mut level);
            self.hand_back(first, level);
        }
        mem::forget(self);
    }

    /// Ends it: the row is free again, and the payload is the caller's.
    pub fn retire(self) -> T {
        let Self { queue, task, row, .. } = self;
        // SAFETY: SCHED-2 and TABLE-2: the payload is this worker's.
        let payload = unsafe { &mut *row.payload() }.take();
        mem::forget(self);
        // Relaxed: the lock below hands the row over to the next thread that reserves it.
        row.state.swap(FREE, Ordering::Relaxed);
        queue.live.fetch_sub(1, Ordering::Relaxed);
        queue.release(task);
        payload.expect("a running task has a payload")
    }

    /// Asks for the level of a task that was woken during the run.
    fn ask(&self, level: &mut impl FnMut(&T) -> Level) -> Level {
        // Acquire: what it was woken for is there (SCHED-5). READY goes, so that the next wake-up can be told from this
        // one.
        self.row.state.fetch_and(!READY, ordering("schedule.ask", Ordering::Acquire));
        level(self)
    }

    /// Makes it READY, by SCHED-5.
    fn hand_back(&self, mut level: Level, mut again: impl FnMut(&T) -> Level) {
        // AcqRel: Release hands over the payload, and pairs with the Acquire in `pop`. Acquire as in `wake`.
        let give = ordering("schedule.ready", Ordering::AcqRel);
        loop {
            level = self.queue.known_level(level);
            // No wake-up could raise it.
            if level == Level::FIRST || planted("schedule.ready.again") {
                self.row.state.swap(ready_at(level), give);
                break;
            }
            if self.row.state.compare_exchange(RUNNING, ready_at(level), give, Ordering::Relaxed).is_ok() {
                break;
            }
            level = self.ask(&mut again);
        }
        self.queue.push(self.row, level);
    }
}

impl<T> Drop for Running<'_, T> {
    fn drop(&mut self) {
        self.hand_back(Level::FIRST, |_| Level::FIRST);
        self.queue.parking.unpark_one();
    }
}

impl<T> Deref for Running<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: SCHED-2 and TABLE-2: the payload is this worker's, and it is borrowed with `self`.
        unsafe { &*self.row.payload() }.as_ref().expect("a running task has a payload")
    }
}

impl<T> DerefMut for Running<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: SCHED-2 and TABLE-2: the payload is this worker's, and it is borrowed with `self`.
        unsafe { &mut *self.row.payload() }.as_mut().expect("a running task has a payload")
    }
}

impl<T> fmt::Debug for Running<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("task", &self.task).finish_non_exhaustive()
    }
}
