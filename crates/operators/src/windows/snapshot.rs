//! The table that holds the state of a windowed aggregation.
//!
//! One row per key of each part of the state: the owner of the part, the key columns, the state columns of each
//! aggregate in turn. Values that are not per key are in the metadata. Everything that is read is checked first.

use std::collections::HashMap;
use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, new_empty_array};
use arrow_schema::{DataType, Field, Schema};

use super::spec::ResolvedSpec;
use crate::aggregates::state::portable;
use crate::contract::{Late, SnapshotError, StateSnapshot};

const VERSION: &str = "1";
const TABLE: &str = "state";

fn schema(shape: &ResolvedSpec, fields: &[(&str, DataType)]) -> Vec<Field> {
    let mut all: Vec<Field> =
        fields.iter().map(|(name, data_type)| Field::new(*name, data_type.clone(), false)).collect();
    for (number, key) in shape.spec.key_types.iter().enumerate() {
        all.push(Field::new(format!("key_{number}"), portable(key), true));
    }
    for (number, factory) in shape.spec.factories.iter().enumerate() {
        for (name, data_type, nullable) in factory.state() {
            all.push(Field::new(format!("aggregate_{number}_{name}"), data_type, nullable));
        }
    }
    all
}

/// Writes state.
pub(super) struct SnapshotWriter {
    fields: Vec<Field>,
    metadata: HashMap<String, String>,
    pieces: Vec<Vec<ArrayRef>>,
}

impl SnapshotWriter {
    pub(super) fn new(shape: &ResolvedSpec, operator: &str, fields: &[(&str, DataType)]) -> Self {
        let metadata = [("operator", operator), ("version", VERSION), ("table", TABLE)];
        let metadata = metadata
            .map(|(name, value)| (format!("penstock.{name}"), value.to_owned()))
            .into_iter()
            .collect();
        Self { fields: schema(shape, fields), metadata, pieces: Vec::new() }
    }

    pub(super) fn note(&mut self, name: &str, value: impl Display) {
        self.metadata.insert(format!("penstock.{name}"), value.to_string());
    }

    pub(super) fn note_late(&mut self, late: Late) {
        self.note("late_rows", late.rows);
        if let Some(by) = late.by {
            self.note("late_by", by);
        }
    }

    /// Adds rows.
    pub(super) fn add(&mut self, columns: Vec<ArrayRef>) {
        self.pieces.push(columns);
    }

    pub(super) fn finish(self) -> StateSnapshot {
        let columns = self.fields.iter().enumerate().map(|(number, field)| {
            let pieces: Vec<&dyn Array> = self.pieces.iter().map(|piece| &*piece[number]).collect();
            match pieces.as_slice() {
                [] => new_empty_array(field.data_type()),
                some => arrow_select::concat::concat(some).expect("64-bit offsets hold every length"),
            }
        });
        let columns = columns.collect();
        let schema = Arc::new(Schema::new_with_metadata(self.fields, self.metadata));
        let table = RecordBatch::try_new(schema, columns).expect("the columns are those of the schema");
        StateSnapshot { tables: vec![table] }
    }
}

/// Reads state.
pub(super) struct SnapshotReader<'a> {
    operator: &'static str,
    metadata: &'a HashMap<String, String>,
    tables: Vec<&'a [ArrayRef]>,
}

impl<'a> SnapshotReader<'a> {
    pub(super) fn new(
        shape: &ResolvedSpec,
        operator: &'static str,
        fields: &[(&str, DataType)],
        snapshot: &'a StateSnapshot,
    ) -> Result<Self, SnapshotError> {
        let broken = |reason: String| SnapshotError::Broken { operator, reason };
        let [table] = snapshot.tables.as_slice() else {
            return Err(broken(format!("it has {} tables instead of one", snapshot.tables.len())));
        };
        let metadata = &table.schema_ref().metadata;
        let noted = |name: &str| metadata.get(name).map_or("nothing", String::as_str);
        let found = format!("{} version {}", noted("penstock.operator"), noted("penstock.version"));
        let wanted = format!("{operator} version {VERSION}");
        if found != wanted {
            return Err(SnapshotError::Kind { found, wanted });
        }
        if noted("penstock.table") != TABLE {
            return Err(broken(format!("there is a table \"{}\"", noted("penstock.table"))));
        }
        let wanted = schema(shape, fields);
        let found = table.schema_ref().fields();
        if found.len() != wanted.len() {
            return Err(broken(format!("it has {} columns instead of {}", found.len(), wanted.len())));
        }
        for ((wanted, found), column) in wanted.iter().zip(found).zip(table.columns()) {
            if wanted.name() != found.name() || wanted.data_type() != column.data_type() {
                return Err(broken(format!(
                    "found column {} of type {} where {} of type {} is expected",
                    found.name(),
                    column.data_type(),
                    wanted.name(),
                    wanted.data_type()
                )));
            }
            if !wanted.is_nullable() && column.logical_null_count() > 0 {
                return Err(broken(format!("column {} has nulls", wanted.name())));
            }
            column
                .to_data()
                .validate_full()
                .map_err(|error| broken(format!("column {}: {error}", wanted.name())))?;
        }
        Ok(Self { operator, metadata, tables: vec![table.columns()] })
    }

    pub(super) fn broken(&self, reason: String) -> SnapshotError {
        SnapshotError::Broken { operator: self.operator, reason }
    }

    /// Returns a number of the metadata.
    pub(super) fn note<T: FromStr>(&self, name: &str) -> Result<T, SnapshotError> {
        let text = self.metadata.get(&format!("penstock.{name}"));
        let text = text.ok_or_else(|| self.broken(format!("{name} is missing")))?;
        text.parse().map_err(|_| self.broken(format!("{name} is \"{text}\"")))
    }

    pub(super) fn late(&self) -> Result<Late, SnapshotError> {
        let by = self.metadata.contains_key("penstock.late_by").then(|| self.note("late_by")).transpose()?;
        Ok(Late { rows: self.note("late_rows")?, by })
    }

    /// Returns the columns of each table.
    pub(super) fn tables(&self) -> impl Iterator<Item = &'a [ArrayRef]> {
        self.tables.iter().copied()
    }
}
