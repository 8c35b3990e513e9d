//! One column of integers, times or bools.
//!
//! While the keys span a small range, a table indexed by `key - lowest` gives the id without hashing;
//! beyond that a hash table takes over, for good.
//!
//! K1. `keys[id]` is the key with that id, as its 64 bits; the null key has the id `null`, and an
//!     unused entry in `keys`.
//! K2. Dense: `table[key - lowest]` is the id plus one, 0 for a key that is not there.

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use penstock_memory::{Column, ColumnBuf, Physical, Values};
use std::hash::BuildHasher;

use super::MISSING;
use crate::heap_bytes;

/// A table of so many entries is always worth it.
const SMALL_TABLE: u64 = 1024;
/// A larger one is, while it has at most so many entries per key or row that it serves ...
const ENTRIES_PER_KEY: u64 = 16;
/// ... and stays within half of a common L2 cache.
const LARGEST_TABLE: u64 = 64 * 1024;

enum Places {
    Dense { lowest: i64, table: Vec<u32> },
    Hashed(HashTable<u32>),
}

/// Maps integers to dense ids.
pub struct IntegerKeys {
    keys: Vec<i64>,
    null: Option<u32>,
    places: Places,
    hasher: RandomState,
}

/// An integer as the 64 bits that stand for it.
trait KeyBits: Copy {
    fn bits(self) -> i64;
}

macro_rules! key_bits {
    ($($type:ty),*) => {$(
        impl KeyBits for $type {
            #[inline(always)]
            fn bits(self) -> i64 { i64::from(self) }
        }
    )*};
}
key_bits!(i8, i16, i32, i64, u8, u16, u32);

impl KeyBits for u64 {
    #[inline(always)]
    fn bits(self) -> i64 {
        self.cast_signed()
    }
}

/// Runs `$body` with `$slice` bound to the values, whatever integer they are.
macro_rules! with_integers {
    ($values:expr, $slice:ident => $body:expr) => {
        match $values {
            Values::I8($slice) => $body,
            Values::I16($slice) => $body,
            Values::I32($slice) => $body,
            Values::I64($slice) => $body,
            Values::U8($slice) => $body,
            Values::U16($slice) => $body,
            Values::U32($slice) => $body,
            Values::U64($slice) => $body,
            Values::F32(_) | Values::F64(_) | Values::I128(_) | Values::View(..) => {
                unreachable!("only integer columns are indexed as integers")
            }
        }
    };
}

impl IntegerKeys {
    /// Whether keys of that storage are integers of at most 64 bits.
    pub fn holds(physical: Physical) -> bool {
        !matches!(physical, Physical::F32 | Physical::F64 | Physical::I128 | Physical::View)
    }

    /// An empty index.
    pub fn new() -> Self {
        let places = Places::Dense { lowest: 0, table: Vec::new() };
        Self { keys: Vec::new(), null: None, places, hasher: RandomState::default() }
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Heap memory that the index holds.
    pub fn bytes(&self) -> usize {
        heap_bytes(&self.keys)
            + match &self.places {
                Places::Dense { table, .. } => heap_bytes(table),
                Places::Hashed(table) => table.allocation_size(),
            }
    }

    /// Appends the id of each row's key; new keys get new ids.
    pub fn insert(&mut self, column: Column<'_>, ids: &mut Vec<u32>) {
        let start = ids.len();
        self.find(column, ids);
        // Mostly every key is known already, and this scan is all there is to it.
        if ids[start..].contains(&MISSING) {
            with_integers!(column.values, values => self.insert_missing(values, column.valid, &mut ids[start..]));
        }
    }

    fn insert_missing<T: KeyBits>(&mut self, values: &[T], valid: Option<&[u8]>, ids: &mut [u32]) {
        let is_valid = |row: usize| valid.is_none_or(|mask| mask[row] != 0);
        let missing = || (0..ids.len()).filter(|&row| ids[row] == MISSING && is_valid(row));
        let range = missing().map(|row| values[row].bits()).fold(None, |range: Option<(i64, i64)>, key| {
            Some(range.map_or((key, key), |(smallest, largest)| (smallest.min(key), largest.max(key))))
        });
        if let Some((smallest, largest)) = range {
            self.cover(smallest, largest, values.len());
        }
        for row in 0..ids.len() {
            if ids[row] == MISSING {
                ids[row] =
                    if is_valid(row) { self.insert_one(values[row].bits()) } else { self.insert_null() };
            }
        }
    }

    fn insert_null(&mut self) -> u32 {
        *self.null.get_or_insert_with(|| {
            self.keys.push(0);
            self.keys.len() as u32 - 1
        })
    }

    fn insert_one(&mut self, key: i64) -> u32 {
        let (keys, hasher, null) = (&mut self.keys, &self.hasher, self.null);
        match &mut self.places {
            Places::Dense { lowest, table } => {
                let place = &mut table[key.wrapping_sub(*lowest) as usize];
                if *place == 0 {
                    keys.push(key);
                    *place = keys.len() as u32;
                }
                *place - 1
            }
            Places::Hashed(table) => {
                let hash = hasher.hash_one(key);
                if let Some(&id) = table.find(hash, |&id| keys[id as usize] == key && Some(id) != null) {
                    return id;
                }
                let id = keys.len() as u32;
                keys.push(key);
                table.insert_unique(hash, id, |&id| hasher.hash_one(keys[id as usize]));
                id
            }
        }
    }

    /// Makes the table reach from `smallest` to `largest`, or gives up on tables.
    fn cover(&mut self, smallest: i64, largest: i64, rows: usize) {
        let Places::Dense { lowest, table } = &mut self.places else {
            return;
        };
        let (old_lowest, old_len) = (*lowest, table.len());
        let highest = old_lowest.wrapping_add(old_len as i64 - 1);
        if old_len > 0 && smallest >= old_lowest && largest <= highest {
            return;
        }
        let (from, to) =
            if old_len == 0 { (smallest, largest) } else { (smallest.min(old_lowest), largest.max(highest)) };
        let entries = (to.wrapping_sub(from) as u64).saturating_add(1);
        let allowed = SMALL_TABLE.max((self.keys.len() + rows) as u64 * ENTRIES_PER_KEY).min(LARGEST_TABLE);
        if entries <= allowed {
            let mut wider = vec![0; entries as usize];
            if old_len > 0 {
                let shift = old_lowest.wrapping_sub(from) as usize;
                wider[shift..shift + old_len].copy_from_slice(table);
            }
            (*lowest, *table) = (from, wider);
            return;
        }
        let mut hashed = HashTable::with_capacity(self.keys.len());
        for id in (0..self.keys.len() as u32).filter(|&id| Some(id) != self.null) {
            let hash = |&id: &u32| self.hasher.hash_one(self.keys[id as usize]);
            hashed.insert_unique(hash(&id), id, hash);
        }
        self.places = Places::Hashed(hashed);
    }

    /// Appends the id of each row's key, [`MISSING`] where there is none.
    pub fn find(&self, column: Column<'_>, ids: &mut Vec<u32>) {
        let start = ids.len();
        with_integers!(column.values, values => match &self.places {
            Places::Dense { lowest, table } => ids.extend(values.iter().map(|&key| {
                // A key below `lowest` wraps around to a place beyond the table; 0 - 1 wraps to MISSING.
                let place = key.bits().wrapping_sub(*lowest) as u64 as usize;
                table.get(place).copied().unwrap_or(0).wrapping_sub(1)
            })),
            Places::Hashed(table) => ids.extend(values.iter().map(|&key| {
                let key = key.bits();
                let same = |&id: &u32| self.keys[id as usize] == key && Some(id) != self.null;
                table.find(self.hasher.hash_one(key), same).copied().unwrap_or(MISSING)
            })),
        });
        if let Some(mask) = column.valid {
            let null = self.null.unwrap_or(MISSING);
            for (id, _) in ids[start..].iter_mut().zip(mask).filter(|(_, valid)| **valid == 0) {
                *id = null;
            }
        }
    }

    /// Writes the keys with the ids `from..to`.
    pub fn write(&self, from: usize, to: usize, column: &mut ColumnBuf) {
        let keys = &self.keys[from..to];
        macro_rules! fill {
            ($($kind:ident $type:ty),*) => {
                match column.physical() {
                    $(Physical::$kind => column.refill::<$type>().extend(keys.iter().map(|&key| key as $type)),)*
                    _ => unreachable!("only integer columns are indexed as integers"),
                }
            };
        }
        fill!(I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64);
        if let Some(null) = self.null.map(|null| null as usize).filter(|null| (from..to).contains(null)) {
            let mask = column.refill_mask();
            mask.resize(to - from, 1);
            mask[null - from] = 0;
        }
    }
}

impl Default for IntegerKeys {
    fn default() -> Self {
        Self::new()
    }
}
