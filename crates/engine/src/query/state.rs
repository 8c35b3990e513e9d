//! What the tasks of a query, its engine and its users share.
//!
//! QUERY-1. A query ends once: when its last task is gone. Its tasks go when they have passed the end of the input on, or when
//!     the query enters [`Phase::Stopping`], which every task looks at before each step.
//! QUERY-2. The first error counts. The thread that sets it also enters `Stopping`, and wakes every task.
//! QUERY-3. The outcome is there before `ended` is, and does not change any more: a caller that has waited for the end finds
//!     the query gone from its engine and its results closed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use penstock_memory::Coordinator;
use penstock_scheduler::profile::Counter;

use super::face::TaskFace;
use super::status::Status;
use super::tables::LiveTable;
use crate::clock::{Timepiece, now_ns};
use crate::error::RunError;
use crate::executors::{self, Supervisor};
use crate::output::Output;
use penstock_tasks::account::Account;
use penstock_tasks::context::{Context, Phase};
use penstock_tasks::feed::FeedHandle;
use penstock_tasks::results::Results;
use penstock_tasks::shared::Reader;

/// Called when a query has ended, with its number.
pub(crate) type WhenEnded = Box<dyn FnOnce(u64) + Send>;

#[derive(Default)]
struct Ending {
    error: Option<Arc<RunError>>,
    output: Option<Output>,
    ended: bool,
    when_ended: Option<WhenEnded>,
}

/// One output of a query, as it is kept for its user.
#[derive(Clone)]
pub(crate) struct Kept {
    pub(crate) name: String,
    pub(crate) schema: SchemaRef,
    /// Batches of a result that is kept whole.
    pub(crate) collected: Option<Arc<Mutex<Vec<RecordBatch>>>>,
    pub(crate) results: Option<Results>,
}

/// A feed that a query reads.
pub(crate) struct Inflow {
    pub(crate) feed: FeedHandle,
    /// The query of the same engine whose results come in by it, by its number: the feed ends after the last of them.
    pub(crate) upstream: Option<u64>,
}

/// What a query is made of, besides its tasks.
pub(crate) struct Parts {
    pub(crate) id: u64,
    /// The number of its engine.
    pub(crate) engine: u64,
    pub(crate) name: String,
    pub(crate) account: Arc<Account>,
    pub(crate) coordinator: Coordinator,
    pub(crate) outputs: Vec<Kept>,
    /// The feeds that it reads.
    pub(crate) feeds: Vec<Inflow>,
    /// Whether it is a source that queries share.
    pub(crate) is_source: bool,
    /// The shared sources that it reads, by their number, each with the task that does.
    pub(crate) reads: Vec<(u64, usize)>,
    /// Rows that operators rejected, if they are read.
    pub(crate) letters: Option<Results>,
    /// The tables that rows are looked up in.
    pub(crate) tables: Vec<LiveTable>,
    /// Its tasks in words.
    pub(crate) physical: String,
    /// Its clock.
    pub(crate) clock: Timepiece,
    /// What its tasks know of it.
    pub(crate) context: Context,
}

/// The shared part of a query.
pub(crate) struct State {
    parts: Parts,
    installed: OnceLock<Vec<TaskFace>>,
    tasks: AtomicUsize,
    ending: Mutex<Ending>,
    changed: Condvar,
    pub(super) started_ns: u64,
    pub(super) ended_ns: Counter,
    /// Bits of its recent rows per second, written by the roll-up.
    pub(super) rate: Counter,
}

impl std::ops::Deref for State {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.parts
    }
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// Makes a query of which nothing runs yet.
    pub(crate) fn new(parts: Parts, when_ended: WhenEnded) -> Arc<Self> {
        Arc::new(Self {
            parts,
            tasks: AtomicUsize::new(0),
            installed: OnceLock::new(),
            ending: Mutex::new(Ending { when_ended: Some(when_ended), ..Ending::default() }),
            changed: Condvar::new(),
            started_ns: now_ns(),
            ended_ns: Counter::default(),
            rate: Counter::default(),
        })
    }

    /// Sets its tasks, which may run from now on.
    pub(crate) fn install(&self, faces: Vec<TaskFace>) {
        self.tasks.store(faces.len(), Ordering::Release);
        assert!(self.installed.set(faces).is_ok(), "a query is installed once");
    }

    /// Returns its tasks.
    pub(crate) fn faces(&self) -> &[TaskFace] {
        self.installed.get().map_or(&[], Vec::as_slice)
    }

    /// Requests a run of each of its tasks.
    pub(crate) fn call_all(&self) {
        self.faces().iter().for_each(|task| task.bell.call());
    }

    /// Returns whether this thread runs tasks of its engine, and so cannot wait for it.
    pub(crate) fn is_run_here(&self) -> bool {
        executors::is_run_here(self.engine)
    }

    /// Returns whether this thread is in the watermark function of one of its feeds.
    pub(crate) fn is_asking_here(&self) -> bool {
        self.feeds.iter().any(|inflow| inflow.feed.is_asking_here())
    }

    /// Returns whether this thread reads the data of one of its feeds.
    pub(crate) fn is_pulled_here(&self) -> bool {
        self.feeds.iter().any(|inflow| inflow.feed.is_pulled_here())
    }

    pub(crate) fn fail(&self, error: RunError) {
        let mut ending = locked(&self.ending);
        if ending.ended || ending.error.is_some() {
            return; // QUERY-2
        }
        ending.error = Some(Arc::new(error));
        drop(ending);
        self.context.enter(Phase::Stopping);
        self.call_all();
    }

    pub(crate) fn stop(&self) {
        self.fail(RunError::Stopped);
    }

    /// Lets its tasks take from their feeds, and requests a run of each: everything is there.
    pub(crate) fn start(&self) {
        self.feeds.iter().for_each(|inflow| inflow.feed.start());
        self.call_all();
    }

    /// Ends its input where that is now.
    pub(crate) fn drain(&self) {
        self.feeds.iter().for_each(|inflow| inflow.feed.cut());
        self.end_input();
    }

    /// Ends all input but what comes in by feeds: a shared source is read up to where it is now, a replay ends.
    pub(crate) fn end_input(&self) {
        self.context.enter(Phase::Draining);
        self.call_all();
    }

    /// Ends its feeds where they are, but for those that end with another query of the engine.
    pub(crate) fn cut_outside(&self) {
        let outside = self.feeds.iter().filter(|inflow| inflow.upstream.is_none());
        outside.for_each(|inflow| inflow.feed.cut());
        self.call_all();
    }

    /// Returns the queries and shared sources of its engine that it reads, by number.
    pub(crate) fn upstream(&self) -> impl Iterator<Item = u64> {
        let of_feeds = self.feeds.iter().filter_map(|inflow| inflow.upstream);
        of_feeds.chain(self.reads.iter().map(|(source, _)| *source))
    }

    /// Lets results wait until they are read, as many as there are.
    pub(crate) fn keep_results(&self) {
        self.outputs.iter().filter_map(|output| output.results.as_ref()).for_each(Results::keep_all);
    }

    fn end(&self) {
        self.ended_ns.set(now_ns());
        let when_ended = locked(&self.ending).when_ended.take();
        if let Some(when_ended) = when_ended {
            when_ended(self.id);
        }
        let mut ending = locked(&self.ending);
        if ending.error.is_none() {
            ending.output = Some(self.output());
        }
        self.outputs.iter().filter_map(|output| output.results.as_ref()).for_each(Results::close);
        self.letters.iter().for_each(Results::close);
        ending.ended = true; // QUERY-3
        drop(ending);
        self.changed.notify_all();
    }

    pub(crate) fn status(&self) -> Status {
        let ending = locked(&self.ending);
        match &ending.error {
            _ if !ending.ended => Status::Running,
            None => Status::Finished,
            Some(error) if matches!(**error, RunError::Stopped) => Status::Stopped,
            Some(_) => Status::Failed,
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        locked(&self.ending).ended
    }

    pub(crate) fn error(&self) -> Option<Arc<RunError>> {
        let ending = locked(&self.ending);
        if ending.ended { ending.error.clone() } else { None }
    }

    pub(crate) fn take_output(&self) -> Option<Output> {
        locked(&self.ending).output.take()
    }

    pub(crate) fn wait(&self, timeout: Duration) -> bool {
        let deadline = Instant::now().checked_add(timeout);
        let mut ending = locked(&self.ending);
        while !ending.ended {
            let left =
                deadline.map_or(timeout, |deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return false;
            }
            ending = self.changed.wait_timeout(ending, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

impl Reader for State {
    fn name(&self) -> &str {
        &self.name
    }

    fn fail(&self, error: RunError) {
        self.fail(error);
    }
}

impl Supervisor for State {
    fn context(&self) -> &Context {
        &self.context
    }

    fn clock(&self) -> &Timepiece {
        &self.clock
    }

    fn is_stopping(&self) -> bool {
        self.context.phase() == Phase::Stopping
    }

    fn fail(&self, error: RunError) {
        self.fail(error);
    }

    fn task_gone(&self) {
        if self.tasks.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.end();
        }
    }

    fn latency_totals(&self) -> (u64, u64) {
        self.account.sink_latency.totals()
    }

    fn rows_in(&self) -> u64 {
        self.account.rows().rows_in
    }

    fn set_rate(&self, rows_per_second: f64) {
        self.rate.set(rows_per_second.to_bits());
    }
}
