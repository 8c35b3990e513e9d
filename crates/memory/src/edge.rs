//! The edge between two tasks: a block log, or the row queue it is compared with.

use std::sync::Arc;

use penstock_queue::log::{LogGauge, Work};
use penstock_queue::ring::frames;
use penstock_queue::wake::Wake;

use crate::coordinator::Coordinator;
use crate::layout::Layout;
use crate::log::{BlockNext, Lease, LogOptions, LogReader, LogWriter, OpenError, SelectedColumn};
use crate::row_queue::{RowQueueNext, RowReader, RowRun, RowWriter};
use crate::run::{Run, SlotId};
use crate::signal::Signal;

/// The memory that carries rows from task to task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryKind {
    /// Blocks of columns.
    #[default]
    Blocks,
    /// A queue of single rows.
    Queue,
}

impl MemoryKind {
    /// All kinds, by name.
    pub const NAMES: [(&'static str, Self); 2] = [("blocks", Self::Blocks), ("queue", Self::Queue)];
}

/// The writing side.
pub enum EdgeWriter {
    /// Of a block log.
    Blocks(Box<LogWriter>),
    /// Of a row queue.
    Queue(RowWriter),
}

impl EdgeWriter {
    /// Creates an edge of that kind, without readers. Calls `wake` when there may be room again.
    pub fn new(
        kind: MemoryKind,
        layout: Layout,
        options: &LogOptions,
        coordinator: &Coordinator,
        wake: Arc<dyn Wake>,
    ) -> Result<Self, OpenError> {
        Ok(match kind {
            MemoryKind::Blocks => Self::Blocks(Box::new(LogWriter::new(layout, options, coordinator, wake)?)),
            MemoryKind::Queue => Self::Queue(RowWriter::new(layout, options.signals, coordinator, wake)),
        })
    }

    /// Adds a reader. It sees rows written from now on.
    pub fn join(&mut self, wake: Arc<dyn Wake>) -> Result<EdgeReader, OpenError> {
        Ok(match self {
            Self::Blocks(writer) => EdgeReader::Blocks(writer.join(wake)),
            Self::Queue(writer) => EdgeReader::Queue(writer.join(wake)?),
        })
    }

    /// Returns the number of rows that can be appended now. Zero means backpressure.
    pub fn room(&mut self) -> usize {
        match self {
            Self::Blocks(writer) => writer.room(),
            Self::Queue(writer) => writer.room(),
        }
    }

    /// Returns true if memory is on order, which will wake the writer.
    pub fn is_waiting_for_memory(&self) -> bool {
        match self {
            Self::Blocks(writer) => writer.is_waiting_for_memory(),
            Self::Queue(_) => false,
        }
    }

    /// Appends and publishes rows `from..from + rows` of the pieces, one per column of the layout.
    pub fn append(&mut self, pieces: &[SelectedColumn<'_>], from: usize, rows: usize) {
        match self {
            Self::Blocks(writer) => writer.append(pieces, from, rows),
            Self::Queue(writer) => writer.append(pieces, from, rows),
        }
    }

    /// Advances the watermark; returns false when there is no room for it.
    pub fn watermark(&mut self, watermark: i64) -> bool {
        match self {
            Self::Blocks(writer) => {
                writer.watermark(watermark);
                true
            }
            Self::Queue(writer) => writer.watermark(watermark),
        }
    }

    /// Puts a signal after the last row; returns it when there is no room.
    pub fn signal(&mut self, signal: Signal) -> Result<(), Signal> {
        match self {
            Self::Blocks(writer) => writer.signal(signal),
            Self::Queue(writer) => writer.signal(signal),
        }
    }

    /// Gives back memory that a burst has left unused.
    pub fn trim(&mut self) {
        if let Self::Blocks(writer) = self {
            writer.trim();
        }
    }

    /// Adds time that the writer spent blocked.
    pub fn add_backpressure_ns(&self, ns: u64) {
        if let Self::Blocks(writer) = self {
            writer.add_backpressure_ns(ns);
        }
    }
}

/// The reading side.
pub enum EdgeReader {
    /// Of a block log.
    Blocks(LogReader),
    /// Of a row queue.
    Queue(RowReader),
}

/// Rows that a reader finds.
pub enum EdgeRows<'a> {
    /// Of one block.
    Lease(Lease),
    /// Of a queue.
    Rows(RowRun<'a>),
}

impl EdgeRows<'_> {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Lease(lease) => lease.rows(),
            Self::Rows(rows) => rows.len(),
        }
    }

    /// Always returns false: there is at least one row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keeps only the first `rows` rows, for now; at least one.
    pub fn truncate(&mut self, rows: usize) {
        match self {
            Self::Lease(lease) => lease.truncate(rows),
            Self::Rows(run) => run.truncate(rows),
        }
    }

    /// Begins a run over the rows; its columns fill these slots in the order of the layout.
    pub fn begin(self, run: &mut Run, slots: &[SlotId]) {
        match self {
            Self::Lease(lease) => run.begin_leased(lease, slots),
            Self::Rows(rows) => {
                run.begin_owned(rows.len());
                for (column, kind) in rows.layout().columns().iter().enumerate() {
                    let mut scratch = run.scratch(kind.physical);
                    rows.fill(column, &mut scratch);
                    run.put(slots[column], scratch);
                }
            }
        }
    }
}

/// What a reader finds next.
pub enum EdgeNext<'a> {
    /// Rows.
    Rows(EdgeRows<'a>),
    /// The watermark has advanced to this value.
    Watermark(i64),
    /// Another signal.
    Signal(Signal),
    /// Nothing now; more may come.
    Nothing,
    /// Nothing now or ever: the writer is gone.
    Closed,
}

impl EdgeReader {
    /// Returns what comes next, rows in a run of at most `limit`. The result stays the same until it is consumed.
    pub fn peek(&mut self, limit: usize) -> EdgeNext<'_> {
        match self {
            Self::Blocks(reader) => match reader.peek(limit) {
                BlockNext::Rows(lease) => EdgeNext::Rows(EdgeRows::Lease(lease)),
                BlockNext::Watermark(watermark) => EdgeNext::Watermark(watermark),
                BlockNext::Signal(signal) => EdgeNext::Signal(signal),
                BlockNext::Nothing => EdgeNext::Nothing,
                BlockNext::Closed => EdgeNext::Closed,
            },
            Self::Queue(reader) => match reader.peek(limit) {
                RowQueueNext::Rows(rows) => EdgeNext::Rows(EdgeRows::Rows(rows)),
                RowQueueNext::Watermark(watermark) => EdgeNext::Watermark(watermark),
                RowQueueNext::Signal(signal) => EdgeNext::Signal(signal),
                RowQueueNext::Nothing => EdgeNext::Nothing,
                RowQueueNext::Closed => EdgeNext::Closed,
            },
        }
    }

    /// Consumes rows that `peek` has returned, whether a run over them was begun or not.
    pub fn advance(&mut self, rows: usize) {
        match self {
            Self::Blocks(reader) => reader.advance(rows),
            Self::Queue(reader) => reader.advance(rows),
        }
    }

    /// Consumes the watermark or signal that `peek` has returned.
    pub fn pass(&mut self) {
        match self {
            Self::Blocks(reader) => reader.pass(),
            Self::Queue(reader) => reader.pass(),
        }
    }

    /// Returns the last watermark that was passed.
    pub fn watermark(&self) -> i64 {
        match self {
            Self::Blocks(reader) => reader.watermark(),
            Self::Queue(reader) => reader.watermark(),
        }
    }

    /// Returns the number of waiting rows.
    pub fn pending(&self) -> u64 {
        match self {
            Self::Blocks(reader) => reader.pending(),
            Self::Queue(reader) => reader.pending(),
        }
    }
    /// Returns a gauge that reports to any thread how much work waits for this reader.
    pub fn gauge(&self) -> EdgeGauge {
        match self {
            Self::Blocks(reader) => EdgeGauge::Blocks(reader.gauge()),
            Self::Queue(reader) => EdgeGauge::Queue(reader.gauge()),
        }
    }
}

/// Reports how much work waits for one reader. It keeps no memory of the edge alive.
#[derive(Clone)]
pub enum EdgeGauge {
    /// Of a block log.
    Blocks(LogGauge),
    /// Of a row queue.
    Queue(frames::FrameGauge),
}

impl EdgeGauge {
    /// Returns what waits now. While both sides work it may read high for an instant, never low.
    #[inline]
    pub fn work(&self) -> Work {
        match self {
            Self::Blocks(gauge) => gauge.work(),
            Self::Queue(gauge) => gauge.work(),
        }
    }
}
