//! What the tasks of a query, its engine and its users share.
//!
//! Y1. A query ends once: when its last task is gone. Its tasks go when they have passed the end of the input on, or when
//!     the query enters [`Phase::Stopping`], which every task looks at before each step.
//! Y2. The first error counts. The thread that sets it also enters `Stopping`, and wakes every task.
//! Y3. The outcome is there before `ended` is, and does not change any more: whoever has waited for the end finds the
//!     query gone from its engine and its results closed.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use penstock_memory::Coordinator;
use penstock_operators::HeldRows;
use penstock_queue::log::Work;
use penstock_scheduler::profile::Counter;

use super::QueryMetrics;
use super::tables::LiveTable;
use crate::clock::{Timepiece, now_ns};
use crate::error::RunError;
use crate::executors::bell::Bell;
use crate::executors::{self, NewTask, Supervisor};
use crate::metrics::TaskMetrics;
use crate::output::{OperatorReport, Output, OutputPart};
use penstock_tasks::account::{Account, Operator};
use penstock_tasks::charge::Load;
use penstock_tasks::context::{Context, Phase};
use penstock_tasks::feed::FeedHandle;
use penstock_tasks::results::Results;
use penstock_tasks::shared::Reader;

/// What a query is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Rows may come.
    Running,
    /// It came to its end.
    Finished,
    /// An error ended it.
    Failed,
    /// Somebody ended it.
    Stopped,
}

impl Status {
    /// As people write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        }
    }
}

/// What is lost if a query is stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Rows that wait to be processed, or for the end of the query.
    pub rows: u64,
    /// Those of them that are in windows which have not been given out.
    pub in_windows: u64,
    /// Sessions that have not been given out.
    pub sessions: u64,
}

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
    /// The query of the same engine whose results come in by it, by its number: the feed ends behind the last of them.
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
    /// Rows that operators had no answer for, if somebody reads them.
    pub(crate) letters: Option<Results>,
    /// The tables that rows are looked up in.
    pub(crate) tables: Vec<LiveTable>,
    /// Its clock.
    pub(crate) clock: Timepiece,
    /// What its tasks know of it.
    pub(crate) context: Context,
}

/// A task of a query, as others see it.
pub(crate) struct TaskFace {
    pub(crate) name: String,
    pub(crate) bell: Arc<Bell>,
    /// The tasks that read what it writes.
    pub(crate) readers: Vec<usize>,
    /// The output that leaves by it, if it is a sink.
    pub(crate) output: Option<usize>,
    /// The state that it has handed to whoever merges, if it is a lane.
    pub(crate) load: Option<Arc<Load>>,
    /// Whether it merges the state of lanes.
    pub(crate) merges: bool,
}

impl TaskFace {
    /// Returns what others see of the task.
    pub(crate) fn of(task: &NewTask) -> Self {
        Self {
            name: task.name.clone(),
            bell: Arc::clone(&task.bell),
            readers: task.readers.clone(),
            output: task.body.output(),
            load: task.body.load(),
            merges: task.body.merges(),
        }
    }

    /// Returns what is lost if it is dropped now. What waits for whoever merges counts where it comes from (CHARGE-3).
    fn waiting(&self) -> Waiting {
        let row = &self.bell.row;
        let on_its_way = self.load.as_ref().map_or_else(HeldRows::default, |load| load.held());
        let held =
            HeldRows { rows: row.did.held_rows.get(), sessions: row.did.held_sessions.get() } + on_its_way;
        let pending = if self.merges { 0 } else { row.work().rows };
        let in_windows = if self.output.is_some() { 0 } else { held.rows };
        Waiting { rows: pending + held.rows, in_windows, sessions: held.sessions }
    }
}

/// The shared part of a query.
pub(crate) struct State {
    parts: Parts,
    installed: OnceLock<Vec<TaskFace>>,
    tasks: AtomicUsize,
    ending: Mutex<Ending>,
    changed: Condvar,
    started_ns: u64,
    ended_ns: Counter,
    /// Bits of the rows per second of late, written by the roll-up.
    rate: Counter,
}

impl std::ops::Deref for State {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.parts
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// A query of which nothing runs yet.
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

    /// Says which tasks there are. They may run from now on.
    pub(crate) fn install(&self, faces: Vec<TaskFace>) {
        self.tasks.store(faces.len(), Ordering::Release);
        assert!(self.installed.set(faces).is_ok(), "a query is installed once");
    }

    /// Its tasks.
    pub(crate) fn faces(&self) -> &[TaskFace] {
        self.installed.get().map_or(&[], Vec::as_slice)
    }

    /// Makes all of its tasks look at what has been asked of the query.
    pub(crate) fn call_all(&self) {
        self.faces().iter().for_each(|task| task.bell.call());
    }

    /// Whether this thread runs tasks of its engine, and so cannot wait for it.
    pub(crate) fn is_run_here(&self) -> bool {
        executors::is_run_here(self.engine)
    }

    /// Whether this thread is in the watermark function of one of its feeds.
    pub(crate) fn is_asking_here(&self) -> bool {
        self.feeds.iter().any(|inflow| inflow.feed.is_asking_here())
    }

    /// Whether this thread reads the data of one of its feeds.
    pub(crate) fn is_pulled_here(&self) -> bool {
        self.feeds.iter().any(|inflow| inflow.feed.is_pulled_here())
    }

    pub(crate) fn fail(&self, error: RunError) {
        let mut ending = locked(&self.ending);
        if ending.ended || ending.error.is_some() {
            return; // Y2
        }
        ending.error = Some(Arc::new(error));
        drop(ending);
        self.context.enter(Phase::Stopping);
        self.call_all();
    }

    pub(crate) fn stop(&self) {
        self.fail(RunError::Stopped);
    }

    /// Lets its tasks take from their feeds, and calls them: everything is there.
    pub(crate) fn start(&self) {
        self.feeds.iter().for_each(|inflow| inflow.feed.start());
        self.call_all();
    }

    /// Ends its input where that stands now.
    pub(crate) fn drain(&self) {
        self.feeds.iter().for_each(|inflow| inflow.feed.cut());
        self.end_input();
    }

    /// Ends all input but what comes in by feeds: a shared source is read up to where it is now, a replay ends.
    pub(crate) fn end_input(&self) {
        self.context.enter(Phase::Draining);
        self.call_all();
    }

    /// Ends its feeds where they stand, but for those that end with another query of the engine.
    pub(crate) fn cut_outside(&self) {
        let outside = self.feeds.iter().filter(|inflow| inflow.upstream.is_none());
        outside.for_each(|inflow| inflow.feed.cut());
        self.call_all();
    }

    /// The queries and shared sources of its engine that it reads, by number.
    pub(crate) fn upstream(&self) -> impl Iterator<Item = u64> {
        let of_feeds = self.feeds.iter().filter_map(|inflow| inflow.upstream);
        of_feeds.chain(self.reads.iter().map(|(source, _)| *source))
    }

    /// Lets results wait for whoever reads them later, as many as there are.
    pub(crate) fn keep_results(&self) {
        self.outputs.iter().filter_map(|output| output.results.as_ref()).for_each(Results::keep_all);
    }

    /// What is lost if it is stopped now, but for results that wait to be read. Exact while none of its tasks runs.
    pub(crate) fn waiting(&self) -> Waiting {
        let mut waiting = Waiting::default();
        for lost in self.faces().iter().map(TaskFace::waiting) {
            waiting.rows += lost.rows;
            waiting.in_windows += lost.in_windows;
            waiting.sessions += lost.sessions;
        }
        let collected = self.outputs.iter().filter_map(|output| output.collected.as_ref());
        let rows = |batches: &Arc<Mutex<Vec<RecordBatch>>>| -> usize {
            locked(batches).iter().map(RecordBatch::num_rows).sum()
        };
        waiting.rows += collected.map(rows).sum::<usize>() as u64;
        waiting.rows += self.letters.as_ref().map_or(0, Results::rows);
        waiting
    }

    /// How often its tasks have run; `None` while one of them does.
    pub(crate) fn runs(&self) -> Option<u64> {
        let runs =
            |face: &TaskFace| (face.bell.row.did.running.get() == 0).then(|| face.bell.row.did.runs.get());
        self.faces().iter().map(runs).sum()
    }

    /// Returns how often its tasks have run, if no result comes before its only open input gives more: no task has work or
    /// waits for a time, and no batch is on its way. `None` otherwise.
    pub(crate) fn runs_at_rest(&self) -> Option<u64> {
        let runs = self.runs()?;
        // A replay has work, or a timer, until it ends.
        let feeds = self.feeds.iter().filter(|inflow| !inflow.feed.has_ended()).count();
        let shared: HashSet<u64> = self.reads.iter().map(|(id, _)| *id).collect();
        let rests = |face: &TaskFace| {
            let row = &face.bell.row;
            row.work() == Work::default() && row.did.timed.get() == 0
        };
        let is_at_rest = feeds + shared.len() == 1
            // A batch that a function is asked about goes in once that has returned.
            && self.feeds.iter().all(|inflow| !inflow.feed.is_held() || inflow.feed.is_asking_here())
            && self.outputs.iter().filter_map(|output| output.results.as_ref()).all(Results::is_empty)
            && self.faces().iter().all(rests);
        is_at_rest.then_some(runs)
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
        ending.ended = true; // Y3
        drop(ending);
        self.changed.notify_all();
    }

    fn output(&self) -> Output {
        let rows = self.account.rows();
        let part = |kept: &Kept| OutputPart {
            name: kept.name.clone(),
            schema: Arc::clone(&kept.schema),
            batches: kept
                .collected
                .as_ref()
                .map_or_else(Vec::new, |batches| std::mem::take(&mut *locked(batches))),
        };
        Output {
            parts: self.outputs.iter().map(part).collect(),
            rows_in: rows.rows_in,
            rows_copied: rows.copied,
            rows_contributed: rows.contributed,
            rows_filtered: rows.filtered,
            rows_late: rows.late,
            late_results: rows.late_results,
            rows_shed: rows.shed,
            rows_rejected: rows.rejected,
            rejected_results: rows.rejected_results,
            late_by: self.account.late_by(),
            tick: self.account.tick,
            dropped_late: self.account.dropped_late(),
            batches_in: self.account.batches(),
            operators: self.reports(),
            memory: self.coordinator.snapshot(),
            event_latency: self.account.event_latency.summary(),
            output_latency: self.account.output_latency.summary(),
        }
    }

    fn reports(&self) -> Vec<OperatorReport> {
        let report =
            |operator: &Operator| OperatorReport { name: operator.name.clone(), profile: operator.read() };
        self.account.operators.iter().map(report).collect()
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

    pub(crate) fn metrics(&self) -> QueryMetrics {
        let until = match self.ended_ns.get() {
            0 => now_ns(),
            ended => ended,
        };
        QueryMetrics {
            rows: self.account.rows(),
            batches_in: self.account.batches(),
            late_by: self.account.late_by(),
            tick: self.account.tick,
            seconds: until.saturating_sub(self.started_ns) as f64 / 1e9,
            rows_per_second: f64::from_bits(self.rate.get()),
            event_latency: self.account.event_latency.summary(),
            output_latency: self.account.output_latency.summary(),
            backlog_rows: self.account.backlog_rows(),
            slipped_ns: self.account.slipped_ns(),
            idle_sources: self.account.idle_sources(),
            idles: self.account.idles(),
            clock_closings: self.account.clock_closings(),
            operators: self.reports(),
            tasks: self.tasks(),
        }
    }

    fn tasks(&self) -> Vec<TaskMetrics> {
        let task = |face: &TaskFace| {
            let (row, work) = (&face.bell.row, face.bell.row.work());
            TaskMetrics {
                name: face.name.clone(),
                pending_rows: work.rows,
                signals: work.signals,
                runs: row.did.runs.get(),
                busy_ns: row.did.busy_ns.get(),
                blocked_ns: row.did.blocked_ns.get(),
                time_share: row.time_share(),
                cost_ns: row.cost_ns(),
                selectivity: row.selectivity(),
            }
        };
        self.faces().iter().map(task).collect()
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
