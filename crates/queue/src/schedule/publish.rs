//! How ranks and levels change once per epoch (SCHED-4). What it costs depends on the tasks that it names alone.

use super::state::{is_free, is_ready, marks, ready_at};
use super::table::Row;
use super::{Level, ScheduleQueue, TaskId};
use crate::sync::{Ordering, ordering, planted};

impl<T> ScheduleQueue<T> {
    /// Gives the first ranks to the tasks of `order`, in that order. Tasks that had these ranks get those that the tasks
    /// of `order` had. A task of `order` that is ready is so from now on at the level given here; all others keep theirs.
    ///
    /// Ids that no task has are ignored, and so is all but the first mention of one.
    pub fn publish(&self, order: &[(TaskId, Level)]) {
        // Ranks change with the lock held only, so they are read without synchronisation below.
        let control = self.control();
        let (mut rank, mut came_to_sight) = (0, 0);
        for &(task, level) in order {
            let Some(row) = self.table.row(task) else { continue };
            // One that has a smaller rank was named before. A task that comes or goes meanwhile may be ranked or not:
            // SCHED-4 holds for every row.
            let is_placed = (row.rank.load(Ordering::Relaxed) as usize) < rank;
            if is_placed || is_free(row.peek()) {
                continue;
            }
            came_to_sight += self.place(row, task, rank, self.known_level(level));
            rank += 1;
        }
        drop(control);
        for _ in 0..came_to_sight {
            if !self.parking.unpark_one() {
                break;
            }
        }
    }

    /// Gives a task that rank and that level; the task that has the rank gets its rank. Returns how many workers may have
    /// missed something that was out of sight for an instant.
    fn place(&self, row: &Row<T>, task: TaskId, rank: usize, level: Level) -> usize {
        let before = row.rank.load(Ordering::Relaxed) as usize;
        let other = self.table.order(rank).load(Ordering::Relaxed);
        let displaced = self.known_row(other);
        if before != rank {
            // SCHED-4. Relaxed: the read-modify-writes of `settle` release them.
            for (row, task, rank) in [(displaced, other, before), (row, task, rank)] {
                self.table.order(rank).store(task, Ordering::Relaxed);
                row.rank.store(rank as u32, Ordering::Relaxed);
            }
        }
        // Always before a task is settled: a thread that makes it READY afterwards sets the bit afterwards.
        let sweep = || {
            let moved = if before == rank { 0 } else { self.sweep(row, before, None) };
            moved + self.sweep(displaced, rank, Some((row, level)))
        };
        let is_late = planted("schedule.publish.clear");
        let mut came_to_sight = if is_late { 0 } else { sweep() };
        if before != rank && !planted("schedule.publish.displaced") {
            came_to_sight += self.settle(displaced, before, None);
        }
        came_to_sight += self.settle(row, rank, Some(level));
        if is_late { came_to_sight + sweep() } else { came_to_sight }
    }

    /// Clears the bits that a task has left at `rank`, so that workers need not find out one by one, except for the one
    /// that `next`, which has the rank now, is likely to need.
    fn sweep(&self, left: &Row<T>, rank: usize, next: Option<(&Row<T>, Level)>) -> usize {
        let keep = next.filter(|(row, _)| is_ready(row.peek())).map(|(_, level)| level);
        let out_of_date = marks(left.peek()).filter(|level| Some(*level) != keep);
        let positions = out_of_date.map(|level| self.position(level, rank));
        positions
            .map(|position| usize::from(self.bits.is_set(position) && self.bits.clear(position).restored))
            .sum()
    }

    /// Sets the bit of a task that is READY, at its level or at that `level`. The read-modify-write releases its new rank
    /// (SCHED-4).
    fn settle(&self, row: &Row<T>, rank: usize, level: Option<Level>) -> usize {
        if planted("schedule.publish.rescan") {
            return 0;
        }
        let mut state = row.peek();
        if planted("schedule.publish.write") {
            if is_ready(state) {
                self.bits.set(self.position(level.unwrap_or(super::state::level(state)), rank));
            }
            return usize::from(is_ready(state));
        }
        loop {
            let settled = match level {
                Some(level) if is_ready(state) => ready_at(level),
                _ => state,
            };
            // Release: pairs with the Acquire in `wake`, `fill` and the hand-back.
            let publish = ordering("schedule.publish", Ordering::Release);
            match row.state.compare_exchange(state, settled, publish, Ordering::Relaxed) {
                Ok(_) if is_ready(settled) => {
                    self.bits.set(self.position(super::state::level(settled), rank));
                    return 1;
                }
                Ok(_) => return 0,
                Err(now) => state = now,
            }
        }
    }
}
