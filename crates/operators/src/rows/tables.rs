//! Converts rows of windows to portable tables and back.
//!
//! A table has the number of the window, the keys and the columns of each row. A long one is several batches of the
//! same schema. Its metadata names the operator and the table (`penstock.operator`, `penstock.version`,
//! `penstock.table`), the closed windows (`penstock.closed_below`, `penstock.closed_by`) and the late rows
//! (`penstock.late_rows`, `penstock.late_by`).
//!
//! TABLES-1. The input may come from anywhere: nothing in it is trusted, and nothing in it can cause a panic.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use penstock_memory::batch::{LoadRows, decoded};
use penstock_memory::{Column, ColumnBuf, Exporter, Physical, SourceColumns, Values};
use penstock_progress::Aligned;
use penstock_progress::aligned::WindowNumber;
use penstock_progress::watermark::NEVER;

use super::placing::Placing;
use crate::contract::{Late, SnapshotError};

const OPERATOR: &str = "penstock.operator";
const VERSION: &str = "penstock.version";
const TABLE: &str = "penstock.table";
const CLOSED_BELOW: &str = "penstock.closed_below";
const CLOSED_BY: &str = "penstock.closed_by";
const LATE_ROWS: &str = "penstock.late_rows";
const LATE_BY: &str = "penstock.late_by";

/// A number with enough digits for any window.
const NUMBER: DataType = DataType::Decimal128(38, 0);

/// The owner of a table.
#[derive(Clone, Copy)]
pub(crate) struct TableOwner {
    /// The operator.
    pub(crate) operator: &'static str,
    /// The version of its state.
    pub(crate) version: u32,
}

impl TableOwner {
    /// Makes an error about the content of a snapshot.
    pub(crate) fn broken(self, reason: impl ToString) -> SnapshotError {
        SnapshotError::Broken { operator: self.operator, reason: reason.to_string() }
    }

    /// Checks that the batch is of this operator and version; returns the name of its table.
    pub(crate) fn table(self, batch: &RecordBatch) -> Result<String, SnapshotError> {
        let schema = batch.schema();
        let said = |key: &str| schema.metadata().get(key).map_or("nobody", String::as_str);
        if said(OPERATOR) != self.operator || said(VERSION) != self.version.to_string() {
            return Err(SnapshotError::Kind {
                found: format!("{} {}", said(OPERATOR), said(VERSION)),
                wanted: format!("{} {}", self.operator, self.version),
            });
        }
        Ok(said(TABLE).to_owned())
    }

    /// Returns the closed windows and the late rows at the time the batch was written.
    pub(crate) fn notes(
        self,
        batch: &RecordBatch,
        windows: Aligned,
    ) -> Result<(Placing, Late), SnapshotError> {
        let schema = batch.schema();
        let said = |key: &str| schema.metadata().get(key);
        let needed = |key: &str| said(key).ok_or_else(|| self.broken(format!("{key} is missing")));
        let number = |key: &str, text: &str| {
            text.parse::<i128>().map_err(|error| self.broken(format!("{key} is \"{text}\": {error}")))
        };
        let fits = |key: &str| self.broken(format!("{key} is out of range"));
        let below = number(CLOSED_BELOW, needed(CLOSED_BELOW)?)?;
        let by = number(CLOSED_BY, needed(CLOSED_BY)?)?.try_into().map_err(|_| fits(CLOSED_BY))?;
        if by != NEVER && below < windows.first_window(by) {
            return Err(self.broken(format!("windows below {below} are closed, by a watermark of {by}")));
        }
        let mut placing = Placing::new(windows);
        placing.close_below(below, by);
        let rows = number(LATE_ROWS, needed(LATE_ROWS)?)?.try_into().map_err(|_| fits(LATE_ROWS))?;
        let late_by = said(LATE_BY).map(|text| number(LATE_BY, text)?.try_into().map_err(|_| fits(LATE_BY)));
        Ok((placing, Late { rows, by: late_by.transpose()? }))
    }
}

/// Returns the form in which a type is written: strings with 64-bit offsets.
fn written(data_type: &DataType) -> DataType {
    match decoded(data_type) {
        DataType::Utf8 | DataType::Utf8View => DataType::LargeUtf8,
        DataType::Binary | DataType::BinaryView => DataType::LargeBinary,
        other => other.clone(),
    }
}

fn schema_of(columns: &[&[DataType]], metadata: HashMap<String, String>) -> SchemaRef {
    let mut fields = vec![Field::new("window", NUMBER, false)];
    for (part, types) in ["key", "column"].iter().zip(columns) {
        fields.extend(
            types
                .iter()
                .enumerate()
                .map(|(number, data_type)| Field::new(format!("{part}_{number}"), written(data_type), true)),
        );
    }
    Arc::new(Schema::new_with_metadata(fields, metadata))
}

/// Writes one table.
pub(crate) struct TableWriter {
    exporter: Exporter,
    schema: SchemaRef,
}

impl TableWriter {
    /// Creates a table of that name, with keys and columns of these types.
    pub(crate) fn new(
        owner: TableOwner,
        table: &str,
        types: [&[DataType]; 2],
        notes: (&Placing, Late),
    ) -> Self {
        let (placing, late) = notes;
        let mut metadata = HashMap::from([
            (OPERATOR.to_owned(), owner.operator.to_owned()),
            (VERSION.to_owned(), owner.version.to_string()),
            (TABLE.to_owned(), table.to_owned()),
            (CLOSED_BELOW.to_owned(), placing.closed_below().to_string()),
            (CLOSED_BY.to_owned(), placing.closed_by().to_string()),
            (LATE_ROWS.to_owned(), late.rows.to_string()),
        ]);
        metadata.extend(late.by.map(|by| (LATE_BY.to_owned(), by.to_string())));
        let schema = schema_of(&types, metadata);
        Self { exporter: Exporter::new(Arc::clone(&schema)), schema }
    }

    /// Appends rows of a window: keys, then columns.
    pub(crate) fn append(&mut self, window: WindowNumber, columns: &[Column<'_>], rows: usize) {
        let numbers = vec![window; rows];
        let mut all = vec![Column { values: Values::I128(&numbers), valid: None }];
        all.extend_from_slice(columns);
        self.exporter.append(&all, rows).expect("rows are kept in the types that the plan gave them");
    }

    /// Returns the table: at least one batch.
    pub(crate) fn finish(self) -> Vec<RecordBatch> {
        let batches = self.exporter.finish().expect("rows are kept in the types that the plan gave them");
        if batches.is_empty() { vec![RecordBatch::new_empty(self.schema)] } else { batches }
    }
}

/// Rows of one batch that belong to one window.
pub(crate) struct TableRows {
    /// The window.
    pub(crate) window: WindowNumber,
    /// Numbers of the rows in the batch.
    pub(crate) rows: Vec<u32>,
}

/// Reads one batch of a table: its keys and columns, and its rows by window (TABLES-1).
pub(crate) fn read_batch(
    owner: TableOwner,
    batch: &RecordBatch,
    types: [&[DataType]; 2],
    windows: Aligned,
) -> Result<(Vec<ColumnBuf>, Vec<TableRows>), SnapshotError> {
    let schema = schema_of(&types, HashMap::new());
    let read = vec![true; schema.fields().len()];
    let opened =
        SourceColumns::new(Arc::clone(&schema), read).open(batch).map_err(|error| owner.broken(error))?;
    if batch.num_rows() == 0 {
        return Ok((Vec::new(), Vec::new()));
    }
    let mut columns: Vec<ColumnBuf> = Vec::new();
    for (number, field) in schema.fields().iter().enumerate() {
        let physical = Physical::of(field.data_type()).expect("types are checked when the plan is built");
        let mut column = ColumnBuf::new(physical);
        opened.load(number, 0, batch.num_rows(), LoadRows::All, &mut column);
        columns.push(column);
    }
    let numbers = columns.remove(0);
    let numbers = numbers.as_column().fixed::<WindowNumber>();
    let all = windows.first_window(i64::MIN)..=windows.last_window(i64::MAX);
    if let Some(stray) = numbers.iter().find(|number| !all.contains(number)) {
        return Err(owner.broken(format!("no time lies in window {stray}")));
    }
    let mut order: Vec<u32> = (0..numbers.len() as u32).collect();
    order.sort_by_key(|&row| numbers[row as usize]);
    let cut = order.chunk_by(|&left, &right| numbers[left as usize] == numbers[right as usize]);
    let rows = cut.map(|rows| TableRows { window: numbers[rows[0] as usize], rows: rows.to_vec() }).collect();
    Ok((columns, rows))
}
