//! The reading side of a log.

use std::sync::Arc;

use penstock_queue::log;

use crate::chunk::{BlockSpan, Chunk};
use crate::column::Column;
use crate::coordinator::{Claim, Memory};
use crate::signal::Signal;

/// What a reader finds next.
pub enum BlockNext {
    /// Rows of one block.
    Rows(Lease),
    /// The watermark has advanced to this value.
    Watermark(i64),
    /// Another signal.
    Signal(Signal),
    /// Nothing now; more may come.
    Nothing,
    /// Nothing now or ever: the writer is gone.
    Closed,
}

/// Published rows of one block, and a lease on the chunk that holds them.
///
/// The rows do not change while the lease lives, even when the reader has moved on (BLOCK_LOG-2).
pub struct Lease {
    chunk: Arc<Chunk>,
    span: BlockSpan,
}

impl Lease {
    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.span.rows()
    }

    /// Returns a column of the log's layout, with its mask if it may hold nulls.
    #[inline]
    pub fn column(&self, column: usize) -> Column<'_> {
        // SAFETY: CHUNK-1. A lease is made of published rows of one block, and by BLOCK_LOG-2 the chunk is not reset
        // while this lease is one of its owners.
        unsafe { self.chunk.column(column, self.span) }
    }

    /// Returns true if any row of the column is null.
    pub fn has_nulls(&self, column: usize) -> bool {
        self.column(column).valid.is_some_and(|mask| mask.contains(&0))
    }

    /// Returns true if these rows reach the end of their block: no row will follow them there.
    pub fn ends_block(&self) -> bool {
        self.span.end() == self.chunk.shape().block.rows
    }

    /// Returns the memory of the chunk and removes it from the log's account: the holder keeps it from now on.
    pub(crate) fn export(&self) -> Arc<Memory> {
        self.chunk.export()
    }

    /// Returns the memory of the chunk, which stays in the log's account until the claim is dropped.
    pub(crate) fn claim(&self) -> (Arc<Memory>, Claim) {
        self.chunk.claim()
    }

    /// Keeps only the first `rows` rows, for now.
    pub fn truncate(&mut self, rows: usize) {
        self.span = self.span.truncated(rows);
    }
}

/// A reader of a log.
pub struct LogReader {
    core: log::PositionReader<Arc<Chunk>, Signal>,
}

impl LogReader {
    pub(super) fn new(core: log::PositionReader<Arc<Chunk>, Signal>) -> Self {
        Self { core }
    }

    /// Returns what comes next, rows in a run of at most `limit` (BLOCK_LOG-1). The result stays the same until it is
    /// consumed, except that a run of rows may grow.
    pub fn peek(&mut self, limit: usize) -> BlockNext {
        match self.core.peek() {
            log::LogNext::Rows { chunk, offset, rows, .. } => {
                let offset = offset as usize;
                let rows = (rows as usize).min(chunk.left_in_block(offset)).min(limit);
                BlockNext::Rows(Lease { chunk: Arc::clone(chunk), span: chunk.span(offset, rows) })
            }
            log::LogNext::Watermark(watermark) => BlockNext::Watermark(watermark),
            log::LogNext::Signal(signal) => BlockNext::Signal(signal),
            log::LogNext::Nothing => BlockNext::Nothing,
            log::LogNext::Closed => BlockNext::Closed,
        }
    }

    /// Consumes rows that `peek` has returned. Drop their lease before: a chunk that is still leased is reused later,
    /// when the writer looks again, and no wake-up tells it to.
    pub fn advance(&mut self, rows: usize) {
        self.core.advance(rows as u64);
    }

    /// Consumes the watermark or signal that `peek` has returned.
    pub fn pass(&mut self) {
        self.core.pass();
    }

    /// Returns the number of waiting rows.
    pub fn pending(&self) -> u64 {
        self.core.pending()
    }

    /// Returns the last watermark that was passed.
    pub fn watermark(&self) -> i64 {
        self.core.watermark()
    }

    /// Returns a gauge that reports to any thread how much work waits for this reader.
    pub fn gauge(&self) -> log::LogGauge {
        self.core.gauge()
    }
}
