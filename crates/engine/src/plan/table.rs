//! The table of a lookup, and its portable form.
//!
//! The table travels inside the JSON of a plan as the raw buffers of its columns. Reading them back
//! takes no more memory than the text had, whatever the text says, and every buffer is validated.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array, make_array, new_empty_array,
};
use arrow_buffer::Buffer;
use arrow_cast::{CastOptions, cast, cast_with_options};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, Schema};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use penstock_memory::Physical;
use penstock_memory::batch::{decoded, valid_column};
use penstock_operators::{LookupKind, LookupTable};
use penstock_types::{PlanError, TypeName, parse_type};
use serde::{Deserialize, Serialize};

use super::check_supported;

/// A lookup: its table, indexed and ready.
#[derive(Clone)]
pub struct TableStep {
    /// The table as it was given, dictionaries decoded.
    table: RecordBatch,
    on: Vec<String>,
    kind: LookupKind,
    /// What it is called by whoever puts another table in its place.
    name: Option<String>,
    indexed: Arc<LookupTable>,
}

impl std::fmt::Debug for TableStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableStep").field("table", &self.table).field("on", &self.on).finish_non_exhaustive()
    }
}

impl PartialEq for TableStep {
    fn eq(&self, other: &Self) -> bool {
        self.on == other.on && self.kind == other.kind && self.name == other.name && self.table == other.table
    }
}

fn arrow(error: impl std::fmt::Display) -> PlanError {
    PlanError::Invalid(format!("the lookup table cannot be read: {error}"))
}

/// A copy with plain types and without offsets or spare capacity.
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

/// The key column of the table as the stream's type; `None` when values of the two types never meet.
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

impl TableStep {
    /// Checks the table against the stream's schema and indexes it.
    pub fn new(
        table: &RecordBatch,
        on: Vec<String>,
        kind: LookupKind,
        stream: &Schema,
    ) -> Result<Self, PlanError> {
        if on.is_empty() {
            return Err(PlanError::Invalid("a lookup needs at least one key column: on=\"...\"".to_owned()));
        }
        let table = normalised(table)?;
        let schema = table.schema();
        super::check_unique(
            schema.fields().iter().map(|field| field.name().as_str()),
            "rename one of them in the lookup table",
        )?;
        let mut columns = table.columns().to_vec();
        let mut keyed_fields: Vec<Field> =
            schema.fields().iter().map(|field| field.as_ref().clone()).collect();
        let mut keys = Vec::new();
        for (position, name) in on.iter().enumerate() {
            let names = |schema: &Schema| {
                schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>()
            };
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
        let indexed = LookupTable::new(&keyed, &keys).map_err(arrow)?.map_err(|twice| {
            PlanError::Invalid(format!(
                "the lookup table has the same key in rows {} and {}; each key must stand in it once",
                twice.first, twice.second
            ))
        })?;
        Ok(Self { table, on, kind, name: None, indexed: Arc::new(indexed) })
    }

    /// The same under a name.
    pub fn named(self, name: Option<String>) -> Self {
        Self { name, ..self }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or("lookup")
    }

    /// The name that it was given.
    pub fn given_name(&self) -> Option<&String> {
        self.name.as_ref()
    }

    /// Another table for the same lookup, over a stream of that schema: its columns have to be the same.
    pub fn replaced(&self, table: &RecordBatch, stream: &Schema) -> Result<Self, PlanError> {
        let other = Self::new(table, self.on.clone(), self.kind, stream)?;
        let (wanted, found) = (self.added(), other.added());
        let same = wanted.len() == found.len()
            && wanted.iter().zip(&found).all(|(wanted, found)| {
                wanted.name() == found.name()
                    && wanted.data_type() == found.data_type()
                    && (wanted.is_nullable() || self.kind == LookupKind::Left || !found.is_nullable())
            });
        if same {
            return Ok(other);
        }
        let say = |fields: &[Field]| {
            fields.iter().map(penstock_types::describe_field).collect::<Vec<_>>().join(", ")
        };
        Err(PlanError::Invalid(format!(
            "the new table of \"{}\" has the columns {}, and the old one {}: they have to be the same",
            self.name(),
            say(&found),
            say(&wanted)
        )))
    }

    /// The key columns.
    pub fn on(&self) -> &[String] {
        &self.on
    }

    /// What happens to rows without a match.
    pub fn kind(&self) -> LookupKind {
        self.kind
    }

    /// Rows of the table.
    pub fn rows(&self) -> usize {
        self.table.num_rows()
    }

    /// The indexed table.
    pub fn indexed(&self) -> Arc<LookupTable> {
        Arc::clone(&self.indexed)
    }

    /// The columns that the lookup adds.
    pub fn added(&self) -> Vec<Field> {
        let schema = self.table.schema();
        schema
            .fields()
            .iter()
            .filter(|field| !self.on.contains(field.name()))
            .map(|field| field.as_ref().clone())
            .collect()
    }

    /// The table in its portable form.
    pub(super) fn portable(&self) -> Result<PortableTable, PlanError> {
        let columns = self
            .table
            .schema()
            .fields()
            .iter()
            .zip(self.table.columns())
            .map(|(field, column)| PortableColumn::write(field, column))
            .collect::<Result<_, _>>()?;
        Ok(PortableTable { rows: self.table.num_rows(), columns })
    }
}

/// A table as text.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PortableTable {
    rows: usize,
    columns: Vec<PortableColumn>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PortableColumn {
    name: String,
    #[serde(rename = "type")]
    type_name: String,
    nullable: bool,
    nulls: Option<String>,
    buffers: Vec<String>,
}

/// The type in which a column travels: one with a fixed number of buffers.
fn travelling(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8View => DataType::LargeUtf8,
        DataType::BinaryView => DataType::LargeBinary,
        other => other.clone(),
    }
}

/// Bytes of the first buffer of a column: its values, its bits, or where its strings start and end.
fn first_buffer_bytes(data_type: &DataType, rows: usize) -> Option<usize> {
    match data_type {
        DataType::Boolean => Some(rows.div_ceil(8)),
        DataType::Utf8 | DataType::Binary => rows.checked_add(1)?.checked_mul(4),
        DataType::LargeUtf8 | DataType::LargeBinary => rows.checked_add(1)?.checked_mul(8),
        other => Physical::of(other)?.width().checked_mul(rows),
    }
}

impl PortableColumn {
    fn write(field: &Field, column: &ArrayRef) -> Result<Self, PlanError> {
        let data = cast(column, &travelling(field.data_type())).map_err(arrow)?.to_data();
        let nulls = data.nulls().map(|nulls| {
            let packed: Buffer = nulls.iter().collect::<arrow_buffer::BooleanBuffer>().into_inner();
            STANDARD.encode(packed.as_slice())
        });
        // Exactly the bytes that the rows take, without what the buffer has behind them.
        let first = first_buffer_bytes(data.data_type(), data.len()).unwrap_or_default();
        let exact = |number: usize, buffer: &Buffer| {
            let bytes = buffer.as_slice();
            STANDARD.encode(if number == 0 { &bytes[..first.min(bytes.len())] } else { bytes })
        };
        Ok(Self {
            name: field.name().clone(),
            type_name: TypeName(field.data_type()).to_string(),
            nullable: field.is_nullable(),
            nulls,
            buffers: data
                .buffers()
                .iter()
                .enumerate()
                .map(|(number, buffer)| exact(number, buffer))
                .collect(),
        })
    }

    fn read(&self, rows: usize) -> Result<(Field, ArrayRef), PlanError> {
        let data_type = parse_type(&self.type_name)
            .filter(|data_type| {
                Physical::of(data_type).is_some() && !matches!(data_type, DataType::Dictionary(..))
            })
            .ok_or_else(|| arrow(format!("\"{}\" is not a type of a lookup table", self.type_name)))?;
        if rows == 0 {
            return Ok((
                Field::new(&self.name, data_type.clone(), self.nullable),
                new_empty_array(&data_type),
            ));
        }
        // Aligned memory for whatever type reads it.
        let decode =
            |text: &String| STANDARD.decode(text).map(|bytes| Buffer::from_slice_ref(&bytes)).map_err(arrow);
        let buffers = self.buffers.iter().map(decode).collect::<Result<Vec<_>, _>>()?;
        let nulls = self.nulls.as_ref().map(decode).transpose()?;
        // Arrow's own checks take it for granted that a buffer is a whole number of values.
        let travelling = travelling(&data_type);
        if buffers.first().map(Buffer::len) != first_buffer_bytes(&travelling, rows) {
            return Err(arrow(format!("column \"{}\" does not have {rows} rows", self.name)));
        }
        // `try_new` validates everything: offsets, text and nulls.
        let data = ArrayData::try_new(travelling, rows, nulls, 0, buffers, vec![]).map_err(arrow)?;
        let column = cast(&make_array(data), &data_type).map_err(arrow)?;
        Ok((Field::new(&self.name, data_type, self.nullable), column))
    }
}

impl PortableTable {
    /// The table that was written.
    pub(super) fn table(&self) -> Result<RecordBatch, PlanError> {
        let columns =
            self.columns.iter().map(|column| column.read(self.rows)).collect::<Result<Vec<_>, _>>()?;
        let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(arrow)
    }
}
