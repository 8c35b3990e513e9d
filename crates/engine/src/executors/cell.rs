//! A task as an executor holds it: its body, its bell, and the query that it belongs to.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use penstock_queue::log::Work;
use penstock_queue::schedule::{ScheduleQueue, TaskId};
use penstock_scheduler::{Quantum, Rules};

use super::bell::Bell;
use super::{NewTask, SetTimer, Supervisor};
use crate::clock::{Timepiece, now_ns};
use penstock_tasks::clock::Until;
use penstock_tasks::error::{RunError, panic_text};
use penstock_tasks::step::{Step, Task};

/// How long a task runs before any policy has looked at it: as long as any.
pub(super) const USUAL_QUANTUM: Quantum = Quantum::of_rows(u64::MAX);

/// The queue of all tasks.
pub(super) type TaskQueue = ScheduleQueue<TaskCell>;

/// A task and what belongs to it.
pub(super) struct TaskCell {
    name: String,
    /// `None` once it is dropped.
    body: Option<Box<dyn Task>>,
    pub(super) bell: Arc<Bell>,
    query: Arc<dyn Supervisor>,
    /// The bell of the task that reads what this one writes, if there is one such task.
    reader: Option<Arc<Bell>>,
    /// When the timers that it has set ring.
    timers: Until,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ran {
    /// There may be more to do.
    Ready,
    /// Nothing to do, or no room, or too early: its bell rings when that has changed.
    Idle,
    /// Nothing ever.
    Done,
}

impl TaskCell {
    /// Makes the cells of the tasks of a query.
    pub(super) fn of(tasks: Vec<NewTask>, query: &Arc<dyn Supervisor>) -> Vec<Self> {
        let bells: Vec<Arc<Bell>> = tasks.iter().map(|task| Arc::clone(&task.bell)).collect();
        let cell = |task: NewTask| {
            // With several readers, there is no telling whose turn it is.
            let reader = match task.readers[..] {
                [reader] => Some(Arc::clone(&bells[reader])),
                _ => None,
            };
            let (name, body, query) = (task.name, Some(task.body), Arc::clone(query));
            Self { name, body, bell: task.bell, query, reader, timers: Until::default() }
        };
        tasks.into_iter().map(cell).collect()
    }

    /// Returns the name of the task.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the task that reads what this one writes, if a worker goes on with it.
    pub(super) fn followed(&self, rules: &Rules) -> Option<TaskId> {
        let reader = self.reader.as_ref()?;
        if rules.follows(&reader.row) { reader.task() } else { None }
    }

    /// Runs it for a quantum at most, from `start_ns` on. Returns when that ended, and how.
    pub(super) fn run(&mut self, quantum: Quantum, start_ns: u64, timers: &dyn SetTimer) -> (u64, Ran) {
        let did = &self.bell.row.did;
        did.running.set(1);
        self.bell.row.clear_request();
        let ran = catch_unwind(AssertUnwindSafe(|| self.steps(quantum, start_ns, timers)));
        let ran = ran.unwrap_or_else(|panic| {
            let text = panic_text(&*panic);
            self.query.fail(RunError::Panicked { operator: self.name.clone(), text });
            Ran::Done
        });
        let end_ns = now_ns();
        self.note(start_ns, end_ns, ran);
        (end_ns, ran)
    }

    fn steps(&mut self, quantum: Quantum, start_ns: u64, timers: &dyn SetTimer) -> Ran {
        let Some(body) = &mut self.body else { return Ran::Done };
        if self.bell.take_trim() {
            body.trim();
        }
        let clock = self.query.clock();
        self.timers.system_ns = self.timers.system_ns.filter(|&at_ns| at_ns > start_ns);
        self.timers.clock_ns = self.timers.clock_ns.filter(|&at_ns| at_ns > clock.now_ns());
        let (mut rows, mut elapsed_ns) = (0, 0);
        while quantum.lasts(rows, elapsed_ns) {
            if self.query.is_stopping() {
                return Ran::Done;
            }
            match body.step(self.query.context()) {
                Ok(Step::Worked(done)) => {
                    rows += done as u64;
                    elapsed_ns = now_ns().saturating_sub(start_ns);
                }
                Ok(Step::Blocked | Step::Idle) => return Ran::Idle,
                Ok(Step::Until(until)) => {
                    let until = clock.settle(until);
                    self.set_timers(until, timers);
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

    fn set_timers(&mut self, until: Until, timers: &dyn SetTimer) {
        let set = self.timers;
        let is_new = |at_ns: &u64, set: Option<u64>| set.is_none_or(|set| *at_ns < set);
        self.timers = set.or(until);
        if let Some(at_ns) = until.system_ns.filter(|at_ns| is_new(at_ns, set.system_ns)) {
            timers.set_timer(at_ns, &self.bell);
        }
        if let Some(at_ns) = until.clock_ns.filter(|at_ns| is_new(at_ns, set.clock_ns))
            && let Timepiece::Manual(clock) = self.query.clock()
        {
            clock.set_timer(at_ns, Arc::clone(&self.bell) as _);
        }
    }

    /// Writes down what it did, and what is left to do.
    fn note(&self, start_ns: u64, end_ns: u64, ran: Ran) {
        let row = &self.bell.row;
        let did = &row.did;
        did.busy_ns.add(end_ns.saturating_sub(start_ns));
        did.last_run_ns.set(end_ns);
        did.timed.set(u64::from(self.timers != Until::default()));
        if let Some(body) = &self.body {
            let numbers = body.numbers(end_ns);
            did.rows_in.set(numbers.rows_in);
            did.rows_out.set(numbers.rows_out);
            did.blocked_ns.set(numbers.blocked_ns);
            did.blocked_on.set(numbers.blocked_on as u64);
            did.blocked.set(u64::from(numbers.is_blocked));
            did.held_rows.set(numbers.held.rows);
            did.held_sessions.set(numbers.held.sessions);
            did.unfinished.set(u64::from(numbers.is_unfinished));
            if ran == Ran::Ready && row.work() == Work::default() {
                // Its quantum ended between two steps, and the next one is counted nowhere: a sink that has read the end
                // of its input has yet to leave, for example. Uncounted, it would be ready at the last level only, and
                // never run beside a query that keeps the workers busy.
                did.unfinished.set(1);
            }
        }
        // Last: a reader that finds that nothing ran meanwhile has read numbers of one moment.
        did.runs.add(1);
        did.running.set(0);
    }

    /// Returns when it wants to be woken, by the time of the system.
    pub(super) fn timer_ns(&self) -> Option<u64> {
        self.timers.system_ns
    }

    /// Drops what it holds, and tells its query.
    pub(super) fn retire(mut self) {
        self.drop_body();
    }

    fn drop_body(&mut self) {
        if let Some(body) = self.body.take() {
            // First: another task may have its place already.
            self.bell.row.leave();
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
