//! Sources that several queries read.

use penstock_engine::{SharedSource as Inner, Status};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::run_error;
use crate::metrics;
use crate::plan::Plan;
use crate::process::Here;

/// A source that queries share.
#[pyclass(frozen, module = "penstock._penstock")]
pub struct SharedSource {
    inner: Here<Inner>,
    /// The number of the engine that it belongs to.
    pub(crate) engine: u64,
}

impl SharedSource {
    pub(crate) fn new(inner: Inner, engine: u64) -> Self {
        Self { inner: Here::new(inner), engine }
    }

    pub(crate) fn get(&self, py: Python<'_>) -> PyResult<&Inner> {
        self.inner.get(py)
    }
}

#[pymethods]
impl SharedSource {
    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<&str> {
        Ok(self.get(py)?.name())
    }

    #[getter]
    fn status(&self, py: Python<'_>) -> PyResult<&'static str> {
        let inner = self.get(py)?;
        Ok(py.detach(|| inner.status()).name())
    }

    /// The plan that does nothing but read it.
    #[getter]
    fn plan(&self, py: Python<'_>) -> PyResult<Plan> {
        Ok(Plan { inner: self.get(py)?.stream().clone() })
    }

    #[getter]
    fn error(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let inner = self.get(py)?;
        if inner.status() != Status::Failed {
            return Ok(None);
        }
        Ok(inner.error().map(|error| run_error(py, &error).into_value(py).into_any()))
    }

    /// Lets rows come, if it was held back.
    fn start(&self, py: Python<'_>) -> PyResult<()> {
        let inner = self.get(py)?;
        py.detach(|| inner.begin());
        Ok(())
    }

    /// Ends it: the queries that read it come to their end as well.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let inner = self.get(py)?;
        py.detach(|| inner.drain());
        Ok(())
    }

    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let inner = self.get(py)?;
        let found = py.detach(|| inner.metrics());
        metrics::query(py, &found)
    }
}
