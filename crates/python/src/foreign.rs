//! Calls Python code on threads that the interpreter may end, and reads capsules.
//!
//! When the interpreter shuts down, Python up to 3.13 ends every other thread that wants to run Python code by
//! unwinding its stack at any point. Rust frames cannot be unwound this way: the process would abort. These calls stop
//! the thread instead, until the process exits.
//!
//! FOREIGN-1. A call that may be unwound is declared as such ("C-unwind"), and its guard is alive exactly while it
//!     runs.
//! FOREIGN-2. Code that foreign libraries call back, such as an Arrow stream of ours, asks Python itself for the
//!     interpreter. pyo3 knows only what it has done itself: inside a function that it has called, it takes the thread
//!     for attached, also where a library has let go of the interpreter in between.

use std::ffi::c_int;
use std::thread;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyIterator, PyTuple};

unsafe extern "C-unwind" {
    fn PyIter_Next(iterator: *mut PyObject) -> *mut PyObject;
    fn PyObject_CallNoArgs(callable: *mut PyObject) -> *mut PyObject;
    fn PyGILState_Ensure() -> c_int;
    fn PyGILState_Release(state: c_int);
    fn PyObject_Call(callable: *mut PyObject, args: *mut PyObject, named: *mut PyObject) -> *mut PyObject;
}

/// Stops the thread when it is unwound.
struct StayHere;

impl Drop for StayHere {
    fn drop(&mut self) {
        loop {
            thread::park();
        }
    }
}

/// The interpreter, attached to this thread.
struct Attached(c_int);

impl Drop for Attached {
    fn drop(&mut self) {
        // SAFETY: `PyGILState_Ensure` returned that state to this thread, which releases it once.
        unsafe { PyGILState_Release(self.0) }
    }
}

/// Calls `call` with the interpreter, whether or not pyo3 takes this thread for attached (FOREIGN-2). `None` without an
/// interpreter.
pub(crate) fn attach<T>(call: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    // SAFETY: it may be asked at any time, by any thread.
    if unsafe { pyo3::ffi::Py_IsInitialized() } == 0 {
        return None;
    }
    let guard = StayHere;
    // SAFETY: the interpreter is there, and any thread may ask for it, also one that has it.
    let held = Attached(unsafe { PyGILState_Ensure() });
    std::mem::forget(guard);
    let called = Python::try_attach(call);
    drop(held);
    called
}

/// Converts the object that a call returned, or the exception that it set; `None` when it did neither.
fn given<'py>(py: Python<'py>, object: *mut PyObject) -> Option<PyResult<Bound<'py, PyAny>>> {
    if object.is_null() {
        return PyErr::take(py).map(Err);
    }
    // SAFETY: the calls below return a new reference, or null, which was ruled out.
    Some(Ok(unsafe { Bound::from_owned_ptr(py, object) }))
}

/// Returns the next object of an iterator.
pub(crate) fn next<'py>(iterator: &Bound<'py, PyIterator>) -> Option<PyResult<Bound<'py, PyAny>>> {
    let guard = StayHere;
    // SAFETY: the pointer is an iterator's, alive for as long as it is borrowed, and the interpreter is held.
    let object = unsafe { PyIter_Next(iterator.as_ptr()) };
    std::mem::forget(guard);
    given(iterator.py(), object)
}

/// Returns what a callable returns.
pub(crate) fn call<'py>(callable: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let guard = StayHere;
    // SAFETY: the pointer is an object's, alive for as long as it is borrowed, and the interpreter is held.
    let object = unsafe { PyObject_CallNoArgs(callable.as_ptr()) };
    std::mem::forget(guard);
    given(callable.py(), object).unwrap_or_else(|| Ok(callable.py().None().into_bound(callable.py())))
}

/// Returns what a callable returns for one argument.
pub(crate) fn call_with<'py>(
    callable: &Bound<'py, PyAny>,
    argument: &Bound<'py, impl Sized>,
) -> PyResult<Bound<'py, PyAny>> {
    let arguments = PyTuple::new(callable.py(), [argument.as_any()])?;
    let guard = StayHere;
    // SAFETY: the pointers are those of objects, alive for as long as they are borrowed, one of them a tuple; null
    // stands for no named arguments; the interpreter is held.
    let object = unsafe { PyObject_Call(callable.as_ptr(), arguments.as_ptr(), std::ptr::null_mut()) };
    std::mem::forget(guard);
    given(callable.py(), object).unwrap_or_else(|| Ok(callable.py().None().into_bound(callable.py())))
}

/// Returns true if a capsule still holds its stream: its first reader takes the stream out.
pub(crate) fn holds_stream(capsule: &Bound<'_, PyCapsule>) -> PyResult<bool> {
    let stream = capsule.pointer_checked(Some(c"arrow_array_stream"))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of that name holds such a struct, by the Arrow PyCapsule protocol, and the capsule is borrowed;
    // only a reader of the stream changes the struct, and needs the interpreter for that, which is held here.
    Ok(unsafe { stream.as_ref() }.release.is_some())
}
