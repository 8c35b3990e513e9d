//! The scheduling queue of an engine as the order of ready tasks.

use penstock_queue::schedule::{Level, Running, ScheduleQueue, TaskId};

use super::{ReadyTasks, TakenTask};

impl<T> ReadyTasks<T> for ScheduleQueue<T> {
    type Taken<'a>
        = Running<'a, T>
    where
        Self: 'a;

    fn add(&self, make: impl FnOnce(TaskId) -> T) -> Option<TaskId> {
        self.add(make)
    }

    fn wake(&self, task: TaskId, level: impl FnMut() -> Level) -> bool {
        self.wake(task, level)
    }

    fn raise(&self, task: TaskId, level: impl FnOnce() -> Level) {
        self.raise(task, level);
    }

    fn publish(&self, order: &[(TaskId, Level)]) {
        self.publish(order);
    }

    fn pop(&self) -> Option<Running<'_, T>> {
        self.pop()
    }

    fn pop_this(&self, task: TaskId) -> Option<Running<'_, T>> {
        self.pop_this(task)
    }
}

impl<T> TakenTask<T> for Running<'_, T> {
    fn id(&self) -> TaskId {
        self.id()
    }

    fn ready(self, level: Level, again: impl FnMut(&T) -> Level) {
        self.ready(level, again);
    }

    fn idle(self, level: impl FnMut(&T) -> Level) {
        self.idle(level);
    }

    fn retire(self) -> T {
        self.retire()
    }
}
