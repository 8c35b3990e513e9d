//! Replays data that is in memory.

use arrow_array::RecordBatch;
use penstock_border::guarded;
use penstock_engine::Replay as Inner;
use pyo3::prelude::*;

use crate::arrow::{open, open_item, read};

/// Batches to be replayed.
#[pyclass(frozen, module = "penstock._penstock")]
pub struct Replay {
    pub(crate) inner: Inner,
}

#[guarded]
#[pymethods]
impl Replay {
    /// Reads all of the data at once.
    #[new]
    #[pyo3(signature = (data, rate, rounds))]
    fn new(
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        rate: Option<f64>,
        rounds: Option<u64>,
    ) -> PyResult<Self> {
        let mut batches = Vec::new();
        if let Some(data) = open(data)? {
            batches = read(py, data)?;
        } else {
            for item in data.try_iter()? {
                py.check_signals()?;
                batches.extend(read(py, open_item(&item?)?)?);
            }
        }
        batches.retain(|batch| batch.num_rows() > 0);
        Ok(Self { inner: Inner { batches: batches.into(), rows_per_second: rate, rounds } })
    }

    fn __len__(&self) -> usize {
        self.inner.batches.iter().map(RecordBatch::num_rows).sum()
    }
}
