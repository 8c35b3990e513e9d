//! The words of a row.
//!
//! First one bit for each nullable column, set where it is null; then the values, adjacent, a word each, two for
//! 128-bit values and for views; last, where there are views, the number of payloads that the rows up to this one have
//! kept in all. A long view names its payload by the low half of that payload's number in the queue.

use std::ops::Range;

use penstock_queue::ring::PushBatch;
use penstock_queue::ring::frames::{Blank, Frames};

use crate::column::{ColumnBuf, Native, Physical, Values};
use crate::layout::Layout;
use crate::log::SelectedColumn;
use crate::payload::Payload;
use crate::view::{INLINE_BYTES, view_len};

/// Rows that are packed at a time, column by column: few enough for all their lines to stay in the first-level cache.
/// From the row queue of `benches/memory.rs`, rows of 64 bytes on one thread: flat between 64 and 128, a fifth more at
/// 16, two fifths more at 512.
const TOGETHER: usize = 128;

/// The position of a column in a row.
#[derive(Clone, Copy, Debug)]
struct PackedColumn {
    physical: Physical,
    word: usize,
    /// Word and bit of its null flag, if it is nullable.
    null: Option<(usize, u32)>,
}

/// The positions of all columns in a row.
#[derive(Debug)]
pub(super) struct RowPacking {
    layout: Layout,
    places: Vec<PackedColumn>,
    null_words: usize,
    /// The columns of views, and the word after them.
    views: Vec<usize>,
    kept_word: Option<usize>,
    words: usize,
}

impl RowPacking {
    pub(super) fn new(layout: Layout) -> Self {
        let columns = layout.columns();
        let null_words = columns.iter().filter(|column| column.nullable).count().div_ceil(64);
        let mut words = null_words;
        let mut nulls = 0;
        let mut places = Vec::with_capacity(columns.len());
        let mut views = Vec::new();
        for (number, kind) in columns.iter().enumerate() {
            let null = kind.nullable.then(|| {
                nulls += 1;
                ((nulls - 1) / 64, (nulls - 1) as u32 % 64)
            });
            places.push(PackedColumn { physical: kind.physical, word: words, null });
            words += kind.physical.width().div_ceil(8);
            if kind.physical == Physical::View {
                views.push(number);
            }
        }
        let kept_word = (!views.is_empty()).then_some(words);
        words += usize::from(kept_word.is_some());
        // A row without columns still takes a word.
        Self { layout, places, null_words, views, kept_word, words: words.max(1) }
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the words of a row.
    pub(super) fn words(&self) -> usize {
        self.words
    }

    /// Returns the most payloads that a row keeps.
    pub(super) fn payloads(&self) -> usize {
        self.views.len()
    }

    /// Packs rows of the pieces, from number `rows.start` on, into as many blank frames.
    ///
    /// # Panics
    /// When a piece has another storage type than its column, or a null in a column that is not nullable.
    pub(super) fn pack(
        &self,
        pieces: &[SelectedColumn<'_>],
        rows: Range<usize>,
        blank: Blank<'_>,
        payloads: &mut PushBatch<'_, Payload>,
    ) {
        assert_eq!(pieces.len(), self.places.len(), "a queue is written by its layout");
        for first in rows.clone().step_by(TOGETHER) {
            let some = first..rows.end.min(first + TOGETHER);
            let blank = blank.part(first - rows.start..some.end - rows.start);
            self.pack_nulls(pieces, some.clone(), blank);
            for (place, piece) in self.places.iter().zip(pieces) {
                pack_fixed(*place, piece, some.clone(), blank);
            }
            if let Some(kept_word) = self.kept_word {
                self.pack_views(pieces, some, blank, payloads, kept_word);
            }
        }
    }

    fn pack_nulls(&self, pieces: &[SelectedColumn<'_>], rows: Range<usize>, blank: Blank<'_>) {
        for word in 0..self.null_words {
            blank.put(word, rows.clone().map(|_| 0));
        }
        for (place, piece) in self.places.iter().zip(pieces) {
            if piece.column.valid.is_none() {
                continue;
            }
            let nulls = rows.clone().map(|row| u64::from(!piece.is_valid(row)));
            match place.null {
                Some((word, bit)) => blank.add(word, nulls.map(|null| null << bit)),
                // As with a log: a lost null would be a wrong answer.
                None => assert!(nulls.sum::<u64>() == 0, "a null needs a nullable column"),
            }
        }
    }

    /// Packs views row by row, since payloads leave the queue with their rows.
    fn pack_views(
        &self,
        pieces: &[SelectedColumn<'_>],
        rows: Range<usize>,
        blank: Blank<'_>,
        payloads: &mut PushBatch<'_, Payload>,
        kept_word: usize,
    ) {
        for (frame, row) in rows.enumerate() {
            for &column in &self.views {
                let (piece, word) = (&pieces[column], self.places[column].word);
                let (views, table) = piece.column.views();
                let at = piece.rows.map_or(row, |rows| rows[row] as usize);
                // A view under a null must not be followed.
                let mut view = if piece.column.is_valid(at) { views[at] } else { 0 };
                if view_len(view) > INLINE_BYTES {
                    let kept = payloads.push(table.get(payload_of(view)).clone());
                    assert!(kept.is_ok(), "room for a row is room for its payloads");
                    view = with_payload(view, payloads.position() as u32 - 1);
                }
                blank.set(frame, word, view as u64);
                blank.set(frame, word + 1, (view >> 64) as u64);
            }
            blank.set(frame, kept_word, payloads.position() as u64);
        }
    }

    /// Returns the number of payloads that the last of the rows and all before it have kept; `None` where rows keep
    /// none.
    pub(super) fn kept(&self, rows: Frames<'_>) -> Option<usize> {
        self.kept_word.and_then(|word| rows.word(word).last()).map(|kept| kept as usize)
    }

    /// Fills a column of the same storage with the rows' values of one column. `oldest` is the number of the oldest
    /// payload in the queue, and `see` looks at one.
    ///
    /// # Panics
    /// When `into` has another storage.
    pub(super) fn unpack(
        &self,
        column: usize,
        rows: Frames<'_>,
        oldest: usize,
        mut see: impl FnMut(usize, &mut dyn FnMut(&Payload)),
        into: &mut ColumnBuf,
    ) {
        let PackedColumn { physical, word, null } = self.places[column];
        let narrow = rows.word(word);
        let wide = || rows.word(word).zip(rows.word(word + 1)).map(|(low, high)| wide(low, high));
        macro_rules! fill {
            ($($kind:ident $type:ty),*) => {
                match physical {
                    $(Physical::$kind => into.refill::<$type>().extend(narrow.map(|word| word as $type)),)*
                    Physical::F32 => into.refill().extend(narrow.map(|word| f32::from_bits(word as u32))),
                    Physical::F64 => into.refill().extend(narrow.map(f64::from_bits)),
                    Physical::I128 => into.refill().extend(wide().map(|value| value as i128)),
                    Physical::View => {
                        let (views, payloads) = into.refill_views();
                        views.extend(wide().map(|view| {
                            if view_len(view) <= INLINE_BYTES {
                                return view;
                            }
                            let ahead = (payload_of(view) as u32).wrapping_sub(oldest as u32);
                            see(oldest + ahead as usize, &mut |payload| keep(payloads, payload));
                            with_payload(view, payloads.len() as u32 - 1)
                        }));
                    }
                }
            };
        }
        fill!(I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64);
        let Some((word, bit)) = null else { return };
        if rows.word(word).fold(0, |any, nulls| any | nulls) >> bit & 1 == 1 {
            into.refill_mask().extend(rows.word(word).map(|nulls| (nulls >> bit & 1 ^ 1) as u8));
        }
    }
}

/// Adds a payload, unless it is the last one already: adjacent rows often share a payload.
fn keep(payloads: &mut Vec<Payload>, payload: &Payload) {
    if payloads.last().is_none_or(|last| last.identity() != payload.identity()) {
        payloads.push(payload.clone());
    }
}

fn pack_fixed(place: PackedColumn, piece: &SelectedColumn<'_>, rows: Range<usize>, blank: Blank<'_>) {
    let word = place.word;
    macro_rules! pack {
        ($($kind:ident),*) => {
            match (place.physical, piece.column.values) {
                $((Physical::$kind, Values::$kind(values)) => {
                    put(values, piece.rows, rows, blank, word, |value| value as u64)
                })*
                (Physical::F32, Values::F32(values)) => {
                    put(values, piece.rows, rows, blank, word, |value| u64::from(value.to_bits()));
                }
                (Physical::F64, Values::F64(values)) => {
                    put(values, piece.rows, rows, blank, word, f64::to_bits);
                }
                (Physical::I128, Values::I128(values)) => {
                    put(values, piece.rows, rows.clone(), blank, word, |value| value as u64);
                    put(values, piece.rows, rows, blank, word + 1, |value| (value >> 64) as u64);
                }
                (Physical::View, Values::View(..)) => {}
                _ => panic!("a queue is written by its layout"),
            }
        };
    }
    pack!(I8, I16, I32, I64, U8, U16, U32, U64);
}

fn put<T: Native>(
    values: &[T],
    selected: Option<&[u32]>,
    rows: Range<usize>,
    blank: Blank<'_>,
    word: usize,
    word_of: impl Fn(T) -> u64,
) {
    match selected {
        None => blank.put(word, values[rows].iter().map(|value| word_of(*value))),
        Some(selected) => blank.put(word, selected[rows].iter().map(|&row| word_of(values[row as usize]))),
    }
}

fn wide(low: u64, high: u64) -> u128 {
    u128::from(low) | (u128::from(high) << 64)
}

fn payload_of(view: u128) -> usize {
    (view >> 64) as u32 as usize
}

fn with_payload(view: u128, number: u32) -> u128 {
    (view & !(u128::from(u32::MAX) << 64)) | (u128::from(number) << 64)
}
