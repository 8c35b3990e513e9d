//! Collected results, and Arrow streams of batches.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StructArray};
use arrow_schema::{ArrowError, DataType, Field, SchemaRef};
use penstock_border::guarded;
use penstock_engine::Output as Inner;
use penstock_engine::output::OutputPart;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};
use pyo3_arrow::ffi::{ArrayIterator, to_stream_pycapsule};

use crate::border::caught;
use crate::errors::panic_words;
use crate::metrics;
use crate::pylist::rows;
use crate::schema::Schema;

/// The whole result of one output of a query.
#[pyclass(frozen, module = "penstock._penstock")]
pub struct Output {
    inner: Arc<Inner>,
    part: usize,
    seconds: f64,
}

impl Output {
    /// Makes one object for each output of a query.
    pub(crate) fn all(inner: Inner, seconds: f64) -> Vec<Self> {
        let inner = Arc::new(inner);
        (0..inner.parts.len()).map(|part| Self { inner: Arc::clone(&inner), part, seconds }).collect()
    }

    fn part(&self) -> &OutputPart {
        &self.inner.parts[self.part]
    }
}

/// Makes an error fit for a C string: the message of a user's own exception may contain zero bytes.
fn spoken(error: ArrowError) -> ArrowError {
    match error {
        ArrowError::ExternalError(error) => {
            ArrowError::ExternalError(error.to_string().replace('\0', "\\0").into())
        }
        error => error,
    }
}

/// Makes an Arrow stream capsule of batches. The stream holds them until its consumer releases it.
pub(crate) fn stream_capsule<'py>(
    py: Python<'py>,
    schema: &SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch, ArrowError>> + Send + 'static,
    requested_schema: Option<Bound<'py, PyCapsule>>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let field = Arc::new(Field::new_struct("", schema.fields().clone(), false));
    let mut arrays = batches.map(|batch| batch.map(|batch| Arc::new(StructArray::from(batch)) as ArrayRef));
    let mut is_over = false;
    let arrays = std::iter::from_fn(move || {
        if is_over {
            return None;
        }
        // The consumer calls this through C, which no panic may pass: the process would be aborted.
        let next = caught(|| arrays.next());
        let next =
            next.unwrap_or_else(|text| Some(Err(ArrowError::ExternalError(panic_words(&text).into()))));
        is_over = !matches!(next, Some(Ok(_)));
        next.map(|next| next.map_err(spoken))
    });
    let reader = Box::new(ArrayIterator::new(arrays, field));
    debug_assert!(matches!(pyo3_arrow::ffi::ArrayReader::field(&*reader).data_type(), DataType::Struct(_)));
    Ok(to_stream_pycapsule(py, reader, requested_schema)?)
}

#[guarded]
#[pymethods]
impl Output {
    #[getter]
    fn schema(&self) -> Schema {
        Schema { inner: Arc::clone(&self.part().schema) }
    }

    #[getter]
    fn rows_in(&self) -> u64 {
        self.inner.rows_in
    }

    #[getter]
    fn rows_out(&self) -> usize {
        self.part().rows()
    }

    #[getter]
    fn rows_copied(&self) -> u64 {
        self.inner.rows_copied
    }

    #[getter]
    fn rows_filtered(&self) -> u64 {
        self.inner.rows_filtered
    }

    #[getter]
    fn rows_late(&self) -> u64 {
        self.inner.rows_late
    }

    #[getter]
    fn late_results(&self) -> u64 {
        self.inner.late_results
    }

    #[getter]
    fn rows_contributed(&self) -> u64 {
        self.inner.rows_contributed
    }

    #[getter]
    fn batches_in(&self) -> u64 {
        self.inner.batches_in
    }

    #[getter]
    fn seconds(&self) -> f64 {
        self.seconds
    }

    #[getter]
    fn late_by(&self) -> Option<u64> {
        self.inner.late_by
    }

    #[getter]
    fn late_by_text(&self) -> Option<String> {
        self.inner.late_by_text()
    }

    /// Returns the late rows and results that no late output reads, and the largest distance of one of them as text.
    #[getter]
    fn dropped_late(&self) -> Option<(u64, String)> {
        self.inner.dropped_late.map(|late| (late.rows, late.by_text()))
    }

    #[getter]
    fn rows_shed(&self) -> u64 {
        self.inner.rows_shed
    }

    #[getter]
    fn rows_rejected(&self) -> u64 {
        self.inner.rows_rejected
    }

    #[getter]
    fn rejected_results(&self) -> u64 {
        self.inner.rejected_results
    }

    #[getter]
    fn event_latency<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        metrics::latency(py, &self.inner.event_latency)
    }

    #[getter]
    fn output_latency<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        metrics::latency(py, &self.inner.output_latency)
    }

    #[getter]
    fn operators<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        metrics::operators(py, &self.inner.operators)
    }

    #[getter]
    fn memory<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        metrics::memory(py, &self.inner.memory)
    }

    #[pyo3(signature = (limit=None))]
    fn to_pylist<'py>(&self, py: Python<'py>, limit: Option<usize>) -> PyResult<Bound<'py, PyList>> {
        rows(py, &self.part().batches, limit.unwrap_or(usize::MAX))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let batches = self.part().batches.clone().into_iter().map(Ok);
        stream_capsule(py, &self.part().schema, batches, requested_schema)
    }

    fn __len__(&self) -> usize {
        self.part().rows()
    }
}
