//! What runs on an engine, and how all of it is drained.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use penstock_memory::platform;

use super::{Engine, registry};
use crate::clock::now_ns;
use crate::metrics::EngineMetrics;
use crate::query::state::State;
use crate::query::{Query, Waiting};

/// How often, and how long each time, [`Engine::waiting`] waits for a moment in which no row moves.
const LOOKS: usize = 60;
const GLANCE: Duration = Duration::from_micros(500);

impl Engine {
    /// Returns the queries that run, in the order in which they were submitted.
    pub fn queries(&self) -> Vec<Query> {
        let running = self.0.core().registry.all();
        running.into_iter().filter(|state| !state.is_source).map(|state| Query { state }).collect()
    }

    /// Returns what is lost if the engine is stopped now, for each query and shared source that runs, by name. `beside` tells how
    /// many results of a query wait that are lost as well.
    ///
    /// Exact if no task runs for a moment. The call waits for that, but not for long.
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

    /// Ends the input of everything that runs, where it is now; results wait to be read afterwards. Calls
    /// `wait` with each that is waited for, until that fails.
    ///
    /// Rows of a shared source, or of another query of this engine, have been taken in already: a query that reads them
    /// ends after the last of them, and so is drained after what it reads.
    ///
    /// # Errors
    /// When `wait` fails.
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
}
