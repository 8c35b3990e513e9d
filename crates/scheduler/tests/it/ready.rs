//! Any sequence of calls on the scheduling queue and on the sorted set gives the same order.
#![cfg(not(any(loom, shuttle)))]

use penstock_queue::schedule::{Level, ScheduleQueue, TaskId};
use penstock_scheduler::worker::{Handed, Host, turn};
use penstock_scheduler::{ReadyTasks, SortedTasks, TakenTask};
use proptest::prelude::*;

/// As many tasks at most: the set has no bound.
const STEPS: usize = 300;

#[derive(Clone, Debug)]
enum Step {
    Add,
    Wake(TaskId, Level),
    Raise(TaskId, Level),
    Publish(Vec<(TaskId, Level)>),
    Pop,
    PopThis(TaskId),
    Ready(usize, Level, Level),
    Idle(usize, Level),
    Retire(usize),
    Drop(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let level = || (0..8_u8).prop_map(|number| Level::new(number).expect("a level"));
    let task = || 0..40 as TaskId;
    let step = prop_oneof![
        6 => Just(Step::Add),
        12 => (task(), level()).prop_map(|(task, level)| Step::Wake(task, level)),
        3 => (task(), level()).prop_map(|(task, level)| Step::Raise(task, level)),
        2 => prop::collection::vec((task(), level()), 0..40).prop_map(Step::Publish),
        8 => Just(Step::Pop),
        4 => task().prop_map(Step::PopThis),
        3 => (0..10_usize, level(), level()).prop_map(|(taken, level, again)| Step::Ready(taken, level, again)),
        3 => (0..10_usize, level()).prop_map(|(taken, level)| Step::Idle(taken, level)),
        1 => (0..10_usize).prop_map(Step::Retire),
        1 => (0..10_usize).prop_map(Step::Drop),
    ];
    prop::collection::vec(step, 1..STEPS)
}

/// One of those that were taken.
fn pick<T>(taken: &mut Vec<T>, index: usize) -> Option<T> {
    (!taken.is_empty()).then(|| taken.swap_remove(index % taken.len()))
}

/// Returns what each step has given: the task that was taken, added or ended, and whether a wake-up made one ready.
fn outcomes(ready: &impl ReadyTasks<TaskId>, steps: &[Step]) -> Vec<(Option<TaskId>, bool)> {
    let mut taken = Vec::new();
    let mut outcomes = Vec::new();
    for step in steps {
        let mut outcome = (None, false);
        match step {
            Step::Add => outcome.0 = ready.add(|task| task),
            Step::Wake(task, level) => outcome.1 = ready.wake(*task, || *level),
            Step::Raise(task, level) => ready.raise(*task, || *level),
            Step::Publish(order) => ready.publish(order),
            Step::Pop => taken.extend(ready.pop().inspect(|task| outcome.0 = Some(task.id()))),
            Step::PopThis(task) => {
                taken.extend(ready.pop_this(*task).inspect(|task| outcome.0 = Some(task.id())))
            }
            Step::Ready(index, level, again) => {
                pick(&mut taken, *index).into_iter().for_each(|task| task.ready(*level, |_| *again));
            }
            Step::Idle(index, level) => {
                pick(&mut taken, *index).into_iter().for_each(|task| task.idle(|_| *level));
            }
            Step::Retire(index) => outcome.0 = pick(&mut taken, *index).map(TakenTask::retire),
            Step::Drop(index) => drop(pick(&mut taken, *index)),
        }
        outcomes.push(outcome);
    }
    outcomes
}

proptest! {
    #[test]
    fn the_queue_and_the_sorted_set_give_the_same_order(steps in steps()) {
        let queue = ScheduleQueue::new(STEPS, 1);
        prop_assert_eq!(outcomes(&queue, &steps), outcomes(&SortedTasks::default(), &steps));
    }
}

/// Runs each task as often as it says.
#[derive(Default)]
struct Runs(Vec<TaskId>);

impl Host<u32> for Runs {
    fn run(&mut self, id: TaskId, left: &mut u32) -> Handed {
        self.0.push(id);
        *left -= 1;
        if *left == 0 { Handed::Done } else { Handed::Ready(Level::LAST) }
    }

    fn level(&self, _: &u32) -> Level {
        Level::LAST
    }

    fn next(&self, left: &u32) -> Option<TaskId> {
        // After its last run but one it goes on with task 2.
        (*left == 1).then_some(2)
    }

    fn retired(&mut self, left: u32) {
        assert_eq!(left, 0);
    }
}

fn turns(ready: &impl ReadyTasks<u32>) -> Vec<TaskId> {
    for (task, runs) in [2, 1, 3].into_iter().enumerate() {
        assert_eq!(ready.add(|_| runs), Some(task as TaskId));
        ready.wake(task as TaskId, || Level::FIRST);
    }
    let (mut host, mut next) = (Runs::default(), None);
    while turn(ready, &mut next, &mut host) {}
    host.0
}

#[test]
fn a_worker_runs_the_tasks_of_either_in_the_same_order() {
    let expected = [0, 2, 1, 0, 2, 2];
    assert_eq!(turns(&ScheduleQueue::new(3, 1)), expected);
    assert_eq!(turns(&SortedTasks::default()), expected);
}
