//! An open-addressing table from keys to ids.
//!
//! Key and id stand side by side, so that a lookup mostly touches one cache line. A run is looked up in two passes: the
//! first reads one entry per row and branches on nothing, so that the memory accesses of many rows overlap; the second
//! follows up the few rows whose entry was taken by another key.
//!
//! While the table is small, it grows when many rows have to be followed up, not only when it is full.
//!
//! KEY_TABLE-1. The number of entries is a power of two, and at least twice that of the keys: a search ends at a free entry.

use super::MISSING;

/// A key of the table. Equal keys have equal bits.
pub trait TableKey: Copy + Default + Eq {
    /// Spreads the key over 64 bits, of which the upper ones count most.
    fn hash(self, seed: Seed) -> u64;
}

/// What makes the hashes of one table differ from those of another.
#[derive(Clone, Copy, Debug)]
pub struct Seed(u64, u64);

impl Seed {
    pub fn random() -> Self {
        use std::hash::BuildHasher;
        let state = foldhash::fast::RandomState::default();
        Self(state.hash_one(0_u64), state.hash_one(1_u64) | 1)
    }
}

#[inline(always)]
fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    (product as u64) ^ (product >> 64) as u64
}

impl TableKey for u64 {
    #[inline(always)]
    fn hash(self, seed: Seed) -> u64 {
        fold(self ^ seed.0, seed.1)
    }
}

impl TableKey for u128 {
    #[inline(always)]
    fn hash(self, seed: Seed) -> u64 {
        fold(fold(self as u64 ^ seed.0, seed.1) ^ (self >> 64) as u64, seed.1)
    }
}

/// A key, which of its columns are null, and its id plus one; 0 where the entry is free.
#[derive(Clone, Copy, Default)]
struct KeyEntry<K> {
    key: K,
    nulls: u32,
    place: u32,
}

/// Maps keys to ids.
#[derive(Clone)]
pub struct KeyTable<K> {
    entries: Vec<KeyEntry<K>>,
    /// How far a hash is shifted to become the number of an entry.
    shift: u32,
    used: usize,
    /// How many keys there will be, if this is like the last time; 0 if nobody knows.
    expected: usize,
    seed: Seed,
}

/// Where a key is looked for first; the bits beyond the table are not cut off.
#[inline(always)]
fn first_place<K: TableKey>(key: K, nulls: u32, seed: Seed, shift: u32) -> usize {
    let hash = key.hash(seed) ^ u64::from(nulls).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (hash >> shift) as usize
}

const FIRST_ENTRIES: usize = 16;
/// When one in so many of the expected keys has come, the others are made room for.
const LIKELY: usize = 8;
/// A table of fewer entries than this is grown to save rows from being followed up: it stays within the L2 cache ...
const SMALL_TABLE: usize = 4096;
/// ... if at least one in so many of them is.
const CROWDED: usize = 16;

impl<K: TableKey> KeyTable<K> {
    pub fn new() -> Self {
        Self { entries: vec![KeyEntry::default(); 1], shift: 63, used: 0, expected: 0, seed: Seed::random() }
    }

    /// A table without keys that holds `keys` of them without growing.
    pub fn with_room(keys: usize, seed: Seed) -> Self {
        let entries = (keys.max(FIRST_ENTRIES / 2) * 2).next_power_of_two();
        let shift = 64 - entries.trailing_zeros();
        Self { entries: vec![KeyEntry::default(); entries], shift, used: 0, expected: 0, seed }
    }

    /// Says how many keys there will be, if this is like the last time.
    pub fn expect(&mut self, keys: usize) {
        self.expected = keys;
    }

    pub fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<KeyEntry<K>>()
    }

    /// Whether one more key needs a larger table.
    #[inline]
    pub fn is_full(&self) -> bool {
        (self.used + 1) * 2 > self.entries.len()
    }

    /// Appends the id of each key, with its nulls, that stands where it is looked for first; otherwise [`MISSING`].
    #[inline(always)]
    pub fn glance(&self, keys: impl ExactSizeIterator<Item = (K, u32)>, ids: &mut Vec<u32>) {
        // Copies, which writing an id cannot change.
        let (entries, seed, shift) = (self.entries.as_slice(), self.seed, self.shift);
        ids.extend(keys.map(|(key, nulls)| {
            let entry = &entries[first_place(key, nulls, seed, shift) & (entries.len() - 1)];
            let same = (entry.key == key) & (entry.nulls == nulls);
            // 0 - 1 wraps to MISSING.
            if same { entry.place.wrapping_sub(1) } else { MISSING }
        }));
    }

    /// Hears how many of the rows of a run had to be followed up although their keys were there.
    pub fn followed_up(&mut self, found: usize, rows: usize) {
        if self.entries.len() < SMALL_TABLE && found * CROWDED > rows {
            self.grow();
        }
    }

    /// The id for which `same` holds among those that share key and nulls.
    #[inline]
    pub fn find(&self, key: K, nulls: u32, same: impl Fn(u32) -> bool) -> Result<u32, usize> {
        let mask = self.entries.len() - 1;
        let mut place = first_place(key, nulls, self.seed, self.shift);
        loop {
            let entry = &self.entries[place & mask];
            if entry.place == 0 {
                return Err(place & mask); // KEY_TABLE-1
            }
            if entry.key == key && entry.nulls == nulls && same(entry.place - 1) {
                return Ok(entry.place - 1);
            }
            place += 1;
        }
    }

    /// Puts a key into the free entry that `find` gave. The table is not full.
    pub fn fill(&mut self, free: usize, key: K, nulls: u32, id: u32) {
        debug_assert!(!self.is_full(), "KEY_TABLE-1");
        self.entries[free] = KeyEntry { key, nulls, place: id + 1 };
        self.used += 1;
    }

    /// Adds a key that is not there, in a table that is not full.
    pub fn add(&mut self, key: K, nulls: u32, id: u32) {
        let free = self.find(key, nulls, |_| false).expect_err("nothing is the same");
        self.fill(free, key, nulls, id);
    }

    /// Doubles the table; more, once it looks as if as many keys come as are expected.
    pub fn grow(&mut self) {
        let looks_so = self.used * LIKELY >= self.expected;
        let old = std::mem::take(&mut self.entries);
        let (room, expected) =
            (if looks_so { old.len().max(self.expected) } else { old.len() }, self.expected);
        *self = Self { expected, ..Self::with_room(room, self.seed) };
        for entry in old.into_iter().filter(|entry| entry.place != 0) {
            self.add(entry.key, entry.nulls, entry.place - 1);
        }
    }
}
