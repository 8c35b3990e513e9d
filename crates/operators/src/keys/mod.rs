//! Maps keys to dense ids, once per run.
//!
//! Equal keys get equal ids, and ids are counted from 0 without gaps, in the order in which keys are first seen. Null
//! is a key like any other; NaN equals NaN; -0.0 equals 0.0.
//!
//! - [`integers`]: one column of integers, times or bools; a table without hashing while the range is small
//! - `packed`: columns of fixed width that fit 16 bytes together
//! - [`encoded`]: everything else, by the bytes of the row
//! - [`shared`]: keys that many states have in common
//! - [`groups`]: the key groups of rows

pub mod encoded;
pub mod groups;
pub mod integers;
pub(crate) mod packed;
pub mod shared;
mod table;

use penstock_memory::{Column, ColumnBuf, Physical};

use crate::pick::Pick;
use encoded::EncodedKeys;
use integers::IntegerKeys;
use packed::PackedKeys;
use shared::SharedKeys;

/// The id of a missing key.
pub const MISSING: u32 = u32::MAX;

/// Maps keys to dense ids.
#[derive(Clone)]
pub enum KeyIndex {
    /// No key column: every row has the same key.
    Single {
        /// True once a row was seen.
        seen: bool,
    },
    /// One integer column.
    Integers(IntegerKeys),
    /// Columns of at most 8 bytes together.
    Packed64(PackedKeys<u64>),
    /// Columns of at most 16 bytes together.
    Packed128(PackedKeys<u128>),
    /// Any columns.
    Encoded(EncodedKeys),
    /// Any columns, by way of a shared directory.
    Shared(SharedKeys),
}

/// Runs `$body` with `$keys` bound to the index, except where there is no key column.
macro_rules! by_kind {
    ($index:expr, $seen:ident => $single:expr, $keys:ident => $body:expr, $columns:ident => $many:expr) => {
        match $index {
            KeyIndex::Single { seen: $seen } => $single,
            KeyIndex::Integers($keys) => $body,
            KeyIndex::Packed64($columns) => $many,
            KeyIndex::Packed128($columns) => $many,
            KeyIndex::Encoded($columns) => $many,
            KeyIndex::Shared($columns) => $many,
        }
    };
}

impl KeyIndex {
    /// Creates an empty index over key columns of that storage.
    pub fn new(columns: &[Physical]) -> Self {
        match columns {
            [] => Self::Single { seen: false },
            [one] if IntegerKeys::holds(*one) => Self::Integers(IntegerKeys::new()),
            _ if PackedKeys::<u64>::holds(columns) => Self::Packed64(PackedKeys::new(columns)),
            _ if PackedKeys::<u128>::holds(columns) => Self::Packed128(PackedKeys::new(columns)),
            _ => Self::Encoded(EncodedKeys::new()),
        }
    }

    /// Creates an empty index that expects this many keys.
    pub fn expecting(columns: &[Physical], expected: usize) -> Self {
        let mut index = Self::new(columns);
        match &mut index {
            Self::Single { .. } | Self::Shared(_) => {}
            Self::Integers(keys) => keys.expect(expected),
            Self::Packed64(keys) => keys.expect(expected),
            Self::Packed128(keys) => keys.expect(expected),
            Self::Encoded(keys) => keys.expect(expected),
        }
        index
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        by_kind!(self, seen => usize::from(*seen), keys => keys.len(), keys => keys.len())
    }

    /// Returns true if there is no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the heap memory of the index.
    pub fn bytes(&self) -> usize {
        by_kind!(self, _seen => 0, keys => keys.bytes(), keys => keys.bytes())
    }

    /// Fills `ids` with the id of each row's key; new keys get new ids.
    pub fn insert(&mut self, columns: &[Column<'_>], rows: usize, ids: &mut Vec<u32>) {
        ids.clear();
        by_kind!(self, seen => {
            *seen |= rows > 0;
            ids.resize(rows, 0);
        }, keys => keys.insert(columns[0], ids), keys => keys.insert(columns, rows, ids));
    }

    /// Fills `ids` with the id of each key of another index over the same columns; new keys get new ids.
    pub fn insert_keys(&mut self, other: &Self, columns: &[Physical], ids: &mut Vec<u32>) {
        if let (Self::Shared(own), Self::Shared(other)) = (&mut *self, other)
            && own.insert_beside(other, ids)
        {
            return;
        }
        let mut keys: Vec<ColumnBuf> = columns.iter().map(|column| ColumnBuf::new(*column)).collect();
        other.write_picked(Pick::Range(0, other.len()), &mut keys);
        self.insert(&keys.iter().map(ColumnBuf::as_column).collect::<Vec<_>>(), other.len(), ids);
    }

    /// Fills `ids` with the id of each row's key, [`MISSING`] for missing ones.
    pub fn find(&self, columns: &[Column<'_>], rows: usize, ids: &mut Vec<u32>) {
        ids.clear();
        by_kind!(self, seen => ids.resize(rows, if *seen { 0 } else { MISSING }),
            keys => keys.find(columns[0], ids), keys => keys.find(columns, rows, ids));
    }

    /// Writes the keys with the ids `from..to` into one column per key column.
    pub fn write(&self, from: usize, to: usize, columns: &mut [ColumnBuf]) {
        self.write_picked(Pick::Range(from, to), columns);
    }

    /// Writes the keys with those ids into one column per key column.
    pub fn write_picked(&self, pick: Pick<'_>, columns: &mut [ColumnBuf]) {
        by_kind!(self, _seen => {}, keys => keys.write(pick, &mut columns[0]), keys => keys.write(pick, columns));
    }
}
