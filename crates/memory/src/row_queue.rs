//! Rows from one task to others, one at a time: the baseline that block logs are compared with.
//!
//! Each reader has a bounded queue of its own, in which rows and signals stand in order. Values of a row lie beside
//! each other, as row-oriented engines keep them. A reader takes one row after the other, and so do the operators
//! behind it.

use std::sync::Arc;

use penstock_queue::ring::{Consumer, Popped, Producer, ring};
use penstock_queue::wake::Wake;
use smallvec::SmallVec;

use crate::column::{ColumnBuf, Physical, Values};
use crate::coordinator::{Account, Coordinator, MemoryLimit};
use crate::layout::Layout;
use crate::log::Piece;
use crate::payload::Payload;
use crate::signal::Signal;
use crate::view::{INLINE_BYTES, view_len};

/// Rows and signals that may wait for a reader.
const CAPACITY: usize = 1024;
/// Words of a row that need no memory of their own.
const SHORT_ROW: usize = 12;

/// One row: a bit per column that says whether it holds a value, then the values.
#[derive(Clone, Debug, Default)]
pub struct Row {
    words: SmallVec<[u64; SHORT_ROW]>,
    payloads: Vec<Payload>,
}

#[derive(Clone)]
enum Item {
    Row(Row),
    Watermark(i64),
    Signal(Signal),
}

fn mask_words(columns: usize) -> usize {
    columns.div_ceil(64)
}

impl Row {
    fn of(pieces: &[Piece<'_>], number: usize) -> Self {
        let mut row = Self::default();
        row.words.resize(mask_words(pieces.len()), 0);
        for (column, piece) in pieces.iter().enumerate() {
            let at = piece.rows.map_or(number, |rows| rows[number] as usize);
            let valid = piece.column.is_valid(at);
            row.words[column / 64] |= u64::from(valid) << (column % 64);
            row.push(piece.column.values, at, valid);
        }
        row
    }

    fn push(&mut self, values: Values<'_>, at: usize, valid: bool) {
        macro_rules! push {
            ($($kind:ident),*) => {
                match values {
                    $(Values::$kind(values) => self.words.push(values[at] as u64),)*
                    Values::F32(values) => self.words.push(u64::from(values[at].to_bits())),
                    Values::F64(values) => self.words.push(values[at].to_bits()),
                    Values::I128(values) => self.push_wide(values[at] as u128),
                    Values::View(views, payloads) => {
                        let mut view = if valid { views[at] } else { 0 };
                        if view_len(view) > INLINE_BYTES {
                            let payload = payloads.get((view >> 64) as u32 as usize).clone();
                            view = (view & !(u128::from(u32::MAX) << 64)) | ((self.payloads.len() as u128) << 64);
                            self.payloads.push(payload);
                        }
                        self.push_wide(view);
                    }
                }
            };
        }
        push!(I8, I16, I32, I64, U8, U16, U32, U64);
    }

    fn push_wide(&mut self, value: u128) {
        self.words.push(value as u64);
        self.words.push((value >> 64) as u64);
    }

    /// For each column by number, hands `put` what fills a column of its storage with the value.
    pub fn unpack(&self, layout: &Layout, mut put: impl FnMut(usize, &mut dyn FnMut(&mut ColumnBuf))) {
        let mut words = self.words[mask_words(layout.columns().len())..].iter().copied();
        let mut next = || words.next().expect("a row has the values of its layout");
        for (number, kind) in layout.columns().iter().enumerate() {
            put(number, &mut |column| {
                macro_rules! fill {
                    ($($kind:ident $type:ty),*) => {
                        match kind.physical {
                            $(Physical::$kind => column.refill::<$type>().push(next() as $type),)*
                            Physical::F32 => column.refill().push(f32::from_bits(next() as u32)),
                            Physical::F64 => column.refill().push(f64::from_bits(next())),
                            Physical::I128 => column.refill().push(wide(next(), next()) as i128),
                            Physical::View => {
                                let (views, payloads) = column.refill_views();
                                views.push(wide(next(), next()));
                                payloads.extend_from_slice(&self.payloads);
                            }
                        }
                    };
                }
                fill!(I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64);
                if self.words[number / 64] >> (number % 64) & 1 == 0 {
                    column.refill_mask().push(0);
                }
            });
        }
    }
}

fn wide(low: u64, high: u64) -> u128 {
    u128::from(low) | (u128::from(high) << 64)
}

/// Whoever sleeps on the other side learns that this one has left. Stands behind the side that leaves, so that it is
/// dropped after it.
struct WakeOnLeave(Arc<dyn Wake>);

impl Drop for WakeOnLeave {
    fn drop(&mut self) {
        self.0.wake();
    }
}

struct Seat {
    producer: Producer<Item>,
    wake: WakeOnLeave,
}

/// The writing side.
pub struct RowWriter {
    layout: Arc<Layout>,
    coordinator: Coordinator,
    seats: Vec<Seat>,
    wake: Arc<dyn Wake>,
    watermark: i64,
    position: u64,
}

impl RowWriter {
    /// A stream without readers. `wake` is told when there may be room again.
    pub fn new(layout: Layout, coordinator: &Coordinator, wake: Arc<dyn Wake>) -> Self {
        Self {
            layout: Arc::new(layout),
            coordinator: coordinator.clone(),
            seats: Vec::new(),
            wake,
            watermark: i64::MIN,
            position: 0,
        }
    }

    /// How rows are laid out.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Adds a reader. It sees the current watermark, and what is written from now on.
    pub fn join(&mut self, wake: Arc<dyn Wake>) -> Result<RowReader, MemoryLimit> {
        let account = self.coordinator.reserve(CAPACITY * size_of::<Item>())?;
        let (mut producer, consumer) = ring(CAPACITY);
        if self.watermark > i64::MIN {
            let first = producer.try_push(Item::Watermark(self.watermark));
            debug_assert!(first.is_ok(), "an empty queue has room");
        }
        self.seats.push(Seat { producer, wake: WakeOnLeave(wake) });
        Ok(RowReader {
            consumer,
            head: None,
            writer: WakeOnLeave(Arc::clone(&self.wake)),
            layout: Arc::clone(&self.layout),
            watermark: i64::MIN,
            _account: account,
        })
    }

    /// Rows that can be appended now. Readers that are gone do not count.
    pub fn room(&mut self) -> usize {
        self.seats.retain(|seat| !seat.producer.is_closed());
        self.seats.iter().map(|seat| seat.producer.room()).min().unwrap_or(CAPACITY)
    }

    fn push(&mut self, item: &Item) {
        for seat in &mut self.seats {
            // A reader that has just left does not want it.
            let _ = seat.producer.try_push(item.clone());
            seat.wake.0.wake();
        }
    }

    /// Appends rows `from..from + rows` of the pieces, one by one.
    ///
    /// # Panics
    /// When there is no room for them.
    pub fn append(&mut self, pieces: &[Piece<'_>], from: usize, rows: usize) {
        assert!(rows <= self.room(), "rows are appended where there is room");
        for number in from..from + rows {
            self.push(&Item::Row(Row::of(pieces, number)));
        }
        self.position += rows as u64;
    }

    /// Says that event time has come so far; false when the queue is full.
    pub fn watermark(&mut self, watermark: i64) -> bool {
        if watermark <= self.watermark {
            return true;
        }
        if self.room() == 0 {
            return false;
        }
        self.watermark = watermark;
        self.push(&Item::Watermark(watermark));
        true
    }

    /// Puts a signal behind the last row; gives it back when the queue is full.
    pub fn signal(&mut self, signal: Signal) -> Result<(), Signal> {
        if self.room() == 0 {
            return Err(signal);
        }
        self.push(&Item::Signal(signal));
        Ok(())
    }

    /// Rows written so far.
    pub fn position(&self) -> u64 {
        self.position
    }
}

/// What a reader of rows finds next.
pub enum Found<'a> {
    /// One row, and how its values stand.
    Row(&'a Row, &'a Layout),
    /// Event time has come so far.
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
    consumer: Consumer<Item>,
    head: Option<Item>,
    writer: WakeOnLeave,
    layout: Arc<Layout>,
    watermark: i64,
    _account: Account,
}

impl RowReader {
    /// What comes next. The same again until it is consumed.
    pub fn peek(&mut self) -> Found<'_> {
        if self.head.is_none() {
            match self.consumer.pop() {
                Popped::Value(item) => self.head = Some(item),
                Popped::Empty => return Found::Nothing,
                Popped::Closed => return Found::Closed,
            }
            self.writer.0.wake();
        }
        match self.head.as_ref().expect("an item was just seen to") {
            Item::Row(row) => Found::Row(row, &self.layout),
            Item::Watermark(watermark) => Found::Watermark(*watermark),
            Item::Signal(signal) => Found::Signal(*signal),
        }
    }

    /// Consumes what `peek` showed.
    pub fn pass(&mut self) {
        if let Some(Item::Watermark(watermark)) = self.head.take() {
            self.watermark = watermark;
        }
    }

    /// The last watermark that was passed.
    pub fn watermark(&self) -> i64 {
        self.watermark
    }

    /// Rows and signals that wait.
    pub fn pending(&self) -> u64 {
        self.consumer.len() as u64 + u64::from(self.head.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Column;
    use crate::layout::ColumnKind;

    #[test]
    fn a_row_comes_back_as_it_was() {
        let long = b"a value that does not fit its view".as_slice();
        let payloads = vec![Payload::from(arrow_buffer::Buffer::from_vec(long.to_vec()))];
        let view = crate::view::make_view(long, 0, 0);
        let whole = |values| Piece { column: Column { values, valid: None }, rows: None };
        let pieces = [
            whole(Values::I32(&[-5, 6])),
            Piece {
                column: Column { values: Values::F64(&[0.5, f64::NAN]), valid: Some(&[0, 1]) },
                rows: None,
            },
            whole(Values::I128(&[i128::MIN, -1])),
            Piece {
                column: Column { values: Values::View(&[0, view], (&payloads).into()), valid: None },
                rows: Some(&[1, 0]),
            },
        ];
        let kinds = [Physical::I32, Physical::F64, Physical::I128, Physical::View];
        let layout = Layout::new(kinds.map(|physical| ColumnKind { physical, nullable: true }).to_vec());
        let mut columns = Vec::new();
        Row::of(&pieces, 0).unpack(&layout, |number, fill| {
            let mut column = ColumnBuf::new(kinds[number]);
            fill(&mut column);
            columns.push(column);
        });
        assert_eq!(columns[0].as_column().fixed::<i32>(), [-5]);
        assert!(!columns[1].as_column().is_valid(0));
        assert_eq!(columns[2].as_column().fixed::<i128>(), [i128::MIN]);
        let (views, payloads) = columns[3].as_column().views();
        crate::view::with_bytes(views[0], payloads, |bytes| assert_eq!(bytes, long));
        assert!(columns[0].as_column().is_valid(0));
    }
}
