//! Queries at work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use penstock_engine::results::Next;
use penstock_engine::{Query as Running, Results, RunError, SharedSource, Status};
use pyo3::exceptions::{PyStopAsyncIteration, PyStopIteration};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::arrow::one_batch;
use crate::batch::Batch;
use crate::errors::{invalid, run_error, start_error, waits_for_itself};
use crate::metrics;
use crate::output::Output;
use crate::process::Here;
use crate::schema::Schema;
use crate::sink::Callback;
use crate::wait::{timeout, wait};

/// How long a source that has ended is waited for, to know why.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where the results go.
#[derive(Clone)]
pub(crate) enum Destination {
    Results,
    Collected,
    Nowhere,
    Function(Arc<Callback>),
}

struct Inner {
    query: Running,
    /// The shared sources that it reads.
    sources: Vec<SharedSource>,
    /// Where each output goes.
    destinations: Vec<Destination>,
    /// The function that takes rows that operators had no answer for.
    letters: Option<Arc<Callback>>,
    outputs: PyOnceLock<Vec<Py<Output>>>,
    /// Made once, so that whoever asks gets the same one.
    error: PyOnceLock<Option<PyErr>>,
}

/// A query at work, or one that has ended.
#[pyclass(frozen, module = "penstock._penstock")]
pub struct Query {
    inner: Here<Inner>,
    /// Whether somebody has been told why it failed.
    is_known: AtomicBool,
}

impl Inner {
    /// The functions that take results.
    fn callbacks(&self) -> impl Iterator<Item = &Arc<Callback>> {
        let sinks = self.destinations.iter().filter_map(|destination| match destination {
            Destination::Function(callback) => Some(callback),
            _ => None,
        });
        sinks.chain(&self.letters)
    }

    fn status(&self) -> Status {
        let status = self.query.status();
        if self.callbacks().any(|callback| !callback.has_ended()) {
            return Status::Running;
        }
        if status == Status::Finished && self.callbacks().any(|callback| callback.has_failed()) {
            return Status::Failed;
        }
        status
    }

    /// Whether it has ended before `timeout` was over.
    fn has_ended(&self, timeout: Duration) -> bool {
        self.query.wait(timeout) && self.callbacks().all(|callback| callback.wait(timeout))
    }

    fn results(&self, py: Python<'_>, output: usize) -> PyResult<&Results> {
        let results = match self.destinations.get(output) {
            Some(Destination::Results) => self.query.results_of(output),
            _ => None,
        };
        results.ok_or_else(|| {
            invalid(
                py,
                "the results of this query go to its sink; only those of a query without sink= can be read",
            )
        })
    }

    /// Why it has failed, if it did.
    fn failure(&self, py: Python<'_>) -> Option<PyErr> {
        if self.status() != Status::Failed {
            return None;
        }
        let error = self.error.get_or_init(py, || match self.query.error() {
            Some(error) => Some(self.raised(py, &error)),
            None => self.callbacks().find_map(|callback| callback.failure(py)),
        });
        error.as_ref().map(|error| error.clone_ref(py))
    }

    /// Its error as an exception. If its source is to blame, that one's error is the cause.
    fn raised(&self, py: Python<'_>, error: &RunError) -> PyErr {
        let raised = run_error(py, error);
        if matches!(error, RunError::SourceEnded) {
            let failed = |source: &SharedSource| {
                py.detach(|| source.wait(PATIENCE));
                source.error().filter(|error| !matches!(**error, RunError::Stopped))
            };
            let cause = self.sources.iter().find_map(failed);
            raised.set_cause(py, cause.map(|error| run_error(py, &error)));
        }
        raised
    }

    /// Refuses to wait on the thread that is waited for.
    fn check_thread(&self, py: Python<'_>) -> PyResult<()> {
        if self.callbacks().any(|callback| callback.is_this_thread()) {
            return Err(waits_for_itself(py));
        }
        Ok(())
    }
}

impl Query {
    pub(crate) fn new(
        query: Running,
        sources: Vec<SharedSource>,
        destinations: Vec<Destination>,
        letters: Option<Arc<Callback>>,
    ) -> Self {
        let (outputs, error) = (PyOnceLock::new(), PyOnceLock::new());
        let inner = Inner { query, sources, destinations, letters, outputs, error };
        Self { inner: Here::new(inner), is_known: AtomicBool::new(false) }
    }

    /// Its error as one that the user gets to see.
    fn told(&self, py: Python<'_>) -> PyResult<Option<PyErr>> {
        let failure = self.inner.get(py)?.failure(py);
        if failure.is_some() {
            self.is_known.store(true, Ordering::Relaxed);
        }
        Ok(failure)
    }

    fn raise_failure(&self, py: Python<'_>) -> PyResult<()> {
        self.told(py)?.map_or(Ok(()), Err)
    }
}

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

    /// The names of its outputs, in order.
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
        Ok(self.told(py)?.map(|error| error.into_value(py).into_any()))
    }

    /// Whether it has failed, and nobody has been told why.
    #[getter]
    fn has_failed_unseen(&self, py: Python<'_>) -> PyResult<bool> {
        let inner = self.inner.get(py)?;
        Ok(inner.status() == Status::Failed && !self.is_known.load(Ordering::Relaxed))
    }

    /// Ends it, and waits for that; a sink that calls this is not waited for.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        let inner = self.inner.get(py)?;
        py.detach(|| inner.query.stop());
        inner.callbacks().for_each(|callback| callback.stop());
        if inner.check_thread(py).is_ok() {
            wait(py, None, |timeout| inner.has_ended(timeout))?;
        }
        Ok(())
    }

    /// Ends its input, and waits until everything has left it.
    fn drain(&self, py: Python<'_>) -> PyResult<()> {
        let inner = self.inner.get(py)?;
        inner.check_thread(py)?;
        py.detach(|| inner.query.drain());
        wait(py, None, |timeout| inner.has_ended(timeout))?;
        self.raise_failure(py)
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

    /// Puts another table in the place of the one that rows are looked up in.
    fn replace_lookup(&self, py: Python<'_>, table: &Bound<'_, PyAny>, name: Option<&str>) -> PyResult<()> {
        let inner = self.inner.get(py)?;
        let table = one_batch(table, "a lookup table")?;
        py.detach(|| inner.query.replace_lookup(name, &table)).map_err(|error| start_error(py, error))
    }

    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let inner = self.inner.get(py)?;
        let found = py.detach(|| inner.query.metrics());
        metrics::query(py, &found)
    }

    /// Everything that an output gave, when the query has ended.
    fn result(&self, py: Python<'_>, output: usize) -> PyResult<Py<Output>> {
        let inner = self.inner.get(py)?;
        if !matches!(inner.destinations.get(output), Some(Destination::Collected)) {
            return Err(invalid(py, "only a query with sink=\"collect\" keeps its results for result()"));
        }
        self.wait_for_end(py, None)?;
        let outputs = inner.outputs.get_or_try_init(py, || match inner.query.take_output() {
            Some(taken) => {
                let outputs = Output::all(taken, inner.query.metrics().seconds);
                outputs.into_iter().map(|output| Py::new(py, output)).collect::<PyResult<Vec<_>>>()
            }
            None => {
                let error = inner.query.error().expect("a query ends with an answer or an error");
                Err(run_error(py, &error))
            }
        })?;
        Ok(outputs[output].clone_ref(py))
    }

    /// Refuses to give results that go elsewhere.
    fn check_results(&self, py: Python<'_>, output: usize) -> PyResult<()> {
        self.inner.get(py)?.results(py, output).map(|_| ())
    }

    /// The next batch, however long that takes; at the end, StopIteration or the error.
    fn next_batch(&self, py: Python<'_>, output: usize) -> PyResult<Batch> {
        let results = self.inner.get(py)?.results(py, output)?;
        loop {
            wait(py, None, |timeout| results.wait(timeout))?;
            match py.detach(|| results.take()) {
                Next::Batch(batch) => return Ok(Batch::new(batch)),
                Next::Nothing => {} // another reader was quicker
                Next::Ended => {
                    self.raise_failure(py)?;
                    return Err(PyStopIteration::new_err(()));
                }
            }
        }
    }

    /// Whether there is a batch, or the end, before so many seconds are over. For threads that get no signals.
    fn ready(&self, py: Python<'_>, output: usize, seconds: f64) -> PyResult<bool> {
        let results = self.inner.get(py)?.results(py, output)?;
        let timeout = timeout(Some(seconds))?.unwrap_or_default();
        Ok(py.detach(|| results.wait(timeout)))
    }

    /// The next batch, if there is one; at the end, StopAsyncIteration or the error.
    fn take_batch(&self, py: Python<'_>, output: usize) -> PyResult<Option<Batch>> {
        let results = self.inner.get(py)?.results(py, output)?;
        match py.detach(|| results.take()) {
            Next::Batch(batch) => Ok(Some(Batch::new(batch))),
            Next::Nothing => Ok(None),
            Next::Ended => {
                self.raise_failure(py)?;
                Err(PyStopAsyncIteration::new_err(()))
            }
        }
    }
}
