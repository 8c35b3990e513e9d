//! Objects of users that running queries hold, in sight of the collector.
//!
//! A function that a query calls, or an iterator that it reads, may refer to the engine that runs the query, whose threads
//! would then run for ever. So the query or shared source that a user holds shows each of them to the collector, and
//! empties its slot when the collector says so.
//!
//! SLOT-1. A slot has one owner that shows it to the collector: the collector counts references. Plans share their steps,
//!         so a plan shows the functions of those steps only that no other plan has.
//! SLOT-2. Threads of the engine take a reference out only while they call the object.
//! SLOT-3. The slot is locked only by threads that have the interpreter, and no code of Python runs meanwhile.
//! SLOT-4. Whether a plan shares a step does not change while the collector looks: plans are copied only by threads that hold
//!         the interpreter. Code that reads a plan without it holds a copy of the plan meanwhile ([`with_plan`]).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};

/// An object, until the collector takes it.
pub(crate) struct Slot(Mutex<Option<Py<PyAny>>>);

impl Slot {
    pub(crate) fn new(object: Py<PyAny>) -> Self {
        Self(Mutex::new(Some(object)))
    }

    /// A slot that the engine shares with the object that shows it.
    pub(crate) fn shared(object: &Bound<'_, PyAny>) -> Arc<Self> {
        Arc::new(Self::new(object.clone().unbind()))
    }

    fn locked(&self) -> MutexGuard<'_, Option<Py<PyAny>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The object, unless it is gone.
    pub(crate) fn get<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.locked().as_ref().map(|object| object.bind(py).clone())
    }

    /// Shows the object to the collector.
    pub(crate) fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.locked().as_ref().map_or(Ok(()), |object| visit.call(object))
    }

    /// Lets go of the object.
    pub(crate) fn let_go(&self) {
        let object = self.locked().take();
        drop(object); // SLOT-3: it may run any code
    }
}

/// Calls `call` without the interpreter, over a plan that is shared meanwhile (SLOT-4).
pub(crate) fn with_plan<P: Clone, T: Send>(py: Python<'_>, plan: &P, call: impl FnOnce() -> T + Send) -> T {
    let kept = plan.clone();
    let called = py.detach(call);
    drop(kept);
    called
}
