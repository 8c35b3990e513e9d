//! A task that a worker has, from `pop` until it is handed back.
//!
//! By K2 and R2 a [`Running`] is the only one of its task, and the payload is its own.

use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::ops::{Deref, DerefMut};

use super::table::{FREE, IDLE, READY, RUNNING, Row};
use super::{Class, ScheduleQueue, TaskId};
use crate::sync::{Ordering, ordering, planted};

/// A task that this worker runs, alone.
///
/// Whoever hands it back goes on with [`ScheduleQueue::pop`] or [`ScheduleQueue::park`], and so finds it itself if
/// nobody else is faster: no worker is woken for it. Dropping it, as a panic does, hands it back as ready, and wakes
/// a worker.
pub struct Running<'a, T> {
    queue: &'a ScheduleQueue<T>,
    task: TaskId,
    row: &'a Row<T>,
    /// It stays on its thread: shared with another one, it would share a payload that may not bear that.
    stays: PhantomData<*mut T>,
}

impl<'a, T> Running<'a, T> {
    /// The caller has turned the row's state from READY into RUNNING.
    pub(super) fn new(queue: &'a ScheduleQueue<T>, task: TaskId, row: &'a Row<T>) -> Self {
        Self { queue, task, row, stays: PhantomData }
    }

    /// Which task it is.
    pub fn id(&self) -> TaskId {
        self.task
    }

    /// Hands it back: it still has work, and is ready in that class; or in the one that `again` says, if somebody woke it
    /// meanwhile.
    pub fn ready(self, class: Class, again: impl FnMut(&T) -> Class) {
        self.hand_back(class, again);
        mem::forget(self);
    }

    /// Hands it back: it has no work, unless somebody woke it meanwhile. Then it is ready again, in the class that
    /// `class` says.
    pub fn idle(self, mut class: impl FnMut(&T) -> Class) {
        // Release: hands over the payload, and pairs with the Acquire in `pop`.
        let give = ordering("schedule.idle", Ordering::Release);
        let slept = if planted("schedule.idle.check") {
            self.row.state.swap(IDLE, give);
            true
        } else {
            self.row.state.compare_exchange(RUNNING, IDLE, give, Ordering::Relaxed).is_ok()
        };
        if !slept {
            let first = self.ask(&mut class);
            self.hand_back(first, class);
        }
        mem::forget(self);
    }

    /// Ends it: the row is free again, and the payload is the caller's.
    pub fn retire(self) -> T {
        let Self { queue, task, row, .. } = self;
        // SAFETY: K2 and R2: the payload is this worker's.
        let payload = unsafe { &mut *row.payload() }.take();
        mem::forget(self);
        // Relaxed: the lock below hands the row over to the next who reserves it.
        row.state.swap(FREE, Ordering::Relaxed);
        queue.live.fetch_sub(1, Ordering::Relaxed);
        queue.control().free.push_back(task);
        payload.expect("a running task has a payload")
    }

    /// The class of a task that was woken while it ran.
    fn ask(&self, class: &mut impl FnMut(&T) -> Class) -> Class {
        // Acquire: what it was woken for is there (K5). READY goes, so that the next wake-up can be told from this one.
        self.row.state.fetch_and(!READY, ordering("schedule.ask", Ordering::Acquire));
        class(self)
    }

    /// K5.
    fn hand_back(&self, mut class: Class, mut again: impl FnMut(&T) -> Class) {
        // AcqRel: Release hands over the payload, and pairs with the Acquire in `pop`. Acquire as in `wake`.
        let give = ordering("schedule.ready", Ordering::AcqRel);
        while class == Class::Spare && !planted("schedule.ready.again") {
            if self.row.state.compare_exchange(RUNNING, READY, give, Ordering::Relaxed).is_ok() {
                self.queue.push(self.row, class);
                return;
            }
            class = self.ask(&mut again);
        }
        self.row.state.swap(READY, give);
        self.queue.push(self.row, class);
    }
}

impl<T> Drop for Running<'_, T> {
    fn drop(&mut self) {
        self.hand_back(Class::Now, |_| Class::Now);
        self.queue.parking.unpark_one();
    }
}

impl<T> Deref for Running<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: K2 and R2: the payload is this worker's, and it is borrowed with `self`.
        unsafe { &*self.row.payload() }.as_ref().expect("a running task has a payload")
    }
}

impl<T> DerefMut for Running<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: K2 and R2: the payload is this worker's, and it is borrowed with `self`.
        unsafe { &mut *self.row.payload() }.as_mut().expect("a running task has a payload")
    }
}

impl<T> fmt::Debug for Running<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("task", &self.task).finish_non_exhaustive()
    }
}
