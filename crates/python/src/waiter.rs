//! Waits for the results of a query without holding it.
//!
//! A thread that waits refers to the object that it waits with, and the collector takes that for a reference of the
//! user: an engine whose query is read by another one would live until a result comes. So the thread waits with an
//! object that refers to no Python object.

use std::sync::Arc;
use std::time::Duration;

use penstock_border::guarded;
use penstock_engine::Query as Running;
use pyo3::prelude::*;

use crate::process::Here;
use crate::sink::Callback;
use crate::wait::timeout;

struct WaiterState {
    query: Running,
    output: usize,
    /// The functions that have to return before the query has ended.
    callbacks: Vec<Arc<Callback>>,
}

impl WaiterState {
    fn has_ended(&self, timeout: Duration) -> bool {
        self.query.wait(timeout) && self.callbacks.iter().all(|callback| callback.wait(timeout))
    }

    /// Returns true if a batch, or the end, comes in time.
    fn wait(&self, timeout: Duration) -> bool {
        let Some(results) = self.query.results_of(self.output) else { return true };
        results.wait(timeout) && (!results.is_over() || self.has_ended(timeout))
    }
}

/// Waits for the results of one output.
#[pyclass(frozen, module = "penstock._penstock")]
pub struct Waiter {
    inner: Here<WaiterState>,
}

impl Waiter {
    pub(crate) fn new(query: Running, output: usize, callbacks: Vec<Arc<Callback>>) -> Self {
        Self { inner: Here::new(WaiterState { query, output, callbacks }) }
    }
}

#[guarded]
#[pymethods]
impl Waiter {
    /// Returns true if a batch, or the end, comes in so many seconds. For threads that read for another query.
    fn ready(&self, py: Python<'_>, seconds: f64) -> PyResult<bool> {
        let inner = self.inner.get(py)?;
        let timeout = timeout(Some(seconds))?.unwrap_or_default();
        Ok(py.detach(|| inner.wait(timeout)))
    }
}
