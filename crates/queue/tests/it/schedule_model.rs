//! Any sequence of calls on a scheduling queue, from one thread, against a list of tasks in their order.
#![cfg(not(any(loom, shuttle)))]

use penstock_queue::schedule::{Level, Running, ScheduleQueue, TaskId};
use proptest::prelude::*;

/// Ranks of two words, and two segments of rows.
const CAPACITY: usize = 100;

#[derive(Clone, Debug)]
enum Step {
    Add(usize),
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
    // Some ids that no task ever has.
    let task = || 0..CAPACITY as TaskId + 10;
    let step = prop_oneof![
        2 => (1..30_usize).prop_map(Step::Add),
        10 => (task(), level()).prop_map(|(task, level)| Step::Wake(task, level)),
        1 => prop::collection::vec((task(), level()), 0..60).prop_map(Step::Publish),
        2 => (task(), level()).prop_map(|(task, level)| Step::Raise(task, level)),
        8 => Just(Step::Pop),
        4 => task().prop_map(Step::PopThis),
        3 => (0..10_usize, level(), level())
            .prop_map(|(running, level, again)| Step::Ready(running, level, again)),
        3 => (0..10_usize, level()).prop_map(|(running, level)| Step::Idle(running, level)),
        1 => (0..10_usize).prop_map(Step::Retire),
        1 => (0..10_usize).prop_map(Step::Drop),
    ];
    prop::collection::vec(step, 1..200)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Idle,
    Ready(Level),
    Running { woken: bool },
}

/// The tasks by id, and their ids by rank.
#[derive(Default)]
struct Model {
    states: Vec<State>,
    order: Vec<TaskId>,
    /// By the time of the end of the task that was there.
    free: Vec<TaskId>,
}

impl Model {
    fn add(&mut self) -> Option<TaskId> {
        if !self.free.is_empty() {
            let task = self.free.remove(0);
            self.states[task as usize] = State::Idle;
            return Some(task);
        }
        let task = self.states.len() as TaskId;
        (self.states.len() < CAPACITY).then(|| {
            self.states.push(State::Idle);
            self.order.push(task);
            task
        })
    }

    fn wake(&mut self, task: TaskId, level: Level) {
        if let Some(state) = self.states.get_mut(task as usize) {
            *state = match *state {
                State::Idle => State::Ready(level),
                State::Ready(before) => State::Ready(before.min(level)),
                State::Running { .. } => State::Running { woken: true },
                State::Free => State::Free,
            };
        }
    }

    fn publish(&mut self, order: &[(TaskId, Level)]) {
        let mut placed = 0;
        for &(task, level) in order {
            let Some(state) = self.states.get_mut(task as usize).filter(|state| **state != State::Free)
            else {
                continue;
            };
            let rank = self.order.iter().position(|other| *other == task).expect("every row has a rank");
            if rank < placed {
                continue;
            }
            if let State::Ready(before) = state {
                *before = level;
            }
            self.order.swap(rank, placed);
            placed += 1;
        }
    }

    fn pop(&mut self) -> Option<TaskId> {
        let level = |task: &TaskId| match self.states[*task as usize] {
            State::Ready(level) => Some(level),
            _ => None,
        };
        // The first of those that are equally urgent.
        let task = self.order.iter().copied().filter(|task| level(task).is_some()).min_by_key(level)?;
        self.states[task as usize] = State::Running { woken: false };
        Some(task)
    }

    fn raise(&mut self, task: TaskId, level: Level) {
        if let Some(State::Ready(_)) = self.states.get(task as usize) {
            self.wake(task, level);
        }
    }

    fn pop_this(&mut self, task: TaskId) -> Option<TaskId> {
        let State::Ready(level) = *self.states.get(task as usize)? else { return None };
        let passed = |state: &State| matches!(state, State::Ready(other) if *other < level);
        if self.states.iter().any(passed) {
            return None;
        }
        self.states[task as usize] = State::Running { woken: false };
        Some(task)
    }

    fn end(&mut self, task: TaskId) {
        self.states[task as usize] = State::Free;
        self.free.push(task);
    }
}

/// One of those that run, out of `running`.
fn pick<T>(running: &mut Vec<T>, index: usize) -> Option<T> {
    (!running.is_empty()).then(|| running.swap_remove(index % running.len()))
}

fn check(steps: Vec<Step>) {
    let queue: ScheduleQueue<TaskId> = ScheduleQueue::new(CAPACITY, 1);
    let mut model = Model::default();
    let mut running: Vec<Running<'_, TaskId>> = Vec::new();
    for step in steps {
        match step {
            Step::Add(tasks) => (0..tasks).for_each(|_| assert_eq!(queue.add(|task| task), model.add())),
            Step::Wake(task, level) => {
                queue.wake(task, || level);
                model.wake(task, level);
            }
            Step::Publish(order) => {
                queue.publish(&order);
                model.publish(&order);
            }
            Step::Pop => {
                let task = queue.pop();
                assert_eq!(task.as_ref().map(Running::id), model.pop());
                assert!(task.iter().all(|task| **task == task.id()));
                running.extend(task);
            }
            Step::PopThis(asked) => {
                let task = queue.pop_this(asked);
                assert_eq!(task.as_ref().map(Running::id), model.pop_this(asked));
                running.extend(task);
            }
            Step::Raise(task, level) => {
                queue.raise(task, || level);
                model.raise(task, level);
            }
            Step::Ready(index, level, again) => {
                if let Some(task) = pick(&mut running, index) {
                    let state = &mut model.states[task.id() as usize];
                    let woken = *state == State::Running { woken: true };
                    *state = State::Ready(if woken && level != Level::FIRST { again } else { level });
                    task.ready(level, |_| again);
                }
            }
            Step::Idle(index, level) => {
                if let Some(task) = pick(&mut running, index) {
                    let state = &mut model.states[task.id() as usize];
                    *state = match *state {
                        State::Running { woken: true } => State::Ready(level),
                        _ => State::Idle,
                    };
                    task.idle(|_| level);
                }
            }
            Step::Retire(index) => {
                if let Some(task) = pick(&mut running, index) {
                    model.end(task.id());
                    assert_eq!(task.id(), task.retire());
                }
            }
            Step::Drop(index) => {
                if let Some(task) = pick(&mut running, index) {
                    model.states[task.id() as usize] = State::Ready(Level::FIRST);
                    drop(task);
                }
            }
        }
        let is_ready = |state: &State| matches!(state, State::Ready(_));
        assert_eq!(queue.has_ready(), model.states.iter().any(is_ready));
        assert_eq!(queue.live(), model.states.len() - model.free.len());
    }
}

proptest! {
    #[test]
    fn a_queue_does_what_a_list_would(steps in steps()) {
        check(steps);
    }
}
