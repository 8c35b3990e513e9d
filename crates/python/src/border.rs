//! Where calls of Python enter and leave: no panic passes.
//!
//! A panic that pyo3 catches comes out as a `PanicException`, which is no `Exception`: `except Exception` does not see
//! it, and the caller's error handling is bypassed. So every function that Python calls is `#[guarded]`, and every
//! thread that may run Python code ends in [`caught`].
//!
//! BORDER-1. State that a call has changed before it panics is guarded by locks that are taken even if they are
//!     poisoned, and a query that was being started is dropped. So it is safe to continue after a panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use penstock_engine::panic_text;
use pyo3::prelude::*;

use crate::errors::panic_error;
use crate::raised::Raised;

/// Returns what a call returns, or the text of its panic.
pub(crate) fn caught<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| panic_text(&*panic)) // BORDER-1
}

/// Does the same, with the panic as an exception for the engine to carry; `None` without an interpreter, since no
/// caller is left to receive it.
pub(crate) fn caught_as_raised<T>(call: impl FnOnce() -> T) -> Result<T, Option<Raised>> {
    caught(call).map_err(|text| Python::try_attach(|py| Raised::new(py, panic_error(py, &text))))
}

/// Returns what a call from Python returns; an `EngineError` if it panics.
pub(crate) fn guard<T>(call: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    caught(call).unwrap_or_else(|text| Python::attach(|py| Err(panic_error(py, &text))))
}
