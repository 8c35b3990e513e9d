//! A table that is indexed by its key, and the place from which operators take it.
//!
//! A table does not change, but another one may replace it while rows pass: between two runs, as a whole.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use penstock_memory::batch::LoadRows;
use penstock_memory::{Batch, BatchError, ColumnBuf, Payload, Physical, SourceColumns, Values};

use crate::keys::KeyIndex;

/// A table indexed by its key.
pub struct IndexedTable {
    pub(crate) keys: KeyIndex,
    /// The columns that are not keys. Rows are in the order of the ids.
    pub(crate) columns: Vec<ColumnBuf>,
    /// Nothing changes after `new`, so the sum is computed once.
    bytes: usize,
}

/// A key that is in the table twice, with the rows of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DuplicateKey {
    /// The first row with that key.
    pub first: usize,
    /// The second row with that key.
    pub second: usize,
}

fn load(batch: &Batch, column: usize, physical: Physical) -> ColumnBuf {
    let mut loaded = ColumnBuf::new(physical);
    if batch.rows() > 0 {
        batch.load(column, 0, batch.rows(), LoadRows::All, &mut loaded);
    }
    loaded
}

/// Returns the memory of the columns. Payloads count whole, and once: they live as long as any view into them.
fn held_bytes(columns: &[ColumnBuf]) -> usize {
    let mut payloads = HashMap::new();
    let mut bytes = size_of_val(columns);
    for column in columns.iter().map(ColumnBuf::as_column) {
        bytes += column.values.len() * column.values.physical().width() + column.valid.map_or(0, <[u8]>::len);
        if let Values::View(_, list) = column.values {
            bytes += list.len() * size_of::<Payload>();
            payloads.extend(list.iter().map(|payload| (address(payload), payload.held_bytes())));
        }
    }
    bytes + payloads.values().sum::<usize>()
}

/// Returns the start of a payload's memory, which is the same for all that share it.
fn address(payload: &Payload) -> usize {
    match payload {
        Payload::Buffer(buffer) => buffer.data_ptr().as_ptr() as usize,
        Payload::Arena(arena) => Arc::as_ptr(arena) as usize,
    }
}

impl IndexedTable {
    /// Indexes `table` by the columns numbered in `on`.
    ///
    /// Rows with a null in their key are left out: they match nothing.
    pub fn new(table: &RecordBatch, on: &[usize]) -> Result<Result<Self, DuplicateKey>, BatchError> {
        let schema: SchemaRef = table.schema();
        let width = schema.fields().len();
        let batch = SourceColumns::new(Arc::clone(&schema), vec![true; width]).open(table)?;
        let physical = |column: usize| {
            Physical::of(schema.field(column).data_type()).expect("types are checked when the plan is built")
        };
        let key_columns: Vec<ColumnBuf> =
            on.iter().map(|&column| load(&batch, column, physical(column))).collect();
        let has_key = |row: usize| key_columns.iter().all(|column| column.as_column().is_valid(row));
        let kept: Vec<u32> = (0..batch.rows() as u32).filter(|&row| has_key(row as usize)).collect();
        let gather = |column: &ColumnBuf| {
            let mut gathered = ColumnBuf::new(column.physical());
            gathered.gather(column.as_column(), &kept);
            gathered.clear_mask_if_full();
            gathered
        };
        let key_columns: Vec<ColumnBuf> = key_columns.iter().map(gather).collect();
        let views: Vec<_> = key_columns.iter().map(ColumnBuf::as_column).collect();
        let mut keys = KeyIndex::new(&key_columns.iter().map(ColumnBuf::physical).collect::<Vec<_>>());
        let mut ids = Vec::new();
        keys.insert(&views, kept.len(), &mut ids);
        if let Some(second) = ids.iter().enumerate().position(|(row, &id)| id as usize != row) {
            let first = kept[ids[second] as usize] as usize;
            return Ok(Err(DuplicateKey { first, second: kept[second] as usize }));
        }
        let columns: Vec<ColumnBuf> = (0..width)
            .filter(|column| !on.contains(column))
            .map(|column| gather(&load(&batch, column, physical(column))))
            .collect();
        let bytes = keys.bytes() + held_bytes(&columns);
        Ok(Ok(Self { keys, columns, bytes }))
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns true if there is no key.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns the memory of the table: its index, its columns, and the strings of the batch it was made from.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// The place from which a lookup takes its table. Clones share the place.
#[derive(Clone)]
pub struct TablePlace(Arc<SharedTable>);

struct SharedTable {
    table: Mutex<Arc<IndexedTable>>,
    /// Rises with each new table, so that lookups take the lock only after a change.
    version: AtomicU64,
}

impl TablePlace {
    /// Creates a place with that table.
    pub fn new(table: Arc<IndexedTable>) -> Self {
        Self(Arc::new(SharedTable { table: Mutex::new(table), version: AtomicU64::new(0) }))
    }

    /// Replaces the table by another one of the same columns: it applies to runs that begin from now on.
    pub fn replace(&self, table: Arc<IndexedTable>) {
        *self.0.table.lock().unwrap_or_else(PoisonError::into_inner) = table;
        // Release: a lookup that sees the version finds this table, or a later one.
        self.0.version.fetch_add(1, Ordering::Release);
    }

    /// Returns the number of replacements so far.
    pub(crate) fn version(&self) -> u64 {
        self.0.version.load(Ordering::Acquire)
    }

    /// Returns the present table.
    pub(crate) fn table(&self) -> Arc<IndexedTable> {
        Arc::clone(&self.0.table.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
