//! The engine: many queries on a few workers.
//!
//! An [`Engine`] owns its threads: workers that run and rank tasks (or a thread for each task), the epoch thread that
//! fires timers, and the allocator thread of the [`Coordinator`]. Queries come and go while others run.
//!
//! ENGINE-1. `stop` ends every query and joins every thread; nothing of the engine runs afterwards. Dropping the engine stops
//!     it. In a forked child, where there are no such threads, both do nothing.
//! ENGINE-2. The lock under which queries come is held while one is made and installed, never while the caller waits for, or
//!     calls, anything else: neither a shared source, nor a function, nor a query that ends.
//! ENGINE-3. A query that fails takes nothing else along: its tasks go, one by one, as they are run.

mod bounded;
mod core;
mod inputs;
mod overview;
mod owner;
mod registry;
mod request;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use penstock_memory::Coordinator;
use penstock_types::PlanError;

use crate::clock::{self, now_ns};
use crate::error::StartError;
use crate::executors::{self, NewGroup};
use crate::input::{Input, Opening};
use crate::instantiate::{Assembled, Assembler, Ways};
use crate::options::EngineOptions;
use crate::query::Query;
use crate::query::face::TaskFace;
use crate::query::state::{Inflow, Kept, Parts, State};
use crate::share::SharedSource;
use crate::sink::{self, Sink};
pub use bounded::{RunFailure, push};
use penstock_graph::Spreading;
use penstock_plan::{Outputs, Plan};
use penstock_tasks::checkpoint::StateStore;
use penstock_tasks::context::Context;
use penstock_tasks::rejects::OnError;
use penstock_tasks::results::Results;
use penstock_tasks::shared::Entrance;
use penstock_tasks::writers::SinkWriter;
pub use request::{QueryOptions, ShareOptions};

use core::Core;
use inputs::{OpenedInputs, marker};
use owner::Owner;

static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// An engine. Clones speak of the same one; it is stopped when the last of them is dropped.
#[derive(Clone)]
pub struct Engine(Arc<Owner>);

impl Engine {
    /// Starts an engine without queries.
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

    /// Returns whether this is the process that the engine was started in. In a forked child it cannot be used.
    pub fn is_of_this_process(&self) -> bool {
        self.0.is_of_this_process()
    }

    /// Returns whether this thread runs its tasks: it cannot wait for any of them.
    pub fn is_run_here(&self) -> bool {
        executors::is_run_here(self.0.core().number)
    }

    /// Returns what it was started with.
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
        let OpenedInputs { origins, lagging, feeds } = self.open(outputs, inputs, options.watermarks)?;
        let _admission = self.0.admission(); // ENGINE-2
        let (id, name) = self.admit(options.name, "query")?;
        let waiting = || Results::new(core.coordinator.result_account(), clock::system());
        let letters = (options.on_error == OnError::Letters).then(waiting);
        let (mut kept, mut writers): (Vec<Kept>, Vec<Box<dyn SinkWriter>>) = (Vec::new(), Vec::new());
        for ((name, schema), sink) in outputs.schemas().zip(sinks) {
            let sink::OpenedSink { writer, collected, results } = sink.open(&waiting);
            writers.push(writer);
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
        if input.is_shared() {
            let text = "a shared source reads data, not another shared source".to_owned();
            return Err(StartError::Plan(PlanError::Invalid(text)));
        }
        let (engine, schema) = (core.number, plan.schema());
        let opening = Opening { engine, stream: &step, schema, marker: marker(&step, &[]) };
        let made = input.open(&opening)?;
        let feeds = made.feed.into_iter().collect();
        let _admission = self.0.admission(); // ENGINE-2
        let (id, name) = self.admit(name, "source")?;
        let (entrance, joins) = Entrance::new(held);
        let letters = (on_error == OnError::Letters)
            .then(|| Results::new(core.coordinator.result_account(), clock::system()));
        let rejects = (on_error != OnError::Fail).then(|| letters.clone());
        let assembler = self.assembler();
        let (assembled, shared) =
            assembler.shared(&plan, made.origin, Arc::clone(entrance.begin()), joins, rejects)?;
        let state = self.install(assembled, (id, name), (Vec::new(), letters, None), (feeds, true))?;
        state.start();
        Ok(SharedSource::new(state, shared, plan, entrance))
    }

    /// Checks that the engine takes a query of that name now: before an input is given away that can be read once only.
    ///
    /// # Errors
    /// When it has been stopped, or the name is taken.
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

    /// Returns whether it has been stopped.
    pub fn is_stopped(&self) -> bool {
        self.0.core().stopped.load(Ordering::Acquire)
    }

    /// Returns a number and a name for a query, if the engine takes one.
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
            physical: assembled.physical,
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

    /// Ends every query, and joins every thread. Does nothing if it was stopped before. On a thread that runs its tasks
    /// it does not wait.
    pub fn stop(&self) {
        self.0.stop();
    }
}
