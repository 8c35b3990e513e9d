//! The state of a top-k, split, merged, written and read.
//!
//! The caller has taken all output before. The kept rows are written, in the table `rows`. Where the ordering column
//! is not part of the result, its order is written as well: as bytes, and as the code of the row.

use arrow_schema::DataType;
use penstock_memory::{Column, ColumnBuf, Values};
use penstock_types::KeyGroups;

use super::state::{IncomingRows, RankedRow, TopWindow};
use super::{TopK, codes};
use crate::contract::{SnapshotError, StateSnapshot, Stateful};
use crate::keys::groups::groups;
use crate::pick::Pick;
use crate::rows::tables::{TableOwner, TableWriter, read_batch};
use crate::rows::windows::WindowState;
use crate::rows::{borrowed, gathered, key_columns};

const OWNER: TableOwner = TableOwner { operator: "top_k", version: 1 };
const TABLE: &str = "rows";
/// The rows of a window are counted with 32 bits, wherever they are added.
const FITS: &str = "the rows of a window are fewer than 2^32";

/// Returns the rows listed by id, with the id of each.
fn flat(best: &[Vec<RankedRow>], goes: impl Fn(usize) -> bool) -> (Vec<u32>, Vec<u32>) {
    let lists = best.iter().enumerate().filter(|(id, _)| goes(*id));
    lists.flat_map(|(id, rows)| rows.iter().map(move |kept| (id as u32, kept.row))).unzip()
}

impl TopK {
    /// Creates an operator of the same specification, without rows, with the same windows closed.
    fn alike(&self) -> Self {
        Self { placing: self.placing, ..Self::new(self.spec.clone()) }
    }

    /// Returns the types of the written columns.
    fn written(&self) -> Vec<DataType> {
        let mut types = self.spec.column_types.clone();
        if self.spec.keeps_order() {
            types.extend([DataType::Binary, DataType::UInt64]);
        }
        types
    }

    /// Returns for each key of a window, by id, whether its group is wanted.
    fn wanted(&self, window: &TopWindow, wanted: KeyGroups) -> Vec<bool> {
        let count = window.keys().len();
        let keys = key_columns(window.keys(), &self.spec.keys, Pick::Range(0, count));
        let mut of_keys = Vec::new();
        groups(&borrowed(&keys), &self.spec.key_types, count, &mut of_keys);
        of_keys.into_iter().map(|group| wanted.contains(group)).collect()
    }

    /// Copies the rows of the keys for which `goes` holds into a window of their own.
    fn part(&self, window: &TopWindow, goes: impl Fn(usize) -> bool) -> TopWindow {
        let mut part = TopWindow::new(&self.spec);
        self.pour(window, goes, &mut part);
        part
    }

    /// Adds the rows of the keys for which `goes` holds to another window.
    fn pour(&self, from: &TopWindow, goes: impl Fn(usize) -> bool, to: &mut TopWindow) {
        let (ids, rows) = flat(from.best(), goes);
        let keys = key_columns(from.keys(), &self.spec.keys, Pick::List(&ids));
        to.take(
            &self.spec,
            &borrowed(&keys),
            &from.columns(),
            &from.codes(),
            Some(&rows),
            &mut IncomingRows::default(),
        )
        .expect(FITS);
    }

    /// Splits off the rows of these groups.
    pub(super) fn take_groups(&mut self, groups: KeyGroups) -> Self {
        assert!(!self.has_output(), "output is taken before state is split");
        let mut taken = self.alike();
        for number in self.windows.numbers() {
            let Some(window) = self.windows.get(number) else { continue };
            let goes = self.wanted(window, groups);
            if !goes.contains(&true) {
                continue;
            }
            let Some(window) = self.windows.remove(number) else { continue };
            if !goes.contains(&false) {
                taken.windows.insert(number, window);
                continue;
            }
            taken.windows.insert(number, self.part(&window, |id| goes[id]));
            self.windows.insert(number, self.part(&window, |id| !goes[id]));
        }
        taken
    }

    /// Splits off the windows that are over by that watermark.
    pub(super) fn take_over(&mut self, watermark: i64) -> Self {
        assert!(!self.has_output(), "output is taken before state is split");
        let mut taken = self.alike();
        self.placing.advance(watermark);
        taken.windows = self.windows.remove_below(self.placing.closed_below());
        taken
    }

    /// Merges the rows of another operator.
    pub(super) fn take_other(&mut self, other: Self) {
        assert!(!other.has_output(), "output is taken before state is merged");
        self.late.add(other.late);
        // The watermarks that arrive here decide which windows are closed: a row that is late elsewhere need not be
        // late here. Only an operator without any input yet continues where the other one stopped.
        if self.placing.is_fresh() && self.windows.first().is_none() {
            self.placing = other.placing;
        }
        for (number, window) in other.windows.into_windows() {
            match self.windows.remove(number) {
                None => self.windows.insert(number, window),
                Some(mut own) => {
                    let taken = own.rows() + window.rows();
                    self.pour(&window, |_| true, &mut own);
                    own.set_taken(taken);
                    self.windows.insert(number, own);
                }
            }
        }
    }

    /// Writes the kept rows.
    pub(super) fn write_snapshot(&self) -> StateSnapshot {
        let types = self.written();
        let mut table =
            TableWriter::new(OWNER, TABLE, [&self.spec.key_types, &types], (&self.placing, self.late));
        for (number, window) in self.windows.iter() {
            let (ids, rows) = flat(window.best(), |_| true);
            let keys = key_columns(window.keys(), &self.spec.keys, Pick::List(&ids));
            let kept: Vec<ColumnBuf> =
                window.columns().iter().map(|column| gathered(*column, &rows)).collect();
            let flip = if self.spec.largest { 0 } else { u64::MAX };
            let codes = window.codes();
            let codes: Vec<u64> = rows.iter().map(|&row| codes[row as usize] ^ flip).collect();
            let mut columns = borrowed(&keys);
            columns.extend(borrowed(&kept));
            columns.extend(
                self.spec.keeps_order().then_some(Column { values: Values::U64(&codes), valid: None }),
            );
            table.append(number, &columns, rows.len());
        }
        StateSnapshot { tables: table.finish() }
    }

    /// Replaces its rows by those of a snapshot.
    pub(super) fn read_snapshot(&mut self, snapshot: &StateSnapshot) -> Result<(), SnapshotError> {
        let mut restored = Self::new(self.spec.clone());
        if snapshot.tables.is_empty() {
            return Err(OWNER.broken("there is no table"));
        }
        let types = self.written();
        for batch in &snapshot.tables {
            let name = OWNER.table(batch)?;
            if name != TABLE {
                return Err(OWNER.broken(format!("there is no table \"{name}\"")));
            }
            (restored.placing, restored.late) = OWNER.notes(batch, self.spec.windows)?;
            let (columns, pieces) =
                read_batch(OWNER, batch, [&self.spec.key_types, &types], self.spec.windows)?;
            if pieces.is_empty() || self.spec.k == 0 {
                continue;
            }
            let columns = borrowed(&columns);
            let (keys, mut columns) = columns.split_at(self.spec.keys.len());
            // Every kept row has its ordering value: a row without one is not kept (TOP_K-2).
            let codes = match columns.split_last().filter(|_| self.spec.keeps_order()) {
                Some((codes, kept)) => {
                    columns = kept;
                    codes.valid.is_none().then(|| codes.fixed::<u64>().to_vec())
                }
                None => columns[self.spec.by_column()].valid.is_none().then(|| {
                    let mut found = Vec::new();
                    codes::fill(columns[self.spec.by_column()], true, &mut found);
                    found
                }),
            };
            let Some(mut codes) = codes else {
                return Err(OWNER.broken("there is a row without a value to order it by"));
            };
            if !self.spec.largest {
                codes.iter_mut().for_each(|code| *code = !*code);
            }
            for piece in pieces {
                let keys: Vec<ColumnBuf> = keys.iter().map(|key| gathered(*key, &piece.rows)).collect();
                restored
                    .take(piece.window..=piece.window, &borrowed(&keys), columns, &codes, Some(&piece.rows))
                    .map_err(|error| OWNER.broken(error))?;
            }
        }
        *self = restored;
        Ok(())
    }
}
