//! Rows by number: the interface of every workload, a range at a time.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::{Buffers, WorkloadError};

/// Most rows of one batch.
pub const MAX_BATCH_ROWS: u64 = 1 << 24;

/// Returns the row ids of `rows` rows from `start` on.
///
/// # Errors
/// [`WorkloadError::RowsOverflow`] when row ids run out.
pub fn row_range(start: u64, rows: u64) -> Result<Range<u64>, WorkloadError> {
    let end = start.checked_add(rows).ok_or(WorkloadError::RowsOverflow { start, rows })?;
    Ok(start..end)
}

/// An endless table: a row is a pure function of its number (WORKLOAD-1).
pub trait Generator: Send + Sync {
    /// Returns its columns.
    fn schema(&self) -> SchemaRef;

    /// Returns the most rows of one batch of this table, [`MAX_BATCH_ROWS`] or fewer.
    fn max_batch_rows(&self) -> u64 {
        MAX_BATCH_ROWS
    }

    /// Refuses rows that do not exist.
    ///
    /// # Errors
    /// Rows without a value in some column.
    fn check_rows(&self, rows: &Range<u64>) -> Result<(), WorkloadError>;

    /// Makes the rows with these ids, which were checked, in memory from `buffers`.
    fn fill(&self, rows: Range<u64>, buffers: &mut Buffers) -> RecordBatch;

    /// Makes the rows with these ids, as one batch. A range that ends before it starts is empty.
    ///
    /// # Errors
    /// More than [`Self::max_batch_rows`] rows, or rows that do not exist.
    fn generate(&self, rows: Range<u64>) -> Result<RecordBatch, WorkloadError> {
        let count = rows.end.saturating_sub(rows.start);
        if count > self.max_batch_rows() {
            let (option, least, most) = ("rows of one batch", 0, self.max_batch_rows());
            return Err(WorkloadError::OutOfBounds { option, value: count, least, most });
        }
        self.check_rows(&rows)?;
        Ok(self.fill(rows, &mut Buffers::default()))
    }

    /// Makes the rows with these ids in batches of `batch_rows`, the last one shorter where they do not divide evenly.
    /// Each batch is made on demand, if possible in the memory of one that was dropped.
    ///
    /// # Errors
    /// `batch_rows` of 0 or above [`Self::max_batch_rows`], or rows that do not exist.
    fn batches(&self, rows: Range<u64>, batch_rows: u64) -> Result<Batches<Self>, WorkloadError>
    where
        Self: Clone,
    {
        if batch_rows == 0 || batch_rows > self.max_batch_rows() {
            let (option, least, most) = ("batch_rows", 1, self.max_batch_rows());
            return Err(WorkloadError::OutOfBounds { option, value: batch_rows, least, most });
        }
        self.check_rows(&rows)?;
        Ok(Batches { of: self.clone(), rows, batch_rows, buffers: Buffers::default() })
    }
}

/// A shared table of any kind.
impl<R: Generator + ?Sized> Generator for Arc<R> {
    fn schema(&self) -> SchemaRef {
        (**self).schema()
    }

    fn max_batch_rows(&self) -> u64 {
        (**self).max_batch_rows()
    }

    fn check_rows(&self, rows: &Range<u64>) -> Result<(), WorkloadError> {
        (**self).check_rows(rows)
    }

    fn fill(&self, rows: Range<u64>, buffers: &mut Buffers) -> RecordBatch {
        (**self).fill(rows, buffers)
    }
}

/// The batches of a range of rows; see [`Generator::batches`].
#[derive(Debug)]
pub struct Batches<R> {
    of: R,
    rows: Range<u64>,
    batch_rows: u64,
    buffers: Buffers,
}

impl<R: Generator> Iterator for Batches<R> {
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        if self.rows.is_empty() {
            return None;
        }
        let end = self.rows.start.saturating_add(self.batch_rows).min(self.rows.end);
        let batch = self.of.fill(self.rows.start..end, &mut self.buffers);
        self.buffers.keep(&batch);
        self.rows.start = end;
        Some(batch)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.rows.end.saturating_sub(self.rows.start).div_ceil(self.batch_rows);
        usize::try_from(left).map_or((usize::MAX, None), |left| (left, Some(left)))
    }
}
