//! The engine: many queries on a few workers.
//!
//! An [`Engine`] owns its threads: workers that run tasks (or a thread for each task), the epoch thread that ranks them,
//! and the allocator behind the [`Coordinator`]. Queries come and go while others run.
//!
//! N1. `stop` ends every query and joins every thread; nothing of the engine runs afterwards. Dropping the engine stops
//!     it. In a forked child, where there are no such threads, both do nothing.
//! N2. A query that fails takes nothing else along: its tasks go, one by one, as workers come upon them.

pub(crate) mod bell;
mod bounded;
pub(crate) mod cell;
pub(crate) mod core;
mod epoch;
mod owner;
mod planner;
mod roster;
mod timers;
mod workers;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use arrow_array::RecordBatch;
use penstock_memory::{Coordinator, platform};
use penstock_queue::schedule::ScheduleQueue;

use crate::clock::now_ns;
use crate::error::StartError;
use crate::feed::FeedEnd;
use crate::metrics::{EngineMetrics, WorkerMetrics};
use crate::options::{EngineOptions, Mode};
use crate::pipeline::{Assembled, Assembler, Deliver, Destination, Doorbell, Intake, Origin};
use crate::plan::Plan;
use crate::query::Query;
use crate::query::state::{Parts, State};
use crate::replay::{Replay, Replaying};
use crate::results::Results;
use crate::share::{Handle, OnLag, SharedSource};
pub use bounded::{RunFailure, push};

use bell::Bell;
use cell::TaskCell;
use core::{Core, MOST_TASKS};
use owner::Owner;

/// Where the rows of a query come from.
pub enum Input {
    /// Somebody pushes them: the other end of a [`crate::feed`].
    Feed(FeedEnd),
    /// They are in memory, and replayed.
    Replay(Replay),
    /// A source that others read as well, and what happens if the query holds it up.
    Shared(SharedSource, OnLag),
}

/// Where the results of a query go.
pub enum Sink {
    /// Into [`Output::batches`], when the query has ended.
    Collect,
    /// To whoever reads [`Query::results`]; nobody reading holds the query up.
    Results,
    /// To the caller's own taker, which rings the bell when it may take a batch that it gave back.
    Deliver(Box<dyn Deliver>, Doorbell),
    /// Nowhere: they are counted only.
    Discard,
}

/// What a query keeps besides its tasks.
#[derive(Default)]
struct Kept {
    collected: Option<Arc<Mutex<Vec<RecordBatch>>>>,
    results: Option<Results>,
    is_source: bool,
    reads: Option<u64>,
}

/// An engine. Clones speak of the same one; it is stopped when the last of them is dropped.
#[derive(Clone)]
pub struct Engine(Arc<Owner>);

impl Engine {
    /// An engine without queries.
    pub fn start(options: EngineOptions) -> Result<Self, StartError> {
        let coordinator = Coordinator::new(options.run.coordinator())?;
        let workers = if options.mode == Mode::State { options.worker_count() } else { 0 };
        let core = Arc::new(Core {
            queue: Arc::new(ScheduleQueue::new(MOST_TASKS, workers.max(1))),
            coordinator,
            workers: (0..workers).map(|_| Default::default()).collect(),
            epoch: epoch::Epoch::default(),
            timers: timers::Timers::default(),
            roster: roster::RosterCell::default(),
            cpu_ns: AtomicU64::new(0),
            busy_ns: AtomicU64::new(0),
            next_id: AtomicU64::new(1),
            stopped: AtomicBool::new(false),
            started_ns: now_ns(),
            task_threads: AtomicU64::new(0),
            options,
        });
        let engine = Self(Arc::new(Owner::new(&core)));
        let mut threads = engine.0.locked();
        for number in 0..workers {
            threads.push(workers::start(&core, number)?);
        }
        threads.push(epoch::start(&core)?);
        drop(threads);
        Ok(engine)
    }

    /// Whether this is the process that the engine was started in. In a forked child it cannot be used.
    pub fn is_of_this_process(&self) -> bool {
        self.0.is_of_this_process()
    }

    /// What it was started with.
    pub fn options(&self) -> &EngineOptions {
        &self.0.core().options
    }

    /// Starts a query, beside those that run.
    pub fn submit(
        &self,
        plan: &Plan,
        input: Input,
        sink: Sink,
        name: Option<&str>,
    ) -> Result<Query, StartError> {
        let core = self.0.core();
        let mut threads = self.0.locked();
        let (id, name) = self.admit(name, "query")?;
        let (mut lagging, mut reads) = (None, None);
        let origin = match input {
            Input::Feed(end) => Origin::Intake(Intake::Feed(end)),
            Input::Replay(replay) => Origin::Intake(Intake::Replay(Replaying::new(replay))),
            Input::Shared(source, on_lag) => {
                source.stream.check(plan)?;
                let bell = Bell::new();
                let (reader, lag) = source.join(&bell, on_lag)?;
                lagging = Some(Arc::clone(&lag));
                reads = Some(source.state.id);
                Origin::Shared { reader, stream: Arc::clone(&source.stream), lag, bell }
            }
        };
        let (mut collected, mut results) = (None, None);
        let destination = match sink {
            Sink::Collect => Destination::Collected(Arc::clone(collected.insert(Arc::default()))),
            Sink::Results => Destination::Results(results.insert(Results::default()).clone()),
            Sink::Deliver(deliver, doorbell) => Destination::Deliver(deliver, doorbell),
            Sink::Discard => Destination::Nobody,
        };
        let assembler = Assembler { options: &core.options.run, coordinator: &core.coordinator };
        let assembled = assembler.query(plan, origin, destination)?;
        let schema = Arc::clone(plan.schema());
        let kept = Kept { collected, results: results.clone(), is_source: false, reads };
        let state = self.install(assembled, &schema, (id, name), kept, &mut threads)?;
        if let Some(lag) = lagging {
            lag.set_query(&state);
        }
        state.call_all();
        Ok(Query { state, results, schema })
    }

    /// Starts a source that several queries read. With `held` it waits to be told to begin, else for its first reader.
    pub fn share(
        &self,
        stream: &Plan,
        input: Input,
        name: Option<&str>,
        held: bool,
    ) -> Result<SharedSource, StartError> {
        let core = self.0.core();
        let mut threads = self.0.locked();
        let (id, name) = self.admit(name, "source")?;
        let intake = match input {
            Input::Feed(end) => Intake::Feed(end),
            Input::Replay(replay) => Intake::Replay(Replaying::new(replay)),
            Input::Shared(..) => {
                let text = "a shared source reads data, not another shared source".to_owned();
                return Err(StartError::Plan(penstock_types::PlanError::Invalid(text)));
            }
        };
        let plan = stream.declaration();
        let (handle, joins) = Handle::new(held);
        let assembler = Assembler { options: &core.options.run, coordinator: &core.coordinator };
        let (assembled, shared) = assembler.shared(&plan, intake, Arc::clone(&handle.begin), joins)?;
        let schema = Arc::clone(plan.schema());
        let kept = Kept { is_source: true, ..Kept::default() };
        let state = self.install(assembled, &schema, (id, name), kept, &mut threads)?;
        state.call_all();
        Ok(SharedSource::new(state, shared, plan, handle))
    }

    /// Whether the engine takes a query of that name now. Ask before an input is given away that can be read once only.
    pub fn check(&self, name: Option<&str>) -> Result<(), StartError> {
        let core = self.0.core();
        if core.stopped.load(Ordering::Acquire) {
            return Err(StartError::EngineStopped);
        }
        let taken = |name: &str| {
            core.roster.get().queries.iter().any(|query| query.name == name && !query.has_ended())
        };
        match name {
            Some(name) if taken(name) => Err(StartError::NameTaken { name: name.to_owned() }),
            _ => Ok(()),
        }
    }

    /// A number and a name for a query, if the engine takes one.
    fn admit(&self, name: Option<&str>, kind: &str) -> Result<(u64, String), StartError> {
        let id = self.0.core().next_id.fetch_add(1, Ordering::Relaxed);
        let name = name.map_or_else(|| format!("{kind}-{id}"), str::to_owned);
        self.check(Some(&name))?;
        Ok((id, name))
    }

    fn install(
        &self,
        assembled: Assembled,
        schema: &arrow_schema::SchemaRef,
        (id, name): (u64, String),
        kept: Kept,
        threads: &mut Vec<JoinHandle<()>>,
    ) -> Result<Arc<State>, StartError> {
        let core = self.0.core();
        let roster = Arc::downgrade(core);
        let state = State::new(Parts {
            id,
            name,
            account: assembled.account,
            schema: Arc::clone(schema),
            coordinator: core.coordinator.clone(),
            collected: kept.collected,
            results: kept.results,
            is_source: kept.is_source,
            reads: kept.reads,
            when_ended: Box::new(move |id| {
                if let Some(core) = roster.upgrade() {
                    core.roster.remove(id);
                }
            }),
        });
        let names = assembled.tasks.iter().map(|task| task.name.clone()).collect();
        state.install(assembled.tasks.iter().map(|task| Arc::clone(&task.bell)).collect(), names);
        // Before its tasks: one that ends at once finds itself in the roster.
        core.roster.add(&state);
        let mut failed = None;
        threads.retain(|thread| !thread.is_finished());
        let bells = state.bells();
        for (number, task) in assembled.tasks.into_iter().enumerate() {
            let reader = bells.get(number + 1).cloned();
            let cell = TaskCell::new(task.name, task.body, task.bell, Arc::clone(&state), reader);
            if failed.is_some() {
                continue; // the cell tells its query that it is gone
            }
            let installed = match core.options.mode {
                Mode::Threads => workers::start_own(core, cell)
                    .map(|thread| threads.push(thread))
                    .map_err(StartError::Thread),
                Mode::State => {
                    let added = core.queue.add(|task| {
                        cell.bell.connect(&core.queue, task);
                        cell
                    });
                    added.map(|_| ()).ok_or(StartError::TooManyTasks { most: MOST_TASKS })
                }
            };
            if let Err(error) = installed {
                state.stop();
                failed = Some(error);
            }
        }
        match failed {
            Some(error) => Err(error),
            None => Ok(state),
        }
    }

    /// The queries that run, in the order in which they were submitted.
    pub fn queries(&self) -> Vec<Query> {
        let roster = self.0.core().roster.get();
        let query = |state: &Arc<State>| Query {
            state: Arc::clone(state),
            results: state.results.clone(),
            schema: Arc::clone(&state.schema),
        };
        roster.queries.iter().filter(|state| !state.is_source).map(query).collect()
    }

    /// What it has come to.
    pub fn metrics(&self) -> EngineMetrics {
        let core = self.0.core();
        let roster = core.roster.get();
        let now = now_ns();
        let worker = |stats: &core::WorkerStats| {
            let since = stats.parked_since_ns.get();
            let asleep = if since == 0 { 0 } else { now.saturating_sub(since) };
            let (busy_ns, parked_ns) = (stats.busy_ns.get(), stats.parked_ns.get() + asleep);
            let alive_ns = now.saturating_sub(stats.started_ns.get());
            WorkerMetrics {
                runs: stats.runs.get(),
                busy_ns,
                parked_ns,
                parks: stats.parks.get(),
                overhead_ns: alive_ns.saturating_sub(busy_ns + parked_ns),
            }
        };
        EngineMetrics {
            seconds: now.saturating_sub(core.started_ns) as f64 / 1e9,
            queries: roster.queries.len(),
            tasks: roster.tasks.len(),
            workers: core.workers.iter().map(|stats| worker(stats)).collect(),
            task_threads: core.task_threads.load(Ordering::Relaxed),
            epochs: core.epoch.epochs.get(),
            planning_ns: core.epoch.planning_ns.get(),
            rolling_ns: core.epoch.rolling_ns.get(),
            memory: core.coordinator.snapshot(),
            process: platform::usage(),
        }
    }

    /// Ends every query, and joins every thread. Does nothing if it was stopped before.
    pub fn stop(&self) {
        self.0.stop();
    }
}
