//! How a worker takes a task (SCHED-2, SCHED-3, SCHED-6).

use super::state::{RUNNING, is_ready, level as level_of, marks, ready_at};
use super::table::Row;
use super::{Level, Running, ScheduleQueue, TaskId};
use crate::sync::{Ordering, ordering, planted};

impl<T> ScheduleQueue<T> {
    /// Takes the first task of the most urgent level that has ready ones, for the caller to run. None when no task is
    /// ready; the caller may [`Self::park`] then.
    pub fn pop(&self) -> Option<Running<'_, T>> {
        let mut restored = false;
        let taken = self.take(&mut restored);
        if restored && !planted("schedule.pop.restored") {
            // A worker may have looked while they were out of sight, and have parked.
            self.parking.unpark_one();
        }
        taken
    }

    /// Takes that task, whatever its rank, if it is ready and no task of a more urgent level is (SCHED-6).
    pub fn pop_this(&self, task: TaskId) -> Option<Running<'_, T>> {
        let row = self.table.row(task)?;
        let mut state = row.peek();
        loop {
            if !is_ready(state) || (!planted("schedule.pop_this.level") && self.passes(level_of(state))) {
                return None;
            }
            // Acquire: as in `claim`.
            let take = ordering("schedule.pop_this", Ordering::Acquire);
            match row.state.compare_exchange(state, RUNNING, take, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => state = now,
            }
        }
        // Otherwise a bit would say that it is ready at a level that it may be handed back at without being there.
        let rank = row.rank.load(Ordering::Relaxed) as usize;
        let mut came_to_sight = false;
        for level in marks(state) {
            came_to_sight |= self.forget(level, rank, task);
        }
        if came_to_sight {
            self.parking.unpark_one();
        }
        Some(Running::new(self, task, row))
    }

    /// Returns whether a worker that takes a task of `level` passes one of a more urgent level.
    fn passes(&self, level: Level) -> bool {
        level != Level::FIRST && self.bits.first().is_some_and(|position| self.place_of(position).0 < level)
    }

    fn take(&self, restored: &mut bool) -> Option<Running<'_, T>> {
        loop {
            let (level, rank) = self.place_of(self.bits.take_first(restored)?);
            // Relaxed: the Acquire on the bit made the store of SCHED-4 visible.
            let task = self.table.order(rank).load(Ordering::Relaxed);
            let row = self.known_row(task);
            let Some(state) = claim(row, level) else { continue };
            for other in marks(state).filter(|other| *other != level) {
                *restored |= self.forget(other, rank, task); // it was raised
            }
            return Some(Running::new(self, task, row));
        }
    }

    /// Clears a bit of a task that the caller has taken, unless the rank is another's by now (SCHED-3). Returns whether
    /// others were out of sight for an instant.
    fn forget(&self, level: Level, rank: usize, task: TaskId) -> bool {
        let position = self.position(level, rank);
        if !self.bits.is_set(position) {
            return false;
        }
        let cleared = self.bits.clear(position);
        // Relaxed: the Acquire on the bit made the store of SCHED-4 visible.
        let is_others = cleared.was_set && self.table.order(rank).load(Ordering::Relaxed) != task;
        if is_others && !planted("schedule.forget.again") {
            self.bits.set(position);
        }
        cleared.restored || is_others
    }
}

/// Makes a row RUNNING if it is READY at `level` or a more urgent one. Returns its state before.
fn claim<T>(row: &Row<T>, level: Level) -> Option<u32> {
    let mut state = ready_at(level);
    loop {
        // Acquire: pairs with the Release of the thread that handed the task back or woke it (TABLE-2).
        let take = ordering("schedule.pop", Ordering::Acquire);
        match row.state.compare_exchange(state, RUNNING, take, Ordering::Relaxed) {
            Ok(_) => return Some(state),
            Err(now) if is_ready(now) && (level_of(now) <= level || planted("schedule.pop.lowered")) => {
                state = now;
            }
            Err(_) => return None,
        }
    }
}
