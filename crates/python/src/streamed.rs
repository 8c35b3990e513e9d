//! Reads results as an Arrow stream, on any thread.

use std::mem::ManuallyDrop;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use pyo3::prelude::*;

use crate::errors::in_words;
use crate::foreign;

/// Returns the next batch; `None` at the end. It holds Python objects.
type NextBatch = Box<dyn FnMut(Python<'_>) -> PyResult<Option<RecordBatch>> + Send>;

/// The results of an output, for an Arrow stream.
pub(crate) struct Streamed {
    /// The function that returns batches, and the object that keeps the engine alive.
    held: Option<(NextBatch, Py<PyAny>)>,
    is_over: bool,
}

impl Streamed {
    /// Reads what `next` returns, and keeps `owner` meanwhile.
    pub(crate) fn new(
        owner: Py<PyAny>,
        next: impl FnMut(Python<'_>) -> PyResult<Option<RecordBatch>> + Send + 'static,
    ) -> Self {
        Self { held: Some((Box::new(next), owner)), is_over: false }
    }
}

impl Iterator for Streamed {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (next, _) = self.held.as_mut().filter(|_| !self.is_over)?;
        // The reader may hold the interpreter, and the query may need it: it is released while this waits.
        let batch = foreign::attach(|py| next(py).map_err(|error| in_words(py, error)));
        let batch = batch.unwrap_or_else(|| Err("the interpreter has ended".into()));
        self.is_over = !matches!(batch, Ok(Some(_)));
        batch.map_err(ArrowError::ExternalError).transpose()
    }
}

impl Drop for Streamed {
    fn drop(&mut self) {
        // The reader may drop it on any thread. Without an interpreter references need not be counted.
        let mut held = ManuallyDrop::new(self.held.take());
        foreign::attach(|_| drop(held.take()));
    }
}
