//! Generated benchmark data.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use penstock_workloads::WorkloadError;
use penstock_workloads::ysb::{self, Options, Ysb};
use penstock_workloads::{Rows, row_range};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::errors::consumed_error;
use crate::output::stream_capsule;
use crate::schema::Schema;

type Batches = Box<dyn Iterator<Item = RecordBatch> + Send>;

/// Batches that are made while they are read, once.
#[pyclass(frozen, module = "penstock._penstock")]
pub struct BatchStream {
    schema: SchemaRef,
    batches: Mutex<Option<Batches>>,
}

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
        stream_capsule(py, &self.schema, batches, requested_schema)
    }
}

fn refused(error: WorkloadError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Rows `start..start + rows` of the YSB data set.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "the options of a workload, by keyword")]
pub fn ysb_generate(
    rows: u64,
    seed: u64,
    start: u64,
    batch_rows: u64,
    rate: u64,
    out_of_order_ms: u64,
    late_every: u64,
    zipf: f64,
    view_share: f64,
) -> PyResult<BatchStream> {
    let options = Options { seed, rate, out_of_order_ms, late_every, zipf, view_share, switch_every_s: 0 };
    let range = row_range(start, rows).map_err(refused)?;
    let batches = Ysb::new(options).map_err(refused)?.batches(range, batch_rows).map_err(refused)?;
    Ok(BatchStream { schema: ysb::schema(), batches: Mutex::new(Some(Box::new(batches))) })
}

/// The schema of the YSB data set.
#[pyfunction]
pub fn ysb_schema() -> Schema {
    Schema { inner: ysb::schema() }
}

/// Which ad belongs to which campaign.
#[pyfunction]
pub fn ysb_campaigns(seed: u64) -> BatchStream {
    let table = ysb::campaigns(seed);
    BatchStream { schema: table.schema(), batches: Mutex::new(Some(Box::new(std::iter::once(table)))) }
}
