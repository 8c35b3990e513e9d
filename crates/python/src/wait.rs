//! Waits with the interpreter released, and checks for signals meanwhile.

use std::time::{Duration, Instant};

use penstock_engine::OutsideError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::raised::Raised;

/// How often a waiting thread checks for signals.
pub(crate) const GLANCE: Duration = Duration::from_millis(20);

/// Converts seconds to a duration; `None` is without limit.
pub(crate) fn timeout(seconds: Option<f64>) -> PyResult<Option<Duration>> {
    let Some(seconds) = seconds else { return Ok(None) };
    if seconds.is_nan() {
        return Err(PyValueError::new_err("timeout is a number of seconds, not nan"));
    }
    // More seconds than a duration can hold are without limit.
    Ok(Duration::try_from_secs_f64(seconds.max(0.0)).ok())
}

/// Waits until `done` returns true, which it may wait for itself, or `timeout` is over; returns true if it is done.
pub(crate) fn wait(
    py: Python<'_>,
    timeout: Option<Duration>,
    mut done: impl FnMut(Duration) -> bool + Send,
) -> PyResult<bool> {
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if py.detach(|| done(left.unwrap_or(GLANCE).min(GLANCE))) {
            return Ok(true);
        }
        py.check_signals()?;
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(false);
        }
    }
}

/// Returns what a signal handler has raised, if any: for threads that wait without the interpreter.
pub(crate) fn interrupted() -> Option<OutsideError> {
    let check = |py: Python<'_>| {
        let raised = py.check_signals().err()?;
        Some(Box::new(Raised::new(py, raised)) as OutsideError)
    };
    Python::try_attach(check).flatten()
}
