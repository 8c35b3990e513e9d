//! An open-addressing table from keys to ids.
//!
//! An entry holds key and id, so that a lookup mostly touches one cache line. A run is looked up in two passes: the
//! first reads one entry per row and has no branches, so that the memory accesses of many rows overlap; the second
//! resolves the few rows whose entry holds another key.
//!
//! While the table is small, it grows when many rows have to be resolved, not only when it is full.
//!
//! KEY_TABLE-1. The number of entries is a power of two, and at least twice that of the keys: a search ends at a free
//!     entry.

use super::MISSING;

/// A key of the table. Equal keys have equal bits.
pub trait TableKey: Copy + Default + Eq {
    /// Spreads the key over 64 bits, of which the upper ones are used first.
    fn hash(self, seed: Seed) -> u64;
}

/// The seed that makes the hashes of one table differ from those of another.
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

/// A key, its null columns, and its id plus one; 0 where the entry is free.
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
    /// The shift from a hash to the number of an entry.
    shift: u32,
    used: usize,
    /// The expected number of keys, from the last use; 0 if unknown.
    expected: usize,
    seed: Seed,
}

/// Returns the first entry of a key; bits beyond the table are not masked.
#[inline(always)]
fn first_place<K: TableKey>(key: K, nulls: u32, seed: Seed, shift: u32) -> usize {
    let hash = key.hash(seed) ^ u64::from(nulls).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (hash >> shift) as usize
}

const FIRST_ENTRIES: usize = 16;
/// When one in this many of the expected keys is present, the table makes room for the others.
const LIKELY: usize = 8;
/// A table of fewer entries than this grows to save rows from being resolved: it stays within the L2 cache ...
const SMALL_TABLE: usize = 4096;
/// ... if at least one in this many of them is.
const CROWDED: usize = 16;

impl<K: TableKey> KeyTable<K> {
    pub fn new() -> Self {
        Self { entries: vec![KeyEntry::default(); 1], shift: 63, used: 0, expected: 0, seed: Seed::random() }
    }

    /// Creates a table without keys that holds `keys` of them without growing.
    pub fn with_room(keys: usize, seed: Seed) -> Self {
        let entries = (keys.max(FIRST_ENTRIES / 2) * 2).next_power_of_two();
        let shift = 64 - entries.trailing_zeros();
        Self { entries: vec![KeyEntry::default(); entries], shift, used: 0, expected: 0, seed }
    }

    /// Sets the expected number of keys, from the last use.
    pub fn expect(&mut self, keys: usize) {
        self.expected = keys;
    }

    pub fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<KeyEntry<K>>()
    }

    /// Returns true if one more key needs a larger table.
    #[inline]
    pub fn is_full(&self) -> bool {
        (self.used + 1) * 2 > self.entries.len()
    }

    /// Appends the id of each key, with its nulls, that is in its first entry; otherwise [`MISSING`].
    #[inline(always)]
    pub fn glance(&self, keys: impl ExactSizeIterator<Item = (K, u32)>, ids: &mut Vec<u32>) {
        // Copies, so that writing an id cannot invalidate them.
        let (entries, seed, shift) = (self.entries.as_slice(), self.seed, self.shift);
        ids.extend(keys.map(|(key, nulls)| {
            let entry = &entries[first_place(key, nulls, seed, shift) & (entries.len() - 1)];
            let same = (entry.key == key) & (entry.nulls == nulls);
            // 0 - 1 wraps to MISSING.
            if same { entry.place.wrapping_sub(1) } else { MISSING }
        }));
    }

    /// Takes note of the rows of a run that had to be resolved although their keys were present.
    pub fn followed_up(&mut self, found: usize, rows: usize) {
        if self.entries.len() < SMALL_TABLE && found * CROWDED > rows {
            self.grow();
        }
    }

    /// Returns the id for which `same` holds among those that share key and nulls; otherwise a free entry.
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

    /// Puts a key into the free entry that `find` returned. The table is not full.
    pub fn fill(&mut self, free: usize, key: K, nulls: u32, id: u32) {
        debug_assert!(!self.is_full(), "KEY_TABLE-1");
        self.entries[free] = KeyEntry { key, nulls, place: id + 1 };
        self.used += 1;
    }

    /// Adds a missing key to a table that is not full.
    pub fn add(&mut self, key: K, nulls: u32, id: u32) {
        let free = self.find(key, nulls, |_| false).expect_err("nothing is the same");
        self.fill(free, key, nulls, id);
    }

    /// Doubles the table; grows it further once the expected number of keys seems likely.
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
