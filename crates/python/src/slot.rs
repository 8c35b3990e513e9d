//! Holds objects of users for running queries, where the collector sees them.
//!
//! A function that a query calls, or an iterator that it reads, may refer to the engine that runs the query, whose
//! threads would then never end. So the query or shared source that a user holds shows each of them to the collector,
//! and empties its slot when the collector says so.
//!
//! SLOT-1. A slot has one owner that shows it to the collector: the collector counts references. Plans share their
//!         steps, so a plan shows the functions of those steps only that no other plan has.
//! SLOT-2. Threads of the engine take a reference out only while they call the object.
//! SLOT-3. What is held is locked only by threads that have the interpreter, and no code of Python runs meanwhile.
//! SLOT-4. Whether a plan shares a step does not change while the collector looks: plans are copied only by threads
//!         that hold the interpreter. Code that reads a plan without it holds a copy of the plan meanwhile
//!         ([`with_plan`]).
//! SLOT-5. Threads take references out by way of a weak one, which the collector clears before it runs any code: what
//!         it has found to be garbage they cannot reach while it finalises and clears that, and other threads run. A
//!         weak reference with a callback is cleared first in every version of Python.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use penstock_border::guarded;
use pyo3::prelude::*;
use pyo3::types::{PyType, PyWeakrefMethods, PyWeakrefReference};
use pyo3::{PyTraverseError, PyTypeInfo, PyVisit};

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Holds an object that may not support weak references itself.
#[pyclass(frozen, weakref, module = "penstock._penstock")]
struct Held(Mutex<Option<Py<PyAny>>>);

#[guarded]
#[pymethods]
impl Held {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        locked(&self.0).as_ref().map_or(Ok(()), |object| visit.call(object))
    }

    fn __clear__(&self) {
        let object = locked(&self.0).take();
        drop(object); // SLOT-3: it may run any code
    }
}

/// An object, until the collector clears it.
pub(crate) struct Slot {
    held: Mutex<Option<Py<Held>>>,
    weak: Py<PyWeakrefReference>,
}

impl Slot {
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> Self {
        let py = object.py();
        let held = Bound::new(py, Held(Mutex::new(Some(object.clone().unbind()))));
        let held = held.expect("an object of a class of ours can be made");
        // A callback that does nothing (SLOT-5).
        let weak = PyWeakrefReference::new_with(&held, PyType::type_object(py));
        let weak = weak.expect("the class has weak references");
        Self { held: Mutex::new(Some(held.unbind())), weak: weak.unbind() }
    }

    /// Makes a slot that the engine shares with the object that shows it.
    pub(crate) fn shared(object: &Bound<'_, PyAny>) -> Arc<Self> {
        Arc::new(Self::new(object))
    }

    /// Returns the object, unless it is gone.
    pub(crate) fn get<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        let held = self.weak.bind(py).upgrade_as::<Held>().ok()??;
        locked(&held.get().0).as_ref().map(|object| object.bind(py).clone())
    }

    /// Shows the object to the collector.
    pub(crate) fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        locked(&self.held).as_ref().map_or(Ok(()), |held| visit.call(held))
    }

    /// Releases the object.
    pub(crate) fn let_go(&self) {
        let held = locked(&self.held).take();
        drop(held); // SLOT-3: it may run any code
    }
}

/// Calls `call` without the interpreter, over a plan that is shared meanwhile (SLOT-4).
pub(crate) fn with_plan<P: Clone, T: Send>(py: Python<'_>, plan: &P, call: impl FnOnce() -> T + Send) -> T {
    let kept = plan.clone();
    let called = py.detach(call);
    drop(kept);
    called
}
