//! One window of a join: its keys, and the rows of both sides.
//!
//! CHAIN-1. `heads[id][side]` is the last row of that side with that key, `next[row]` the one before it, and so on.
//! CHAIN-2. A key with a null has an id, but no chain: it equals nothing.
//! CHAIN-3. The keys of both sides share one numbering.

use penstock_memory::Column;
use penstock_types::ComputeError;

use super::pairs::ChosenPairs;
use super::{JoinKind, JoinSpec};
use crate::heap_bytes;
use crate::keys::KeyIndex;
use crate::rows::windows::WindowState;
use crate::rows::{StoredRows, any_null, has_nulls};

/// No row.
pub(super) const NONE: u32 = u32::MAX;

/// The rows of one side.
pub(super) struct Side {
    /// The key of each row.
    pub(super) ids: Vec<u32>,
    /// The previous row with the same key (CHAIN-1).
    pub(super) next: Vec<u32>,
    rows: StoredRows,
}

impl Side {
    fn bytes(&self) -> usize {
        heap_bytes(&self.ids) + heap_bytes(&self.next) + self.rows.bytes()
    }
}

/// A window of a join.
pub(super) struct JoinWindow {
    keys: KeyIndex,
    heads: Vec<[u32; 2]>,
    pub(super) sides: [Side; 2],
    /// The side that is being emitted, and its next row, once the window is closed.
    leaving: (usize, usize),
}

impl JoinWindow {
    /// Creates a window without rows.
    pub(super) fn new(spec: &JoinSpec) -> Self {
        let side = |number: usize| Side {
            ids: Vec::new(),
            next: Vec::new(),
            rows: StoredRows::new(spec.ports[number].columns.iter().map(|(_, physical)| *physical)),
        };
        Self {
            keys: KeyIndex::new(&spec.keys),
            heads: Vec::new(),
            sides: [side(0), side(1)],
            leaving: (0, 0),
        }
    }

    /// Returns the keys (CHAIN-3).
    pub(super) fn keys(&self) -> &KeyIndex {
        &self.keys
    }

    /// Returns the columns of one side.
    pub(super) fn columns(&self, side: usize) -> Vec<Column<'_>> {
        self.sides[side].rows.columns()
    }

    /// Finds the ids of rows; new keys get new ids.
    pub(super) fn identify(
        &mut self,
        keys: &[Column<'_>],
        count: usize,
        ids: &mut Vec<u32>,
    ) -> Result<(), ComputeError> {
        if self.keys.len() + count >= NONE as usize {
            return Err(too_large());
        }
        self.keys.insert(keys, count, ids);
        self.heads.resize(self.keys.len(), [NONE; 2]);
        Ok(())
    }

    /// Links rows with known ids to those of their side, and calls `found` for each that has matches, with its number
    /// and the first of them.
    pub(super) fn link(
        &mut self,
        side: usize,
        keys: &[Column<'_>],
        arriving: &[u32],
        mut found: impl FnMut(u32, u32),
    ) -> Result<(), ComputeError> {
        let heads = &mut self.heads;
        let Side { ids, next, .. } = &mut self.sides[side];
        if ids.len() + arriving.len() >= NONE as usize {
            return Err(too_large());
        }
        let first = ids.len() as u32;
        ids.extend_from_slice(arriving);
        let other = 1 - side;
        if has_nulls(keys) {
            for (row, &id) in arriving.iter().enumerate() {
                let head = &mut heads[id as usize];
                next.push(head[side]);
                if !any_null(keys, row) {
                    head[side] = first + row as u32; // CHAIN-2
                }
                if head[other] != NONE {
                    found(first + row as u32, head[other]);
                }
            }
            return Ok(());
        }
        next.extend(arriving.iter().zip(first..).map(|(&id, row)| {
            let head = &mut heads[id as usize];
            if head[other] != NONE {
                found(row, head[other]);
            }
            std::mem::replace(&mut head[side], row)
        }));
        Ok(())
    }

    /// Calls `found` for each row that will have matches, as [`JoinWindow::link`] does, without linking any.
    pub(super) fn probe(&self, side: usize, arriving: &[u32], mut found: impl FnMut(u32, u32)) {
        let first = self.sides[side].ids.len() as u32;
        for (&id, row) in arriving.iter().zip(first..) {
            let head = self.heads[id as usize][1 - side];
            if head != NONE {
                found(row, head);
            }
        }
    }

    /// Stores the columns of linked rows.
    pub(super) fn store(&mut self, side: usize, columns: &[Column<'_>], rows: Option<&[u32]>, count: usize) {
        self.sides[side].rows.append(columns, rows, count);
    }

    fn is_unmatched(&self, side: usize, row: usize) -> bool {
        self.heads[self.sides[side].ids[row] as usize][1 - side] == NONE
    }

    /// Moves to the next row that is emitted without a match; returns true if there is one.
    pub(super) fn find_unmatched(&mut self, kind: JoinKind) -> bool {
        let (mut side, mut row) = self.leaving;
        while side < 2 {
            let rows = if kind.keeps(side) { self.sides[side].ids.len() } else { 0 };
            while row < rows && !self.is_unmatched(side, row) {
                row += 1;
            }
            if row < rows {
                self.leaving = (side, row);
                return true;
            }
            (side, row) = (side + 1, 0);
        }
        self.leaving = (side, row);
        false
    }

    /// Chooses up to `room` rows that are emitted without a match, all of one side.
    pub(super) fn choose_unmatched(&mut self, kind: JoinKind, room: usize, chosen: &mut ChosenPairs) {
        chosen.clear();
        let (side, _) = self.leaving;
        chosen.alone = Some(side);
        while chosen.ids.len() < room && self.find_unmatched(kind) && self.leaving.0 == side {
            let row = self.leaving.1;
            chosen.sides[side].push(row as u32);
            chosen.ids.push(self.sides[side].ids[row]);
            self.leaving.1 += 1;
        }
    }
}

impl WindowState for JoinWindow {
    fn bytes(&self) -> usize {
        self.keys.bytes() + heap_bytes(&self.heads) + self.sides.iter().map(Side::bytes).sum::<usize>()
    }

    fn rows(&self) -> u64 {
        self.sides.iter().map(|side| side.ids.len() as u64).sum()
    }
}

fn too_large() -> ComputeError {
    ComputeError::TooLarge(
        "a window of a join holds more than 4,294,967,294 rows; use smaller windows".to_owned(),
    )
}
