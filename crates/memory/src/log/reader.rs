//! The reading side of a log.

use std::sync::Arc;

use penstock_queue::log;

use crate::chunk::{BlockSpan, Chunk};
use crate::column::Column;
use crate::coordinator::{Claim, Memory};
use crate::signal::Signal;

/// What a reader finds next.
pub enum Taken {
    /// Rows of one block.
    Rows(Lease),
    /// Event time has come so far.
    Watermark(i64),
    /// Another signal.
    Signal(Signal),
    /// Nothing now; more may come.
    Nothing,
    /// Nothing now or ever: the writer is gone.
    Closed,
}

/// Published rows of one block, and a hold on the chunk that they stand in.
///
/// The rows stay as they are for as long as the lease lives, even when the reader has gone on (BLOCK_LOG-2).
pub struct Lease {
    chunk: Arc<Chunk>,
    span: BlockSpan,
}

impl Lease {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.span.rows()
    }

    /// A column of the log's layout, with its mask if it may hold nulls.
    #[inline]
    pub fn column(&self, column: usize) -> Column<'_> {
        // SAFETY: CHUNK-1. A lease is made of published rows of one block, and by BLOCK_LOG-2 the chunk is not reset while its
        // owners include this lease.
        unsafe { self.chunk.column(column, self.span) }
    }

    /// Whether any row of the column is null.
    pub fn has_nulls(&self, column: usize) -> bool {
        self.column(column).valid.is_some_and(|mask| mask.contains(&0))
    }

    /// Whether these rows reach to the end of their block: no more will come to stand behind them there.
    pub fn ends_block(&self) -> bool {
        self.span.end() == self.chunk.shape().block.rows
    }

    /// The memory of the chunk, which leaves the log's account: whoever holds it keeps it from now on.
    pub(crate) fn export(&self) -> Arc<Memory> {
        self.chunk.export()
    }

    /// The memory of the chunk, which stays with the log's account until the claim is gone.
    pub(crate) fn claim(&self) -> (Arc<Memory>, Claim) {
        self.chunk.claim()
    }

    /// Leaves only the first `rows` rows, for now.
    pub fn truncate(&mut self, rows: usize) {
        self.span = self.span.truncated(rows);
    }
}

/// A reader of a log.
pub struct LogReader {
    core: log::Reader<Arc<Chunk>, Signal>,
}

impl LogReader {
    pub(super) fn new(core: log::Reader<Arc<Chunk>, Signal>) -> Self {
        Self { core }
    }

    /// What comes next, rows in a run of at most `limit` (BLOCK_LOG-1). The same again until it is consumed, or more rows of it.
    pub fn peek(&mut self, limit: usize) -> Taken {
        match self.core.peek() {
            log::LogNext::Rows { chunk, offset, rows, .. } => {
                let offset = offset as usize;
                let rows = (rows as usize).min(chunk.left_in_block(offset)).min(limit);
                Taken::Rows(Lease { chunk: Arc::clone(chunk), span: chunk.span(offset, rows) })
            }
            log::LogNext::Watermark(watermark) => Taken::Watermark(watermark),
            log::LogNext::Signal(signal) => Taken::Signal(signal),
            log::LogNext::Nothing => Taken::Nothing,
            log::LogNext::Closed => Taken::Closed,
        }
    }

    /// Consumes rows that `peek` showed. Drop their lease before: a chunk that is still held is used again later, when
    /// the writer looks anew, and nobody tells it to.
    pub fn advance(&mut self, rows: usize) {
        self.core.advance(rows as u64);
    }

    /// Consumes the watermark or signal that `peek` showed.
    pub fn pass(&mut self) {
        self.core.pass();
    }

    /// Rows that wait.
    pub fn pending(&self) -> u64 {
        self.core.pending()
    }

    /// The last watermark that was passed.
    pub fn watermark(&self) -> i64 {
        self.core.watermark()
    }

    /// Tells from any thread whether there is work for this reader.
    pub fn gauge(&self) -> log::Gauge {
        self.core.gauge()
    }
}
