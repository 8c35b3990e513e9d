//! The table of a lookup: normalised, indexed by its keys, and as text.

mod portable;

use std::fmt;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow_cast::{CastOptions, cast, cast_with_options};
use arrow_schema::{DataType, Field, Schema};
use penstock_memory::batch::{decoded, valid_column};
use penstock_operators::IndexedTable;
use penstock_types::{PlanError, TypeName, describe_field};

pub(crate) use portable::PortableTable;

use crate::check::{check_supported, check_unique, fields as fields_of};

/// The table of a lookup: indexed and ready.
#[derive(Clone)]
pub struct KeyedTable {
    /// The table as it was given, dictionaries decoded.
    table: RecordBatch,
    on: Vec<String>,
    /// True if a row without a match gets nulls; otherwise it is dropped.
    fills_nulls: bool,
    /// The name by which another table takes its place.
    name: Option<String>,
    indexed: Arc<IndexedTable>,
}

impl fmt::Debug for KeyedTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedTable").field("table", &self.table).field("on", &self.on).finish_non_exhaustive()
    }
}

impl PartialEq for KeyedTable {
    fn eq(&self, other: &Self) -> bool {
        self.on == other.on
            && self.fills_nulls == other.fills_nulls
            && self.name == other.name
            && self.table == other.table
    }
}

impl KeyedTable {
    /// Checks a table against the stream's schema and indexes it.
    pub(crate) fn new(
        table: &RecordBatch,
        on: Vec<String>,
        fills_nulls: bool,
        name: Option<String>,
        stream: &Schema,
    ) -> Result<Self, PlanError> {
        if on.is_empty() {
            return Err(PlanError::Invalid("a lookup needs at least one key column: on=\"...\"".to_owned()));
        }
        let table = normalised(table)?;
        let indexed = index(&table, &on, stream)?;
        Ok(Self { table, on, fills_nulls, name, indexed })
    }

    /// The name by which another table takes its place.
    pub fn table_name(&self) -> &str {
        self.name.as_deref().unwrap_or("lookup")
    }

    /// Returns another table for the same lookup, over a stream of that schema: the columns have to be the same.
    pub fn replaced(&self, table: &RecordBatch, stream: &Schema) -> Result<Self, PlanError> {
        let other = Self::new(table, self.on.clone(), self.fills_nulls, self.name.clone(), stream)?;
        let (wanted, found) = (self.added(), other.added());
        let same = wanted.len() == found.len()
            && wanted.iter().zip(&found).all(|(wanted, found)| {
                wanted.name() == found.name()
                    && wanted.data_type() == found.data_type()
                    && (wanted.is_nullable() || self.fills_nulls || !found.is_nullable())
            });
        if same {
            return Ok(other);
        }
        let say = |fields: &[Field]| fields.iter().map(describe_field).collect::<Vec<_>>().join(", ");
        Err(PlanError::Invalid(format!(
            "the new table of \"{}\" has the columns {}, and the old one {}: they have to be the same",
            self.table_name(),
            say(&found),
            say(&wanted)
        )))
    }

    /// The key columns.
    pub(crate) fn on(&self) -> &[String] {
        &self.on
    }

    /// Returns true if a row without a match gets nulls; otherwise it is dropped.
    pub(crate) fn fills_nulls(&self) -> bool {
        self.fills_nulls
    }

    /// The name that it was given.
    pub(crate) fn given_name(&self) -> Option<&String> {
        self.name.as_ref()
    }

    /// The table as it was given.
    pub(crate) fn rows(&self) -> &RecordBatch {
        &self.table
    }

    /// The indexed table.
    pub fn indexed(&self) -> &Arc<IndexedTable> {
        &self.indexed
    }

    /// The columns that the table adds.
    pub(crate) fn added(&self) -> Vec<Field> {
        let is_added = |field: &&Field| !self.on.contains(field.name());
        fields_of(&self.table.schema()).iter().filter(is_added).cloned().collect()
    }

    /// The same columns behind the step: a row without a match may leave them null.
    pub(crate) fn added_behind(&self) -> Vec<Field> {
        let widened = |field: Field| {
            let nullable = field.is_nullable() || self.fills_nulls;
            Field::new(field.name(), field.data_type().clone(), nullable)
        };
        self.added().into_iter().map(widened).collect()
    }
}

pub(crate) fn arrow(error: impl fmt::Display) -> PlanError {
    PlanError::Invalid(format!("the lookup table cannot be read: {error}"))
}

/// Copies a table: plain types, no offsets, no spare capacity.
fn normalised(table: &RecordBatch) -> Result<RecordBatch, PlanError> {
    let rows = UInt32Array::from_iter_values(0..u32::try_from(table.num_rows()).map_err(arrow)?);
    let mut fields = Vec::new();
    let mut columns: Vec<ArrayRef> = Vec::new();
    for (field, column) in table.schema().fields().iter().zip(table.columns()) {
        check_supported(field)?;
        let valid = valid_column(column).map_err(arrow)?;
        let plain = decoded(field.data_type());
        let column = if plain == field.data_type() { valid } else { cast(&valid, plain).map_err(arrow)? };
        columns.push(arrow_select::take::take(&column, &rows, None).map_err(arrow)?);
        fields.push(Field::new(field.name(), plain.clone(), field.is_nullable()));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(table.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options).map_err(arrow)
}

/// Casts a key column of the table to the stream's type; `None` when values of the two types are never equal.
fn as_stream_type(column: &ArrayRef, wanted: &DataType) -> Option<ArrayRef> {
    let given = column.data_type();
    if given == wanted {
        return Some(Arc::clone(column));
    }
    let is_string =
        |data_type: &DataType| matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let is_binary = |data_type: &DataType| {
        matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
    };
    let alike = |test: &dyn Fn(&DataType) -> bool| test(given) && test(wanted);
    if !(alike(&is_string) || alike(&is_binary) || alike(&DataType::is_integer)) {
        return None;
    }
    // A key that the stream's type cannot hold becomes null, and null matches nothing.
    cast_with_options(column, wanted, &CastOptions { safe: true, ..CastOptions::default() }).ok()
}

/// Indexes a normalised table by its key columns, as the types that the stream has.
fn index(table: &RecordBatch, on: &[String], stream: &Schema) -> Result<Arc<IndexedTable>, PlanError> {
    let schema = table.schema();
    check_unique(
        schema.fields().iter().map(|field| field.name().as_str()),
        "rename one of them in the lookup table",
    )?;
    let mut columns = table.columns().to_vec();
    let mut keyed_fields: Vec<Field> = schema.fields().iter().map(|field| field.as_ref().clone()).collect();
    let mut keys = Vec::new();
    for (position, name) in on.iter().enumerate() {
        let names =
            |schema: &Schema| schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>();
        if on[..position].contains(name) {
            return Err(PlanError::Invalid(format!("the key \"{name}\" is named twice in on=")));
        }
        let Some((_, wanted)) = stream.fields().find(name) else {
            return Err(PlanError::unknown_column(name, names(stream).iter().map(String::as_str)));
        };
        let Some((number, given)) = schema.fields().find(name) else {
            let error = PlanError::unknown_column(name, names(&schema).iter().map(String::as_str));
            return Err(match error {
                PlanError::UnknownColumn { column, suggestion, available } => PlanError::UnknownColumn {
                    column,
                    suggestion,
                    available: available
                        .into_iter()
                        .map(|name| format!("{name} (of the lookup table)"))
                        .collect(),
                },
                other => other,
            });
        };
        columns[number] = as_stream_type(&columns[number], wanted.data_type()).ok_or_else(|| {
            PlanError::mismatch(
                format!("lookup on \"{name}\""),
                format!(
                    "the stream has {} and the table has {}; cast the table's column",
                    TypeName(wanted.data_type()),
                    TypeName(given.data_type())
                ),
            )
        })?;
        keyed_fields[number] = Field::new(name, wanted.data_type().clone(), true);
        keys.push(number);
    }
    let keyed = RecordBatch::try_new(Arc::new(Schema::new(keyed_fields)), columns).map_err(arrow)?;
    let indexed = IndexedTable::new(&keyed, &keys).map_err(arrow)?.map_err(|twice| {
        PlanError::Invalid(format!(
            "the lookup table has the same key in rows {} and {}; each key must stand in it once",
            twice.first, twice.second
        ))
    })?;
    Ok(Arc::new(indexed))
}
