//! Keys of any columns, by the bytes of the row.
//!
//! Each row's key becomes one string of bytes, written column by column: a byte that tells whether there is a value,
//! then the value. Fixed-width values are written directly (floats normalised), strings and binary after their length.
//! Equal keys have equal bytes, and vice versa.

use std::hash::BuildHasher;

use arrow_buffer::Buffer;
use foldhash::fast::RandomState;
use penstock_memory::view::{make_view, view_len, with_bytes};
use penstock_memory::{Column, ColumnBuf, Native, Physical};

use super::MISSING;
use super::table::KeyTable;
use crate::heap_bytes;
use crate::pick::Pick;

/// Maps rows of columns to dense ids.
#[derive(Clone)]
pub struct EncodedKeys {
    /// The bytes of all keys, one after the other, and the end of each.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Ids by the hash of the bytes.
    table: KeyTable<u64>,
    hasher: RandomState,
}

/// The rows of one run as bytes.
#[derive(Default)]
struct EncodedRows {
    bytes: Vec<u8>,
    starts: Vec<usize>,
}

impl EncodedRows {
    fn row(&self, row: usize) -> &[u8] {
        &self.bytes[self.starts[row]..self.starts[row + 1]]
    }
}

trait KeyBytes: Native {
    /// Writes the bytes of the value.
    fn write(self, to: &mut [u8]);
    fn read(from: &[u8]) -> Self;
}

macro_rules! key_bytes {
    ($($type:ty, $value:ident => $normal:expr);*) => {$(
        impl KeyBytes for $type {
            #[inline]
            fn write(self, to: &mut [u8]) {
                let $value = self;
                to.copy_from_slice(&($normal).to_le_bytes());
            }
            fn read(from: &[u8]) -> Self {
                Self::from_le_bytes(from.try_into().expect("as many bytes as `write` has written"))
            }
        }
    )*};
}
key_bytes!(i8, value => value; i16, value => value; i32, value => value; i64, value => value;
    u8, value => value; u16, value => value; u32, value => value; u64, value => value; i128, value => value;
    f32, value => if value.is_nan() { f32::NAN } else { value + 0.0 };
    f64, value => if value.is_nan() { f64::NAN } else { value + 0.0 });

/// Runs one expression for any fixed-width type, another for views.
macro_rules! by_kind {
    ($values:expr, $slice:ident => $fixed:expr, ($views:ident, $buffers:ident) => $view:expr) => {
        penstock_memory::for_each_kind!(Values, $values, $slice => $fixed, ($views, $buffers) => $view)
    };
}

fn encode(columns: &[Column<'_>], rows: usize) -> EncodedRows {
    let mut starts = vec![0_usize; rows + 1];
    for column in columns {
        by_kind!(column.values, values => {
            let width = 1 + values.first().map_or(0, size_of_val);
            starts[1..].iter_mut().for_each(|len| *len += width);
        }, (views, _buffers) => {
            for (row, view) in views.iter().enumerate() {
                starts[row + 1] += 5 + if column.is_valid(row) { view_len(*view) } else { 0 };
            }
        });
    }
    for row in 0..rows {
        starts[row + 1] += starts[row];
    }
    let mut bytes = vec![0_u8; starts[rows]];
    let mut at = starts[..rows].to_vec();
    for column in columns {
        by_kind!(column.values, values => write_fixed(values, column, &mut at, &mut bytes), (views, buffers) => {
            for (row, view) in views.iter().enumerate() {
                // A null string is written as an empty one under the tag of null.
                let valid = column.is_valid(row);
                let len = if valid { view_len(*view) } else { 0 };
                let place = at[row];
                bytes[place] = u8::from(valid);
                bytes[place + 1..place + 5].copy_from_slice(&(len as u32).to_le_bytes());
                if valid {
                    with_bytes(*view, buffers, |value| bytes[place + 5..place + 5 + len].copy_from_slice(value));
                }
                at[row] += 5 + len;
            }
        });
    }
    EncodedRows { bytes, starts }
}

fn write_fixed<T: KeyBytes>(values: &[T], column: &Column<'_>, at: &mut [usize], bytes: &mut [u8]) {
    let width = size_of::<T>();
    for (row, &value) in values.iter().enumerate() {
        let place = at[row];
        // A value under a null is unspecified (COLUMN-2), so zeros are written instead.
        if column.is_valid(row) {
            bytes[place] = 1;
            value.write(&mut bytes[place + 1..place + 1 + width]);
        }
        at[row] += 1 + width;
    }
}

impl EncodedKeys {
    /// Creates an empty index.
    pub fn new() -> Self {
        Self { bytes: Vec::new(), ends: Vec::new(), table: KeyTable::new(), hasher: RandomState::default() }
    }

    /// Sets the expected number of keys, from the last use.
    pub fn expect(&mut self, keys: usize) {
        self.table.expect(keys);
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns true if there is no key.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the heap memory of the index.
    pub fn bytes(&self) -> usize {
        heap_bytes(&self.bytes) + heap_bytes(&self.ends) + self.table.bytes()
    }

    fn key<'a>(bytes: &'a [u8], ends: &[usize], id: usize) -> &'a [u8] {
        let start = if id == 0 { 0 } else { ends[id - 1] };
        &bytes[start..ends[id]]
    }

    /// Appends the id in the first entry of each row's key, if its hash is the same.
    fn glance(&self, encoded: &EncodedRows, rows: usize, hashes: &mut Vec<u64>, ids: &mut Vec<u32>) {
        hashes.extend((0..rows).map(|row| self.hasher.hash_one(encoded.row(row))));
        self.table.glance(hashes.iter().map(|&hash| (hash, 0)), ids);
    }

    fn is(&self, id: u32, key: &[u8]) -> bool {
        Self::key(&self.bytes, &self.ends, id as usize) == key
    }

    /// Appends the id of each row's key; new keys get new ids.
    pub fn insert(&mut self, columns: &[Column<'_>], rows: usize, ids: &mut Vec<u32>) {
        let (encoded, mut hashes, start) = (encode(columns, rows), Vec::with_capacity(rows), ids.len());
        self.glance(&encoded, rows, &mut hashes, ids);
        let (known, mut missing) = (self.ends.len(), 0);
        for (row, id) in ids[start..].iter_mut().enumerate() {
            let key = encoded.row(row);
            if *id == MISSING || !self.is(*id, key) {
                missing += 1;
                *id = self.insert_one(hashes[row], key);
            }
        }
        self.table.followed_up(missing - (self.ends.len() - known), rows);
    }

    fn insert_one(&mut self, hash: u64, key: &[u8]) -> u32 {
        match self.table.find(hash, 0, |id| self.is(id, key)) {
            Ok(id) => id,
            Err(_) if self.table.is_full() => {
                self.table.grow();
                self.insert_one(hash, key)
            }
            Err(free) => {
                let id = self.ends.len() as u32;
                self.bytes.extend_from_slice(key);
                self.ends.push(self.bytes.len());
                self.table.fill(free, hash, 0, id);
                id
            }
        }
    }

    /// Appends the id of each row's key, [`MISSING`] where there is none.
    pub fn find(&self, columns: &[Column<'_>], rows: usize, ids: &mut Vec<u32>) {
        let (encoded, mut hashes, start) = (encode(columns, rows), Vec::with_capacity(rows), ids.len());
        self.glance(&encoded, rows, &mut hashes, ids);
        for (row, id) in ids[start..].iter_mut().enumerate() {
            let key = encoded.row(row);
            if *id == MISSING || !self.is(*id, key) {
                *id = self.table.find(hashes[row], 0, |id| self.is(id, key)).unwrap_or(MISSING);
            }
        }
    }

    /// Writes the keys with those ids, one column per key column.
    pub fn write(&self, pick: Pick<'_>, columns: &mut [ColumnBuf]) {
        let mut at = Vec::with_capacity(pick.len());
        pick.extend(&mut at, |id| if id == 0 { 0 } else { self.ends[id - 1] });
        for column in columns {
            macro_rules! fill {
                ($($kind:ident $type:ty),*) => {
                    match column.physical() {
                        $(Physical::$kind => self.read_fixed::<$type>(&mut at, column),)*
                        Physical::View => self.read_views(&mut at, column),
                    }
                };
            }
            fill!(I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, F32 f32, F64 f64, I128 i128);
        }
    }

    fn read_fixed<T: KeyBytes>(&self, at: &mut [usize], column: &mut ColumnBuf) {
        let width = size_of::<T>();
        column
            .refill::<T>()
            .extend(at.iter().map(|&place| T::read(&self.bytes[place + 1..place + 1 + width])));
        self.read_mask(at, column);
        at.iter_mut().for_each(|place| *place += 1 + width);
    }

    fn read_mask(&self, at: &[usize], column: &mut ColumnBuf) {
        if at.iter().any(|&place| self.bytes[place] == 0) {
            column.refill_mask().extend(at.iter().map(|&place| self.bytes[place]));
        }
    }

    fn read_views(&self, at: &mut [usize], column: &mut ColumnBuf) {
        let (views, buffers) = column.refill_views();
        let mut payload = Vec::new();
        let mut lens = Vec::with_capacity(at.len());
        for &place in at.iter() {
            let len =
                u32::from_le_bytes(self.bytes[place + 1..place + 5].try_into().expect("four bytes")) as usize;
            let value = &self.bytes[place + 5..place + 5 + len];
            // A payload ends before its offsets outgrow 32 bits.
            if payload.len() + len > u32::MAX as usize {
                buffers.push(Buffer::from_vec(std::mem::take(&mut payload)).into());
            }
            views.push(make_view(value, buffers.len() as u32, payload.len() as u32));
            payload.extend_from_slice(value);
            lens.push(len);
        }
        buffers.push(Buffer::from_vec(payload).into());
        self.read_mask(at, column);
        at.iter_mut().zip(lens).for_each(|(place, len)| *place += 5 + len);
    }
}

impl Default for EncodedKeys {
    fn default() -> Self {
        Self::new()
    }
}
