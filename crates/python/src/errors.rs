//! Errors of the engine as the classes of `penstock.exceptions`: one exhaustive match each.

use std::io;

use penstock_engine::{RunError, StartError};
use penstock_memory::{MemoryLimit, OpenError};
use penstock_types::{PlanError, SizeError};
use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyMemoryError, PyOSError};
use pyo3::prelude::*;

/// An error of class `name` of `penstock.exceptions`.
fn raise<'py>(py: Python<'py>, name: &str, arguments: impl PyCallArgs<'py>) -> PyErr {
    let made = py.import("penstock.exceptions").and_then(|module| module.getattr(name)?.call1(arguments));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// A plan that cannot be built.
pub(crate) fn plan_error(py: Python<'_>, error: PlanError) -> PyErr {
    let message = error.to_string();
    match error {
        PlanError::UnknownColumn { column, suggestion, available } => {
            raise(py, "UnknownColumnError", (message, column, suggestion, available))
        }
        PlanError::TypeMismatch { .. } => raise(py, "TypeMismatchError", (message,)),
        PlanError::MissingTime(_) => raise(py, "MissingTimeColumnError", (message,)),
        PlanError::UnsupportedType { .. } => raise(py, "UnsupportedTypeError", (message,)),
        PlanError::Duration { .. } => raise(py, "DurationError", (message,)),
        PlanError::Invalid(_) => raise(py, "PlanError", (message,)),
    }
}

/// A size that cannot be read, in the setting that the user knows by that name.
pub(crate) fn size_error(py: Python<'_>, named: &str, error: &SizeError) -> PyErr {
    raise(py, "SizeError", (format!("{named}: {error}"),))
}

/// Memory that does not fit the budget; with the operator and the bytes of its state if that is what grew.
fn limit_error(py: Python<'_>, message: String, state: Option<(String, usize)>, limit: MemoryLimit) -> PyErr {
    let MemoryLimit { needed_bytes, used_bytes, budget_bytes } = limit;
    let (operator, state_bytes) = state.unzip();
    let fields = (message, needed_bytes, used_bytes, budget_bytes, operator, state_bytes);
    raise(py, "MemoryLimitExceeded", fields)
}

/// What the operating system refused: memory, or a thread.
pub(crate) fn system_error(message: String, error: &io::Error) -> PyErr {
    match error.kind() {
        io::ErrorKind::OutOfMemory => PyMemoryError::new_err(message),
        _ => PyOSError::new_err(message),
    }
}

/// A plan that cannot be started.
pub(crate) fn start_error(py: Python<'_>, error: StartError) -> PyErr {
    let message = error.to_string();
    match error {
        StartError::Plan(error) => plan_error(py, error),
        StartError::Memory(OpenError::Limit(limit)) => limit_error(py, message, None, limit),
        StartError::Table { operator, bytes, limit } => {
            limit_error(py, message, Some((operator, bytes)), limit)
        }
        StartError::Memory(OpenError::System(error)) | StartError::Thread(error) => {
            system_error(message, &error)
        }
    }
}

/// A run that ended without an answer.
pub(crate) fn run_error(py: Python<'_>, error: RunError) -> PyErr {
    let message = error.to_string();
    match error {
        RunError::Batch { error, .. } => raise(py, "SchemaMismatchError", (message, error.column)),
        RunError::NullTime { row, .. } => raise(py, "NullTimeError", (message, row)),
        RunError::Compute { .. } => raise(py, "ComputeError", (message,)),
        RunError::MemoryLimit { operator, bytes, limit } => {
            limit_error(py, message, Some((operator, bytes)), limit)
        }
        RunError::Export(_) | RunError::Stopped | RunError::Failed => raise(py, "EngineError", (message,)),
        RunError::Panicked(_) => {
            raise(py, "EngineError", (format!("{message}. This is a bug in Penstock; please report it."),))
        }
    }
}

/// A foreign stream that failed.
pub(crate) fn input_error(py: Python<'_>, message: String) -> PyErr {
    raise(py, "InputError", (message,))
}

/// A foreign stream that was read before.
pub(crate) fn consumed_error(py: Python<'_>) -> PyErr {
    let message =
        "this stream was read before and cannot be read again; open it anew, or keep the data in a table";
    raise(py, "StreamConsumedError", (message,))
}
