//! One column of integers, times or bools.
//!
//! While the keys span a small range, or fill a larger one, a table indexed by `key - lowest` gives the id without
//! hashing; otherwise a hash table does.
//!
//! INTEGERS-1. `keys[id]` is the key with that id, as its 64 bits; the null key has the id `null`, and an unused entry
//!     in `keys`.
//! INTEGERS-2. Dense: `table[key - lowest]` is the id plus one, 0 for a missing key.

use penstock_memory::{Column, ColumnBuf, Physical, Values};

use super::MISSING;
use super::table::{KeyTable, Seed};
use crate::heap_bytes;
use crate::pick::Pick;

/// A table of this many entries is always worth it.
const SMALL_TABLE: u64 = 1024;
/// A larger one is, while it has at most this many entries per key or row that it serves ...
const ENTRIES_PER_KEY: u64 = 16;
/// ... and stays within half of a common L2 cache ...
const LARGEST_TABLE: u64 = 64 * 1024;
/// ... or has at most this many entries per key, which is less than hashing takes.
const FULL_ENTRIES_PER_KEY: u64 = 4;

#[derive(Clone)]
enum IdLookup {
    Dense { lowest: i64, table: Vec<u32> },
    Hashed(KeyTable<u64>),
}

/// Maps integers to dense ids.
#[derive(Clone)]
pub struct IntegerKeys {
    keys: Vec<i64>,
    null: Option<u32>,
    places: IdLookup,
    /// See [`KeyTable::expect`].
    expected: usize,
}

/// An integer as its 64 bits.
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

/// Runs `$body` with `$slice` bound to the values, whatever their integer type.
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
    /// Returns true if keys of that storage are integers of at most 64 bits.
    pub fn holds(physical: Physical) -> bool {
        !matches!(physical, Physical::F32 | Physical::F64 | Physical::I128 | Physical::View)
    }

    /// Creates an empty index.
    pub fn new() -> Self {
        Self {
            keys: Vec::new(),
            null: None,
            places: IdLookup::Dense { lowest: 0, table: Vec::new() },
            expected: 0,
        }
    }

    /// Sets the expected number of keys, from the last use.
    pub fn expect(&mut self, keys: usize) {
        self.expected = keys;
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns true if there is no key.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns the heap memory of the index.
    pub fn bytes(&self) -> usize {
        heap_bytes(&self.keys)
            + match &self.places {
                IdLookup::Dense { table, .. } => heap_bytes(table),
                IdLookup::Hashed(table) => table.bytes(),
            }
    }

    /// Appends the id of each row's key; new keys get new ids.
    pub fn insert(&mut self, column: Column<'_>, ids: &mut Vec<u32>) {
        let start = ids.len();
        with_integers!(column.values, values => {
            self.glance(values, ids);
            self.place_nulls(column.valid, &mut ids[start..]);
            // Usually every key is known already, and this scan is all that is needed.
            if ids[start..].contains(&MISSING) {
                self.insert_missing(values, column.valid, &mut ids[start..]);
            }
        });
    }

    /// Appends ids without resolving collisions: [`MISSING`] may also mean that the key is in another entry.
    fn glance<T: KeyBits>(&self, values: &[T], ids: &mut Vec<u32>) {
        match &self.places {
            IdLookup::Dense { lowest, table } => ids.extend(values.iter().map(|&key| {
                // A key below `lowest` wraps around to an index beyond the table; 0 - 1 wraps to MISSING.
                let place = key.bits().wrapping_sub(*lowest) as u64 as usize;
                table.get(place).copied().unwrap_or(0).wrapping_sub(1)
            })),
            IdLookup::Hashed(table) => {
                table.glance(values.iter().map(|key| (key.bits().cast_unsigned(), 0)), ids);
            }
        }
    }

    fn place_nulls(&self, valid: Option<&[u8]>, ids: &mut [u32]) {
        if let Some(mask) = valid {
            let null = self.null.unwrap_or(MISSING);
            for (id, _) in ids.iter_mut().zip(mask).filter(|(_, valid)| **valid == 0) {
                *id = null;
            }
        }
    }

    fn insert_missing<T: KeyBits>(&mut self, values: &[T], valid: Option<&[u8]>, ids: &mut [u32]) {
        let is_valid = |row: usize| valid.is_none_or(|mask| mask[row] != 0);
        if matches!(self.places, IdLookup::Dense { .. }) {
            let missing = (0..ids.len()).filter(|&row| ids[row] == MISSING && is_valid(row));
            let range = missing.map(|row| values[row].bits()).fold(None, widened);
            if let Some((smallest, largest)) = range {
                self.cover(smallest, largest, values.len());
            }
        }
        let (known, mut missing) = (self.keys.len(), 0);
        for row in 0..ids.len() {
            if ids[row] == MISSING {
                missing += 1;
                ids[row] =
                    if is_valid(row) { self.insert_one(values[row].bits()) } else { self.insert_null() };
            }
        }
        if let IdLookup::Hashed(table) = &mut self.places {
            table.followed_up(missing - (self.keys.len() - known), ids.len());
        }
    }

    fn insert_null(&mut self) -> u32 {
        *self.null.get_or_insert_with(|| {
            self.keys.push(0);
            self.keys.len() as u32 - 1
        })
    }

    fn insert_one(&mut self, key: i64) -> u32 {
        let keys = &mut self.keys;
        match &mut self.places {
            IdLookup::Dense { lowest, table } => {
                // After a switch from hashing in the middle of a run the table may be too short.
                let Some(place) = table.get_mut(key.wrapping_sub(*lowest) as u64 as usize) else {
                    self.cover(key, key, 0);
                    return self.insert_one(key);
                };
                if *place == 0 {
                    keys.push(key);
                    *place = keys.len() as u32;
                }
                *place - 1
            }
            IdLookup::Hashed(table) => match table.find(key.cast_unsigned(), 0, |_| true) {
                Ok(id) => id,
                Err(_) if table.is_full() => {
                    self.grow_hashed();
                    self.insert_one(key)
                }
                Err(free) => {
                    let id = keys.len() as u32;
                    keys.push(key);
                    table.fill(free, key.cast_unsigned(), 0, id);
                    id
                }
            },
        }
    }

    fn known(&self) -> impl Iterator<Item = (i64, u32)> {
        let null = self.null;
        self.keys
            .iter()
            .enumerate()
            .map(|(id, &key)| (key, id as u32))
            .filter(move |(_, id)| Some(*id) != null)
    }

    /// Makes room in the hash table, or replaces it when the keys fill the range that they span.
    fn grow_hashed(&mut self) {
        let range = self.known().map(|(key, _)| key).fold(None, widened);
        if let Some((lowest, largest)) = range {
            let entries = (largest.wrapping_sub(lowest) as u64).saturating_add(1);
            if entries <= self.keys.len() as u64 * FULL_ENTRIES_PER_KEY {
                let mut table = vec![0; entries as usize];
                self.known().for_each(|(key, id)| table[key.wrapping_sub(lowest) as usize] = id + 1);
                self.places = IdLookup::Dense { lowest, table };
                return;
            }
        }
        if let IdLookup::Hashed(table) = &mut self.places {
            table.grow();
        }
    }

    /// Extends the table from `smallest` to `largest`, or switches to hashing.
    fn cover(&mut self, smallest: i64, largest: i64, rows: usize) {
        let IdLookup::Dense { lowest, table } = &mut self.places else {
            return;
        };
        let (old_lowest, old_len) = (*lowest, table.len());
        let highest = old_lowest.wrapping_add(old_len as i64 - 1);
        if old_len > 0 && smallest >= old_lowest && largest <= highest {
            return;
        }
        let (mut from, mut to) =
            if old_len == 0 { (smallest, largest) } else { (smallest.min(old_lowest), largest.max(highest)) };
        let entries = |from: i64, to: i64| (to.wrapping_sub(from) as u64).saturating_add(1);
        let keys = (self.keys.len() + rows) as u64;
        let allowed = SMALL_TABLE
            .max((keys * ENTRIES_PER_KEY).min(LARGEST_TABLE))
            .max(self.keys.len() as u64 * FULL_ENTRIES_PER_KEY);
        if entries(from, to) <= allowed {
            // A large table grows by half at least, so that ascending keys do not copy it again and again.
            if old_len as u64 >= SMALL_TABLE {
                let more = (old_len / 2) as i64;
                let wider = if smallest < old_lowest {
                    (from.min(old_lowest.saturating_sub(more)), to)
                } else {
                    (from, to.max(highest.saturating_add(more)))
                };
                if entries(wider.0, wider.1) <= allowed {
                    (from, to) = wider;
                }
            }
            let mut wider = vec![0; entries(from, to) as usize];
            if old_len > 0 {
                let shift = old_lowest.wrapping_sub(from) as usize;
                wider[shift..shift + old_len].copy_from_slice(table);
            }
            (*lowest, *table) = (from, wider);
            return;
        }
        let mut hashed = KeyTable::with_room(self.keys.len() + 1, Seed::random());
        hashed.expect(self.expected);
        self.known().for_each(|(key, id)| hashed.add(key.cast_unsigned(), 0, id));
        self.places = IdLookup::Hashed(hashed);
    }

    /// Appends the id of each row's key, [`MISSING`] where there is none.
    pub fn find(&self, column: Column<'_>, ids: &mut Vec<u32>) {
        let start = ids.len();
        with_integers!(column.values, values => {
            self.glance(values, ids);
            if let IdLookup::Hashed(table) = &self.places {
                for (id, key) in ids[start..].iter_mut().zip(values).filter(|(id, _)| **id == MISSING) {
                    *id = table.find(key.bits().cast_unsigned(), 0, |_| true).unwrap_or(MISSING);
                }
            }
        });
        self.place_nulls(column.valid, &mut ids[start..]);
    }

    /// Writes the keys with those ids.
    pub fn write(&self, pick: Pick<'_>, column: &mut ColumnBuf) {
        let keys = &self.keys;
        macro_rules! fill {
            ($($kind:ident $type:ty),*) => {
                match column.physical() {
                    $(Physical::$kind => pick.extend(column.refill::<$type>(), |id| keys[id] as $type),)*
                    _ => unreachable!("only integer columns are indexed as integers"),
                }
            };
        }
        fill!(I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64);
        if let Some(null) = self.null
            && !pick.all(|id| id != null as usize)
        {
            pick.extend(column.refill_mask(), |id| u8::from(id != null as usize));
        }
    }
}

fn widened(range: Option<(i64, i64)>, key: i64) -> Option<(i64, i64)> {
    Some(range.map_or((key, key), |(smallest, largest)| (smallest.min(key), largest.max(key))))
}

impl Default for IntegerKeys {
    fn default() -> Self {
        Self::new()
    }
}
