//! The engine: many queries on a few workers.
//!
//! An [`Engine`] owns its threads: workers that run and rank tasks (or a thread for each task), the epoch thread that
//! rings timers, and the allocator behind the [`Coordinator`]. Queries come and go while others run.
//!
//! ENGINE-1. `stop` ends every query and joins every thread; nothing of the engine runs afterwards. Dropping the engine stops
//!     it. In a forked child, where there are no such threads, both do nothing.
//! ENGINE-2. The lock under which queries come is held while one is put together and installed, never while anybody is waited
//!     for or called: neither a shared source, nor a function, nor a query that ends.
//! ENGINE-3. A query that fails takes nothing else along: its tasks go, one by one, as they come to run.

mod bounded;
mod core;
mod inputs;
mod owner;
mod registry;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use penstock_memory::{Coordinator, platform};
use penstock_types::PlanError;

use crate::clock::{self, now_ns};
use crate::error::StartError;
use crate::executors::{self, NewGroup};
use crate::metrics::EngineMetrics;
use crate::options::{EngineOptions, Strategy};
use crate::pipeline::{Assembled, Assembler, Origin, Spreading, Ways};
use crate::plan::{Function, Outputs, Plan, Watermarks};
use crate::query::state::{Inflow, Kept, Parts, State, TaskFace};
use crate::query::{Query, Waiting};
use crate::share::{OnLag, SharedSource};
use crate::standing::Part;
use crate::tasks::checkpoint::StateStore;
use crate::tasks::context::Context;
use crate::tasks::feed::FeedEnd;
use crate::tasks::readers::replay::Replay;
use crate::tasks::rejects::OnError;
use crate::tasks::results::Results;
use crate::tasks::shared::{Entrance, Lag};
use crate::tasks::writers::SinkWriter;
use crate::tasks::writers::collect::{CollectWriter, Collected};
use crate::tasks::writers::discard::DiscardWriter;
use crate::tasks::writers::function::{Deliver, Doorbell, FunctionWriter};
use crate::tasks::writers::results::ResultsWriter;
pub use bounded::{RunFailure, push};

use core::Core;
use inputs::{in_order, marker, push_reader, replay_reader};
use owner::Owner;

/// How often, and how long each time, [`Engine::waiting`] waits for a moment in which no row moves.
const LOOKS: usize = 60;
const GLANCE: Duration = Duration::from_micros(500);

static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// Where the rows of a query come from.
pub enum Input {
    /// Somebody pushes them: the other end of a [`crate::feed`].
    Feed(FeedEnd),
    /// The results of another query: somebody reads them and pushes them, up to their end.
    Chained(FeedEnd, Query),
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

/// How a query runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueryOptions<'a> {
    /// What it is called.
    pub name: Option<&'a str>,
    /// What becomes of rows that an operator has no answer for.
    pub on_error: OnError,
    /// Workers that one operator may take; by default all there are.
    pub parallelism: Option<usize>,
    /// How such an operator is spread over them.
    pub strategy: Strategy,
    /// The part of the input that it runs over, on one worker, if that is not all.
    pub part: Option<&'a Part>,
    /// Functions of the plan, each with the one that the query calls in its place.
    pub functions: &'a [(Function, Function)],
    /// The same of functions that say watermarks.
    pub watermarks: &'a [(Watermarks, Watermarks)],
}

/// How a shared source runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShareOptions<'a> {
    /// What it is called.
    pub name: Option<&'a str>,
    /// Whether it waits to be told to begin, and not for its first reader.
    pub held: bool,
    /// What becomes of rows that it cannot take.
    pub on_error: OnError,
    /// Functions of the stream that say watermarks, each with the one that is called in its place.
    pub watermarks: &'a [(Watermarks, Watermarks)],
}

/// An engine. Clones speak of the same one; it is stopped when the last of them is dropped.
#[derive(Clone)]
pub struct Engine(Arc<Owner>);

impl Engine {
    /// An engine without queries.
    pub fn start(options: EngineOptions) -> Result<Self, StartError> {
        let coordinator = Coordinator::new(options.run.coordinator())?;
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        let core = Arc::new(Core {
            executor: executors::start(&options, number)?,
            coordinator,
            registry: registry::Registry::default(),
            functions: Arc::default(),
            number,
            next_id: AtomicU64::new(1),
            stopped: AtomicBool::new(false),
            started_ns: now_ns(),
            options,
        });
        Ok(Self(Arc::new(Owner::new(&core))))
    }

    /// Whether this is the process that the engine was started in. In a forked child it cannot be used.
    pub fn is_of_this_process(&self) -> bool {
        self.0.is_of_this_process()
    }

    /// Whether this thread runs its tasks: it cannot wait for any of them.
    pub fn is_run_here(&self) -> bool {
        executors::is_run_here(self.0.core().number)
    }

    /// What it was started with.
    pub fn options(&self) -> &EngineOptions {
        &self.0.core().options
    }

    /// Starts a query with one stream and one output, beside those that run.
    pub fn submit(
        &self,
        plan: &Plan,
        input: Input,
        sink: Sink,
        name: Option<&str>,
    ) -> Result<Query, StartError> {
        let streams = plan.streams();
        let Some(stream) = streams.first().filter(|_| streams.len() == 1) else {
            return Err(StartError::Plan(PlanError::Invalid(format!(
                "the plan reads several streams ({}): give data for each, by name",
                streams.join(", ")
            ))));
        };
        let options = QueryOptions { name, ..QueryOptions::default() };
        self.submit_all(&Outputs::from(plan), vec![(stream.clone(), input)], vec![sink], options)
    }

    /// Starts a query, beside those that run: an input for each stream, by name, and a sink for each output.
    pub fn submit_all(
        &self,
        outputs: &Outputs,
        inputs: Vec<(String, Input)>,
        sinks: Vec<Sink>,
        options: QueryOptions<'_>,
    ) -> Result<Query, StartError> {
        let core = self.0.core();
        self.check(options.name)?;
        let Opened { origins, lagging, feeds } = self.open(outputs, inputs, options.watermarks)?;
        let _admission = self.0.admission(); // ENGINE-2
        let (id, name) = self.admit(options.name, "query")?;
        let waiting = || Results::new(core.coordinator.result_account(), clock::system());
        let letters = (options.on_error == OnError::Letters).then(waiting);
        let (mut kept, mut writers): (Vec<Kept>, Vec<Box<dyn SinkWriter>>) = (Vec::new(), Vec::new());
        for ((name, schema), sink) in outputs.schemas().zip(sinks) {
            let (mut collected, mut results): (Option<Collected>, Option<Results>) = (None, None);
            writers.push(match sink {
                Sink::Collect => Box::new(CollectWriter::new(Arc::clone(collected.insert(Arc::default())))),
                Sink::Results => Box::new(ResultsWriter::new(results.insert(waiting()).clone())),
                Sink::Deliver(deliver, doorbell) => Box::new(FunctionWriter::new(deliver, doorbell)),
                Sink::Discard => Box::new(DiscardWriter),
            });
            kept.push(Kept { name: name.to_owned(), schema: Arc::clone(schema), collected, results });
        }
        assert_eq!(kept.len(), outputs.plans().len(), "every output has a sink");
        let assembler = self.assembler();
        let usual = core.executor.parallelism();
        let ways = Ways {
            on_error: options.on_error,
            letters: letters.as_ref(),
            spreading: Spreading {
                // State is written down operator by operator.
                parallelism: if options.part.is_some() { 1 } else { options.parallelism.unwrap_or(usual) },
                strategy: options.strategy,
            },
            part: options.part,
            functions: options.functions,
        };
        let assembled = assembler.query(outputs, origins, writers, ways)?;
        let kept_state = options.part.map(|part| Arc::new(part.clone()) as Arc<dyn StateStore>);
        let outputs = (kept, letters, kept_state);
        let state = self.install(assembled, (id, name), outputs, (feeds, false))?;
        for lag in lagging {
            let reader = Arc::downgrade(&state);
            lag.set_query(reader);
        }
        state.start();
        Ok(Query { state })
    }

    /// Opens the inputs of a query: asks functions about what is there already, and waits for shared sources to let it in.
    fn open(
        &self,
        outputs: &Outputs,
        inputs: Vec<(String, Input)>,
        watermarks: &[(Watermarks, Watermarks)],
    ) -> Result<Opened, StartError> {
        let mut opened = Opened::default();
        for (stream, schema, input) in in_order(outputs, inputs)? {
            let marker = || marker(&stream, watermarks);
            opened.origins.push(match input {
                Input::Feed(end) => {
                    opened.feeds.push(Inflow::outside(&end));
                    Origin::Own(push_reader(end, marker())?)
                }
                Input::Chained(end, query) => {
                    opened.feeds.push(self.inflow(&end, &query));
                    Origin::Own(push_reader(end, marker())?)
                }
                Input::Replay(replay) => Origin::Own(replay_reader(replay, marker())?),
                Input::Shared(source, on_lag) => {
                    source.stream.check(&stream, &schema)?;
                    let joined = source.join(on_lag);
                    if let Err(StartError::SourceEnded { .. }) = joined {
                        self.check(None)?; // the source is gone because the engine is
                    }
                    let (reader, lag) = joined?;
                    opened.lagging.push(Arc::clone(&lag));
                    Origin::Shared { reader, stream: Arc::clone(&source.stream), lag, id: source.state.id }
                }
            });
        }
        Ok(opened)
    }

    /// What is known of a feed that gets the results of `query`: of this engine, or of another one.
    fn inflow(&self, end: &FeedEnd, query: &Query) -> Inflow {
        let is_ours = query.state.engine == self.0.core().number;
        Inflow { feed: end.handle(), upstream: is_ours.then_some(query.state.id) }
    }

    /// Starts a source that several queries read.
    pub fn share(
        &self,
        stream: &Plan,
        input: Input,
        options: ShareOptions<'_>,
    ) -> Result<SharedSource, StartError> {
        let ShareOptions { name, held, on_error, watermarks } = options;
        let core = self.0.core();
        self.check(name)?;
        let declared = stream.declaration().map(|plan| plan.with_watermarks(watermarks));
        let step = declared.as_ref().and_then(|plan| plan.as_stream().cloned());
        let Some((plan, step)) = declared.zip(step) else {
            let text = "a shared source is one stream; share each of them on its own".to_owned();
            return Err(StartError::Plan(PlanError::Invalid(text)));
        };
        let mut feeds = Vec::new();
        let reader = match input {
            Input::Feed(end) => {
                feeds.push(Inflow::outside(&end));
                push_reader(end, marker(&step, &[]))?
            }
            Input::Chained(end, query) => {
                feeds.push(self.inflow(&end, &query));
                push_reader(end, marker(&step, &[]))?
            }
            Input::Replay(replay) => replay_reader(replay, marker(&step, &[]))?,
            Input::Shared(..) => {
                let text = "a shared source reads data, not another shared source".to_owned();
                return Err(StartError::Plan(PlanError::Invalid(text)));
            }
        };
        let _admission = self.0.admission(); // ENGINE-2
        let (id, name) = self.admit(name, "source")?;
        let (entrance, joins) = Entrance::new(held);
        let letters = (on_error == OnError::Letters)
            .then(|| Results::new(core.coordinator.result_account(), clock::system()));
        let rejects = (on_error != OnError::Fail).then(|| letters.clone());
        let assembler = self.assembler();
        let (assembled, shared) =
            assembler.shared(&plan, reader, Arc::clone(entrance.begin()), joins, rejects)?;
        let state = self.install(assembled, (id, name), (Vec::new(), letters, None), (feeds, true))?;
        state.start();
        Ok(SharedSource::new(state, shared, plan, entrance))
    }

    /// Whether the engine takes a query of that name now. Ask before an input is given away that can be read once only.
    pub fn check(&self, name: Option<&str>) -> Result<(), StartError> {
        let core = self.0.core();
        if core.stopped.load(Ordering::Acquire) {
            return Err(StartError::EngineStopped);
        }
        match name {
            Some(name) if core.registry.is_taken(name) => {
                Err(StartError::NameTaken { name: name.to_owned() })
            }
            _ => Ok(()),
        }
    }

    /// Whether it has been stopped.
    pub fn is_stopped(&self) -> bool {
        self.0.core().stopped.load(Ordering::Acquire)
    }

    /// A number and a name for a query, if the engine takes one.
    fn admit(&self, name: Option<&str>, kind: &str) -> Result<(u64, String), StartError> {
        let id = self.0.core().next_id.fetch_add(1, Ordering::Relaxed);
        let name = name.map_or_else(|| format!("{kind}-{id}"), str::to_owned);
        self.check(Some(&name))?;
        Ok((id, name))
    }

    fn assembler(&self) -> Assembler<'_> {
        let core = self.0.core();
        Assembler { options: &core.options.run, coordinator: &core.coordinator, executor: &*core.executor }
    }

    fn install(
        &self,
        assembled: Assembled,
        (id, name): (u64, String),
        (outputs, letters, kept): (Vec<Kept>, Option<Results>, Option<Arc<dyn StateStore>>),
        (feeds, is_source): (Vec<Inflow>, bool),
    ) -> Result<Arc<State>, StartError> {
        let core = self.0.core();
        let (account, clock) = (Arc::new(assembled.account), core.options.clock.clone());
        let functions = Arc::clone(&core.functions);
        let context = Context::new(Arc::new(clock.clone()), Arc::clone(&account), kept, functions);
        let parts = Parts {
            id,
            engine: core.number,
            name,
            account,
            coordinator: core.coordinator.clone(),
            outputs,
            feeds,
            is_source,
            reads: assembled.reads.clone(),
            tables: assembled.tables,
            letters,
            clock,
            context,
        };
        let engine = Arc::downgrade(core);
        let when_ended = Box::new(move |id| {
            if let Some(core) = engine.upgrade() {
                core.executor.remove(id);
                core.registry.remove(id);
            }
        });
        let state = State::new(parts, when_ended);
        state.install(assembled.tasks.iter().map(TaskFace::of).collect());
        // Before its tasks: one that ends at once finds itself in the registry.
        core.registry.add(&state);
        let query = Arc::clone(&state) as _;
        let group = NewGroup { id, query, tasks: assembled.tasks, reads: assembled.reads };
        Arc::clone(&core.executor).install(group)?;
        Ok(state)
    }

    /// The queries that run, in the order in which they were submitted.
    pub fn queries(&self) -> Vec<Query> {
        let running = self.0.core().registry.all();
        running.into_iter().filter(|state| !state.is_source).map(|state| Query { state }).collect()
    }

    /// What is lost if the engine is stopped now, for each query and shared source that runs, by name. `beside` says how
    /// many results of a query wait that are lost as well.
    ///
    /// Exact if no task runs for a moment. It is waited for that, but not for long.
    pub fn waiting(&self, beside: impl Fn(&Query) -> u64) -> Vec<(String, Waiting)> {
        let running = self.0.core().registry.all();
        let runs = || running.iter().map(|state| state.runs()).collect::<Option<Vec<u64>>>();
        let of = |state: &Arc<State>| {
            let mut waiting = state.waiting();
            waiting.rows += beside(&Query { state: Arc::clone(state) });
            (state.name.clone(), waiting)
        };
        let mut looks = 0;
        loop {
            let before = runs();
            let waiting = running.iter().map(of).collect();
            looks += 1;
            if (before.is_some() && before == runs()) || looks == LOOKS {
                return waiting;
            }
            // By number and not by time: on a busy machine a task may be held up in the middle of a run.
            thread::sleep(GLANCE);
        }
    }

    /// Returns the metrics of the engine as a whole.
    pub fn metrics(&self) -> EngineMetrics {
        let core = self.0.core();
        let (queries, tasks) = core.registry.counts();
        let executor = core.executor.metrics();
        EngineMetrics {
            seconds: now_ns().saturating_sub(core.started_ns) as f64 / 1e9,
            queries,
            tasks,
            workers: executor.workers,
            task_threads: executor.task_threads,
            epochs: executor.epochs,
            planning_ns: executor.planning_ns,
            rolling_ns: executor.rolling_ns,
            memory: core.coordinator.snapshot(),
            process: platform::usage(),
        }
    }

    /// Ends the input of everything that runs, where it stands; results wait for whoever reads them afterwards. Calls
    /// `wait` with each that is waited for, until that says that there has been enough of it.
    ///
    /// Rows of a shared source, or of another query of this engine, have been taken in already: a query that reads them
    /// ends behind the last of them, and so is drained after what it reads.
    ///
    /// # Errors
    /// What `wait` has said.
    pub fn drain<E>(&self, mut wait: impl FnMut(&Query) -> Result<(), E>) -> Result<(), E> {
        let running = self.0.core().registry.all();
        running.iter().for_each(|state| state.keep_results());
        running.iter().for_each(|state| state.cut_outside());
        for round in registry::rounds(&running) {
            round.iter().for_each(|state| state.end_input());
            round.iter().try_for_each(|state| wait(&Query { state: Arc::clone(state) }))?;
        }
        Ok(())
    }

    /// Ends every query, and joins every thread. Does nothing if it was stopped before. On a thread that runs its tasks
    /// it does not wait.
    pub fn stop(&self) {
        self.0.stop();
    }
}

/// The inputs of a query, about to be put together.
#[derive(Default)]
struct Opened {
    origins: Vec<Origin>,
    lagging: Vec<Arc<Lag>>,
    feeds: Vec<Inflow>,
}
