//! Sources that several queries read.

use std::sync::Arc;

use penstock_border::guarded;
use penstock_engine::{RunError, SharedSource as Inner, Status};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::{PyTraverseError, PyVisit};

use crate::errors::{error_text, let_go, run_error};
use crate::metrics;
use crate::plan::Plan;
use crate::process::Here;
use crate::raised::Raised;
use crate::sink::Callback;
use crate::slot::Slot;
use crate::wait::wait;

/// A source that queries share.
#[pyclass(frozen, module = "penstock._penstock")]
pub struct SharedSource {
    inner: Here<Inner>,
    /// The number of the engine that it belongs to.
    pub(crate) engine: u64,
    /// The function that takes rows that it cannot take.
    letters: Option<Arc<Callback>>,
    /// The function that says watermarks, and the iterator that it reads.
    referred: Vec<Arc<Slot>>,
}

impl SharedSource {
    pub(crate) fn new(
        inner: Inner,
        engine: u64,
        letters: Option<Arc<Callback>>,
        referred: Vec<Arc<Slot>>,
    ) -> Self {
        Self { inner: Here::new(inner), engine, letters, referred }
    }

    pub(crate) fn get(&self, py: Python<'_>) -> PyResult<&Inner> {
        self.inner.get(py)
    }

    /// The source itself, in the process that it runs in.
    pub(crate) fn running(&self) -> Option<&Inner> {
        self.inner.here()
    }

    /// What it is doing. It runs until the function that takes dead letters has had all of them.
    fn status_of(&self, inner: &Inner) -> Status {
        match &self.letters {
            Some(callback) if !callback.has_ended() => Status::Running,
            Some(callback) if callback.has_failed() && inner.status() == Status::Finished => Status::Failed,
            _ => inner.status(),
        }
    }

    /// Why it has failed, for somebody who has another error because of that.
    pub(crate) fn cause(&self, py: Python<'_>) -> Option<PyErr> {
        let error = self.inner.here()?.error().filter(|error| !matches!(**error, RunError::Stopped))?;
        Some(run_error(py, &error))
    }
}

#[guarded]
#[pymethods]
impl SharedSource {
    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<&str> {
        Ok(self.get(py)?.name())
    }

    #[getter]
    fn status(&self, py: Python<'_>) -> PyResult<&'static str> {
        let inner = self.get(py)?;
        Ok(py.detach(|| self.status_of(inner)).name())
    }

    /// The plan that does nothing but read it.
    #[getter]
    fn plan(&self, py: Python<'_>) -> PyResult<Plan> {
        Ok(Plan { inner: self.get(py)?.stream().clone() })
    }

    #[getter]
    fn error(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let inner = self.get(py)?;
        if inner.status() != Status::Failed {
            return Ok(None);
        }
        Ok(inner.error().map(|error| match Raised::of(&error) {
            Some(raised) => match raised.value(py) {
                Some(value) => value.into_any().unbind(),
                None => let_go(py).into_value(py).into_any(),
            },
            None => run_error(py, &error).into_value(py).into_any(),
        }))
    }

    /// Shows the collector what it has failed with, and what of Python's it calls and reads.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.letters.as_ref().map_or(Ok(()), |callback| callback.visit(&visit))?;
        self.referred.iter().try_for_each(|slot| slot.visit(&visit))?;
        let error = self.inner.here().and_then(Inner::error);
        error.as_deref().and_then(Raised::of).map_or(Ok(()), |raised| raised.visit(&visit))
    }

    fn __clear__(&self) {
        let error = self.inner.here().and_then(Inner::error);
        if let Some(raised) = error.as_deref().and_then(Raised::of) {
            raised.clear();
        }
        self.letters.iter().for_each(|callback| callback.let_go());
        self.referred.iter().for_each(|slot| slot.let_go());
    }

    /// Its error as text, for a table.
    #[getter]
    fn error_text(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let inner = self.get(py)?;
        if inner.status() != Status::Failed {
            return Ok(None);
        }
        inner.error().map(|error| error_text(py, &run_error(py, &error))).transpose()
    }

    /// Waits until the function that takes dead letters is done, unless that is who asks.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        self.get(py)?;
        match &self.letters {
            Some(callback) if !callback.is_this_thread() => {
                wait(py, None, |timeout| callback.wait(timeout)).map(|_| ())
            }
            _ => Ok(()),
        }
    }

    /// Lets rows come, if it was held back.
    fn start(&self, py: Python<'_>) -> PyResult<()> {
        let inner = self.get(py)?;
        py.detach(|| inner.begin());
        Ok(())
    }

    /// Ends it: the queries that read it come to their end as well.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let inner = self.get(py)?;
        py.detach(|| inner.drain());
        Ok(())
    }

    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let inner = self.get(py)?;
        let (found, blocked_by) = py.detach(|| (inner.metrics(), inner.blocked_by()));
        metrics::query(py, &found, blocked_by.map(|by| by.to_string()))
    }
}
