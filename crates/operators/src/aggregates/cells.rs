//! State of one cell per key.
//!
//! Most aggregates have this form: a kind defines what a cell takes, how two cells merge and what is written; keys,
//! merging and memory are the same for all of them.

use std::any::Any;

use arrow_array::ArrayRef;
use penstock_memory::{Column, ColumnBuf};
use penstock_types::ComputeError;

use super::Accumulator;
use crate::heap_bytes;
use crate::keys::MISSING;
use crate::pick::Pick;

/// What the cells of one aggregate hold and do.
pub(super) trait CellKind: Clone + Send + 'static {
    type Cell: Clone + Default + Send + 'static;

    /// Takes a run; returns the growth of the heap memory of the cells.
    fn take(
        &self,
        cells: &mut [Self::Cell],
        ids: &[u32],
        input: Option<Column<'_>>,
        times: Option<&[i64]>,
    ) -> isize;

    /// Merges the rows of `from` into `into`.
    fn merge(&self, into: &mut Self::Cell, from: &Self::Cell);

    /// Returns the heap memory of a cell.
    fn heap(_cell: &Self::Cell) -> usize {
        0
    }

    /// Returns the heap memory of the kind itself.
    fn own_bytes(&self) -> usize {
        0
    }

    fn write(&self, cells: &[Self::Cell], pick: Pick<'_>, out: &mut ColumnBuf) -> Result<(), ComputeError>;

    fn save(&self, cells: &[Self::Cell]) -> Vec<ArrayRef>;

    fn load(&self, columns: &[ArrayRef]) -> Result<Vec<Self::Cell>, String>;
}

/// The cells of all keys.
#[derive(Clone)]
pub(super) struct Cells<K: CellKind> {
    kind: K,
    cells: Vec<K::Cell>,
    /// Heap memory of all cells together, kept as a running sum.
    heap: usize,
}

impl<K: CellKind> Cells<K> {
    pub(super) fn boxed(kind: K) -> Box<dyn Accumulator> {
        Box::new(Self { kind, cells: Vec::new(), heap: 0 })
    }

    fn merge_cell(&mut self, id: usize, from: &K::Cell) {
        let cell = &mut self.cells[id];
        let before = K::heap(cell);
        self.kind.merge(cell, from);
        self.heap = self.heap - before + K::heap(cell);
    }
}

impl<K: CellKind> Accumulator for Cells<K> {
    fn update(&mut self, ids: &[u32], keys: usize, input: Option<Column<'_>>, times: Option<&[i64]>) {
        self.grow(keys);
        let grown = self.kind.take(&mut self.cells, ids, input, times);
        self.heap = self.heap.wrapping_add_signed(grown);
    }

    fn grow(&mut self, keys: usize) {
        if self.cells.len() < keys {
            self.cells.resize(keys, K::Cell::default());
        }
    }

    fn merge(&mut self, other: &dyn Accumulator, ids: &[u32], keys: usize) {
        self.grow(keys);
        let other = (other as &dyn Any).downcast_ref::<Self>().expect("state of one aggregate is merged");
        for (from, &id) in other.cells.iter().zip(ids) {
            if id != MISSING {
                self.merge_cell(id as usize, from);
            }
        }
    }

    fn absorb(&mut self, from: u32, into: u32) {
        let taken = std::mem::take(&mut self.cells[from as usize]);
        self.heap -= K::heap(&taken);
        self.merge_cell(into as usize, &taken);
    }

    fn reset(&mut self, id: u32) {
        let taken = std::mem::take(&mut self.cells[id as usize]);
        self.heap -= K::heap(&taken);
    }

    fn write(&self, pick: Pick<'_>, out: &mut ColumnBuf) -> Result<(), ComputeError> {
        self.kind.write(&self.cells, pick, out)
    }

    fn save(&self) -> Vec<ArrayRef> {
        self.kind.save(&self.cells)
    }

    fn load(&mut self, columns: &[ArrayRef]) -> Result<(), String> {
        self.cells = self.kind.load(columns)?;
        self.heap = self.cells.iter().map(K::heap).sum();
        Ok(())
    }

    fn bytes(&self) -> usize {
        heap_bytes(&self.cells) + self.heap + self.kind.own_bytes()
    }

    fn boxed_clone(&self) -> Box<dyn Accumulator> {
        Box::new(self.clone())
    }
}
