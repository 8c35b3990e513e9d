//! The loop of a worker: takes the best ready task, runs it, hands it back; sleeps while none is ready.

use penstock_queue::schedule::{Level, ScheduleQueue, TaskId};

use crate::ready::{ReadyTasks, TakenTask};

/// How a task comes back from a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handed {
    /// Still has work.
    Ready(Level),
    /// Has none, until it is woken.
    Idle,
    /// Has ended.
    Done,
}

/// What a worker needs to know of its tasks.
pub trait Host<T> {
    /// Runs a task for a while.
    fn run(&mut self, id: TaskId, task: &mut T) -> Handed;

    /// Returns the level of a task that was woken during its run.
    fn level(&self, task: &T) -> Level;

    /// Returns the task to run next if it is ready and none of a more urgent level is: one that reads what this one has
    /// just written.
    fn next(&self, _task: &T) -> Option<TaskId> {
        None
    }

    /// Takes a task that has ended.
    fn retired(&mut self, task: T);

    /// Called before the worker sleeps, since no task is ready.
    fn before_park(&mut self) {}

    /// Called when the worker is awake again.
    fn unparked(&mut self) {}
}

/// Takes a task, runs it and hands it back: the one to go on with that the last turn has left in `next`, or the first one
/// that is ready. Returns whether there was one.
pub fn turn<T>(ready: &impl ReadyTasks<T>, next: &mut Option<TaskId>, host: &mut impl Host<T>) -> bool {
    let followed = next.take().and_then(|task| ready.pop_this(task));
    let Some(mut task) = followed.or_else(|| ready.pop()) else { return false };
    let handed = host.run(task.id(), &mut task);
    *next = host.next(&task);
    match handed {
        Handed::Ready(level) => task.ready(level, |task| host.level(task)),
        Handed::Idle => task.idle(|task| host.level(task)),
        Handed::Done => host.retired(task.retire()),
    }
    true
}

/// Runs tasks on this thread, which is the only one with that number, until the queue is closed.
pub fn work<T>(queue: &ScheduleQueue<T>, worker: usize, host: &mut impl Host<T>) {
    let mut next = None;
    while !queue.is_closed() {
        if !turn(queue, &mut next, host) {
            host.before_park();
            queue.park(worker);
            host.unparked();
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// Runs each task as often as it says, and closes the queue when it would sleep for the second time.
    struct Notes<'a> {
        queue: &'a ScheduleQueue<u32>,
        ran: Vec<TaskId>,
        retired: Vec<u32>,
        sleeps: u32,
    }

    impl Host<u32> for Notes<'_> {
        fn run(&mut self, id: TaskId, left: &mut u32) -> Handed {
            self.ran.push(id);
            match *left {
                0 => return Handed::Done,
                // Woken while it runs, so that it cannot go idle.
                1 => {
                    self.queue.wake(id, || unreachable!("it runs"));
                }
                13 => panic!("on purpose"),
                _ => {}
            }
            *left -= 1;
            if *left == 0 { Handed::Idle } else { Handed::Ready(Level::FIRST) }
        }

        fn level(&self, left: &u32) -> Level {
            assert_eq!(*left, 0);
            Level::LAST
        }

        fn retired(&mut self, left: u32) {
            self.retired.push(left);
        }

        fn before_park(&mut self) {
            self.sleeps += 1;
            match self.sleeps {
                1 => {
                    self.queue.wake(2, || Level::FIRST);
                }
                _ => self.queue.close(),
            }
        }
    }

    fn queue() -> ScheduleQueue<u32> {
        let queue = ScheduleQueue::new(3, 1);
        for runs in [2, 1, 0] {
            queue.add(|_| runs);
        }
        queue
    }

    #[test]
    fn a_worker_runs_what_is_ready_until_the_end() {
        let queue = queue();
        queue.wake(1, || Level::FIRST);
        queue.wake(0, || Level::FIRST);
        let mut notes = Notes { queue: &queue, ran: Vec::new(), retired: Vec::new(), sleeps: 0 };
        work(&queue, 0, &mut notes);
        assert_eq!(notes.ran, [0, 0, 1, 0, 1, 2]);
        assert_eq!(notes.retired, [0, 0, 0]);
        assert_eq!((notes.sleeps, queue.live()), (2, 0));
    }

    #[test]
    fn a_task_outlives_a_worker_that_panics() {
        let queue = queue();
        queue.wake(0, || Level::FIRST);
        *queue.pop().expect("it is ready") = 13;
        let mut notes = Notes { queue: &queue, ran: Vec::new(), retired: Vec::new(), sleeps: 0 };
        assert!(catch_unwind(AssertUnwindSafe(|| work(&queue, 0, &mut notes))).is_err());
        assert_eq!(queue.pop().map(|task| (task.id(), *task)), Some((0, 13)));
    }
}
