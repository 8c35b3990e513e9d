//! Any sequence of calls on a scheduling queue, from one thread, against a list of tasks in their order.
#![cfg(not(any(loom, shuttle)))]

use penstock_queue::schedule::{Class, Running, ScheduleQueue, TaskId};
use proptest::prelude::*;

/// Two levels, the upper one with two words below it, and two segments of rows.
const CAPACITY: usize = 100;

#[derive(Clone, Debug)]
enum Step {
    Add(usize),
    Wake(TaskId, Class),
    Raise(TaskId, Class),
    Publish(Vec<(TaskId, Class)>),
    Pop,
    PopThis(TaskId),
    Ready(usize, Class, Class),
    Idle(usize, Class),
    Retire(usize),
    Drop(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let class = || prop_oneof![Just(Class::Now), Just(Class::Spare)];
    // Some ids that no task ever has.
    let task = || 0..CAPACITY as TaskId + 10;
    let step = prop_oneof![
        2 => (1..30_usize).prop_map(Step::Add),
        10 => (task(), class()).prop_map(|(task, class)| Step::Wake(task, class)),
        1 => prop::collection::vec((task(), class()), 0..60).prop_map(Step::Publish),
        2 => (task(), class()).prop_map(|(task, class)| Step::Raise(task, class)),
        8 => Just(Step::Pop),
        4 => task().prop_map(Step::PopThis),
        3 => (0..10_usize, class(), class())
            .prop_map(|(running, class, again)| Step::Ready(running, class, again)),
        3 => (0..10_usize, class()).prop_map(|(running, class)| Step::Idle(running, class)),
        1 => (0..10_usize).prop_map(Step::Retire),
        1 => (0..10_usize).prop_map(Step::Drop),
    ];
    prop::collection::vec(step, 1..200)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Idle,
    Ready(Class),
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

    fn wake(&mut self, task: TaskId, class: Class) {
        if let Some(state) = self.states.get_mut(task as usize) {
            *state = match *state {
                State::Idle => State::Ready(class),
                State::Ready(Class::Spare) => State::Ready(class),
                State::Running { .. } => State::Running { woken: true },
                as_before => as_before,
            };
        }
    }

    fn publish(&mut self, order: &[(TaskId, Class)]) {
        let free = |states: &[State], task: TaskId| states[task as usize] == State::Free;
        let mut arranged: Vec<(TaskId, Class)> = Vec::new();
        let rest = (0..self.states.len() as TaskId).map(|task| (task, Class::Now));
        for (task, class) in order.iter().copied().chain(rest.clone()) {
            let known = (task as usize) < self.states.len() && !free(&self.states, task);
            if known && !arranged.iter().any(|(placed, _)| *placed == task) {
                arranged.push((task, class));
            }
        }
        arranged.extend(rest.filter(|(task, _)| free(&self.states, *task)));
        for &(task, class) in &arranged {
            if let State::Ready(before) = &mut self.states[task as usize] {
                *before = class;
            }
        }
        self.order = arranged.into_iter().map(|(task, _)| task).collect();
    }

    fn pop(&mut self) -> Option<TaskId> {
        let first = |class| {
            let ready = |task: &&TaskId| self.states[**task as usize] == State::Ready(class);
            self.order.iter().find(ready).copied()
        };
        let task = first(Class::Now).or_else(|| first(Class::Spare))?;
        self.states[task as usize] = State::Running { woken: false };
        Some(task)
    }

    fn raise(&mut self, task: TaskId, class: Class) {
        if let Some(State::Ready(_)) = self.states.get(task as usize) {
            self.wake(task, class);
        }
    }

    fn pop_this(&mut self, task: TaskId) -> Option<TaskId> {
        let state = self.states.get_mut(task as usize)?;
        let State::Ready(_) = *state else { return None };
        *state = State::Running { woken: false };
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
            Step::Wake(task, class) => {
                queue.wake(task, |_| class);
                model.wake(task, class);
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
            Step::Raise(task, class) => {
                queue.raise(task, || class);
                model.raise(task, class);
            }
            Step::Ready(index, class, again) => {
                if let Some(task) = pick(&mut running, index) {
                    let state = &mut model.states[task.id() as usize];
                    let woken = *state == State::Running { woken: true };
                    *state = State::Ready(if woken && class == Class::Spare { again } else { class });
                    task.ready(class, |_| again);
                }
            }
            Step::Idle(index, class) => {
                if let Some(task) = pick(&mut running, index) {
                    let state = &mut model.states[task.id() as usize];
                    *state = match *state {
                        State::Running { woken: true } => State::Ready(class),
                        _ => State::Idle,
                    };
                    task.idle(|_| class);
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
                    model.states[task.id() as usize] = State::Ready(Class::Now);
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
