//! Hands generated rows to Python.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use penstock_border::guarded;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::errors::consumed_error;
use crate::output::stream_capsule;
use crate::schema::Schema;

type BoxedBatches = Box<dyn Iterator<Item = RecordBatch> + Send>;

/// Batches that are generated while they are read, once.
#[pyclass(frozen, module = "penstock._penstock")]
pub struct BatchStream {
    schema: SchemaRef,
    batches: Mutex<Option<BoxedBatches>>,
}

impl BatchStream {
    pub(super) fn new(
        schema: SchemaRef,
        batches: impl Iterator<Item = RecordBatch> + Send + 'static,
    ) -> Self {
        Self { schema, batches: Mutex::new(Some(Box::new(batches))) }
    }
}

#[guarded]
#[pymethods]
impl BatchStream {
    #[getter]
    fn schema(&self) -> Schema {
        Schema { inner: Arc::clone(&self.schema) }
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner).take();
        let batches = batches.ok_or_else(|| consumed_error(py))?;
        stream_capsule(py, &self.schema, batches.map(Ok), requested_schema)
    }
}
