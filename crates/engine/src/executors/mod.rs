//! What runs tasks.
//!
//! An [`Executor`] owns threads, and the tasks of any number of queries, each a [`Group`](group::Group). It knows of a query
//! what a [`Supervisor`] tells. A query comes in two steps: first bells are reserved, so that edges, feeds and timers can be
//! told whom to wake; then its tasks are installed, all or none.
//!
//! - [`state`]: workers that share a scheduling queue, ranked by a policy
//! - [`threads`]: a thread for each task, left to the system
//! - `bell`: how a task is woken; `cell`: how it runs; `group`: the tasks of a query, and whether they are at work
//! - `planner`: ranks and roll-ups; `epoch`: the thread for timers, and for roll-ups that no worker makes

pub(crate) mod bell;
mod cell;
mod epoch;
mod group;
mod meter;
mod planner;
mod state;
mod threads;

#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use penstock_queue::schedule::{Level, TaskId};

use crate::clock::Timepiece;
use crate::error::StartError;
use crate::metrics::WorkerMetrics;
use crate::options::{EngineOptions, Mode};
use bell::Bell;
use penstock_tasks::context::Context;
use penstock_tasks::error::RunError;
use penstock_tasks::share::ShareGauge;
use penstock_tasks::step::Task;
use penstock_tasks::waker::Waker;

/// Stack of a thread that runs tasks: an expression is evaluated by recursion, and a debug build takes large steps.
const STACK_BYTES: usize = 8 << 20;

/// Wakes tasks at times that they ask for.
pub(crate) trait SetTimer {
    /// Wakes a task at that time of the system.
    fn set_timer(&self, at_ns: u64, bell: &Arc<Bell>);
}

/// Runs tasks.
pub(crate) trait Executor: SetTimer + Send + Sync {
    /// Reserves wakers for tasks that are still to be made, one for each of their inputs. Wake-ups are kept until the task is
    /// installed.
    ///
    /// # Errors
    /// When there is no room for so many tasks.
    fn reserve(&self, tasks: &[TaskInputs]) -> Result<Vec<TaskWakers>, StartError>;

    /// Installs the tasks of a query, all or none. Their bells were reserved here.
    ///
    /// # Errors
    /// When a task cannot be run. Then none has been, and the query has learned that it is stopped and its tasks are gone.
    fn install(self: Arc<Self>, group: NewGroup) -> Result<(), StartError>;

    /// Lets go of a query whose tasks have all ended, by its id.
    fn remove(&self, group: u64);

    /// Gives the first ranks to these tasks, where ranks matter.
    fn publish(&self, ranks: &[(TaskId, Level)]);

    /// Returns how many tasks run at a time.
    fn parallelism(&self) -> usize;

    /// Returns what it did so far.
    fn metrics(&self) -> ExecutorMetrics;

    /// Joins its threads, for good. All tasks have ended.
    fn stop(&self);
}

/// The inputs of a task that is still to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskInputs {
    /// How many there are.
    pub(crate) inputs: usize,
    /// Fewer rows than this, and no signal, are not worth a wake-up.
    pub(crate) least_rows: u64,
}

/// The wakers of a task that is still to be installed.
pub(crate) struct TaskWakers {
    /// Wakes the task, whatever for.
    pub(crate) bell: Arc<Bell>,
    /// Wakes the task for what has come to an input, one for each.
    pub(crate) inputs: Vec<Arc<dyn Waker>>,
}

impl TaskWakers {
    /// Makes the wakers of a task that looks at all of its inputs whichever it is woken for.
    fn alike(bell: Arc<Bell>, inputs: usize) -> Self {
        let inputs = (0..inputs).map(|_| Arc::clone(&bell) as _).collect();
        Self { bell, inputs }
    }
}

/// What an executor did.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExecutorMetrics {
    pub(crate) workers: Vec<WorkerMetrics>,
    /// Threads of tasks, where each has its own.
    pub(crate) task_threads: u64,
    /// Plans made.
    pub(crate) epochs: u64,
    pub(crate) planning_ns: u64,
    pub(crate) rolling_ns: u64,
}

/// A query, as its executor sees it.
pub(crate) trait Supervisor: Send + Sync {
    /// Returns what its tasks know of it.
    fn context(&self) -> &Context;

    /// Returns its clock.
    fn clock(&self) -> &Timepiece;

    /// Returns whether its tasks are to end without processing what is left.
    fn is_stopping(&self) -> bool;

    /// Fails it.
    fn fail(&self, error: RunError);

    /// Notes that one of its tasks is gone, with everything that it held.
    fn task_gone(&self);

    /// Returns the sum of the latencies of its markers, and how many came out.
    fn latency_totals(&self) -> (u64, u64);

    /// Returns how many rows it has taken in.
    fn rows_in(&self) -> u64;

    /// Takes its recent rate over.
    fn set_rate(&self, rows_per_second: f64);
}

/// A task that is to be installed.
pub(crate) struct NewTask {
    pub(crate) name: String,
    pub(crate) body: Box<dyn Task>,
    pub(crate) bell: Arc<Bell>,
    /// The tasks of the query that read what it writes.
    pub(crate) readers: Vec<usize>,
    pub(crate) is_source: bool,
    /// Which of the parts of an operator it is, and which part of the rows it takes.
    pub(crate) part: Option<(usize, Arc<ShareGauge>)>,
}

/// The tasks of a query that are to be installed, upstream ones first.
pub(crate) struct NewGroup {
    /// Larger than that of any group before.
    pub(crate) id: u64,
    pub(crate) query: Arc<dyn Supervisor>,
    pub(crate) tasks: Vec<NewTask>,
    /// The groups that its tasks read, by their ids, each with the task that does.
    pub(crate) reads: Vec<(u64, usize)>,
}

/// Starts the executor of an engine: the one place that knows of all modes.
///
/// # Errors
/// When a thread cannot be started.
pub(crate) fn start(options: &EngineOptions, engine: u64) -> Result<Arc<dyn Executor>, StartError> {
    Ok(match options.mode {
        Mode::State => state::StateExecutor::start(options, engine)?,
        Mode::Threads => threads::ThreadsExecutor::start(options, engine)?,
    })
}

thread_local! {
    /// The number of the engine whose tasks this thread runs.
    static RUNS_FOR: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Returns whether this thread runs tasks of the engine of that number: it cannot wait for any of them.
pub(crate) fn is_run_here(engine: u64) -> bool {
    RUNS_FOR.get() == Some(engine)
}

/// Starts a thread that runs tasks of the engine of that number.
fn spawn(name: String, engine: u64, run: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name).stack_size(STACK_BYTES).spawn(move || {
        RUNS_FOR.set(Some(engine));
        run();
    })
}

/// Joins threads. A panic there was caught and reported where it belongs.
fn join(threads: &Mutex<Vec<JoinHandle<()>>>) {
    let threads = std::mem::take(&mut *threads.lock().unwrap_or_else(PoisonError::into_inner));
    for thread in threads {
        let _ = thread.join();
    }
}

/// Returns whether the roll-up is to wake tasks that have gone idle, so that they give memory back. It is, unless
/// `PENSTOCK_TRIM=off` is in the environment when the engine starts: such a wake-up also helps a task that has missed
/// another one, so tests of wake-ups go without.
fn asks_to_trim() -> bool {
    std::env::var("PENSTOCK_TRIM").map_or(true, |value| value != "off")
}
