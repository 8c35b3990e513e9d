//! Queries: what a user holds of a plan that runs.

mod blocked;
pub(crate) mod face;
mod report;
pub(crate) mod state;
mod status;
pub(crate) mod tables;

use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

pub use blocked::BlockedBy;
pub use face::Waiting;
pub use penstock_tasks::account::{DroppedLate, Rows};
pub use status::Status;

use penstock_types::Tick;

use crate::error::{RunError, StartError};
use crate::metrics::TaskMetrics;
use crate::output::{OperatorReport, Output};
use penstock_tasks::account::Latency;
use penstock_tasks::results::Results;
use state::State;

/// A query at work, or one that has ended. Clones speak of the same query; dropping them does not stop it.
#[derive(Clone)]
pub struct Query {
    pub(crate) state: Arc<State>,
}

/// The metrics of a query.
#[derive(Clone, Debug)]
pub struct QueryMetrics {
    /// Where rows went.
    pub rows: Rows,
    /// Batches taken in.
    pub batches_in: u64,
    /// Largest distance between a late row and the watermark it missed, in ticks of event time.
    pub late_by: Option<u64>,
    /// The unit of `late_by`.
    pub tick: Option<Tick>,
    /// How long it has been running, or ran.
    pub seconds: f64,
    /// Rows taken in per second, recently.
    pub rows_per_second: f64,
    /// From the arrival of a row until its results were handed over, by markers that go with the rows.
    pub event_latency: Latency,
    /// From the arrival of the watermark that closed a window until its results were handed over.
    pub output_latency: Latency,
    /// Rows of a replay that are due and not taken yet.
    pub backlog_rows: u64,
    /// How far a replay was slowed down.
    pub slipped_ns: u64,
    /// Sources that are not waited for, because they have been silent for so long.
    pub idle_sources: u64,
    /// How often sources have gone idle.
    pub idles: u64,
    /// How often windows were closed by the clock, because no row had come for so long.
    pub clock_closings: u64,
    /// What each operator did.
    pub operators: Vec<OperatorReport>,
    /// What each task did, and what waits for it.
    pub tasks: Vec<TaskMetrics>,
}

impl Query {
    /// Returns its name, unique among the queries that run.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// Returns its number, unique in the engine.
    pub fn id(&self) -> u64 {
        self.state.id
    }

    /// Returns the names of its outputs, in order, and their columns.
    pub fn outputs(&self) -> impl Iterator<Item = (&str, &SchemaRef)> {
        self.state.outputs.iter().map(|output| (output.name.as_str(), &output.schema))
    }

    /// Returns what it is doing.
    pub fn status(&self) -> Status {
        self.state.status()
    }

    /// Returns whether this thread runs tasks of its engine: a wait for the query might never end here.
    pub fn is_run_here(&self) -> bool {
        self.state.is_run_here()
    }

    /// Ends it now: what is on its way is given up. Does not wait.
    pub fn stop(&self) {
        self.state.stop();
    }

    /// Ends its input: what was taken in is processed, windows close, results leave. Does not wait.
    pub fn drain(&self) {
        self.state.drain();
    }

    /// Waits until it has ended, or `timeout` is over. Returns whether it has ended.
    pub fn wait(&self, timeout: Duration) -> bool {
        self.state.wait(timeout)
    }

    /// Returns why it ended without an answer, if it did.
    pub fn error(&self) -> Option<Arc<RunError>> {
        self.state.error()
    }

    /// Makes it fail with an error from outside, such as that of a sink.
    pub fn fail(&self, error: RunError) {
        self.state.fail(error);
    }

    /// Returns what it gave, once: when it has ended with an answer.
    pub fn take_output(&self) -> Option<Output> {
        self.state.take_output()
    }

    /// Returns the results of its first output, if it was submitted to be read from.
    pub fn results(&self) -> Option<&Results> {
        self.results_of(0)
    }

    /// Returns the results of an output, by number, if that was submitted to be read from.
    pub fn results_of(&self, output: usize) -> Option<&Results> {
        self.state.outputs.get(output).and_then(|output| output.results.as_ref())
    }

    /// Returns the rows that operators rejected, if it was submitted so that they are read.
    pub fn letters(&self) -> Option<&Results> {
        self.state.letters.as_ref()
    }

    /// Replaces the table that rows are looked up in, by the name of the lookup, which may be left out where there is only
    /// one. It counts for the rows that are looked up from now on.
    pub fn replace_lookup(&self, name: Option<&str>, table: &RecordBatch) -> Result<(), StartError> {
        tables::replace(&self.state.tables, name, table)
    }

    /// Returns the tasks that it runs as, in words: with the sources that it shares, and the workers that it has.
    pub fn explain_physical(&self) -> &str {
        &self.state.physical
    }

    /// Returns its metrics.
    pub fn metrics(&self) -> QueryMetrics {
        self.state.metrics()
    }

    /// Returns the rows, and results on their way to a further window, that came too late and went nowhere.
    pub fn dropped_late(&self) -> Option<DroppedLate> {
        self.state.account.dropped_late()
    }

    /// Forgets the latencies measured so far, so that a warm-up does not count.
    pub fn clear_latencies(&self) {
        self.state.account.event_latency.clear();
        self.state.account.output_latency.clear();
    }
}
