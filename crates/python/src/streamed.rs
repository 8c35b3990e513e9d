//! The results of a query as an Arrow stream.

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use pyo3::prelude::*;

use crate::errors::in_words;
use crate::foreign;
use crate::query::Query;

/// The results of an output as an Arrow stream reads them, on any thread.
pub(crate) struct Streamed {
    /// The query, and what keeps its engine, until it is dropped.
    held: Option<(Py<Query>, Py<PyAny>)>,
    output: usize,
    is_over: bool,
}

impl Streamed {
    pub(crate) fn new(query: Py<Query>, owner: Py<PyAny>, output: usize) -> Self {
        Self { held: Some((query, owner)), output, is_over: false }
    }
}

impl Iterator for Streamed {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (query, _) = self.held.as_ref().filter(|_| !self.is_over)?;
        // The reader may hold the interpreter, and the query may need it: it is released while this waits.
        let next = foreign::attach(|py| {
            query.get().next_to_the_end(py, self.output).map_err(|error| in_words(py, error))
        });
        let next = next.unwrap_or_else(|| Err("the interpreter has ended".into()));
        self.is_over = !matches!(next, Ok(Some(_)));
        next.map_err(ArrowError::ExternalError).transpose()
    }
}

impl Drop for Streamed {
    fn drop(&mut self) {
        // The reader lets go of it wherever it likes. Without an interpreter there is nothing to count references for.
        let held = self.held.take();
        let mut held = std::mem::ManuallyDrop::new(held);
        foreign::attach(|_| drop(held.take()));
    }
}
