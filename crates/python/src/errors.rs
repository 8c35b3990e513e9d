//! Errors of the engine as the classes of `penstock.exceptions`: one exhaustive match each.

use penstock_engine::RunError;
use penstock_types::PlanError;
use pyo3::call::PyCallArgs;
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

/// A run that ended without an answer.
pub(crate) fn run_error(py: Python<'_>, error: RunError) -> PyErr {
    let message = error.to_string();
    match error {
        RunError::Batch { error, .. } => raise(py, "SchemaMismatchError", (message, error.column)),
        RunError::NullTime { row, .. } => raise(py, "NullTimeError", (message, row)),
        RunError::Compute { .. } => raise(py, "ComputeError", (message,)),
        RunError::Export(_) | RunError::Stopped => raise(py, "EngineError", (message,)),
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
