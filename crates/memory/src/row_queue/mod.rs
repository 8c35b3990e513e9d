//! Rows from one task to others, one by one: the baseline that block logs are compared with.
//!
//! Each reader has a bounded queue of its own, which holds rows and signals in order. The values of a row are
//! adjacent, as row-oriented engines keep them: the writer packs every row, and the reader unpacks it. Only the
//! hand-over is shared between rows: rows written together are published together, and rows that wait together are
//! taken together, with one wake-up for all.
//!
//! - [`RowWriter`]: room, rows, signals; readers join through it
//! - [`RowReader`] and [`RowRun`]: rows to be consumed
//! - `packed`: the words of a row

mod packed;

use std::ops::RangeInclusive;
use std::sync::Arc;

use penstock_queue::ring::frames::{FrameGauge, FrameNext, FrameReader, FrameShape, FrameWriter, frames};
use penstock_queue::wake::Wake;

use self::packed::RowPacking;
use crate::column::ColumnBuf;
use crate::coordinator::{Coordinator, LogAccount, MemoryLimit};
use crate::layout::Layout;
use crate::log::SelectedColumn;
use crate::payload::Payload;
use crate::signal::Signal;

/// Bytes of a queue, where [`ROWS`] allow it.
const QUEUE_BYTES: usize = 128 << 10;
/// Fewest and most rows that may wait for a reader, powers of two.
/// From the row queue of `benches/memory.rs`, rows of 64 bytes from thread to thread: 27, 18, 13 and 11 ns a row with
/// room for 1024, 2048, 4096 and 8192 of them, as a side sleeps less often; on one thread the room does not matter.
/// Measured with up to 256 rows taken together.
const ROWS: RangeInclusive<usize> = 1024..=4096;
/// Most rows that a reader takes together.
/// An event-at-a-time engine compiles its operators for single rows; this engine pays a fixed price for each run,
/// whatever its length. One row at a time would make the baseline slower than such engines are, and taking all waiting
/// rows would make it a batch engine. From `cargo bench -p penstock-benches --bench scheduling -- rates` with 1, 8 and
/// 256 on a busy machine: 2.3, 12 and 40 M rows/s sustained; with 8 on a quiet one 17.
const MAX_TAKEN: usize = 8;

#[derive(Clone, Copy)]
enum QueuedSignal {
    Watermark(i64),
    Signal(Signal),
}

/// Wakes the other side when this one leaves. Declared after the side's queue, so that it is dropped after it.
struct WakeOnLeave(Arc<dyn Wake>);

impl Drop for WakeOnLeave {
    fn drop(&mut self) {
        self.0.wake();
    }
}

struct ReaderQueue {
    queue: FrameWriter<QueuedSignal, Payload>,
    wake: WakeOnLeave,
}

/// The writing side.
pub struct RowWriter {
    packing: Arc<RowPacking>,
    shape: FrameShape,
    coordinator: Coordinator,
    seats: Vec<ReaderQueue>,
    wake: Arc<dyn Wake>,
    watermark: i64,
    position: u64,
}

impl RowWriter {
    /// Creates a stream without readers, in which up to that many signals may wait. Calls `wake` when there may be
    /// room again.
    pub fn new(layout: Layout, signals: usize, coordinator: &Coordinator, wake: Arc<dyn Wake>) -> Self {
        let packing = RowPacking::new(layout);
        let (words, kept) = (packing.words(), packing.payloads());
        let rows = QUEUE_BYTES / (words * size_of::<u64>() + kept * size_of::<Payload>());
        let rows = rows.clamp(*ROWS.start(), *ROWS.end());
        // Rounded down to a power of two, so that the queue is not rounded up to more than its limit.
        let frames = 1 << rows.ilog2();
        Self {
            packing: Arc::new(packing),
            shape: FrameShape { frames, words, signals: signals.max(1), kept },
            coordinator: coordinator.clone(),
            seats: Vec::new(),
            wake,
            watermark: i64::MIN,
            position: 0,
        }
    }

    /// Returns the layout of rows.
    pub fn layout(&self) -> &Layout {
        self.packing.layout()
    }

    /// Adds a reader. It sees the current watermark, and rows written from now on.
    pub fn join(&mut self, wake: Arc<dyn Wake>) -> Result<RowReader, MemoryLimit> {
        let account = self.coordinator.reserve(self.shape.bytes::<QueuedSignal, Payload>())?;
        let (mut writer, reader) = frames(self.shape);
        if self.watermark > i64::MIN {
            let first = writer.signal(QueuedSignal::Watermark(self.watermark));
            debug_assert!(first.is_ok(), "an empty queue has room");
        }
        self.seats.push(ReaderQueue { queue: writer, wake: WakeOnLeave(wake) });
        Ok(RowReader {
            queue: reader,
            writer: WakeOnLeave(Arc::clone(&self.wake)),
            packing: Arc::clone(&self.packing),
            watermark: i64::MIN,
            _account: account,
        })
    }

    fn forget_readers_that_left(&mut self) {
        self.seats.retain(|seat| !seat.queue.is_closed());
    }

    /// Returns the number of rows that can be appended now. Readers that are gone do not count.
    pub fn room(&mut self) -> usize {
        self.forget_readers_that_left();
        self.seats.iter().map(|seat| seat.queue.room()).min().unwrap_or(self.shape.frames)
    }

    /// Appends rows `from..from + rows` of the pieces, one per column of the layout, and publishes them.
    ///
    /// # Panics
    /// When there is no room for them, or a piece has another storage type than its column.
    pub fn append(&mut self, pieces: &[SelectedColumn<'_>], from: usize, rows: usize) {
        if rows == 0 {
            return;
        }
        for seat in &mut self.seats {
            seat.queue.append(rows, |some, blank, payloads| {
                self.packing.pack(pieces, from + some.start..from + some.end, blank, payloads);
            });
            seat.wake.0.wake();
        }
        self.position += rows as u64;
    }

    /// Puts a signal after the last row; returns false when a reader has no room for it.
    fn notify(&mut self, notice: QueuedSignal) -> bool {
        self.forget_readers_that_left();
        if self.seats.iter().any(|seat| seat.queue.signal_room() == 0) {
            return false;
        }
        for seat in &mut self.seats {
            // A reader that has just left needs no signal.
            let _ = seat.queue.signal(notice);
            seat.wake.0.wake();
        }
        true
    }

    /// Advances the watermark; returns false when there is no room for it.
    pub fn watermark(&mut self, watermark: i64) -> bool {
        if watermark <= self.watermark {
            return true;
        }
        if !self.notify(QueuedSignal::Watermark(watermark)) {
            return false;
        }
        self.watermark = watermark;
        true
    }

    /// Puts a signal after the last row; returns it when too many wait.
    pub fn signal(&mut self, signal: Signal) -> Result<(), Signal> {
        if self.notify(QueuedSignal::Signal(signal)) { Ok(()) } else { Err(signal) }
    }

    /// Returns the number of rows written so far.
    pub fn position(&self) -> u64 {
        self.position
    }
}

/// Rows that wait together, with no signal between them.
pub struct RowRun<'a> {
    queue: &'a FrameReader<QueuedSignal, Payload>,
    packing: &'a RowPacking,
    rows: usize,
}

impl<'a> RowRun<'a> {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Always returns false: there is at least one row.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Keeps only the first `rows` rows, for now; at least one.
    pub fn truncate(&mut self, rows: usize) {
        self.rows = self.rows.min(rows);
    }

    /// Returns the layout of rows.
    pub fn layout(&self) -> &'a Layout {
        self.packing.layout()
    }

    /// Fills a column of the same storage with the rows' values of column `column`.
    ///
    /// # Panics
    /// When `into` has another storage.
    pub fn fill(&self, column: usize, into: &mut ColumnBuf) {
        let rows = self.queue.frames(self.rows);
        let see = |number, look: &mut dyn FnMut(&Payload)| {
            self.queue.see_kept(number, look).expect("payloads stay as long as their rows");
        };
        self.packing.unpack(column, rows, self.queue.kept_position(), see, into);
    }
}

/// What a reader of rows finds next.
pub enum RowQueueNext<'a> {
    /// Rows.
    Rows(RowRun<'a>),
    /// The watermark has advanced to this value.
    Watermark(i64),
    /// Another signal.
    Signal(Signal),
    /// Nothing now; more may come.
    Nothing,
    /// Nothing now or ever: the writer is gone.
    Closed,
}

/// The reading side.
pub struct RowReader {
    queue: FrameReader<QueuedSignal, Payload>,
    writer: WakeOnLeave,
    packing: Arc<RowPacking>,
    watermark: i64,
    _account: LogAccount,
}

impl RowReader {
    /// Returns what comes next, rows in a run of at most `limit`. The result stays the same until it is consumed.
    pub fn peek(&mut self, limit: usize) -> RowQueueNext<'_> {
        match self.queue.peek(MAX_TAKEN) {
            FrameNext::Frames(rows) => RowQueueNext::Rows(RowRun {
                queue: &self.queue,
                packing: &self.packing,
                rows: rows.min(limit),
            }),
            FrameNext::Signal(QueuedSignal::Watermark(watermark)) => RowQueueNext::Watermark(watermark),
            FrameNext::Signal(QueuedSignal::Signal(signal)) => RowQueueNext::Signal(signal),
            FrameNext::Nothing => RowQueueNext::Nothing,
            FrameNext::Closed => RowQueueNext::Closed,
        }
    }

    /// Consumes rows that `peek` has returned.
    ///
    /// # Panics
    /// When `peek` has returned fewer rows.
    pub fn advance(&mut self, rows: usize) {
        if rows == 0 {
            return;
        }
        let kept = self.packing.kept(self.queue.frames(rows)).unwrap_or(self.queue.kept_position());
        self.queue.advance(rows, kept);
        self.writer.0.wake();
    }

    /// Consumes the watermark or signal that `peek` has returned.
    ///
    /// # Panics
    /// When `peek` has not returned one.
    pub fn pass(&mut self) {
        if let FrameNext::Signal(QueuedSignal::Watermark(watermark)) = self.queue.peek(MAX_TAKEN) {
            self.watermark = watermark;
        }
        self.queue.pass();
        self.writer.0.wake();
    }

    /// Returns the last watermark that was passed.
    pub fn watermark(&self) -> i64 {
        self.watermark
    }

    /// Returns the number of waiting rows.
    pub fn pending(&self) -> u64 {
        self.queue.pending() as u64
    }

    /// Returns a gauge that reports to any thread how much work waits for this reader.
    pub fn gauge(&self) -> FrameGauge {
        self.queue.gauge()
    }
}

#[cfg(test)]
mod tests {
    use penstock_queue::wake::NoWake;

    use super::*;
    use crate::column::{Column, Physical, Values};
    use crate::coordinator::CoordinatorOptions;
    use crate::layout::ColumnKind;

    #[test]
    fn rows_come_back_as_they_were() {
        let long = b"a value that does not fit its view".as_slice();
        let payloads = vec![Payload::from(arrow_buffer::Buffer::from_vec(long.to_vec()))];
        let view = crate::view::make_view(long, 0, 0);
        let whole = |values| SelectedColumn { column: Column { values, valid: None }, rows: None };
        let pieces = [
            whole(Values::I32(&[-5, 6])),
            SelectedColumn {
                column: Column { values: Values::F64(&[0.5, f64::MAX]), valid: Some(&[0, 1]) },
                rows: None,
            },
            whole(Values::I128(&[i128::MIN, -1])),
            SelectedColumn {
                column: Column { values: Values::View(&[0, view], (&payloads).into()), valid: None },
                rows: Some(&[1, 0]),
            },
        ];
        let kinds = [Physical::I32, Physical::F64, Physical::I128, Physical::View];
        let layout = Layout::new(kinds.map(|physical| ColumnKind { physical, nullable: true }).to_vec());
        let coordinator = Coordinator::new(CoordinatorOptions::default()).unwrap();
        let mut writer = RowWriter::new(layout, 1, &coordinator, Arc::new(NoWake));
        let mut reader = writer.join(Arc::new(NoWake)).unwrap();
        writer.append(&pieces, 0, 2);
        for _ in 0..2 {
            let RowQueueNext::Rows(run) = reader.peek(usize::MAX) else { panic!("rows were written") };
            assert_eq!(run.len(), 2);
            let columns = [0, 1, 2, 3].map(|number| {
                let mut column = ColumnBuf::new(kinds[number]);
                run.fill(number, &mut column);
                column
            });
            assert_eq!(columns[0].as_column().fixed::<i32>(), [-5, 6]);
            assert!(columns[0].mask().is_none());
            assert_eq!(columns[1].mask(), Some([0, 1].as_slice()));
            assert_eq!(columns[1].as_column().fixed::<f64>()[1], f64::MAX);
            assert_eq!(columns[2].as_column().fixed::<i128>(), [i128::MIN, -1]);
            let (views, payloads) = columns[3].as_column().views();
            crate::view::with_bytes(views[0], payloads, |bytes| assert_eq!(bytes, long));
            assert_eq!(views[1], 0);
        }
        reader.advance(2);
        assert!(matches!(reader.peek(usize::MAX), RowQueueNext::Nothing));
    }
}
