//! Results.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, RecordBatch, StructArray};
use arrow_schema::{DataType, Field, SchemaRef};
use penstock_engine::Output as Inner;
use penstock_memory::coordinator::Counters;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyCapsule, PyDict, PyList};
use pyo3_arrow::ffi::{ArrayIterator, to_stream_pycapsule};

use crate::pylist::rows;
use crate::schema::Schema;

/// The finished result of a run.
#[pyclass(frozen, module = "penstock._penstock")]
pub struct Output {
    inner: Inner,
    elapsed: Duration,
}

impl Output {
    pub(crate) fn new(inner: Inner, elapsed: Duration) -> Self {
        Self { inner, elapsed }
    }
}

/// Batches as an Arrow stream capsule. The stream holds them for as long as its consumer wants.
pub(crate) fn stream_capsule<'py>(
    py: Python<'py>,
    schema: &SchemaRef,
    batches: impl Iterator<Item = RecordBatch> + Send + 'static,
    requested_schema: Option<Bound<'py, PyCapsule>>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let field = Arc::new(Field::new_struct("", schema.fields().clone(), false));
    let arrays = batches.map(|batch| Ok(Arc::new(StructArray::from(batch)) as ArrayRef));
    let reader = Box::new(ArrayIterator::new(arrays, field));
    debug_assert!(matches!(pyo3_arrow::ffi::ArrayReader::field(&*reader).data_type(), DataType::Struct(_)));
    Ok(to_stream_pycapsule(py, reader, requested_schema)?)
}

#[pymethods]
impl Output {
    #[getter]
    fn schema(&self) -> Schema {
        Schema { inner: Arc::clone(&self.inner.schema) }
    }

    #[getter]
    fn rows_in(&self) -> u64 {
        self.inner.rows_in
    }

    #[getter]
    fn rows_out(&self) -> usize {
        self.inner.rows_out()
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
    fn rows_contributed(&self) -> u64 {
        self.inner.rows_contributed
    }

    #[getter]
    fn batches_in(&self) -> u64 {
        self.inner.batches_in
    }

    #[getter]
    fn seconds(&self) -> f64 {
        self.elapsed.as_secs_f64()
    }

    #[getter]
    fn late_by(&self) -> Option<u64> {
        self.inner.late_by
    }

    #[getter]
    fn late_by_text(&self) -> Option<String> {
        self.inner.late_by_text()
    }

    #[getter]
    fn operators<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let operators = PyList::empty(py);
        for operator in &self.inner.operators {
            let report = PyDict::new(py);
            report.set_item("name", &operator.name)?;
            report.set_item("rows_in", operator.profile.rows_in)?;
            report.set_item("rows_out", operator.profile.rows_out)?;
            report.set_item("seconds", operator.profile.busy_ns as f64 / 1e9)?;
            operators.append(report)?;
        }
        Ok(operators)
    }

    #[getter]
    fn memory<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        // Taken apart, so that whoever adds a counter is sent here by the compiler.
        let Counters {
            budget_bytes,
            used_bytes,
            pinned_bytes,
            exported_bytes,
            state_bytes,
            chunks_live,
            chunks_spare,
            chunks_pooled,
            chunks_exported,
            chunks_requested,
            inline_allocations,
            background_allocations,
            recycles,
            trims,
            backpressure_ns,
            peak_used_bytes,
        } = self.inner.memory;
        [
            ("budget_bytes", budget_bytes),
            ("used_bytes", used_bytes),
            ("peak_used_bytes", peak_used_bytes),
            ("pinned_bytes", pinned_bytes),
            ("exported_bytes", exported_bytes),
            ("state_bytes", state_bytes),
            ("chunks_live", chunks_live),
            ("chunks_spare", chunks_spare),
            ("chunks_pooled", chunks_pooled),
            ("chunks_exported", chunks_exported),
            ("chunks_requested", chunks_requested),
            ("inline_allocations", inline_allocations),
            ("background_allocations", background_allocations),
            ("recycles", recycles),
            ("trims", trims),
            ("backpressure_ns", backpressure_ns),
        ]
        .into_py_dict(py)
    }

    #[pyo3(signature = (limit=None))]
    fn to_pylist<'py>(&self, py: Python<'py>, limit: Option<usize>) -> PyResult<Bound<'py, PyList>> {
        rows(py, &self.inner.batches, limit.unwrap_or(usize::MAX))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        stream_capsule(py, &self.inner.schema, self.inner.batches.clone().into_iter(), requested_schema)
    }

    fn __len__(&self) -> usize {
        self.inner.rows_out()
    }
}
