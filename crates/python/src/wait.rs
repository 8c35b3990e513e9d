//! Waiting without the interpreter, and with an eye on signals.

use std::time::{Duration, Instant};

use penstock_engine::OutsideError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::raised::Raised;

/// How long the calling thread goes without a look at signals.
pub(crate) const GLANCE: Duration = Duration::from_millis(20);

/// Seconds as Python gives them; `None` is for ever.
pub(crate) fn timeout(seconds: Option<f64>) -> PyResult<Option<Duration>> {
    let Some(seconds) = seconds else { return Ok(None) };
    if seconds.is_nan() {
        return Err(PyValueError::new_err("timeout is a number of seconds, not nan"));
    }
    // More seconds than can be counted are for ever.
    Ok(Duration::try_from_secs_f64(seconds.max(0.0)).ok())
}

/// Waits until `done` says so, or `timeout` is over. Whether it is done. `done` itself may wait for the time it is given.
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

/// What a signal has raised, if one came: for whoever waits without the interpreter.
pub(crate) fn interrupted() -> Option<OutsideError> {
    let check = |py: Python<'_>| {
        let raised = py.check_signals().err()?;
        Some(Box::new(Raised::new(py, raised)) as OutsideError)
    };
    Python::try_attach(check).flatten()
}
