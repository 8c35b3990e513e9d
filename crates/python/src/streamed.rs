//! Results as an Arrow stream, which is read on any thread.

use std::mem::ManuallyDrop;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use pyo3::prelude::*;

use crate::errors::in_words;
use crate::foreign;

/// Returns the next batch; `None` at the end. It holds Python objects.
type Next = Box<dyn FnMut(Python<'_>) -> PyResult<Option<RecordBatch>> + Send>;

/// The results of an output as an Arrow stream reads them.
pub(crate) struct Streamed {
    /// What returns batches, and what keeps the engine, until it is dropped.
    held: Option<(Next, Py<PyAny>)>,
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
        // The reader lets go of it wherever it likes. Without an interpreter there is nothing to count references for.
        let mut held = ManuallyDrop::new(self.held.take());
        foreign::attach(|_| drop(held.take()));
    }
}
