//! The state word of a task: what it is doing, and in which levels it is marked as ready.
//!
//! A ready task has a mark for each level in which its bit was set since it became ready. The most urgent mark is its
//! level; the others say which bits are out of date, so that the worker that takes the task can clear them.

use super::Level;

/// Nothing to do.
pub(super) const IDLE: u32 = 0;
/// Waits for a worker. Beside RUNNING: was woken during the run. Beside FREE: was woken before it was there.
pub(super) const READY: u32 = 1;
/// A worker has it.
pub(super) const RUNNING: u32 = 2;
/// No task has the row: it was never used, its task has ended, or its next task is being made.
pub(super) const FREE: u32 = 4;

const FLAGS: u32 = READY | RUNNING | FREE;
const FIRST_MARK: u32 = 8;

const fn mark(level: Level) -> u32 {
    1 << (FIRST_MARK + level.number() as u32)
}

/// Returns the state of a task that has just become ready at `level`.
pub(super) const fn ready_at(level: Level) -> u32 {
    READY | mark(level)
}

/// Returns the state of a ready task that is raised to `level`.
pub(super) const fn raised_to(state: u32, level: Level) -> u32 {
    state | mark(level)
}

/// Returns whether the state is that of a task that waits for a worker.
pub(super) const fn is_ready(state: u32) -> bool {
    state & FLAGS == READY
}

/// Returns whether no task has the row.
pub(super) const fn is_free(state: u32) -> bool {
    state & FREE != 0
}

/// Returns the level of a ready task: its most urgent mark.
pub(super) fn level(state: u32) -> Level {
    marks(state).next().expect("a ready task has a mark")
}

/// Returns the levels that are marked, the most urgent one first.
pub(super) fn marks(state: u32) -> impl Iterator<Item = Level> {
    let mut left = state >> FIRST_MARK;
    std::iter::from_fn(move || {
        let level = Level::new(left.trailing_zeros() as u8)?;
        left &= left - 1;
        Some(level)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_urgent_mark_is_the_level() {
        let [second, fourth] = [1, 3].map(|number| Level::new(number).expect("a level"));
        let raised = raised_to(ready_at(fourth), second);
        assert!(is_ready(raised) && !is_free(raised));
        assert_eq!((level(raised), marks(raised).collect::<Vec<_>>()), (second, vec![second, fourth]));
        assert_eq!(level(ready_at(Level::LAST)), Level::LAST);
        assert_eq!(marks(RUNNING | READY).count(), 0);
    }

    #[test]
    fn a_wake_up_beside_another_state_makes_nothing_ready() {
        assert!(!is_ready(RUNNING | READY) && !is_ready(FREE | READY) && !is_ready(IDLE));
        assert!(is_free(FREE | READY));
    }
}
