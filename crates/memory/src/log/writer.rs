//! The writing side of a log.

use std::sync::Arc;

use penstock_queue::log;
use penstock_queue::wake::Wake;

use super::keeper::Keeper;
use super::reader::LogReader;
use super::strings::Strings;
use super::{LogOptions, OpenError};
use crate::chunk::{BlockSpan, Chunk};
use crate::column::{Column, Native, Values};
use crate::coordinator::Coordinator;
use crate::layout::Layout;
use crate::shape::Shapes;
use crate::signal::Signal;

/// A column, and the rows of it to be written.
#[derive(Clone, Copy)]
pub struct SelectedColumn<'a> {
    /// The column.
    pub column: Column<'a>,
    /// The selected rows, in order; `None` for all.
    pub rows: Option<&'a [u32]>,
}

impl SelectedColumn<'_> {
    /// Returns true if the `number`th of the selected rows holds a value.
    #[inline]
    pub fn is_valid(&self, number: usize) -> bool {
        self.column.is_valid(self.rows.map_or(number, |rows| rows[number] as usize))
    }
}

/// The writer of a log.
pub struct LogWriter {
    core: log::PositionWriter<Arc<Chunk>, Signal>,
    keeper: Keeper,
    strings: Strings,
}

impl LogWriter {
    /// Opens an empty log with its two chunks, or returns the reason why it cannot have them. Calls `wake` when there
    /// may be room again.
    pub fn new(
        layout: Layout,
        options: &LogOptions,
        coordinator: &Coordinator,
        wake: Arc<dyn Wake>,
    ) -> Result<Self, OpenError> {
        let shapes = Shapes::new(layout, options.shape, coordinator.options().platform.l2_cache_bytes());
        let mut core = log::PositionWriter::new(options.directory, options.signals);
        core.set_wake(Arc::clone(&wake));
        Ok(Self { core, keeper: Keeper::new(shapes, coordinator, wake)?, strings: Strings::default() })
    }

    /// Returns the layout of rows.
    pub fn layout(&self) -> &Layout {
        self.keeper.shapes().layout()
    }

    /// Adds a reader. It sees rows written from now on.
    pub fn join(&mut self, wake: Arc<dyn Wake>) -> LogReader {
        LogReader::new(self.core.join(wake))
    }

    /// Returns the number of rows that can be appended now: up to a block's worth. Zero is backpressure, which ends
    /// when a reader advances or a chunk arrives.
    pub fn room(&mut self) -> usize {
        self.keeper.receive();
        if !self.core.can_publish() || self.is_held_back() {
            return 0;
        }
        self.keeper.provide(&mut self.core, &mut self.strings);
        (self.core.end() - self.core.position()).min(self.keeper.shapes().block_rows() as u64) as usize
    }

    /// Returns true if payload has exceeded the cap or the budget. Only while rows are unread (BLOCK_LOG-3): their
    /// reader wakes the writer, and this call releases the payload that their chunks kept alive.
    fn is_held_back(&mut self) -> bool {
        if !self.has_too_much() {
            return false;
        }
        self.keeper.collect(&mut self.core, &mut self.strings);
        self.keeper.shed(1);
        self.has_too_much() && self.core.slowest() < self.core.position()
    }

    fn has_too_much(&self) -> bool {
        self.keeper.account().over_cap() || self.keeper.account().over_budget()
    }

    /// Returns true if memory is on order, which will wake the writer.
    pub fn is_waiting_for_memory(&self) -> bool {
        self.keeper.is_waiting()
    }

    /// Appends rows `from..from + rows` of the pieces, one per column of the layout, and publishes them.
    ///
    /// # Panics
    /// When there is no room for them, or a piece has another storage type than its column.
    pub fn append(&mut self, pieces: &[SelectedColumn<'_>], from: usize, rows: usize) {
        assert_eq!(pieces.len(), self.layout().columns().len(), "a log is written by its layout");
        let mut done = 0;
        while done < rows {
            let position = self.core.position() + done as u64;
            let (chunk, offset) = self.core.entry_at(position).expect("appended rows fit the room");
            if offset == 0 {
                self.strings.turn();
            }
            let offset = offset as usize;
            // KEEPER-3: a chunk may have been assigned fewer rows than it has room for.
            let left = chunk.left_in_block(offset).min(self.core.left_at(position) as usize);
            let some = (rows - done).min(left);
            let span = chunk.span(offset, some);
            let mut payload = 0;
            for (column, piece) in pieces.iter().enumerate() {
                payload += write_column(&mut self.strings, chunk, column, span, piece, from + done);
            }
            if payload > 0 {
                chunk.charge_payload(payload);
            }
            self.keeper.note_payload(payload, some);
            done += some;
        }
        self.core.publish(rows as u64);
    }

    /// Advances the watermark. Takes no room: a later watermark without rows between replaces it.
    pub fn watermark(&mut self, watermark: i64) {
        self.core.watermark(watermark);
    }

    /// Puts a signal after the last row; returns it when too many wait (backpressure).
    pub fn signal(&mut self, signal: Signal) -> Result<(), Signal> {
        self.core.signal(signal)
    }

    /// Gives back memory that a burst has left unused: call it when there is nothing to write.
    pub fn trim(&mut self) {
        self.keeper.trim(&mut self.core, &mut self.strings);
    }

    /// Adds time that the writer spent blocked.
    pub fn add_backpressure_ns(&self, ns: u64) {
        self.keeper.account().add_backpressure_ns(ns);
    }

    /// Returns the number of rows written so far.
    pub fn position(&self) -> u64 {
        self.core.position()
    }
}

/// Writes some rows of one column; returns the payload bytes to charge for.
fn write_column(
    strings: &mut Strings,
    chunk: &Chunk,
    column: usize,
    span: BlockSpan,
    piece: &SelectedColumn<'_>,
    from: usize,
) -> usize {
    // SAFETY: CHUNK-1. The rows lie at and above `write_pos`, and this is the only writer of the log; no other slice
    // of them is alive, since each is made here and dropped at the end.
    if let Some(mask) = unsafe { chunk.mask_mut(column, span) } {
        match piece.column.valid {
            None => mask.fill(1),
            Some(valid) => copy_rows(valid, piece.rows, from, mask),
        }
    } else {
        // A mask of ones only is common, and cheap to check; a lost null would be a wrong answer.
        let full = piece.column.valid.is_none() || (from..from + span.rows()).all(|row| piece.is_valid(row));
        assert!(full, "a null needs a nullable column");
    }
    macro_rules! write {
        ($($kind:ident),*) => {
            match piece.column.values {
                $(Values::$kind(values) => {
                    // SAFETY: CHUNK-1, as above.
                    let to = unsafe { chunk.values_mut(column, span) };
                    copy_rows(values, piece.rows, from, to);
                    0
                })*
                Values::View(..) => {
                    // SAFETY: CHUNK-1, as above.
                    let to = unsafe { chunk.views_mut(column, span) };
                    strings.write(chunk, piece, from, to)
                }
            }
        };
    }
    write!(I8, I16, I32, I64, U8, U16, U32, U64, F32, F64, I128)
}

fn copy_rows<T: Native>(values: &[T], rows: Option<&[u32]>, from: usize, to: &mut [T]) {
    match rows {
        None => to.copy_from_slice(&values[from..from + to.len()]),
        Some(rows) => {
            let rows = &rows[from..from + to.len()];
            for (to, &row) in to.iter_mut().zip(rows) {
                *to = values[row as usize];
            }
        }
    }
}
