//! Computes the key group of each row, for readers that select rows by key.

use arrow_schema::DataType;
use penstock_memory::{Column, Physical, Run, SlotId};
use penstock_types::{ComputeError, KeyGroup};

use crate::Stateless;
use crate::keys::groups;

/// Computes key groups.
pub struct Grouping {
    slots: Vec<SlotId>,
    types: Vec<DataType>,
    fill: SlotId,
    groups: Vec<KeyGroup>,
}

impl Grouping {
    /// Creates an operator that fills a slot with the group of the key in these slots.
    pub fn new(keys: &[(SlotId, DataType)], fill: SlotId) -> Self {
        let (slots, types) = keys.iter().cloned().unzip();
        Self { slots, types, fill, groups: Vec::new() }
    }
}

impl Stateless for Grouping {
    fn apply(&mut self, run: &mut Run) -> Result<(), ComputeError> {
        run.ready(&self.slots);
        let columns: Vec<Column<'_>> = self.slots.iter().map(|&slot| run.column(slot)).collect();
        groups::groups(&columns, &self.types, run.len(), &mut self.groups);
        let mut filled = run.scratch(Physical::U8);
        std::mem::swap(filled.refill(), &mut self.groups);
        run.put(self.fill, filled);
        Ok(())
    }
}
