//! Sources that several queries read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
    /// The function that receives rows that the source rejects.
    letters: Option<Arc<Callback>>,
    /// The watermark function, and the iterator that it reads.
    referred: Vec<Arc<Slot>>,
    /// True once its failure was reported.
    is_known: AtomicBool,
}

impl SharedSource {
    pub(crate) fn new(
        inner: Inner,
        engine: u64,
        letters: Option<Arc<Callback>>,
        referred: Vec<Arc<Slot>>,
    ) -> Self {
        Self { inner: Here::new(inner), engine, letters, referred, is_known: AtomicBool::new(false) }
    }

    /// Returns the user's own exceptions that it holds, each slot once.
    fn raised(&self) -> Vec<Raised> {
        let error = self.inner.here().and_then(Inner::error);
        let mut found: Vec<Raised> = error.as_deref().and_then(Raised::of).cloned().into_iter().collect();
        if let Some(raised) = self.letters.as_ref().and_then(|callback| callback.failure())
            && !found.iter().any(|one| one.is(&raised))
        {
            found.push(raised);
        }
        found
    }

    pub(crate) fn get(&self, py: Python<'_>) -> PyResult<&Inner> {
        self.inner.get(py)
    }

    /// Returns the source itself, in the process that it runs in.
    pub(crate) fn running(&self) -> Option<&Inner> {
        self.inner.here()
    }

    /// Returns its status. It runs until the function that takes dead letters has received all of them.
    fn status_of(&self, inner: &Inner) -> Status {
        match &self.letters {
            Some(callback) if !callback.has_ended() => Status::Running,
            Some(callback) if callback.has_failed() && inner.status() == Status::Finished => Status::Failed,
            _ => inner.status(),
        }
    }

    /// Returns why it has failed, as the cause of another error.
    pub(crate) fn cause(&self, py: Python<'_>) -> Option<PyErr> {
        let raised = match self.inner.here()?.error() {
            Some(error) if matches!(*error, RunError::Stopped) => return None,
            Some(error) => match Raised::of(&error) {
                Some(raised) => raised.clone(),
                None => return Some(run_error(py, &error)),
            },
            // After its end, the function that takes dead letters may still fail.
            None => self.letters.as_ref()?.failure()?,
        };
        let value = raised.value(py).map(|value| PyErr::from_value(value.into_any()));
        Some(value.unwrap_or_else(|| let_go(py)))
    }

    /// Returns true if it has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.inner.here().is_some_and(|inner| self.status_of(inner) == Status::Failed)
    }

    /// Notes that its failure was reported.
    pub(crate) fn set_known(&self) {
        self.is_known.store(true, Ordering::Relaxed);
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

    /// Returns the plan that only reads it.
    #[getter]
    fn plan(&self, py: Python<'_>) -> PyResult<Plan> {
        Ok(Plan { inner: self.get(py)?.stream().clone() })
    }

    #[getter]
    fn error(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.get(py)?;
        if !self.has_failed() {
            return Ok(None);
        }
        self.set_known();
        Ok(self.cause(py).map(|error| error.into_value(py).into_any()))
    }

    /// Returns true if it has failed and that was not reported.
    #[getter]
    fn has_failed_unseen(&self, py: Python<'_>) -> PyResult<bool> {
        self.get(py)?;
        Ok(self.has_failed() && !self.is_known.load(Ordering::Relaxed))
    }

    /// Shows the collector the exceptions, functions and iterators that it holds.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.letters.as_ref().map_or(Ok(()), |callback| callback.visit(&visit))?;
        self.referred.iter().try_for_each(|slot| slot.visit(&visit))?;
        self.raised().iter().try_for_each(|raised| raised.visit(&visit))
    }

    fn __clear__(&self) {
        self.raised().iter().for_each(Raised::clear);
        self.letters.iter().for_each(|callback| callback.let_go());
        self.referred.iter().for_each(|slot| slot.let_go());
    }

    /// Returns its error as text, for a table. This does not count as a report.
    #[getter]
    fn error_text(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.get(py)?;
        let error = if self.has_failed() { self.cause(py) } else { None };
        error.map(|error| error_text(py, &error)).transpose()
    }

    /// Waits until the function that takes dead letters is done, unless that function calls this.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        self.get(py)?;
        match &self.letters {
            Some(callback) if !callback.is_this_thread() => {
                wait(py, None, |timeout| callback.wait(timeout)).map(|_| ())
            }
            _ => Ok(()),
        }
    }

    /// Starts to read rows, if it was held back.
    fn start(&self, py: Python<'_>) -> PyResult<()> {
        let inner = self.get(py)?;
        py.detach(|| inner.begin());
        Ok(())
    }

    /// Ends its input, and thereby that of the queries that read it.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let inner = self.get(py)?;
        py.detach(|| inner.drain());
        Ok(())
    }

    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let inner = self.get(py)?;
        let (mut found, blocked_by) = py.detach(|| (inner.metrics(), inner.blocked_by()));
        if let Some(letters) = &self.letters {
            found.seconds = found.seconds.max(letters.seconds());
        }
        metrics::query(py, &found, blocked_by.map(|by| by.to_string()))
    }
}
