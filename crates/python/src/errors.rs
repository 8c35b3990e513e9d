//! Errors of the engine as the classes of `penstock.exceptions`: one exhaustive match each.

use std::io;

use penstock_engine::{OutsideError, RunError, StartError};
use penstock_memory::{BatchError, MemoryLimit, OpenError};
use penstock_types::{PlanError, SizeError};
use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PyOSError};
use pyo3::prelude::*;

use crate::raised::Raised;

/// Makes an error of class `name` of `penstock.exceptions`.
fn raise<'py>(py: Python<'py>, name: &str, arguments: impl PyCallArgs<'py>) -> PyErr {
    let made = py.import("penstock.exceptions").and_then(|module| module.getattr(name)?.call1(arguments));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// Converts the error of a plan that cannot be built.
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

/// Makes a `PlanError` with this message, for an invalid call or option.
pub(crate) fn invalid(py: Python<'_>, message: impl Into<String>) -> PyErr {
    plan_error(py, PlanError::Invalid(message.into()))
}

/// Converts the error of a size that cannot be parsed, in the setting of that name.
pub(crate) fn size_error(py: Python<'_>, named: &str, error: &SizeError) -> PyErr {
    raise(py, "SizeError", (format!("{named}: {error}"),))
}

/// Converts a refusal of the budget; with the operator and the bytes of its state if that is what grew.
fn limit_error(py: Python<'_>, message: String, state: Option<(&str, usize)>, limit: &MemoryLimit) -> PyErr {
    let MemoryLimit { needed_bytes, used_bytes, budget_bytes } = *limit;
    let (operator, state_bytes) = state.unzip();
    let fields = (message, needed_bytes, used_bytes, budget_bytes, operator, state_bytes);
    raise(py, "MemoryLimitExceeded", fields)
}

/// Converts an error of the operating system, which has refused memory or a thread.
fn system_error(message: String, error: &io::Error) -> PyErr {
    match error.kind() {
        io::ErrorKind::OutOfMemory => PyMemoryError::new_err(message),
        _ => PyOSError::new_err(message),
    }
}

/// Converts the error of a thread that cannot be started.
pub(crate) fn thread_error(error: &io::Error) -> PyErr {
    system_error(format!("cannot start a thread: {error}"), error)
}

/// Converts the error of an engine or a query that cannot be started.
pub(crate) fn start_error(py: Python<'_>, error: StartError) -> PyErr {
    let message = error.to_string();
    match error {
        StartError::Plan(error) => plan_error(py, error),
        StartError::Memory(OpenError::Limit(limit)) => limit_error(py, message, None, &limit),
        StartError::Table { operator, bytes, limit } => {
            limit_error(py, message, Some((&operator, bytes)), &limit)
        }
        StartError::Outside { error, .. } => outside_error(py, message, &error),
        StartError::SourceEnded { .. } => raise(py, "SourceEndedError", (message,)),
        StartError::NameTaken { name } => raise(py, "NameTakenError", (message, name)),
        StartError::EngineStopped => raise(py, "EngineStoppedError", (message,)),
        StartError::TooManyTasks { .. } | StartError::WaitsForItself { .. } => {
            raise(py, "EngineError", (message,))
        }
        StartError::Memory(OpenError::System(error)) | StartError::Thread(error) => {
            system_error(message, &error)
        }
    }
}

/// Converts the error of a watermark function.
pub(crate) fn marking_error(py: Python<'_>, error: &OutsideError) -> PyErr {
    outside_error(py, format!("the watermark function failed: {error}"), error)
}

/// Converts the error of a query that has failed. The same error may be converted several times.
pub(crate) fn run_error(py: Python<'_>, error: &RunError) -> PyErr {
    let message = error.to_string();
    match error {
        RunError::Batch { error, .. } => raise(py, "SchemaMismatchError", (message, &error.column)),
        RunError::NullTime { row, .. } => raise(py, "NullTimeError", (message, row)),
        RunError::TimeAhead { row, .. } => raise(py, "TimeAheadError", (message, row)),
        RunError::Compute { .. } => raise(py, "ComputeError", (message,)),
        RunError::MemoryLimit { operator, bytes, limit } => {
            limit_error(py, message, Some((operator, *bytes)), limit)
        }
        RunError::Outside { error, .. } => outside_error(py, message, error),
        RunError::Lagged { rows } => raise(py, "LaggedError", (message, rows)),
        RunError::SourceEnded => raise(py, "SourceEndedError", (message,)),
        RunError::Stopped => raise(py, "QueryStoppedError", ("the query was stopped",)),
        RunError::Export(_) => raise(py, "EngineError", (message,)),
        RunError::Panicked { .. } => bug(py, &message),
    }
}

fn bug_words(message: &str) -> String {
    format!("{message}. This is a bug in Penstock; please report it.")
}

fn bug(py: Python<'_>, message: &str) -> PyErr {
    raise(py, "EngineError", (bug_words(message),))
}

/// Returns the message for a call that panicked.
pub(crate) fn panic_words(text: &str) -> String {
    bug_words(&format!("the engine failed: {text}"))
}

/// Makes the error of a call that panicked.
pub(crate) fn panic_error(py: Python<'_>, text: &str) -> PyErr {
    raise(py, "EngineError", (panic_words(text),))
}

/// Converts the error of a source or a sink: the user's own exception, or the message of an Arrow stream.
fn outside_error(py: Python<'_>, message: String, error: &OutsideError) -> PyErr {
    match error.downcast_ref::<Raised>() {
        Some(raised) => raised.again(py).unwrap_or_else(|| input_error(py, message)),
        None => input_error(py, message),
    }
}

/// Makes the error of a foreign stream that failed.
pub(crate) fn input_error(py: Python<'_>, message: String) -> PyErr {
    raise(py, "InputError", (message,))
}

/// Makes the error of a foreign stream that was read before.
pub(crate) fn consumed_error(py: Python<'_>) -> PyErr {
    consumed(
        py,
        "this stream was read before and cannot be read again; open it anew, or keep the data in a table",
    )
}

/// Converts an exception to text, which is all that an Arrow stream can carry. An interrupt is raised again after it.
pub(crate) fn in_words(py: Python<'_>, error: PyErr) -> OutsideError {
    if error.is_instance_of::<PyKeyboardInterrupt>(py) {
        // It fails only while the interpreter ends, when an interrupt changes nothing. From here on no function of
        // Python's is called: the first one would take the interrupt.
        let _ = py.import("_thread").and_then(|module| module.call_method0("interrupt_main"));
        return "interrupted".into();
    }
    error.to_string().into()
}

/// Makes the error of a source that was used before.
pub(crate) fn consumed(py: Python<'_>, message: &str) -> PyErr {
    raise(py, "StreamConsumedError", (message,))
}

/// Makes the error of a push to a query that has ended, with the error that ended it as the cause.
pub(crate) fn ended_error(py: Python<'_>, message: String, cause: Option<PyErr>) -> PyErr {
    let error = raise(py, "QueryEndedError", (message,));
    error.set_cause(py, cause);
    error
}

/// Makes the error of a push to a source that was closed.
pub(crate) fn closed_error(py: Python<'_>) -> PyErr {
    raise(py, "SourceEndedError", ("this source was closed; it takes no more rows",))
}

/// Makes the error of using an engine of another process.
pub(crate) fn other_process_error(py: Python<'_>) -> PyErr {
    raise(py, "EngineError", ("this engine was started in another process; start a new one here",))
}

/// Makes the error of a query whose exception the collector has cleared.
pub(crate) fn let_go(py: Python<'_>) -> PyErr {
    raise(py, "EngineError", ("the query failed, and what was raised is gone already",))
}

/// Makes the error of a function that was dropped together with its engine.
pub(crate) fn function_gone(py: Python<'_>) -> PyErr {
    raise(py, "EngineError", ("the engine was dropped, and with it the functions of its queries",))
}

/// Describes an exception: its class and its message, and those of its cause.
pub(crate) fn error_text(py: Python<'_>, error: &PyErr) -> PyResult<String> {
    let text = |error: &PyErr| Ok::<_, PyErr>(format!("{}: {}", error.get_type(py).name()?, error.value(py)));
    match error.cause(py) {
        Some(cause) => Ok(format!("{} (because of {})", text(error)?, text(&cause)?)),
        None => text(error),
    }
}

/// Converts the error of a batch that does not have the declared columns.
pub(crate) fn unfit_error(py: Python<'_>, error: &BatchError) -> PyErr {
    raise(py, "SchemaMismatchError", (error.to_string(), &error.column))
}

/// Makes the error of a sink that waits for its own query, or a function of a pipeline that waits for its own engine.
pub(crate) fn waits_for_itself(py: Python<'_>, is_task: bool) -> PyErr {
    let message = if is_task {
        "a function that runs on an engine cannot wait for it, or for its queries: it would wait for itself. Run the pipeline on another engine, as Stream.run does"
    } else {
        "a query cannot wait for itself: this is the thread of its sink, or of the function that takes its dead letters"
    };
    raise(py, "EngineError", (message,))
}

/// Makes the error of a watermark function that waits for the query that waits for its answer.
pub(crate) fn asked_of_itself(py: Python<'_>) -> PyErr {
    let message = "a query cannot wait for itself: this is the watermark function of its source, and the query waits for what that returns";
    raise(py, "EngineError", (message,))
}

/// Makes the error of a watermark function that pushes to its own source.
pub(crate) fn pushes_to_itself(py: Python<'_>) -> PyErr {
    let message = "a watermark function cannot push to its own source: it would be asked about that batch as well, before this one is taken";
    raise(py, "EngineError", (message,))
}
