//! State as Arrow arrays, for snapshots.
//!
//! Strings and binary are written with 64-bit offsets, so that a column holds any amount of state.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{Array, ArrayRef, PrimitiveArray, RecordBatch, new_empty_array};
use arrow_schema::{DataType, Field, Schema};
use penstock_memory::batch::LoadRows;
use penstock_memory::{Column, ColumnBuf, Exporter, Physical, SourceColumns};

/// Larger counts are rejected.
const MAX_ROWS: u64 = 1 << 48;

/// Returns the type that values of a type have in a snapshot.
pub(crate) fn portable(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => DataType::LargeUtf8,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => DataType::LargeBinary,
        DataType::Dictionary(_, values) => portable(values),
        other => other.clone(),
    }
}

/// Converts a column to an array of the portable form of that type.
pub(crate) fn to_array(data_type: &DataType, column: Column<'_>) -> ArrayRef {
    let data_type = portable(data_type);
    let schema = Arc::new(Schema::new(vec![Field::new("values", data_type.clone(), true)]));
    let mut exporter = Exporter::new(schema);
    let done = exporter.append(&[column], column.values.len());
    let batches = done.and_then(|()| exporter.finish()).expect("the engine's own values are valid");
    let arrays: Vec<&dyn Array> = batches.iter().map(|batch| &**batch.column(0)).collect();
    match arrays.as_slice() {
        [] => new_empty_array(&data_type),
        [_] => Arc::clone(batches[0].column(0)),
        many => arrow_select::concat::concat(many).expect("64-bit offsets hold every length"),
    }
}

/// Converts an array to a column of the storage of that type.
pub(crate) fn from_array(array: &ArrayRef, data_type: &DataType) -> Result<ColumnBuf, String> {
    let physical = Physical::of(data_type).expect("types are checked when the plan is built");
    let mut column = ColumnBuf::new(physical);
    let schema = Arc::new(Schema::new(vec![Field::new("values", portable(data_type), true)]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::clone(array)])
        .map_err(|error| error.to_string())?;
    let opened = SourceColumns::new(schema, vec![true]).open(&batch).map_err(|error| error.to_string())?;
    if batch.num_rows() > 0 {
        opened.load(0, 0, batch.num_rows(), LoadRows::All, &mut column);
    }
    Ok(column)
}

/// Makes an array of numbers without nulls.
pub(crate) fn numbers<P: ArrowPrimitiveType>(values: impl Iterator<Item = P::Native>) -> ArrayRef {
    Arc::new(PrimitiveArray::<P>::from_iter_values(values))
}

/// Returns the numbers of an array whose type was checked.
pub(crate) fn read<P: ArrowPrimitiveType>(array: &ArrayRef) -> &[P::Native] {
    array.as_primitive::<P>().values()
}

/// Returns a count of rows if it is plausible.
pub(super) fn believable(count: u64) -> Result<u64, String> {
    if count <= MAX_ROWS { Ok(count) } else { Err(format!("{count} rows are more than there can be")) }
}
