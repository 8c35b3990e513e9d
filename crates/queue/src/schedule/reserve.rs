//! How a task gets a row: first the row, so that others can be told whom to wake, then the payload.

use std::fmt;
use std::mem;

use super::state::{FREE, IDLE, READY, ready_at};
use super::{Level, ScheduleQueue, TaskId};
use crate::sync::{Arc, Ordering, ordering};

/// A row for a task that is still to come. Dropping it frees the row.
///
/// Wake-ups of its id count from now on: they make the task ready as soon as it is there.
pub struct Reserved<T> {
    /// `None` once the row is filled.
    queue: Option<Arc<ScheduleQueue<T>>>,
    task: TaskId,
}

impl<T> Reserved<T> {
    /// Reserves a row for a task that the caller will make. None when the queue is full.
    pub fn new(queue: &Arc<ScheduleQueue<T>>) -> Option<Self> {
        let task = queue.reserve_row()?;
        Some(Self { queue: Some(Arc::clone(queue)), task })
    }

    /// Returns the id that the task will have.
    pub fn id(&self) -> TaskId {
        self.task
    }

    /// Puts the task into its row: idle, or ready at [`Level::FIRST`] if it was woken before.
    pub fn fill(mut self, payload: T) {
        if let Some(queue) = self.queue.take() {
            queue.fill(self.task, payload);
        }
    }
}

impl<T> Drop for Reserved<T> {
    fn drop(&mut self) {
        if let Some(queue) = self.queue.take() {
            queue.release(self.task);
        }
    }
}

impl<T> fmt::Debug for Reserved<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reserved").field("task", &self.task).finish_non_exhaustive()
    }
}

impl<T> ScheduleQueue<T> {
    /// Makes a row for a task that is idle. It becomes ready by [`Self::wake`]. None when the queue is full.
    ///
    /// The task ranks after all that the last [`Self::publish`] has named; or, in the row of a task that ended since
    /// then, at the rank which that one had.
    ///
    /// `make` gets the id first and is called without any lock: it may call whatever it likes here. Wake-ups for that
    /// id count from the call of `make` on. If it panics, the row is free again.
    pub fn add(&self, make: impl FnOnce(TaskId) -> T) -> Option<TaskId> {
        let task = self.reserve_row()?;
        let unmade = Unmade { queue: self, task };
        let payload = make(task);
        mem::forget(unmade);
        self.fill(task, payload);
        Some(task)
    }

    fn reserve_row(&self) -> Option<TaskId> {
        let mut control = self.control();
        let task = match control.free.pop_front() {
            Some(task) => task,
            None if control.made == self.table.capacity() => return None,
            None => {
                self.table.grow(control.made);
                control.made += 1;
                control.made as TaskId - 1
            }
        };
        // Forgets wake-ups from when no task had the row. A read-modify-write, by SCHED-1.
        self.known_row(task).state.swap(FREE, Ordering::Relaxed);
        Some(task)
    }

    /// Puts a task into a row that the caller has reserved.
    fn fill(&self, task: TaskId, payload: T) {
        let row = self.known_row(task);
        // SAFETY: TABLE-2: the caller has reserved the row, and its state is FREE.
        let cell = unsafe { &mut *row.payload() };
        *cell = Some(payload);
        self.live.fetch_add(1, Ordering::Relaxed);
        let mut state = FREE;
        loop {
            let is_woken = state & READY != 0;
            let filled = if is_woken { ready_at(Level::FIRST) } else { IDLE };
            // AcqRel: Release hands over the payload, and pairs with the Acquire in `pop`; Acquire as in `wake`.
            let give = ordering("schedule.add", Ordering::AcqRel);
            match row.state.compare_exchange(state, filled, give, Ordering::Relaxed) {
                Ok(_) if is_woken => {
                    self.push(row, Level::FIRST);
                    self.parking.unpark_one();
                    return;
                }
                Ok(_) => return,
                Err(now) => state = now,
            }
        }
    }

    /// Gives a row back that the caller has reserved, or taken a task out of.
    pub(super) fn release(&self, task: TaskId) {
        self.control().free.push_back(task);
    }
}

/// A row that is released if its task cannot be made.
struct Unmade<'a, T> {
    queue: &'a ScheduleQueue<T>,
    task: TaskId,
}

impl<T> Drop for Unmade<'_, T> {
    fn drop(&mut self) {
        self.queue.release(self.task);
    }
}
