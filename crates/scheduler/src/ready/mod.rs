//! The order of ready tasks: the most urgent level first, and by rank within a level.
//!
//! - lock-free, for many workers: the [`ScheduleQueue`](penstock_queue::schedule::ScheduleQueue) of an engine
//! - [`SortedTasks`]: a sorted set for one thread, such as that of a simulator
//!
//! Both do the same for the same calls of one thread; a test compares them.

mod queue;
mod sorted;

use std::ops::DerefMut;

use penstock_queue::schedule::{Level, TaskId};

pub use sorted::SortedTasks;

/// Tasks, and which of them is to run next.
pub trait ReadyTasks<T> {
    /// A task that the caller runs.
    type Taken<'a>: TakenTask<T>
    where
        Self: 'a;

    /// Adds a task that is idle and ranks last, or at the rank of one that has ended. `None` when there is no room.
    fn add(&self, make: impl FnOnce(TaskId) -> T) -> Option<TaskId>;

    /// Makes an idle task ready at the level that `level` returns, and raises a ready one to it. Returns whether the task
    /// was idle.
    fn wake(&self, task: TaskId, level: impl FnMut() -> Level) -> bool;

    /// Raises a task that is ready to the level that `level` returns, if that is more urgent than its own.
    fn raise(&self, task: TaskId, level: impl FnOnce() -> Level);

    /// Gives the first ranks to the tasks of `order`, which change places with those that had them. Those that are ready
    /// are so at the levels given from now on.
    fn publish(&self, order: &[(TaskId, Level)]);

    /// Takes the first task of the most urgent level.
    fn pop(&self) -> Option<Self::Taken<'_>>;

    /// Takes that task if it is ready and no task of a more urgent level is.
    fn pop_this(&self, task: TaskId) -> Option<Self::Taken<'_>>;
}

/// A task that the caller has taken and runs, alone. Dropping it hands it back as ready at [`Level::FIRST`].
pub trait TakenTask<T>: DerefMut<Target = T> {
    /// Returns the id of the task.
    fn id(&self) -> TaskId;

    /// Hands it back as ready at that level; or at the one that `again` returns, if it was woken during the run.
    fn ready(self, level: Level, again: impl FnMut(&T) -> Level);

    /// Hands it back as idle; or as ready at the level that `level` returns, if it was woken during the run.
    fn idle(self, level: impl FnMut(&T) -> Level);

    /// Ends it, and returns it.
    fn retire(self) -> T;
}
