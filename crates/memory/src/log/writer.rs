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

/// A column of which some rows are written, and which.
#[derive(Clone, Copy)]
pub struct SelectedColumn<'a> {
    /// The column.
    pub column: Column<'a>,
    /// The rows of it that count, in order; `None` for all.
    pub rows: Option<&'a [u32]>,
}

impl SelectedColumn<'_> {
    /// Whether the `number`th of the rows that count holds a value.
    #[inline]
    pub fn is_valid(&self, number: usize) -> bool {
        self.column.is_valid(self.rows.map_or(number, |rows| rows[number] as usize))
    }
}

/// The writer of a log.
pub struct LogWriter {
    core: log::Writer<Arc<Chunk>, Signal>,
    keeper: Keeper,
    strings: Strings,
}

impl LogWriter {
    /// An empty log with its two chunks, or the reason why it cannot have them. `wake` is told when there may be room
    /// again.
    pub fn new(
        layout: Layout,
        options: &LogOptions,
        coordinator: &Coordinator,
        wake: Arc<dyn Wake>,
    ) -> Result<Self, OpenError> {
        let shapes = Shapes::new(layout, options.shape, coordinator.options().platform.l2_cache_bytes());
        let mut core = log::Writer::new(options.directory, options.signals);
        core.set_wake(Arc::clone(&wake));
        Ok(Self { core, keeper: Keeper::new(shapes, coordinator, wake)?, strings: Strings::default() })
    }

    /// How rows are laid out.
    pub fn layout(&self) -> &Layout {
        self.keeper.shapes().layout()
    }

    /// Adds a reader. It sees what is written from now on.
    pub fn join(&mut self, wake: Arc<dyn Wake>) -> LogReader {
        LogReader::new(self.core.join(wake))
    }

    /// Rows that can be appended now: up to a block's worth. None is backpressure, which ends when a reader goes on
    /// or a chunk arrives.
    pub fn room(&mut self) -> usize {
        self.keeper.receive();
        if !self.core.can_publish() || self.is_held_back() {
            return 0;
        }
        self.keeper.provide(&mut self.core, &mut self.strings);
        (self.core.end() - self.core.position()).min(self.keeper.shapes().block_rows() as u64) as usize
    }

    /// Whether payload has gone over the cap or the budget. Only while rows are unread (S3): whoever reads them wakes
    /// the writer, and what their chunks kept alive is let go of here.
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

    /// Whether memory is under way, which will wake the writer.
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
            let (chunk, offset) =
                self.core.entry_at(position).expect("rows are appended where there is room");
            if offset == 0 {
                self.strings.turn();
            }
            let offset = offset as usize;
            // KEEPER-3: a chunk may have been given fewer rows than it has room for.
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

    /// Says that event time has come so far. Costs no room: a later watermark without rows between replaces it.
    pub fn watermark(&mut self, watermark: i64) {
        self.core.watermark(watermark);
    }

    /// Puts a signal behind the last row; gives it back when too many wait (backpressure).
    pub fn signal(&mut self, signal: Signal) -> Result<(), Signal> {
        self.core.signal(signal)
    }

    /// Gives back what a burst has left behind: call it when there is nothing to write.
    pub fn trim(&mut self) {
        self.keeper.trim(&mut self.core, &mut self.strings);
    }

    /// Notes time that the writer could not go on.
    pub fn add_backpressure_ns(&self, ns: u64) {
        self.keeper.account().add_backpressure_ns(ns);
    }

    /// Rows written so far.
    pub fn position(&self) -> u64 {
        self.core.position()
    }
}

/// Writes some rows of one column; the payload bytes to charge for.
fn write_column(
    strings: &mut Strings,
    chunk: &Chunk,
    column: usize,
    span: BlockSpan,
    piece: &SelectedColumn<'_>,
    from: usize,
) -> usize {
    // SAFETY: CHUNK-1. The rows lie at and above `write_pos`, and this is the one writer of the log; no other slice of
    // them is alive, since each is made here and dropped at the end.
    if let Some(mask) = unsafe { chunk.mask_mut(column, span) } {
        match piece.column.valid {
            None => mask.fill(1),
            Some(valid) => copy_rows(valid, piece.rows, from, mask),
        }
    } else {
        // A mask that says "all there" is common, and cheap to check; a null that got lost would be a wrong answer.
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
