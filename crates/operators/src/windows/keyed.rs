//! Keys and their accumulators.
//!
//! KEYED-1. Every accumulator has room for every key, whichever port the key came from.
//! KEYED-2. `counted` is the share of this state in the owner's total.
//! KEYED-3. `rows` is the number of rows it was updated with, directly or by a merge, as long as none of its windows
//!     has been emitted.

use arrow_array::ArrayRef;
use penstock_memory::{Column, ColumnBuf};
use penstock_types::KeyGroups;

use super::spec::{PortRows, ResolvedSpec};
use crate::aggregates::Accumulator;
use crate::aggregates::state::{from_array, to_array};
use crate::heap_bytes;
use crate::keys::groups::groups;
use crate::keys::shared::Directory;
use crate::keys::{KeyIndex, MISSING};
use crate::pick::Pick;

/// The accumulators of all aggregates.
pub(super) struct Accumulators(pub(super) Vec<Box<dyn Accumulator>>);

impl Clone for Accumulators {
    fn clone(&self) -> Self {
        Self(self.0.iter().map(|state| state.boxed_clone()).collect())
    }
}

impl Accumulators {
    pub(super) fn new(shape: &ResolvedSpec) -> Self {
        Self(shape.spec.factories.iter().map(|factory| factory.make()).collect())
    }

    pub(super) fn bytes(&self) -> usize {
        let of_states: usize = self.0.iter().map(|state| size_of_val(&**state) + state.bytes()).sum();
        heap_bytes(&self.0) + of_states
    }

    pub(super) fn update(&mut self, shape: &ResolvedSpec, ids: &[u32], keys: usize, rows: &PortRows<'_>) {
        for &(aggregate, input) in &rows.inputs {
            let times = rows.times.filter(|_| shape.spec.factories[aggregate].needs_time());
            self.0[aggregate].update(ids, keys, input, times);
        }
        if rows.inputs.len() < self.0.len() {
            self.grow(keys); // KEYED-1
        }
    }

    pub(super) fn grow(&mut self, keys: usize) {
        self.0.iter_mut().for_each(|state| state.grow(keys));
    }

    pub(super) fn merge(&mut self, other: &Self, ids: &[u32], keys: usize) {
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            own.merge(&**other, ids, keys);
        }
    }

    pub(super) fn absorb(&mut self, from: u32, into: u32) {
        self.0.iter_mut().for_each(|state| state.absorb(from, into));
    }

    pub(super) fn save(&self) -> Vec<ArrayRef> {
        self.0.iter().flat_map(|state| state.save()).collect()
    }

    /// Reads state from the columns that `save` has written.
    pub(super) fn load(shape: &ResolvedSpec, mut columns: &[ArrayRef]) -> Result<Self, String> {
        let mut states = Self::new(shape);
        for (state, factory) in states.0.iter_mut().zip(&shape.spec.factories) {
            let (own, rest) = columns.split_at(factory.state().len());
            state.load(own)?;
            columns = rest;
        }
        Ok(states)
    }
}

/// Creates empty columns for keys.
pub(super) fn key_columns(shape: &ResolvedSpec) -> Vec<ColumnBuf> {
    shape.spec.keys.iter().map(|key| ColumnBuf::new(*key)).collect()
}

pub(super) fn borrowed(columns: &[ColumnBuf]) -> Vec<Column<'_>> {
    columns.iter().map(ColumnBuf::as_column).collect()
}

/// Converts key columns to arrays.
pub(super) fn save_keys(shape: &ResolvedSpec, columns: &[ColumnBuf]) -> Vec<ArrayRef> {
    let types = shape.spec.key_types.iter().zip(columns);
    types.map(|(data_type, column)| to_array(data_type, column.as_column())).collect()
}

/// Reads key columns from arrays.
pub(super) fn load_keys(shape: &ResolvedSpec, columns: &[ArrayRef]) -> Result<Vec<ColumnBuf>, String> {
    let types = shape.spec.key_types.iter().zip(columns);
    types.map(|(data_type, array)| from_array(array, data_type)).collect()
}

/// The total size of several states.
#[derive(Clone, Copy, Default)]
pub(super) struct StateTotals {
    /// Heap memory.
    pub(super) bytes: usize,
    /// Rows (KEYED-3).
    pub(super) rows: u64,
}

/// Keys with their accumulators.
#[derive(Clone)]
pub(super) struct KeyedState {
    pub(super) keys: KeyIndex,
    pub(super) states: Accumulators,
    rows: u64,
    counted: StateTotals,
}

impl KeyedState {
    pub(super) fn new(shape: &ResolvedSpec) -> Self {
        Self::expecting(shape, 0)
    }

    /// Creates a state without keys that expects this many.
    pub(super) fn expecting(shape: &ResolvedSpec, keys: usize) -> Self {
        Self::with_keys(shape, KeyIndex::expecting(&shape.spec.keys, keys))
    }

    /// Creates a state without keys, with an empty index.
    pub(super) fn with_keys(shape: &ResolvedSpec, keys: KeyIndex) -> Self {
        Self { keys, states: Accumulators::new(shape), rows: 0, counted: StateTotals::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    fn bytes(&self) -> usize {
        self.keys.bytes() + self.states.bytes()
    }

    /// Updates the owner's total (KEYED-2).
    pub(super) fn count(&mut self, total: &mut StateTotals) {
        self.discount(total);
        self.counted = StateTotals { bytes: self.bytes(), rows: self.rows };
        total.bytes += self.counted.bytes;
        total.rows += self.counted.rows;
    }

    /// Removes its share from the owner's total (KEYED-2).
    pub(super) fn discount(&mut self, total: &mut StateTotals) {
        let counted = std::mem::take(&mut self.counted);
        total.bytes -= counted.bytes;
        total.rows -= counted.rows;
    }

    /// Marks its windows as emitted: its rows are not lost with it (KEYED-3).
    pub(super) fn forget_rows(&mut self) {
        self.rows = 0;
    }

    /// Clones the state, in no owner's total.
    pub(super) fn copied(&self) -> Self {
        Self { counted: StateTotals::default(), ..self.clone() }
    }

    pub(super) fn update(&mut self, shape: &ResolvedSpec, rows: &PortRows<'_>, ids: &mut Vec<u32>) {
        self.keys.insert(&rows.keys, rows.len, ids);
        self.states.update(shape, ids, self.keys.len(), rows);
        self.rows += rows.len as u64;
    }

    /// Returns every key, one column per key column.
    fn key_columns(&self, shape: &ResolvedSpec) -> Vec<ColumnBuf> {
        let mut columns = key_columns(shape);
        self.keys.write_picked(Pick::Range(0, self.len()), &mut columns);
        columns
    }

    /// Creates a state of some keys of an index, each once, with the states of the same ids.
    pub(super) fn picked(
        shape: &ResolvedSpec,
        keys: &KeyIndex,
        pick: Pick<'_>,
        states: &Accumulators,
    ) -> Self {
        let mut columns = key_columns(shape);
        keys.write_picked(pick, &mut columns);
        let mut picked = Self::new(shape);
        let mut own = Vec::new();
        picked.keys.insert(&borrowed(&columns), pick.len(), &mut own);
        let (mut ids, mut next) = (vec![MISSING; keys.len()], own.into_iter());
        pick.all(|id| {
            ids[id] = next.next().unwrap_or(MISSING);
            true
        });
        picked.states.merge(states, &ids, picked.keys.len());
        picked
    }

    /// Looks its keys up in another directory from now on. They keep their ids, since they are inserted in the same
    /// order.
    pub(super) fn move_to(&mut self, shape: &ResolvedSpec, directory: &Directory) {
        if matches!(self.keys, KeyIndex::Shared(_)) {
            let mut keys = directory.index();
            keys.insert_keys(&self.keys, &shape.spec.keys, &mut Vec::new());
            self.keys = keys;
        }
    }

    /// Merges another state: keys are hashed once each, whatever the number of rows.
    pub(super) fn merge(&mut self, shape: &ResolvedSpec, other: &Self) {
        let mut ids = Vec::new();
        self.keys.insert_keys(&other.keys, &shape.spec.keys, &mut ids);
        self.states.merge(&other.states, &ids, self.keys.len());
        self.rows += other.rows;
    }

    /// Merges another state, of keys that are present already.
    pub(super) fn merge_known(&mut self, shape: &ResolvedSpec, other: &Self) {
        let columns = other.key_columns(shape);
        let mut ids = Vec::new();
        self.keys.find(&borrowed(&columns), other.len(), &mut ids);
        self.states.merge(&other.states, &ids, self.keys.len());
    }

    /// Returns the keys whose flag in `goes` equals `wanted`; `None` where there is none.
    fn part(&self, shape: &ResolvedSpec, columns: &[ColumnBuf], goes: &[bool], wanted: bool) -> Option<Self> {
        let rows: Vec<u32> = (0..goes.len() as u32).filter(|&id| goes[id as usize] == wanted).collect();
        if rows.is_empty() {
            return None;
        }
        let gathered: Vec<ColumnBuf> = columns
            .iter()
            .map(|column| {
                let mut part = ColumnBuf::new(column.physical());
                part.gather(column.as_column(), &rows);
                part
            })
            .collect();
        let mut part = Self::new(shape);
        let mut own = Vec::new();
        part.keys.insert(&borrowed(&gathered), rows.len(), &mut own);
        let mut ids = vec![MISSING; goes.len()];
        rows.iter().zip(own).for_each(|(&from, to)| ids[from as usize] = to);
        part.states.merge(&self.states, &ids, part.keys.len());
        part.rows = self.rows * rows.len() as u64 / goes.len() as u64;
        Some(part)
    }

    /// Splits the state in two: keys of these groups, and the others.
    pub(super) fn split(self, shape: &ResolvedSpec, wanted: KeyGroups) -> (Option<Self>, Option<Self>) {
        let columns = self.key_columns(shape);
        let mut of_keys = Vec::new();
        groups(&borrowed(&columns), &shape.spec.key_types, self.len(), &mut of_keys);
        let goes: Vec<bool> = of_keys.iter().map(|&group| wanted.contains(group)).collect();
        match (goes.contains(&true), goes.contains(&false)) {
            (true, false) => (Some(self), None),
            (false, _) => (None, Some(self)),
            _ => (self.part(shape, &columns, &goes, true), self.part(shape, &columns, &goes, false)),
        }
    }

    /// Returns one row per key: the keys, then the state of each aggregate.
    pub(super) fn save(&self, shape: &ResolvedSpec) -> Vec<ArrayRef> {
        let mut columns = save_keys(shape, &self.key_columns(shape));
        columns.extend(self.states.save());
        columns
    }

    /// Reads state from rows that `save` has written; keys may occur more than once.
    pub(super) fn load(shape: &ResolvedSpec, columns: &[ArrayRef], rows: usize) -> Result<Self, String> {
        let (keys, states) = columns.split_at(shape.spec.keys.len());
        let keys = load_keys(shape, keys)?;
        let loaded = Accumulators::load(shape, states)?;
        let mut keyed = Self::new(shape);
        let mut ids = Vec::new();
        keyed.keys.insert(&borrowed(&keys), rows, &mut ids);
        if ids.iter().enumerate().all(|(row, &id)| row == id as usize) {
            keyed.states = loaded;
        } else {
            keyed.states.merge(&loaded, &ids, keyed.keys.len());
        }
        Ok(keyed)
    }
}
