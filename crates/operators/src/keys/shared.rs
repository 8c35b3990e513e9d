//! Keys of several states, looked up in one directory.
//!
//! The panes of sliding windows have mostly the same keys. Each would fill a table of its own with them; instead the
//! directory numbers every key once, and a state only stores the numbers it has met. States with one directory
//! recognise each other's keys without hashing them.
//!
//! SHARED_KEYS-1. `numbers[id]` is the number of the key with that id, and `ids[number]` the id, [`MISSING`] where
//!     there is none.
//! SHARED_KEYS-2. A directory only grows. It is dropped with the last state that uses it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use penstock_memory::{Column, ColumnBuf, Physical};

use super::{KeyIndex, MISSING};
use crate::heap_bytes;
use crate::pick::Pick;

/// The keys of several states.
#[derive(Clone)]
pub struct Directory(Arc<Mutex<KeyIndex>>);

impl Directory {
    /// Creates an empty directory over key columns of that storage.
    pub fn new(columns: &[Physical]) -> Self {
        Self(Arc::new(Mutex::new(KeyIndex::new(columns))))
    }

    fn keys(&self) -> MutexGuard<'_, KeyIndex> {
        // A panic leaves an index that lacks a key at worst, and ends the query.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.keys().len()
    }

    /// Returns true if there is no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns its heap memory.
    pub fn bytes(&self) -> usize {
        self.keys().bytes()
    }

    /// Returns true if it has another user.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Creates an index without keys, which looks them up here.
    pub fn index(&self) -> KeyIndex {
        KeyIndex::Shared(SharedKeys { directory: self.clone(), numbers: Vec::new(), ids: Vec::new() })
    }
}

/// Maps rows to dense ids, by way of a directory.
#[derive(Clone)]
pub struct SharedKeys {
    directory: Directory,
    numbers: Vec<u32>,
    ids: Vec<u32>,
}

impl SharedKeys {
    /// Returns the directory of its keys.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Returns true if there is no key.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Returns the heap memory of the index, without its directory.
    pub fn bytes(&self) -> usize {
        heap_bytes(&self.numbers) + heap_bytes(&self.ids)
    }

    /// Replaces numbers by ids; new keys get new ids.
    fn take_in(&mut self, known: usize, numbers: &mut [u32]) {
        self.ids.resize(known, MISSING);
        // A branch on new keys would be unpredictable: the next number is always written, and kept if the key is new.
        let mut next = self.numbers.len();
        self.numbers.resize(next + numbers.len(), 0);
        for number in numbers {
            let id = &mut self.ids[*number as usize];
            self.numbers[next] = *number;
            let is_new = *id == MISSING;
            *id = if is_new { next as u32 } else { *id };
            *number = *id;
            next += usize::from(is_new);
        }
        self.numbers.truncate(next);
    }

    /// Fills `ids` with the id of each row's key; new keys get new ids.
    pub fn insert(&mut self, columns: &[Column<'_>], rows: usize, ids: &mut Vec<u32>) {
        let known = {
            let mut keys = self.directory.keys();
            keys.insert(columns, rows, ids);
            keys.len()
        };
        self.take_in(known, ids);
    }

    /// Fills `ids` with the id of each key of another index; returns false unless both share one directory.
    pub fn insert_beside(&mut self, other: &Self, ids: &mut Vec<u32>) -> bool {
        let same = Arc::ptr_eq(&self.directory.0, &other.directory.0);
        if same {
            ids.clear();
            ids.extend_from_slice(&other.numbers);
            self.take_in(self.ids.len().max(other.ids.len()), ids);
        }
        same
    }

    /// Fills `ids` with the id of each row's key, [`MISSING`] where there is none.
    pub fn find(&self, columns: &[Column<'_>], rows: usize, ids: &mut Vec<u32>) {
        self.directory.keys().find(columns, rows, ids);
        // A number that is MISSING lies beyond all ids.
        ids.iter_mut().for_each(|id| *id = self.ids.get(*id as usize).copied().unwrap_or(MISSING));
    }

    /// Writes the keys with those ids, one column per key column.
    pub fn write(&self, pick: Pick<'_>, columns: &mut [ColumnBuf]) {
        let keys = self.directory.keys();
        match pick {
            Pick::Range(from, to) => keys.write_picked(Pick::List(&self.numbers[from..to]), columns),
            Pick::List(ids) => {
                let numbers: Vec<u32> = ids.iter().map(|&id| self.numbers[id as usize]).collect();
                keys.write_picked(Pick::List(&numbers), columns);
            }
        }
    }
}
