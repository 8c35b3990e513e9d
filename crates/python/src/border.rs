//! Where calls of Python enter and leave: no panic passes.
//!
//! A panic that pyo3 catches comes out as a `PanicException`, which is no `Exception`: `except Exception` does not see it,
//! and whoever handles errors is torn down with it. So every function that Python calls is `#[guarded]`, and every thread
//! that may run Python code ends in [`caught`].
//!
//! D1. What a call has changed by the time it panics is behind locks that are taken whether they are poisoned or not,
//!     and a query that was to be started is dropped. So going on after a panic is safe.

use std::panic::{AssertUnwindSafe, catch_unwind};

use penstock_engine::panic_text;
use pyo3::prelude::*;

use crate::errors::panic_error;
use crate::raised::Raised;

/// What a call returns, or the words of its panic.
pub(crate) fn caught<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| panic_text(&*panic)) // D1
}

/// The same, with the panic as an exception on its way through the engine; `None` without an interpreter, where nobody
/// is left to be told.
pub(crate) fn caught_as_raised<T>(call: impl FnOnce() -> T) -> Result<T, Option<Raised>> {
    caught(call).map_err(|text| Python::try_attach(|py| Raised::new(py, panic_error(py, &text))))
}

/// What a call of Python returns; an `EngineError` if it panics.
pub(crate) fn guard<T>(call: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    caught(call).unwrap_or_else(|text| Python::attach(|py| Err(panic_error(py, &text))))
}
