//! Columns and blocks back into Arrow batches.
//!
//! Rows are appended, with a copy, until a batch is full. A block that is full already is handed out as it stands:
//! its fixed-width columns become Arrow buffers without a copy. Either way a user who keeps every result holds
//! nothing that the engine waits for: the memory of such a block leaves the account of its log.

use std::panic::RefUnwindSafe;
use std::ptr::NonNull;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, make_array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, SchemaRef};

use crate::chunk::Chunk;
use crate::column::{Column, Physical, Values, ValuesBuf};
use crate::for_each_kind;
use crate::log::Lease;
use crate::view::with_bytes;

/// Rows of an exported batch.
const BATCH_ROWS: usize = 64 * 1024;
/// Payload of one string or binary column of an exported batch; below what 32-bit offsets hold.
const BATCH_PAYLOAD_BYTES: usize = 1 << 30;
/// Rows from which on a block is handed out as it stands; a batch of fewer costs its reader more than the copy.
const WHOLE_BLOCK_ROWS: usize = 4096;

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

/// A hold on the memory that an Arrow buffer shows.
struct Kept {
    _chunk: Arc<Chunk>,
}

// What it holds is never looked at again, only dropped.
impl RefUnwindSafe for Kept {}

fn shared_buffer<T>(values: &[T], chunk: &Arc<Chunk>) -> Buffer {
    let kept = Arc::new(Kept { _chunk: Arc::clone(chunk) });
    let start = NonNull::from(values).cast::<u8>();
    // SAFETY: the values are rows of a whole block of this chunk, initialised, and never written while it has another
    // owner than its log (K3, S2); `kept` is one until the last copy of the buffer is dropped.
    unsafe { Buffer::from_custom_allocation(start, size_of_val(values), kept) }
}

/// A column of a whole block as an Arrow array; without a copy where Arrow stores it the same way.
fn export_column(
    data_type: &DataType,
    column: Column<'_>,
    rows: usize,
    chunk: &Arc<Chunk>,
) -> Result<ArrayRef, ArrowError> {
    if *data_type == DataType::Boolean || matches!(column.values, Values::View(..)) {
        let mut copied = Growing::new(data_type);
        copied.append(column, 0, rows);
        return copied.finish();
    }
    let buffer = for_each_kind!(Values, column.values, values => shared_buffer(values, chunk),
        (views, _payloads) => shared_buffer(views, chunk));
    let nulls = column
        .valid
        .filter(|mask| mask.contains(&0))
        .map(|mask| NullBuffer::new(BooleanBuffer::collect_bool(rows, |row| mask[row] != 0)));
    let data = ArrayData::builder(data_type.clone()).len(rows).add_buffer(buffer).nulls(nulls).build()?;
    Ok(make_array(data))
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

    /// Takes the rows of a lease; `columns` says which column of the lease each one of the schema is.
    ///
    /// A whole block becomes a batch of its own, without a copy; other rows are appended.
    pub fn take(&mut self, lease: &Lease, columns: &[usize]) -> Result<(), ArrowError> {
        let rows = lease.rows();
        if !lease.is_whole_block() || rows < WHOLE_BLOCK_ROWS {
            let columns: Vec<_> = columns.iter().map(|&column| lease.column(column)).collect();
            return self.append(&columns, rows);
        }
        self.seal()?;
        let chunk = lease.export();
        let arrays = self
            .schema
            .fields()
            .iter()
            .zip(columns)
            .map(|(field, &column)| export_column(field.data_type(), lease.column(column), rows, &chunk))
            .collect::<Result<_, _>>()?;
        self.finish_batch(arrays, rows)
    }

    /// Makes a batch of the rows that were appended, as few as they are.
    pub fn seal(&mut self) -> Result<(), ArrowError> {
        if self.rows > 0 {
            let columns = self.columns.iter_mut().map(Growing::finish).collect::<Result<_, _>>()?;
            self.finish_batch(columns, self.rows)?;
            self.rows = 0;
        }
        Ok(())
    }

    fn finish_batch(&mut self, columns: Vec<ArrayRef>, rows: usize) -> Result<(), ArrowError> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        self.finished.push(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?);
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
