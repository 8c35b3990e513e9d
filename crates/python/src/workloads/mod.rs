//! Generates benchmark data, of any workload by its name.
//!
//! - `options`: the options of a workload, read from a dictionary
//! - `tenants`: the jobs of mixed tenants, with what their sources are made from
//! - `tables`: which workloads and tables there are, and how each is opened
//! - `stream`: batches that are made while they are read

mod options;
mod stream;
mod tables;
mod tenants;

use penstock_border::guarded;
use penstock_engine::options::choose;
use penstock_types::PlanError;
use penstock_workloads::{Generator, WorkloadError, row_range, ysb};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping};

use crate::schema::Schema;
use options::{Given, number};
pub use stream::BatchStream;
use tables::{OpenedTable, find};
pub use tenants::ipq_tenants;

fn refused(error: WorkloadError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn unknown(error: PlanError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Opens the table with these options. That may take a while: the interpreter is released.
fn open(
    py: Python<'_>,
    name: &str,
    table: &str,
    seed: &Bound<'_, PyAny>,
    options: &Bound<'_, PyMapping>,
) -> PyResult<OpenedTable> {
    let table = find(name, table).map_err(unknown)?;
    let mut given = Given::new(name, number("seed", seed)?, options)?;
    let recipe = table.recipe(&mut given)?;
    py.detach(recipe).map_err(refused)
}

/// Generates rows `start..start + rows` of a table; all from `start` on if `rows` is `None`.
#[guarded]
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "what a table of a workload is defined by, mostly by keyword")]
pub fn workload(
    py: Python<'_>,
    name: &str,
    table: &str,
    rows: Option<&Bound<'_, PyAny>>,
    seed: &Bound<'_, PyAny>,
    start: &Bound<'_, PyAny>,
    batch_rows: &Bound<'_, PyAny>,
    options: &Bound<'_, PyMapping>,
) -> PyResult<BatchStream> {
    let rows = rows.map(|rows| number("rows", rows)).transpose()?;
    let (start, batch_rows) = (number("start", start)?, number("batch_rows", batch_rows)?);
    let opened = open(py, name, table, seed, options)?;
    let rows = match rows.or_else(|| Some(opened.end?.saturating_sub(start))) {
        Some(rows) => rows,
        None => return Err(PyValueError::new_err(format!("{name} has no end: rows says how many"))),
    };
    let range = row_range(start, rows).map_err(refused)?;
    let batches = opened.rows.batches(range, batch_rows).map_err(refused)?;
    Ok(BatchStream::new(opened.rows.schema(), batches))
}

/// Returns the columns of a table.
#[guarded]
#[pyfunction]
pub fn workload_schema(name: &str, table: &str) -> PyResult<Schema> {
    Ok(Schema { inner: find(name, table).map_err(unknown)?.schema() })
}

/// Returns how many rows a table has; `None` for one without end.
#[guarded]
#[pyfunction]
pub fn workload_rows(
    py: Python<'_>,
    name: &str,
    table: &str,
    seed: &Bound<'_, PyAny>,
    options: &Bound<'_, PyMapping>,
) -> PyResult<Option<u64>> {
    Ok(open(py, name, table, seed, options)?.end)
}

/// Returns the options of a table beside the seed, with their defaults.
#[guarded]
#[pyfunction]
pub fn workload_options<'py>(py: Python<'py>, name: &str, table: &str) -> PyResult<Bound<'py, PyDict>> {
    let mut given = Given::new(name, 0, PyDict::new(py).as_mapping())?;
    let _unused = find(name, table).map_err(unknown)?.recipe(&mut given)?;
    let options = PyDict::new(py);
    for (option, value) in given.defaults {
        options.set_item(option, value)?;
    }
    Ok(options)
}

/// Returns the campaign of each ad, in numbers or in text.
#[guarded]
#[pyfunction]
pub fn ysb_campaigns(seed: &Bound<'_, PyAny>, strings: bool) -> PyResult<BatchStream> {
    let seed = number("seed", seed)?;
    let table = if strings { ysb::campaigns_strings(seed) } else { ysb::campaigns(seed) };
    Ok(BatchStream::new(table.schema(), std::iter::once(table)))
}
