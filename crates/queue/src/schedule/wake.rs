//! How a task learns that there is something for it (SCHED-3, SCHED-5).

use std::mem;

use super::state::{IDLE, READY, is_free, is_ready, level as level_of, raised_to, ready_at};
use super::table::Row;
use super::{Level, ScheduleQueue, TaskId};
use crate::sync::{Ordering, ordering, planted};

impl<T> ScheduleQueue<T> {
    /// Tells a task that there is something to do. If it was idle, it becomes ready at the level that `level` returns;
    /// if it was ready, it may be raised to that level. Returns whether this call made an idle task ready.
    ///
    /// `level` is called for an idle or a ready task only, perhaps more than once. An id that is out of use does no harm;
    /// one that another task has by now wakes that one.
    pub fn wake(&self, task: TaskId, mut level: impl FnMut() -> Level) -> bool {
        let Some(row) = self.table.row(task) else { return false };
        // AcqRel: Release hands over what was published for the task before; it pairs with the Acquire in `pop`.
        // Acquire pairs with the Release in `publish`: the rank read below is the one given there, or a newer one.
        let hand_over = ordering("schedule.wake", Ordering::AcqRel);
        let mut state = row.peek();
        loop {
            // Also where nothing changes: what was published has to be released.
            let woken = if state == IDLE { ready_at(self.ask(task, &mut level)) } else { state | READY };
            match row.state.compare_exchange(state, woken, hand_over, Ordering::Relaxed) {
                Ok(IDLE) => {
                    let found = level_of(woken);
                    self.push(row, found);
                    self.parking.unpark_one();
                    // Since `level` looked, others may have published, and the task may even have run (SCHED-5).
                    if found != Level::FIRST && !planted("schedule.wake.again") {
                        self.lift(row, woken, level);
                    }
                    return true;
                }
                Ok(_) => {
                    if is_ready(state) && !planted("schedule.wake.raise") {
                        self.lift(row, state, level);
                    }
                    return false;
                }
                Err(now) => state = now,
            }
        }
    }

    /// Raises a task that is ready, if `level` returns a more urgent level than it has: after a [`Self::publish`] of a
    /// level that was settled before.
    pub fn raise(&self, task: TaskId, level: impl FnOnce() -> Level) {
        let Some(row) = self.table.row(task) else { return };
        if planted("schedule.raise") {
            return;
        }
        // AcqRel: of this and a wake-up that finds the task READY, the later one sees what led to the other (SCHED-5).
        let state = row.state.fetch_or(0, ordering("schedule.raise.look", Ordering::AcqRel));
        if is_ready(state) {
            self.lift(row, state, level);
        }
    }

    /// Returns whether a task is idle or gone. A wake-up that comes later sees what the caller did before; and the caller
    /// sees what earlier wake-ups, and the runs that they led to, have left.
    pub fn is_idle(&self, task: TaskId) -> bool {
        let Some(row) = self.table.row(task) else { return true };
        // AcqRel: as in `raise`.
        let state = row.state.fetch_or(0, ordering("schedule.is_idle", Ordering::AcqRel));
        state == IDLE || is_free(state)
    }

    /// Raises a row that was found READY in `state`, by SCHED-5. The thread that made it so has woken a worker, or will.
    fn lift(&self, row: &Row<T>, mut state: u32, level: impl FnOnce() -> Level) {
        let level = self.known_level(level());
        while is_ready(state) && level < level_of(state) {
            // AcqRel: as in `wake`.
            let raise = ordering("schedule.lift", Ordering::AcqRel);
            match row.state.compare_exchange(state, raised_to(state, level), raise, Ordering::Relaxed) {
                Ok(_) => return self.push(row, level),
                Err(now) => state = now,
            }
        }
    }

    /// Asks for the level of a task. If that panics, the task is woken all the same.
    fn ask(&self, task: TaskId, level: &mut impl FnMut() -> Level) -> Level {
        let unasked = Unasked { queue: self, task };
        let level = self.known_level(level());
        mem::forget(unasked);
        level
    }

    /// Returns the level, or the last one that this queue knows.
    pub(super) fn known_level(&self, level: Level) -> Level {
        level.min(self.last_level)
    }
}

/// The duty to wake a task whose level is not known.
struct Unasked<'a, T> {
    queue: &'a ScheduleQueue<T>,
    task: TaskId,
}

impl<T> Drop for Unasked<'_, T> {
    fn drop(&mut self) {
        self.queue.wake(self.task, || Level::FIRST);
    }
}
