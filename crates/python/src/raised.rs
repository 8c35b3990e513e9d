//! Exceptions of the user's own code, kept as the reason why a query has failed.
//!
//! An exception refers to the frames that it has passed, and these to the query that raises it: a cycle, which only
//! the collector of the interpreter can free. So the collector has to see all of it.
//!
//! RAISED-1. An exception is held in one slot, which may be shared. The slot belongs to one Python object, a query or a
//!     shared source, which shows it to the collector, and empties it when the collector says so. Other objects request
//!     the exception from that object, and hold it where the collector sees it.
//! RAISED-2. The collector sees the same whenever it looks: the slot is locked only by threads that have the
//!     interpreter, and no code of Python runs meanwhile.
//! RAISED-3. It is raised with the traceback that it came with. So it does not grow, and the frames of the last time
//!     alone are kept.

use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use penstock_engine::RunError;
use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;
use pyo3::types::PyTraceback;
use pyo3::{PyTraverseError, PyVisit};

struct RaisedState {
    value: Py<PyBaseException>,
    /// As it came out of the user's code (RAISED-3).
    traceback: Option<Py<PyTraceback>>,
}

/// An exception of the user's own code, on its way through the engine. Clones share the slot.
#[derive(Clone)]
pub(crate) struct Raised(Arc<Mutex<Option<RaisedState>>>);

impl fmt::Debug for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Raised")
    }
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Its message would need a call of Python, and this may be a worker.
        f.write_str("an exception of Python")
    }
}

impl Error for Raised {}

impl Raised {
    pub(crate) fn new(py: Python<'_>, error: PyErr) -> Self {
        let traceback = error.traceback(py).map(Bound::unbind);
        let held = RaisedState { value: error.into_value(py), traceback };
        Self(Arc::new(Mutex::new(Some(held))))
    }

    /// Returns the exception that a query has failed with, if it is one of the user's own.
    pub(crate) fn of(error: &RunError) -> Option<&Self> {
        match error {
            RunError::Outside { error, .. } => error.downcast_ref(),
            _ => None,
        }
    }

    fn locked(&self) -> MutexGuard<'_, Option<RaisedState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the exception, unless the collector has cleared it.
    pub(crate) fn value<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBaseException>> {
        self.locked().as_ref().map(|held| held.value.bind(py).clone())
    }

    /// Returns the exception, to be raised once more (RAISED-3).
    pub(crate) fn again(&self, py: Python<'_>) -> Option<PyErr> {
        let (value, traceback) = {
            let slot = self.locked();
            let held = slot.as_ref()?;
            (held.value.clone_ref(py), held.traceback.as_ref().map(|traceback| traceback.clone_ref(py)))
        };
        // Not under the lock: frames that are released may run any code.
        let value = value.into_bound(py);
        let set = value.setattr("__traceback__", traceback);
        debug_assert!(set.is_ok(), "a traceback is one");
        Some(PyErr::from_value(value.into_any()))
    }

    /// Returns true if both share a slot.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Shows the collector the exception, for the object that owns the slot (RAISED-1).
    pub(crate) fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        // RAISED-2: no thread has the lock, and nothing can have changed since the collector began.
        if let Some(held) = self.locked().as_ref() {
            visit.call(&held.value)?;
            visit.call(&held.traceback)?;
        }
        Ok(())
    }

    /// Releases the exception.
    pub(crate) fn clear(&self) {
        let held = self.locked().take();
        drop(held); // not under the lock
    }
}
