//! A join with a table.
//!
//! Each key is in the table at most once, so a row finds one match or none. Null matches nothing.

use std::sync::Arc;

use penstock_memory::{Run, SlotId};
use penstock_types::ComputeError;

use crate::Stateless;
use crate::indexed_table::{IndexedTable, TablePlace};
use crate::keys::MISSING;

/// The handling of a row without a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LookupKind {
    /// It is dropped.
    Inner,
    /// It is passed on with nulls.
    Left,
}

/// Looks rows up in a table.
pub struct Lookup {
    place: TablePlace,
    version: u64,
    table: Arc<IndexedTable>,
    kind: LookupKind,
    keys: Vec<SlotId>,
    /// Maps columns of the table to slots.
    fill: Vec<(usize, SlotId)>,
    ids: Vec<u32>,
}

impl Lookup {
    /// Creates a lookup of the columns in the slots `keys` in the table at `place`; `fill` pairs each other column of
    /// the table with the slot to put it into.
    pub fn new(place: TablePlace, kind: LookupKind, keys: Vec<SlotId>, fill: Vec<(usize, SlotId)>) -> Self {
        // The version first: a table that is replaced in between is noticed later.
        let version = place.version();
        let table = place.table();
        Self { place, version, table, kind, keys, fill, ids: Vec::new() }
    }
}

impl Stateless for Lookup {
    fn apply(&mut self, run: &mut Run) -> Result<(), ComputeError> {
        let version = self.place.version();
        if version != self.version {
            (self.version, self.table) = (version, self.place.table());
        }
        run.ready(&self.keys);
        let columns: Vec<_> = self.keys.iter().map(|&slot| run.column(slot)).collect();
        // A key with a null is not in the table, so it is not found either.
        self.table.keys.find(&columns, run.len(), &mut self.ids);
        drop(columns);
        let any_missing = self.ids.contains(&MISSING);
        if any_missing && self.kind == LookupKind::Inner {
            let mut rows = run.selection();
            rows.extend((0..self.ids.len() as u32).filter(|&row| self.ids[row as usize] != MISSING));
            self.ids.retain(|&id| id != MISSING);
            run.select(rows);
        }
        for &(column, slot) in &self.fill {
            let from = &self.table.columns[column];
            let mut filled = run.scratch(from.physical());
            if any_missing && self.kind == LookupKind::Left {
                if self.table.is_empty() {
                    filled.fill_null(run.len());
                } else {
                    let rows: Vec<u32> =
                        self.ids.iter().map(|&id| if id == MISSING { 0 } else { id }).collect();
                    filled.gather(from.as_column(), &rows);
                    filled.mask_out(|row| self.ids[row] == MISSING);
                }
            } else {
                filled.gather(from.as_column(), &self.ids);
            }
            run.put(slot, filled);
        }
        Ok(())
    }
}
