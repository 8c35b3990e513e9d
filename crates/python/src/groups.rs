//! Key groups of rows, by which jobs spread them over machines.

use penstock_border::guarded;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrow::one_batch;
use crate::errors::plan_error;

/// Returns the key group of each row, one byte each.
#[guarded]
#[pyfunction]
pub fn key_groups<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    columns: Vec<String>,
) -> PyResult<Bound<'py, PyBytes>> {
    let batch = one_batch(data, "data")?;
    let groups = py.detach(|| penstock_engine::key_groups(&batch, &columns));
    Ok(PyBytes::new(py, &groups.map_err(|error| plan_error(py, error))?))
}
