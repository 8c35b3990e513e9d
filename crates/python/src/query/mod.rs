//! Queries, as Python holds them.
//!
//! - `core`: what a query reads, calls and writes to; `failure`: its error as an exception; `reading`: its results

mod core;
mod failure;
mod reading;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use penstock_border::guarded;
use penstock_engine::results::Next;
use penstock_engine::{Query as Running, Results, Status};
use pyo3::exceptions::{PyStopAsyncIteration, PyStopIteration};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCapsule, PyDict};
use pyo3::{PyTraverseError, PyVisit};

use self::core::QueryCore;
use self::failure::Failure;
use crate::arrow::one_batch;
use crate::batch::Batch;
use crate::errors::{consumed, error_text, invalid, let_go, run_error, start_error, waits_for_itself};
use crate::metrics;
use crate::output::{Output, stream_capsule};
use crate::process::Here;
use crate::raised::Raised;
use crate::schema::Schema;
use crate::shared::SharedSource;
use crate::sink::{Callback, Destination};
use crate::slot::Slot;
use crate::streamed::Streamed;
use crate::wait::{timeout, wait};
use crate::waiter::Waiter;

/// A query that runs or has ended.
#[pyclass(frozen, module = "penstock._penstock")]
pub struct Query {
    inner: Here<QueryCore>,
    /// True once its failure was reported.
    is_known: AtomicBool,
    /// True once its late rows were reported.
    is_late_known: AtomicBool,
    /// For each output, true once a reader has claimed all of its results.
    claimed: Vec<AtomicBool>,
}

impl Query {
    pub(crate) fn new(
        query: Running,
        sources: Vec<Py<SharedSource>>,
        destinations: Vec<Destination>,
        letters: Option<Arc<Callback>>,
        referred: Vec<Arc<Slot>>,
    ) -> Self {
        let (outputs, made) = (PyOnceLock::new(), Mutex::new(None));
        let claimed = destinations.iter().map(|_| AtomicBool::new(false)).collect();
        let inner = QueryCore { query, sources, destinations, letters, referred, outputs, made };
        Self {
            inner: Here::new(inner),
            is_known: AtomicBool::new(false),
            is_late_known: AtomicBool::new(false),
            claimed,
        }
    }

    /// Returns the query itself, in the process that it runs in.
    pub(crate) fn running(&self) -> Option<&Running> {
        self.inner.here().map(|inner| &inner.query)
    }

    /// Returns true if it is that query.
    pub(crate) fn is(&self, query: &Running) -> bool {
        self.running().is_some_and(|own| own.id() == query.id())
    }

    /// Returns how many results wait for its functions: they are lost if it is stopped now, and those for readers are
    /// not.
    pub(crate) fn results_for_functions(&self) -> u64 {
        let Some(inner) = self.inner.here() else { return 0 };
        let for_function = |output: usize| match inner.destinations[output] {
            Destination::Function(_) => inner.query.results_of(output).map_or(0, Results::rows),
            _ => 0,
        };
        (0..inner.destinations.len()).map(for_function).sum()
    }
}

#[guarded]
#[pymethods]
impl Query {
    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<&str> {
        Ok(self.inner.get(py)?.query.name())
    }

    #[getter]
    fn status(&self, py: Python<'_>) -> PyResult<&'static str> {
        let inner = self.inner.get(py)?;
        Ok(py.detach(|| inner.status()).name())
    }

    /// Returns the names of its outputs, in order.
    #[getter]
    fn outputs(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.inner.get(py)?.query.outputs().map(|(name, _)| name.to_owned()).collect())
    }

    fn schema(&self, py: Python<'_>, output: usize) -> PyResult<Option<Schema>> {
        let mut outputs = self.inner.get(py)?.query.outputs();
        Ok(outputs.nth(output).map(|(_, schema)| Schema { inner: Arc::clone(schema) }))
    }

    #[getter]
    fn error(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        Ok(match self.told(py)? {
            None => None,
            Some(Failure::Made(value)) => Some(value),
            Some(Failure::Raised(raised)) => Some(match raised.value(py) {
                Some(value) => value.into_any().unbind(),
                None => let_go(py).into_value(py).into_any(),
            }),
        })
    }

    /// Shows the collector its exceptions, its sources, which have some as well, and the functions that take
    /// its results, which may refer to the engine.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Some(inner) = self.inner.here() else { return Ok(()) };
        inner.sources.iter().try_for_each(|source| visit.call(source))?;
        inner.callbacks().try_for_each(|callback| callback.visit(&visit))?;
        inner.referred.iter().try_for_each(|slot| slot.visit(&visit))?;
        inner.raised().iter().try_for_each(|raised| raised.visit(&visit))
    }

    fn __clear__(&self) {
        if let Some(inner) = self.inner.here() {
            inner.raised().iter().for_each(Raised::clear);
            inner.callbacks().for_each(|callback| callback.let_go());
            inner.referred.iter().for_each(|slot| slot.let_go());
        }
    }

    /// Returns true if this thread reads one of its sources, or runs a watermark function of one.
    #[getter]
    fn is_pulled_here(&self, py: Python<'_>) -> PyResult<bool> {
        let inner = self.inner.get(py)?;
        let sources = || inner.sources.iter().filter_map(|source| source.get().running());
        Ok(inner.query.is_pulled_here(sources()) || inner.query.is_asking_here(sources()))
    }

    /// Returns how often its tasks have run, if no result can come before its only input has more; `None` otherwise.
    fn runs_at_rest(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        let inner = self.inner.get(py)?;
        Ok(inner.query.runs_at_rest(inner.sources.iter().filter_map(|source| source.get().running())))
    }

    /// Returns true if it has failed and that was not reported.
    #[getter]
    fn has_failed_unseen(&self, py: Python<'_>) -> PyResult<bool> {
        let inner = self.inner.get(py)?;
        Ok(inner.status() == Status::Failed && !self.is_known.load(Ordering::Relaxed))
    }

    /// Returns its error as text, for a table. This does not count as a report.
    #[getter]
    fn error_text(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.inner.get(py)?;
        self.cause(py).map(|failure| error_text(py, &failure)).transpose()
    }

    /// Returns true if rows were late and that was not reported.
    #[getter]
    fn has_late_unseen(&self, py: Python<'_>) -> PyResult<bool> {
        let inner = self.inner.get(py)?;
        Ok(!self.is_late_known.load(Ordering::Relaxed)
            && py.detach(|| matches!(inner.status(), Status::Finished | Status::Stopped))
            && inner.query.dropped_late().is_some())
    }

    /// Returns the late rows, all rows, and the largest distance as text: once, when it has ended without failing.
    fn take_late(&self, py: Python<'_>) -> PyResult<Option<(u64, u64, String)>> {
        if !self.has_late_unseen(py)? || self.is_late_known.swap(true, Ordering::Relaxed) {
            return Ok(None);
        }
        let query = &self.inner.get(py)?.query;
        Ok(query.dropped_late().map(|late| (late.rows, query.metrics().rows.rows_in, late.by_text())))
    }

    /// Ends it, and waits until it has ended, except on the thread of its sink, or of a function of a pipeline of its
    /// engine.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        let inner = self.inner.get(py)?;
        py.detach(|| inner.query.stop());
        inner.callbacks().for_each(|callback| callback.stop());
        if inner.check_thread(py).is_ok() {
            wait(py, None, |timeout| inner.has_ended(timeout))?;
        }
        Ok(())
    }

    /// Ends its input, and waits until all of it is processed.
    fn drain(&self, py: Python<'_>) -> PyResult<()> {
        let inner = self.inner.get(py)?;
        inner.check_thread(py)?;
        py.detach(|| inner.query.drain());
        wait(py, None, |timeout| inner.has_ended(timeout))?;
        self.raise_failure(py)
    }

    /// Waits until it has ended; its failure is no error here.
    fn settle(&self, py: Python<'_>) -> PyResult<()> {
        let inner = self.inner.get(py)?;
        inner.check_thread(py)?;
        wait(py, None, |timeout| inner.has_ended(timeout)).map(|_| ())
    }

    #[pyo3(name = "wait", signature = (timeout=None))]
    fn wait_for_end(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let inner = self.inner.get(py)?;
        let timeout = self::timeout(timeout)?;
        inner.check_thread(py)?;
        let ended = wait(py, timeout, |timeout| inner.has_ended(timeout))?;
        if ended {
            self.raise_failure(py)?;
        }
        Ok(ended)
    }

    /// Replaces the table of a lookup.
    fn replace_lookup(&self, py: Python<'_>, table: &Bound<'_, PyAny>, name: Option<&str>) -> PyResult<()> {
        let inner = self.inner.get(py)?;
        let table = one_batch(table, "a lookup table")?;
        py.detach(|| inner.query.replace_lookup(name, &table)).map_err(|error| start_error(py, error))
    }

    /// Explains the tasks that it runs as.
    fn explain_physical(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.inner.get(py)?.query.explain_physical().to_owned())
    }

    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let inner = self.inner.get(py)?;
        let (mut found, blocked_by) = py.detach(|| (inner.query.metrics(), inner.blocked_by()));
        found.seconds = inner.seconds(found.seconds);
        metrics::query(py, &found, blocked_by)
    }

    /// Returns all results of an output, when the query has ended.
    fn result(&self, py: Python<'_>, output: usize) -> PyResult<Py<Output>> {
        let inner = self.inner.get(py)?;
        if !matches!(inner.destinations.get(output), Some(Destination::Collected)) {
            return Err(invalid(py, "only a query with sink=\"collect\" keeps its results for result()"));
        }
        self.wait_for_end(py, None)?;
        let outputs = inner.outputs.get_or_try_init(py, || match inner.query.take_output() {
            Some(taken) => {
                let outputs = Output::all(taken, inner.seconds(inner.query.metrics().seconds));
                outputs.into_iter().map(|output| Py::new(py, output)).collect::<PyResult<Vec<_>>>()
            }
            None => {
                let error = inner.query.error().expect("a query ends with an answer or an error");
                Err(run_error(py, &error))
            }
        })?;
        Ok(outputs[output].clone_ref(py))
    }

    /// Returns, for each output, true if its results are kept for `result`.
    #[getter]
    fn is_collected(&self, py: Python<'_>) -> PyResult<Vec<bool>> {
        let destinations = &self.inner.get(py)?.destinations;
        Ok(destinations.iter().map(|to| matches!(to, Destination::Collected)).collect())
    }

    /// Raises an error if results go to a sink.
    fn check_results(&self, py: Python<'_>, output: usize) -> PyResult<()> {
        self.inner.get(py)?.results(py, output).map(|_| ())
    }

    /// Waits for the next batch; at the end, StopIteration or the error. To a reader that takes the end for
    /// that of all rows, a query that was stopped is an error.
    #[pyo3(signature = (output, to_the_end=false))]
    fn next_batch(&self, py: Python<'_>, output: usize, to_the_end: bool) -> PyResult<Batch> {
        let batch = if to_the_end { self.next_to_the_end(py, output) } else { self.next_of(py, output) };
        batch?.map(Batch::new).ok_or_else(|| PyStopIteration::new_err(()))
    }

    /// Claims all results of an output for one reader, and refuses a second one.
    fn claim(&self, py: Python<'_>, output: usize) -> PyResult<()> {
        self.inner.get(py)?.results(py, output)?;
        if self.claimed[output].swap(true, Ordering::Relaxed) {
            return Err(consumed(
                py,
                "the results of this query were read before, and can be read only once; submit it with sink=\"collect\" to keep them",
            ));
        }
        Ok(())
    }

    /// Withdraws a claim: that reader has read nothing.
    fn unclaim(&self, output: usize) {
        self.claimed[output].store(false, Ordering::Relaxed);
    }

    /// Returns the results as an Arrow stream, for one reader. The stream keeps `owner`, and with it the engine.
    #[pyo3(signature = (output, owner, requested_schema=None))]
    fn stream<'py>(
        slf: &Bound<'py, Self>,
        output: usize,
        owner: Py<PyAny>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let py = slf.py();
        let inner = slf.get().inner.get(py)?;
        slf.get().claim(py, output)?;
        let (_, schema) = inner.query.outputs().nth(output).expect("an output with results has a schema");
        let query = slf.clone().unbind();
        let batches = Streamed::new(owner, move |py| query.get().next_to_the_end(py, output));
        stream_capsule(py, schema, batches, requested_schema)
    }

    /// Returns true if a batch, or the end, comes in so many seconds. For threads that get no signals.
    fn ready(&self, py: Python<'_>, output: usize, seconds: f64) -> PyResult<bool> {
        let inner = self.inner.get(py)?;
        let results = inner.results(py, output)?;
        let timeout = timeout(Some(seconds))?.unwrap_or_default();
        if inner.query.is_run_here() && !py.detach(|| results.wait(Duration::ZERO)) {
            return Err(waits_for_itself(py, true));
        }
        let waits = inner.check_thread(py).is_ok();
        Ok(py.detach(|| results.wait(timeout) && (!waits || !results.is_over() || inner.has_ended(timeout))))
    }

    /// Returns an object to wait with, for a thread that reads the output for another query.
    fn waiter(&self, py: Python<'_>, output: usize) -> PyResult<Waiter> {
        let inner = self.inner.get(py)?;
        Ok(Waiter::new(inner.query.clone(), output, inner.callbacks().cloned().collect()))
    }

    /// Returns the next batch, if there is one; at the end, StopAsyncIteration or the error.
    fn take_batch(&self, py: Python<'_>, output: usize) -> PyResult<Option<Batch>> {
        let inner = self.inner.get(py)?;
        let results = inner.results(py, output)?;
        match py.detach(|| results.take()) {
            Next::Batch(batch) => Ok(Some(Batch::new(batch))),
            // A reader that gets none waits for one, perhaps on another thread.
            Next::Nothing if inner.query.is_run_here() => Err(waits_for_itself(py, true)),
            Next::Nothing => Ok(None),
            Next::Ended if inner.check_thread(py).is_ok() && !inner.has_ended(Duration::ZERO) => Ok(None),
            Next::Ended => {
                self.raise_failure(py)?;
                Err(PyStopAsyncIteration::new_err(()))
            }
        }
    }
}
