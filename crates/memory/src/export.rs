//! Columns of runs back into Arrow batches.
//!
//! Rows are appended until a batch is full; what is exported owns its memory, so that a user who
//! keeps every result holds nothing of the engine's.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, make_array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, SchemaRef};

use crate::column::{Column, Physical, Values, ValuesBuf};
use crate::view::with_bytes;

/// Rows of an exported batch.
const BATCH_ROWS: usize = 64 * 1024;
/// Payload of one string or binary column of an exported batch; below what 32-bit offsets hold.
const BATCH_PAYLOAD_BYTES: usize = 1 << 30;

struct Growing {
    data_type: DataType,
    values: ValuesBuf,
    valid: Vec<bool>,
    nulls: usize,
    /// Strings and binary: the bytes and where each value ends.
    payload: Vec<u8>,
    ends: Vec<usize>,
}

impl Growing {
    fn new(data_type: &DataType) -> Self {
        let physical = Physical::of(data_type).expect("types are checked when the plan is built");
        Self {
            data_type: data_type.clone(),
            values: ValuesBuf::new(physical),
            valid: Vec::new(),
            nulls: 0,
            payload: Vec::new(),
            ends: Vec::new(),
        }
    }

    fn append(&mut self, column: Column<'_>, from: usize, to: usize) {
        macro_rules! copy {
            ($($kind:ident),*) => {
                match (column.values, &mut self.values) {
                    $((Values::$kind(slice), ValuesBuf::$kind(vec)) => vec.extend_from_slice(&slice[from..to]),)*
                    (Values::View(views, buffers), ValuesBuf::View(..)) => {
                        for (row, view) in views.iter().enumerate().take(to).skip(from) {
                            if column.is_valid(row) {
                                with_bytes(*view, buffers, |bytes| self.payload.extend_from_slice(bytes));
                            }
                            self.ends.push(self.payload.len());
                        }
                    }
                    _ => panic!("a compiled plan exports columns by their own storage type"),
                }
            };
        }
        copy!(I8, I16, I32, I64, U8, U16, U32, U64, F32, F64, I128);
        match column.valid {
            None => self.valid.resize(self.valid.len() + (to - from), true),
            Some(mask) => {
                let mask = &mask[from..to];
                self.nulls += mask.iter().filter(|&&valid| valid == 0).count();
                self.valid.extend(mask.iter().map(|&valid| valid != 0));
            }
        }
    }

    fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        let valid = std::mem::take(&mut self.valid);
        let rows = valid.len();
        let nulls = (std::mem::take(&mut self.nulls) > 0).then(|| NullBuffer::from(valid));
        if matches!(self.values, ValuesBuf::View(..)) {
            let payload = Buffer::from_vec(std::mem::take(&mut self.payload));
            let ends = std::mem::take(&mut self.ends);
            return finish_bytes(&self.data_type, payload, &ends, nulls);
        }
        macro_rules! buffer {
            ($($kind:ident),*) => {
                match &mut self.values {
                    $(ValuesBuf::$kind(vec) => Buffer::from_vec(std::mem::take(vec)),)*
                    ValuesBuf::View(..) => unreachable!("strings and binary are finished above"),
                }
            };
        }
        let buffer = match (&self.data_type, &mut self.values) {
            (DataType::Boolean, ValuesBuf::U8(bytes)) => {
                let bytes = std::mem::take(bytes);
                BooleanBuffer::collect_bool(rows, |row| bytes[row] != 0).into_inner()
            }
            _ => buffer!(I8, I16, I32, I64, U8, U16, U32, U64, F32, F64, I128),
        };
        let data =
            ArrayData::builder(self.data_type.clone()).len(rows).add_buffer(buffer).nulls(nulls).build()?;
        Ok(make_array(data))
    }
}

fn finish_bytes(
    data_type: &DataType,
    payload: Buffer,
    ends: &[usize],
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, ArrowError> {
    let starts = std::iter::once(&0).chain(ends);
    let (offset_type, offsets) = match data_type {
        DataType::LargeUtf8 | DataType::LargeBinary => {
            (data_type.clone(), Buffer::from_iter(starts.map(|&end| end as i64)))
        }
        // Batches stay below 2 GiB of payload, see BATCH_PAYLOAD_BYTES; a longer value is refused by `build`.
        DataType::Utf8 | DataType::Utf8View => {
            (DataType::Utf8, Buffer::from_iter(starts.map(|&end| end as i32)))
        }
        _ => (DataType::Binary, Buffer::from_iter(starts.map(|&end| end as i32))),
    };
    let data = ArrayData::builder(offset_type)
        .len(ends.len())
        .add_buffer(offsets)
        .add_buffer(payload)
        .nulls(nulls)
        .build()?;
    let array = make_array(data);
    match data_type {
        DataType::Utf8View | DataType::BinaryView => arrow_cast::cast(&array, data_type),
        _ => Ok(array),
    }
}

/// Gathers columns of runs into batches of one schema.
pub struct Exporter {
    schema: SchemaRef,
    columns: Vec<Growing>,
    rows: usize,
    batch_rows: usize,
    finished: Vec<RecordBatch>,
}

impl Exporter {
    /// An exporter of batches with that schema.
    pub fn new(schema: SchemaRef) -> Self {
        let columns = schema.fields().iter().map(|field| Growing::new(field.data_type())).collect();
        Self { schema, columns, rows: 0, batch_rows: BATCH_ROWS, finished: Vec::new() }
    }

    /// Appends `rows` rows; `columns` are in the order of the schema.
    pub fn append(&mut self, columns: &[Column<'_>], rows: usize) -> Result<(), ArrowError> {
        let mut from = 0;
        while from < rows {
            let mut to = rows.min(from + (self.batch_rows - self.rows));
            if self.columns.iter().any(|column| matches!(column.values, ValuesBuf::View(..))) {
                to = to.min(from + 1024); // the payload is looked at between slices of this many rows
            }
            for (growing, column) in self.columns.iter_mut().zip(columns) {
                growing.append(*column, from, to);
            }
            self.rows += to - from;
            from = to;
            if self.rows == self.batch_rows
                || self.columns.iter().any(|column| column.payload.len() > BATCH_PAYLOAD_BYTES)
            {
                self.seal()?;
            }
        }
        Ok(())
    }

    fn seal(&mut self) -> Result<(), ArrowError> {
        if self.rows > 0 {
            let columns = self.columns.iter_mut().map(Growing::finish).collect::<Result<_, _>>()?;
            let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
            self.finished.push(RecordBatch::try_new_with_options(
                Arc::clone(&self.schema),
                columns,
                &options,
            )?);
            self.rows = 0;
        }
        Ok(())
    }

    /// The batches that are full.
    pub fn take_finished(&mut self) -> Vec<RecordBatch> {
        std::mem::take(&mut self.finished)
    }

    /// All batches, the last one as full as it is.
    pub fn finish(mut self) -> Result<Vec<RecordBatch>, ArrowError> {
        self.seal()?;
        Ok(self.finished)
    }
}
