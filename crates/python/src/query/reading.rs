//! Reads the results of a query, one batch at a time.

use std::time::Duration;

use arrow_array::RecordBatch;
use penstock_engine::results::Next;
use penstock_engine::{RunError, Status};
use pyo3::prelude::*;

use super::Query;
use crate::errors::{run_error, waits_for_itself};
use crate::wait::wait;

impl Query {
    /// Waits for the next batch; `None` at the end.
    pub(super) fn next_of(&self, py: Python<'_>, output: usize) -> PyResult<Option<RecordBatch>> {
        let inner = self.inner.get(py)?;
        let results = inner.results(py, output)?;
        if inner.query.is_run_here() && !py.detach(|| results.wait(Duration::ZERO)) {
            return Err(waits_for_itself(py, true));
        }
        loop {
            wait(py, None, |timeout| results.wait(timeout))?;
            match py.detach(|| results.take()) {
                Next::Batch(batch) => return Ok(Some(batch)),
                Next::Nothing => {} // another reader was quicker
                Next::Ended => {
                    // A function that takes dead letters, or another output, may still fail.
                    if inner.check_thread(py).is_ok() {
                        wait(py, None, |timeout| inner.has_ended(timeout))?;
                    }
                    return self.raise_failure(py).map(|()| None);
                }
            }
        }
    }

    /// Waits for the next batch, for a reader that takes the end for that of all rows: a query that was stopped is an
    /// error.
    pub(crate) fn next_to_the_end(&self, py: Python<'_>, output: usize) -> PyResult<Option<RecordBatch>> {
        let next = self.next_of(py, output)?;
        let inner = self.inner.get(py)?;
        if next.is_none() && inner.status() == Status::Stopped {
            return Err(run_error(py, &RunError::Stopped));
        }
        Ok(next)
    }
}
