//! A task as workers hold it: its body, its bell, and the query that it belongs to.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use penstock_queue::schedule::{Class, ScheduleQueue, TaskId};

use super::bell::Bell;
use super::core::Core;
use crate::clock::Timepiece;
use crate::error::RunError;
use crate::pipeline::{Body, Step};
use crate::query::state::State;

/// The queue of all tasks.
pub(crate) type TaskQueue = ScheduleQueue<TaskCell>;

/// A task and what belongs to it.
pub(crate) struct TaskCell {
    name: String,
    /// `None` once it is dropped.
    body: Option<Body>,
    pub(crate) bell: Arc<Bell>,
    query: Arc<State>,
    /// The bell of the task that reads what this one writes, if there is one such task.
    reader: Option<Arc<Bell>>,
    /// When the timer that it has set rings.
    timer_ns: Option<u64>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ran {
    /// There may be more to do.
    Ready,
    /// Nothing to do, or no room, or too early: its bell says when that has changed.
    Idle,
    /// Nothing ever.
    Done,
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without words".to_owned())
}

impl TaskCell {
    pub(crate) fn new(
        name: String,
        body: Body,
        bell: Arc<Bell>,
        query: Arc<State>,
        reader: Option<Arc<Bell>>,
    ) -> Self {
        Self { name, body: Some(body), bell, query, reader, timer_ns: None }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The task that reads what this one writes, if it is worth running.
    pub(crate) fn worthy_reader(&self) -> Option<TaskId> {
        let reader = self.reader.as_ref()?;
        if reader.row.class() == Class::Now { reader.task() } else { None }
    }

    /// Runs it for about so many rows, from `start_ns` on. When that ended, and how.
    pub(crate) fn run(&mut self, quantum_rows: u64, start_ns: u64, core: &Core) -> (u64, Ran) {
        let did = &self.bell.row.did;
        did.running.set(1);
        self.bell.row.answer();
        let ran = catch_unwind(AssertUnwindSafe(|| self.steps(quantum_rows, start_ns, core)));
        let ran = ran.unwrap_or_else(|panic| {
            let text = panic_text(&*panic);
            self.query.fail(RunError::Panicked { operator: self.name.clone(), text });
            Ran::Done
        });
        let end_ns = crate::clock::now_ns();
        self.note(start_ns, end_ns);
        (end_ns, ran)
    }

    fn steps(&mut self, quantum_rows: u64, start_ns: u64, core: &Core) -> Ran {
        let Some(body) = &mut self.body else { return Ran::Done };
        if self.bell.take_trim() {
            body.trim();
        }
        let now_ns = match &self.query.clock {
            Timepiece::System => start_ns,
            manual => manual.now_ns(),
        };
        if self.timer_ns.is_some_and(|at_ns| at_ns <= now_ns) {
            self.timer_ns = None;
        }
        let mut rows = 0;
        while rows < quantum_rows {
            if self.query.is_stopping() {
                return Ran::Done;
            }
            match body.step(&self.query) {
                Ok(Step::Worked(done)) => rows += done as u64,
                Ok(Step::Blocked | Step::Idle) => return Ran::Idle,
                Ok(Step::Until(at_ns)) => {
                    if self.timer_ns.is_none_or(|set| at_ns < set) {
                        self.timer_ns = Some(at_ns);
                        core.set_timer(at_ns, &self.bell);
                    }
                    return Ran::Idle;
                }
                Ok(Step::Done) => return Ran::Done,
                Err(error) => {
                    self.query.fail(error);
                    return Ran::Done;
                }
            }
        }
        Ran::Ready
    }

    /// Writes down what it did.
    fn note(&self, start_ns: u64, end_ns: u64) {
        let did = &self.bell.row.did;
        did.runs.add(1);
        did.busy_ns.add(end_ns.saturating_sub(start_ns));
        did.last_run_ns.set(end_ns);
        did.running.set(0);
        if let Some(body) = &self.body {
            let numbers = body.numbers();
            did.rows_in.set(numbers.rows_in);
            did.rows_out.set(numbers.rows_out);
            did.blocked_ns.set(numbers.blocked_ns);
            did.blocked.set(u64::from(numbers.is_blocked));
            did.unfinished.set(u64::from(numbers.is_unfinished));
            if let Some(arrived_ns) = numbers.arrived_ns {
                did.arrived_ns.set(arrived_ns);
            }
        }
    }

    /// When it wants to be woken, by its timer.
    pub(crate) fn timer_ns(&self) -> Option<u64> {
        self.timer_ns
    }

    /// Drops what it holds, and tells its query.
    pub(crate) fn retire(mut self) {
        self.drop_body();
    }

    fn drop_body(&mut self) {
        if let Some(body) = self.body.take() {
            // What an operator holds may panic as it goes; its query has ended either way.
            let dropped = catch_unwind(AssertUnwindSafe(|| drop(body)));
            if let Err(panic) = dropped {
                let text = panic_text(&*panic);
                self.query.fail(RunError::Panicked { operator: self.name.clone(), text });
            }
            self.query.task_gone();
        }
    }
}

impl Drop for TaskCell {
    fn drop(&mut self) {
        self.drop_body();
    }
}
