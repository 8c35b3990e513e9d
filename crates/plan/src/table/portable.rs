//! A lookup table as text: the raw buffers of its columns.
//!
//! Reading them back takes no more memory than the text had, whatever the text says, and every buffer is validated.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, make_array, new_empty_array};
use arrow_buffer::Buffer;
use arrow_cast::cast;
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, Schema};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use penstock_memory::Physical;
use penstock_types::{PlanError, TypeName, parse_type};
use serde::{Deserialize, Serialize};

use super::arrow;

/// A table as text.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PortableTable {
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

/// Returns the type in which a column is written: one with a fixed number of buffers.
fn travelling(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8View => DataType::LargeUtf8,
        DataType::BinaryView => DataType::LargeBinary,
        other => other.clone(),
    }
}

/// Returns the bytes of the first buffer of a column: its values, its bits, or where its strings start and end.
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
        // Exactly the bytes that the rows take, without what the buffer has after them.
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
        // Aligned memory, for any type.
        let decode =
            |text: &String| STANDARD.decode(text).map(|bytes| Buffer::from_slice_ref(&bytes)).map_err(arrow);
        let buffers = self.buffers.iter().map(decode).collect::<Result<Vec<_>, _>>()?;
        let nulls = self.nulls.as_ref().map(decode).transpose()?;
        // Arrow's own checks assume that a buffer is a whole number of values.
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
    /// Writes a table.
    pub(crate) fn write(table: &RecordBatch) -> Result<Self, PlanError> {
        let schema = table.schema();
        let columns = schema.fields().iter().zip(table.columns());
        let columns = columns.map(|(field, column)| PortableColumn::write(field, column));
        Ok(Self { rows: table.num_rows(), columns: columns.collect::<Result<_, _>>()? })
    }

    /// Reads the table that was written.
    pub(crate) fn table(&self) -> Result<RecordBatch, PlanError> {
        let columns =
            self.columns.iter().map(|column| column.read(self.rows)).collect::<Result<Vec<_>, _>>()?;
        let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(arrow)
    }
}
