//! Hands results to Python, one batch at a time.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StructArray};
use arrow_schema::Field;
use penstock_border::guarded;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList, PyTuple};
use pyo3_arrow::ffi::to_array_pycapsules;

use crate::arrow::valid;
use crate::errors::input_error;
use crate::output::stream_capsule;
use crate::pylist::rows;
use crate::schema::Schema;

/// One batch of results.
#[pyclass(frozen, module = "penstock._penstock")]
pub struct Batch {
    inner: RecordBatch,
}

impl Batch {
    pub(crate) fn new(inner: RecordBatch) -> Self {
        Self { inner }
    }
}

#[guarded]
#[pymethods]
impl Batch {
    #[getter]
    fn schema(&self) -> Schema {
        Schema { inner: self.inner.schema() }
    }

    #[pyo3(signature = (limit=None))]
    fn to_pylist<'py>(&self, py: Python<'py>, limit: Option<usize>) -> PyResult<Bound<'py, PyList>> {
        let wanted = self.inner.slice(0, limit.unwrap_or(usize::MAX).min(self.inner.num_rows()));
        // Functions for watermarks and for dead letters may receive a batch that has not been validated before.
        let checked =
            valid(&wanted).map_err(|error| input_error(py, format!("this is not valid: {error}")))?;
        rows(py, &[checked], usize::MAX)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let field = Arc::new(Field::new_struct("", self.inner.schema().fields().clone(), false));
        let array: ArrayRef = Arc::new(StructArray::from(self.inner.clone()));
        Ok(to_array_pycapsules(py, field, &array, requested_schema)?)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let batches = std::iter::once(Ok(self.inner.clone()));
        stream_capsule(py, &self.inner.schema(), batches, requested_schema)
    }

    fn __len__(&self) -> usize {
        self.inner.num_rows()
    }
}
