//! Ready tasks in a sorted set, for one thread.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::ops::{Deref, DerefMut};

use penstock_queue::schedule::{Level, TaskId};

use super::{ReadyTasks, TakenTask};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowState {
    Free,
    Idle,
    Ready(Level),
    Running { is_woken: bool },
}

struct SortedRow<T> {
    state: RowState,
    rank: usize,
    /// `None` while no task has the row, and while the task is taken.
    task: Option<T>,
}

struct SortedRows<T> {
    rows: Vec<SortedRow<T>>,
    /// The tasks by rank.
    order: Vec<TaskId>,
    ready: BTreeSet<(Level, usize)>,
    /// Those in use no more, the one that waits longest first.
    free: VecDeque<TaskId>,
}

impl<T> SortedRows<T> {
    /// Changes the state of a task, and keeps the set of ready tasks.
    fn set(&mut self, task: TaskId, state: RowState) {
        let row = &mut self.rows[task as usize];
        if let RowState::Ready(level) = row.state {
            self.ready.remove(&(level, row.rank));
        }
        row.state = state;
        if let RowState::Ready(level) = row.state {
            self.ready.insert((level, row.rank));
        }
    }

    /// Gives a task the rank of another one, and that one its own.
    fn swap(&mut self, task: TaskId, rank: usize) {
        let other = self.order[rank];
        let before = self.rows[task as usize].rank;
        let states = [task, other].map(|task| (task, self.rows[task as usize].state));
        for (task, _) in states {
            self.set(task, RowState::Idle);
        }
        self.order.swap(before, rank);
        self.rows[other as usize].rank = before;
        self.rows[task as usize].rank = rank;
        for (task, state) in states {
            self.set(task, state);
        }
    }

    fn state(&self, task: TaskId) -> RowState {
        self.rows.get(task as usize).map_or(RowState::Free, |row| row.state)
    }

    fn take(&mut self, task: TaskId) -> Option<T> {
        self.set(task, RowState::Running { is_woken: false });
        self.rows[task as usize].task.take()
    }
}

/// Tasks in a sorted set, for one thread. It has room for any number of them.
pub struct SortedTasks<T>(RefCell<SortedRows<T>>);

impl<T> Default for SortedTasks<T> {
    fn default() -> Self {
        let (rows, order, ready, free) = Default::default();
        Self(RefCell::new(SortedRows { rows, order, ready, free }))
    }
}

impl<T> fmt::Debug for SortedTasks<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SortedTasks").field("ready", &self.0.borrow().ready).finish_non_exhaustive()
    }
}

impl<T> SortedTasks<T> {
    /// Returns whether a task is ready.
    pub fn has_ready(&self) -> bool {
        !self.0.borrow().ready.is_empty()
    }

    fn taken(&self, task: TaskId) -> Option<Taken<'_, T>> {
        let payload = self.0.borrow_mut().take(task);
        payload.map(|payload| Taken { tasks: self, task, payload: Some(payload) })
    }
}

impl<T> ReadyTasks<T> for SortedTasks<T> {
    type Taken<'a>
        = Taken<'a, T>
    where
        Self: 'a;

    fn add(&self, make: impl FnOnce(TaskId) -> T) -> Option<TaskId> {
        let task = {
            let mut rows = self.0.borrow_mut();
            match rows.free.pop_front() {
                Some(task) => task,
                None => {
                    let task = rows.rows.len() as TaskId;
                    let rank = rows.order.len();
                    rows.rows.push(SortedRow { state: RowState::Free, rank, task: None });
                    rows.order.push(task);
                    task
                }
            }
        };
        let payload = make(task);
        let mut rows = self.0.borrow_mut();
        rows.rows[task as usize].task = Some(payload);
        rows.set(task, RowState::Idle);
        Some(task)
    }

    fn wake(&self, task: TaskId, mut level: impl FnMut() -> Level) -> bool {
        let state = self.0.borrow().state(task);
        let woken = match state {
            RowState::Free => return false,
            RowState::Idle => RowState::Ready(level()),
            RowState::Ready(before) => RowState::Ready(before.min(level())),
            RowState::Running { .. } => RowState::Running { is_woken: true },
        };
        self.0.borrow_mut().set(task, woken);
        state == RowState::Idle
    }

    fn raise(&self, task: TaskId, level: impl FnOnce() -> Level) {
        let state = self.0.borrow().state(task);
        if let RowState::Ready(before) = state {
            let level = level();
            self.0.borrow_mut().set(task, RowState::Ready(before.min(level)));
        }
    }

    fn publish(&self, order: &[(TaskId, Level)]) {
        let mut rows = self.0.borrow_mut();
        let mut rank = 0;
        for &(task, level) in order {
            let state = rows.state(task);
            if state == RowState::Free || rows.rows[task as usize].rank < rank {
                continue;
            }
            rows.swap(task, rank);
            if let RowState::Ready(_) = state {
                rows.set(task, RowState::Ready(level));
            }
            rank += 1;
        }
    }

    fn pop(&self) -> Option<Taken<'_, T>> {
        let task = {
            let rows = self.0.borrow();
            rows.ready.first().map(|&(_, rank)| rows.order[rank])
        };
        self.taken(task?)
    }

    fn pop_this(&self, task: TaskId) -> Option<Taken<'_, T>> {
        {
            let rows = self.0.borrow();
            let RowState::Ready(level) = rows.state(task) else { return None };
            if rows.ready.first().is_some_and(|(first, _)| *first < level) {
                return None;
            }
        }
        self.taken(task)
    }
}

/// A task out of [`SortedTasks`].
pub struct Taken<'a, T> {
    tasks: &'a SortedTasks<T>,
    task: TaskId,
    /// `None` once it is handed back.
    payload: Option<T>,
}

impl<T> Taken<'_, T> {
    fn is_woken(&self) -> bool {
        self.tasks.0.borrow().state(self.task) == RowState::Running { is_woken: true }
    }

    /// Asks for the level of a task that was woken during the run, until no wake-up comes between.
    fn ask(&self, level: &mut impl FnMut(&T) -> Level) -> Level {
        loop {
            self.tasks.0.borrow_mut().set(self.task, RowState::Running { is_woken: false });
            let level = level(self);
            if level == Level::FIRST || !self.is_woken() {
                return level;
            }
        }
    }

    fn hand_back(&mut self, state: RowState) {
        let mut rows = self.tasks.0.borrow_mut();
        rows.rows[self.task as usize].task = self.payload.take();
        rows.set(self.task, state);
    }
}

impl<T> TakenTask<T> for Taken<'_, T> {
    fn id(&self) -> TaskId {
        self.task
    }

    fn ready(mut self, level: Level, mut again: impl FnMut(&T) -> Level) {
        // Nothing is more urgent than the first level.
        let is_settled = level == Level::FIRST || !self.is_woken();
        let level = if is_settled { level } else { self.ask(&mut again) };
        self.hand_back(RowState::Ready(level));
    }

    fn idle(mut self, mut level: impl FnMut(&T) -> Level) {
        let state = if self.is_woken() { RowState::Ready(self.ask(&mut level)) } else { RowState::Idle };
        self.hand_back(state);
    }

    fn retire(mut self) -> T {
        let payload = self.payload.take().expect("a taken task has a payload");
        let mut rows = self.tasks.0.borrow_mut();
        rows.set(self.task, RowState::Free);
        rows.free.push_back(self.task);
        drop(rows);
        payload
    }
}

impl<T> Drop for Taken<'_, T> {
    fn drop(&mut self) {
        if self.payload.is_some() {
            self.hand_back(RowState::Ready(Level::FIRST));
        }
    }
}

impl<T> Deref for Taken<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.payload.as_ref().expect("a taken task has a payload")
    }
}

impl<T> DerefMut for Taken<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.payload.as_mut().expect("a taken task has a payload")
    }
}

impl<T> fmt::Debug for Taken<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Taken").field("task", &self.task).finish_non_exhaustive()
    }
}
