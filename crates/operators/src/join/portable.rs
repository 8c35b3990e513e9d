//! The state of a join, split, merged, written and read.
//!
//! The caller has taken all output before. The rows of both sides are written, in the tables `left` and `right`;
//! everything else follows from them.
//!
//! JOIN_MERGE-1. Pairs of rows of one operator were emitted before its state is merged; pairs of rows of two operators
//!     were not, and are output of the merged one.

use arrow_schema::DataType;
use penstock_memory::{Column, ColumnBuf};
use penstock_types::{ComputeError, KeyGroups};

use super::WindowJoin;
use super::state::JoinWindow;
use crate::contract::{SnapshotError, StateSnapshot, Stateful};
use crate::keys::groups::groups;
use crate::pick::Pick;
use crate::rows::tables::{TableOwner, TableWriter, read_batch};
use crate::rows::{borrowed, gathered, key_columns};

const OWNER: TableOwner = TableOwner { operator: "window_join", version: 1 };
const TABLES: [&str; 2] = ["left", "right"];
/// The rows of a window are counted with 32 bits, wherever they are added.
const FITS: &str = "the rows of a window are fewer than 2^32";

impl WindowJoin {
    /// Creates a join of the same specification, without rows, with the same windows closed.
    fn alike(&self) -> Self {
        Self { placing: self.placing, ..Self::new(self.spec.clone()) }
    }

    fn types(&self, side: usize) -> [&[DataType]; 2] {
        [&self.spec.key_types, &self.spec.column_types[side]]
    }

    fn keys_of(&self, window: &JoinWindow, ids: Pick<'_>) -> Vec<ColumnBuf> {
        key_columns(window.keys(), &self.spec.keys, ids)
    }

    /// Splits off the rows of these groups.
    pub(super) fn take_groups(&mut self, wanted: KeyGroups) -> Self {
        assert!(!self.has_output(), "output is taken before state is split");
        let mut taken = self.alike();
        let mut of_keys = Vec::new();
        for number in self.windows.numbers() {
            let Some(window) = self.windows.get(number) else { continue };
            let keys = self.keys_of(window, Pick::Range(0, window.keys().len()));
            groups(&borrowed(&keys), &self.spec.key_types, window.keys().len(), &mut of_keys);
            let goes: Vec<bool> = of_keys.iter().map(|&group| wanted.contains(group)).collect();
            if !goes.contains(&true) {
                continue;
            }
            let Some(window) = self.windows.remove(number) else { continue };
            if !goes.contains(&false) {
                taken.windows.insert(number, window);
                continue;
            }
            taken.windows.insert(number, self.part(&window, |id| goes[id as usize]));
            self.windows.insert(number, self.part(&window, |id| !goes[id as usize]));
        }
        taken
    }

    /// Copies the rows of a window whose keys have an id for which `goes` holds into a window of their own.
    fn part(&self, window: &JoinWindow, goes: impl Fn(u32) -> bool) -> JoinWindow {
        let mut part = JoinWindow::new(&self.spec);
        for side in [0, 1] {
            let ids = &window.sides[side].ids;
            let rows: Vec<u32> = (0..ids.len() as u32).filter(|&row| goes(ids[row as usize])).collect();
            let of_rows: Vec<u32> = rows.iter().map(|&row| ids[row as usize]).collect();
            let keys = self.keys_of(window, Pick::List(&of_rows));
            add(&mut part, side, &borrowed(&keys), &window.columns(side), Some(&rows), rows.len())
                .expect(FITS);
        }
        part
    }

    /// Splits off the windows that are over by that watermark.
    pub(super) fn take_over(&mut self, watermark: i64) -> Self {
        assert!(!self.has_output(), "output is taken before state is split");
        let mut taken = self.alike();
        self.placing.advance(watermark);
        taken.windows = self.windows.remove_below(self.placing.closed_below());
        taken
    }

    /// Merges the state of another join (JOIN_MERGE-1).
    pub(super) fn take_other(&mut self, other: Self) {
        assert!(!other.has_output(), "output is taken before state is merged");
        self.late.add(other.late);
        // The watermarks that arrive here decide which windows are closed: a row that is late elsewhere need not be
        // late here. Only an operator without any input yet continues where the other one stopped.
        if self.placing.is_fresh() && self.windows.first().is_none() {
            self.placing = other.placing;
        }
        for (number, window) in other.windows.into_windows() {
            if self.windows.get(number).is_none() {
                self.windows.insert(number, window);
                continue;
            }
            let keys = [0, 1].map(|side| self.keys_of(&window, Pick::List(&window.sides[side].ids)));
            let keys = [borrowed(&keys[0]), borrowed(&keys[1])];
            let Self { spec, windows, pairs, ids, .. } = self;
            let merge = |own: &mut JoinWindow| {
                // The arriving right rows find the earlier left ones before the left rows that arrive with them are
                // linked.
                own.identify(&keys[1], window.sides[1].ids.len(), ids)?;
                pairs.begin(number, 1);
                own.probe(1, ids, |row, first| pairs.push(row, first));
                pairs.end();
                own.identify(&keys[0], window.sides[0].ids.len(), ids)?;
                pairs.begin(number, 0);
                own.link(0, &keys[0], ids, |row, first| pairs.push(row, first))?;
                pairs.end();
                own.store(0, &window.columns(0), None, window.sides[0].ids.len());
                add(own, 1, &keys[1], &window.columns(1), None, window.sides[1].ids.len())
            };
            windows.update(number, || JoinWindow::new(spec), merge).expect(FITS);
        }
        self.settle();
    }

    /// Writes the rows of both sides.
    pub(super) fn write_snapshot(&self) -> StateSnapshot {
        let mut tables = Vec::new();
        for side in [0, 1] {
            let mut table =
                TableWriter::new(OWNER, TABLES[side], self.types(side), (&self.placing, self.late));
            for (number, window) in self.windows.iter() {
                let ids = &window.sides[side].ids;
                let keys = self.keys_of(window, Pick::List(ids));
                let mut columns = borrowed(&keys);
                columns.extend(window.columns(side));
                table.append(number, &columns, ids.len());
            }
            tables.extend(table.finish());
        }
        StateSnapshot { tables }
    }

    /// Replaces its rows by those of a snapshot.
    pub(super) fn read_snapshot(&mut self, snapshot: &StateSnapshot) -> Result<(), SnapshotError> {
        let mut restored = Self::new(self.spec.clone());
        let mut seen = [false; 2];
        for batch in &snapshot.tables {
            let name = OWNER.table(batch)?;
            let Some(side) = TABLES.iter().position(|table| *table == name) else {
                return Err(OWNER.broken(format!("there is no table \"{name}\"")));
            };
            seen[side] = true;
            (restored.placing, restored.late) = OWNER.notes(batch, self.spec.windows)?;
            let (columns, pieces) = read_batch(OWNER, batch, self.types(side), self.spec.windows)?;
            let columns = borrowed(&columns);
            let (keys, columns) = columns.split_at(self.spec.keys.len().min(columns.len()));
            for piece in pieces {
                let keys: Vec<ColumnBuf> = keys.iter().map(|key| gathered(*key, &piece.rows)).collect();
                let add = |window: &mut JoinWindow| {
                    add(window, side, &borrowed(&keys), columns, Some(&piece.rows), piece.rows.len())
                };
                let added = restored.windows.update(piece.window, || JoinWindow::new(&self.spec), add);
                added.map_err(|error| OWNER.broken(error))?;
            }
        }
        if let Some(side) = seen.iter().position(|seen| !seen) {
            return Err(OWNER.broken(format!("the table \"{}\" is missing", TABLES[side])));
        }
        restored.settle();
        *self = restored;
        Ok(())
    }
}

/// Adds rows whose pairs were emitted before.
fn add(
    window: &mut JoinWindow,
    side: usize,
    keys: &[Column<'_>],
    columns: &[Column<'_>],
    rows: Option<&[u32]>,
    count: usize,
) -> Result<(), ComputeError> {
    let mut ids = Vec::new();
    window.identify(keys, count, &mut ids)?;
    window.link(side, keys, &ids, |_, _| {})?;
    window.store(side, columns, rows, count);
    Ok(())
}
