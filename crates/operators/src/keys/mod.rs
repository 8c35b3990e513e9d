//! Keys to dense ids, once per run.
//!
//! Equal keys get equal ids, and ids are counted from 0 without gaps, in the order in which keys are
//! first seen. Null is a key like any other; NaN equals NaN; -0.0 equals 0.0.
//!
//! - [`integers`]: one column of integers, times or bools; a table without hashing while the range is small
//! - [`encoded`]: everything else, by the bytes of the row

pub mod encoded;
pub mod integers;

use penstock_memory::{Column, ColumnBuf, Physical};

use encoded::EncodedKeys;
use integers::IntegerKeys;

/// The id of a key that is not there.
pub const MISSING: u32 = u32::MAX;

/// Maps keys to dense ids.
pub enum KeyIndex {
    /// No key column: every row has the same key.
    Single {
        /// Whether any row came.
        seen: bool,
    },
    /// One integer column.
    Integers(IntegerKeys),
    /// Any columns.
    Encoded(EncodedKeys),
}

impl KeyIndex {
    /// An empty index over key columns of that storage.
    pub fn new(columns: &[Physical]) -> Self {
        match columns {
            [] => Self::Single { seen: false },
            [one] if IntegerKeys::holds(*one) => Self::Integers(IntegerKeys::new()),
            _ => Self::Encoded(EncodedKeys::new()),
        }
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        match self {
            Self::Single { seen } => usize::from(*seen),
            Self::Integers(keys) => keys.len(),
            Self::Encoded(keys) => keys.len(),
        }
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Heap memory that the index holds.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Single { .. } => 0,
            Self::Integers(keys) => keys.bytes(),
            Self::Encoded(keys) => keys.bytes(),
        }
    }

    /// Fills `ids` with the id of each row's key; new keys get new ids.
    pub fn insert(&mut self, columns: &[Column<'_>], rows: usize, ids: &mut Vec<u32>) {
        ids.clear();
        match self {
            Self::Single { seen } => {
                *seen |= rows > 0;
                ids.resize(rows, 0);
            }
            Self::Integers(keys) => keys.insert(columns[0], ids),
            Self::Encoded(keys) => keys.insert(columns, rows, ids),
        }
    }

    /// Fills `ids` with the id of each row's key, [`MISSING`] for those that are not there.
    pub fn find(&self, columns: &[Column<'_>], rows: usize, ids: &mut Vec<u32>) {
        ids.clear();
        match self {
            Self::Single { seen } => ids.resize(rows, if *seen { 0 } else { MISSING }),
            Self::Integers(keys) => keys.find(columns[0], ids),
            Self::Encoded(keys) => keys.find(columns, rows, ids),
        }
    }

    /// Writes the keys with the ids `from..to` into one column per key column.
    pub fn write(&self, from: usize, to: usize, columns: &mut [ColumnBuf]) {
        match self {
            Self::Single { .. } => {}
            Self::Integers(keys) => keys.write(from, to, &mut columns[0]),
            Self::Encoded(keys) => keys.write(from, to, columns),
        }
    }
}
