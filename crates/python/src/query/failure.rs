//! Why a query has failed, as exceptions.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use penstock_engine::{RunError, Status};
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};

use super::Query;
use super::core::QueryCore;
use crate::errors::{let_go, run_error};
use crate::raised::Raised;

/// How long a query waits for a source that has ended, to learn why.
const PATIENCE: Duration = Duration::from_secs(1);

/// Why a query has failed.
pub(super) enum Failure {
    /// With an exception of the user's own.
    Raised(Raised),
    /// By itself.
    Made(Py<PyAny>),
}

impl QueryCore {
    /// Returns why it has failed, if it has.
    pub(super) fn failure(&self, py: Python<'_>) -> Option<Failure> {
        if self.status() != Status::Failed {
            return None;
        }
        match self.query.error() {
            Some(error) => Some(match Raised::of(&error) {
                Some(raised) => Failure::Raised(raised.clone()),
                None => Failure::Made(self.made(py, &error)),
            }),
            None => self.callbacks().find_map(|callback| callback.failure()).map(Failure::Raised),
        }
    }

    /// Returns the exception that was made of its error, if a reference to it exists.
    fn made_before(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.as_ref()?.bind(py).upgrade().map(Bound::unbind)
    }

    /// Converts its error to an exception. If a source has failed, the error of that is the cause.
    fn made(&self, py: Python<'_>, error: &RunError) -> Py<PyAny> {
        if let Some(made) = self.made_before(py) {
            return made;
        }
        let raised = run_error(py, error);
        if matches!(error, RunError::SourceEnded) {
            let cause = self.sources.iter().find_map(|source| {
                let source = source.get().get(py).ok()?;
                py.detach(|| source.wait(PATIENCE));
                source.error().filter(|error| !matches!(**error, RunError::Stopped))
            });
            raised.set_cause(py, cause.map(|error| run_error(py, &error)));
        }
        let value = raised.into_value(py).into_any();
        let reference = PyWeakrefReference::new(value.bind(py)).map(Bound::unbind);
        // Another thread may have been quicker. The replaced reference is dropped after the lock is released.
        match self.made_before(py) {
            Some(made) => made,
            None => {
                let old = match reference {
                    Ok(new) => self.made.lock().unwrap_or_else(PoisonError::into_inner).replace(new),
                    Err(_) => None,
                };
                drop(old);
                value
            }
        }
    }

    /// Returns the user's own exceptions that it holds, each slot once.
    pub(super) fn raised(&self) -> Vec<Raised> {
        let of_query = self.query.error().and_then(|error| Raised::of(&error).cloned());
        let mut found: Vec<Raised> = of_query.into_iter().collect();
        for raised in self.callbacks().filter_map(|callback| callback.failure()) {
            if !found.iter().any(|one| one.is(&raised)) {
                found.push(raised);
            }
        }
        found
    }
}

impl Query {
    /// Returns its error, and notes that it was reported.
    pub(super) fn told(&self, py: Python<'_>) -> PyResult<Option<Failure>> {
        let inner = self.inner.get(py)?;
        let failure = inner.failure(py);
        if failure.is_some() {
            self.is_known.store(true, Ordering::Relaxed);
            // The error of its source is the cause of its own.
            if inner.query.error().is_some_and(|error| matches!(*error, RunError::SourceEnded))
                && let Some(source) =
                    inner.sources.iter().map(Py::get).find(|source| source.cause(py).is_some())
            {
                source.set_known();
            }
        }
        Ok(failure)
    }

    pub(super) fn raise_failure(&self, py: Python<'_>) -> PyResult<()> {
        match self.told(py)? {
            None => Ok(()),
            Some(Failure::Raised(raised)) => Err(raised.again(py).unwrap_or_else(|| let_go(py))),
            Some(Failure::Made(value)) => {
                // As if it had not been raised before: the frames of the last time are released.
                value.bind(py).setattr("__traceback__", py.None())?;
                Err(PyErr::from_value(value.into_bound(py)))
            }
        }
    }

    /// Returns why it has failed, as the cause of another error.
    pub(crate) fn cause(&self, py: Python<'_>) -> Option<PyErr> {
        let value = match self.inner.here()?.failure(py)? {
            Failure::Raised(raised) => raised.value(py)?.into_any(),
            Failure::Made(value) => value.into_bound(py),
        };
        Some(PyErr::from_value(value))
    }
}
