//! Rows kept by operators, and the parts shared by operators that keep rows of windows.
//!
//! - [`stored`]: one column of rows, owned; [`StoredRows`]: several
//! - [`placing`]: assigns the rows of a run to windows, and finds late rows
//! - [`order`]: the engine's order of two cells
//! - [`tables`]: converts rows to portable tables and back
//! - [`windows`]: the windows of an operator, and their total size
//! - [`results`]: the columns that the results of all windows have

pub(crate) mod order;
pub(crate) mod placing;
pub(crate) mod results;
pub(crate) mod stored;
pub(crate) mod tables;
pub(crate) mod windows;

use penstock_memory::{Column, ColumnBuf, Physical};

use crate::heap_bytes;
use crate::keys::KeyIndex;
use crate::pick::Pick;
use stored::StoredColumn;

/// Rows in columns, in order of arrival.
pub(crate) struct StoredRows {
    columns: Vec<StoredColumn>,
    len: usize,
}

impl StoredRows {
    /// Creates an empty set of columns of that storage.
    pub(crate) fn new(columns: impl IntoIterator<Item = Physical>) -> Self {
        Self { columns: columns.into_iter().map(StoredColumn::new).collect(), len: 0 }
    }

    /// Returns the number of rows.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the columns.
    pub(crate) fn columns(&self) -> Vec<Column<'_>> {
        self.columns.iter().map(StoredColumn::as_column).collect()
    }

    /// Returns one column.
    pub(crate) fn column(&self, number: usize) -> Column<'_> {
        self.columns[number].as_column()
    }

    /// Copies rows in: those that `rows` names, or all `count` of them.
    pub(crate) fn append(&mut self, columns: &[Column<'_>], rows: Option<&[u32]>, count: usize) {
        for (stored, column) in self.columns.iter_mut().zip(columns) {
            stored.append(*column, rows);
        }
        self.len += rows.map_or(count, <[u32]>::len);
    }

    /// Replaces row `row` by row `from` of `columns`.
    pub(crate) fn replace(&mut self, row: usize, columns: &[Column<'_>], from: usize) {
        for (stored, column) in self.columns.iter_mut().zip(columns) {
            stored.replace(row, *column, from);
        }
    }

    /// Returns the heap memory of the rows.
    pub(crate) fn bytes(&self) -> usize {
        heap_bytes(&self.columns) + self.columns.iter().map(StoredColumn::bytes).sum::<usize>()
    }
}

/// Returns the rows of a column that `rows` names, as a column of their own.
pub(crate) fn gathered(column: Column<'_>, rows: &[u32]) -> ColumnBuf {
    let mut gathered = ColumnBuf::new(column.values.physical());
    gathered.gather(column, rows);
    gathered
}

/// Returns true if any of the columns is null in that row.
pub(crate) fn any_null(columns: &[Column<'_>], row: usize) -> bool {
    columns.iter().any(|column| !column.is_valid(row))
}

/// Returns true if any of the columns has a null.
pub(crate) fn has_nulls(columns: &[Column<'_>]) -> bool {
    columns.iter().any(|column| column.valid.is_some_and(|mask| mask.contains(&0)))
}

/// Borrows scratch columns.
pub(crate) fn borrowed(columns: &[ColumnBuf]) -> Vec<Column<'_>> {
    columns.iter().map(ColumnBuf::as_column).collect()
}

/// Returns the keys with these ids, one column per key column.
pub(crate) fn key_columns(index: &KeyIndex, kinds: &[Physical], ids: Pick<'_>) -> Vec<ColumnBuf> {
    let mut columns: Vec<ColumnBuf> = kinds.iter().map(|kind| ColumnBuf::new(*kind)).collect();
    index.write_picked(ids, &mut columns);
    columns
}
