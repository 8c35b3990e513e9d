//! Exports columns and blocks as Arrow batches.
//!
//! Rows are appended, with a copy, until a batch is full. A long range of a block is exported in place: its
//! fixed-width columns become Arrow buffers of exactly those rows, without a copy. Either way a user who keeps every
//! result holds nothing that the engine waits for: the memory of such a block leaves the account of its log when the
//! batch is handed out, and is charged until then (see [`Parcel`]).

use std::panic::RefUnwindSafe;
use std::ptr::NonNull;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, make_array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_data::transform::MutableArrayData;
use arrow_schema::{ArrowError, DataType, FieldRef, SchemaRef};

use crate::column::{Column, Physical, Values, ValuesBuf};
use crate::coordinator::{Hold, Memory, ResultAccount};
use crate::for_each_kind;
use crate::log::Lease;
use crate::parcel::Parcel;
use crate::view::{view_len, with_bytes};

/// Rows of an exported batch.
const BATCH_ROWS: usize = 64 * 1024;
/// Payload of one string or binary column of an exported batch, unless a single value is longer. Far below what 32-bit
/// offsets hold, and less in a small budget.
const BATCH_PAYLOAD_BYTES: usize = 8 << 20;
/// Fewest rows that are exported in place; a smaller batch costs its reader more than the copy.
const SHARED_ROWS: usize = 4096;

/// Copies a batch into memory of its own, and no more of it than its rows need.
///
/// # Errors
/// Arrow refuses the copy.
pub fn compacted(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let copy = |column: &ArrayRef| -> Result<ArrayRef, ArrowError> {
        let data = column.to_data();
        let mut copied = MutableArrayData::new(vec![&data], false, data.len());
        copied.try_extend(0, 0, data.len())?;
        let copied = make_array(copied.freeze());
        Ok(match copied.data_type() {
            DataType::Utf8View => Arc::new(copied.as_string_view().gc()),
            DataType::BinaryView => Arc::new(copied.as_binary_view().gc()),
            _ => copied,
        })
    };
    let columns = batch.columns().iter().map(copy).collect::<Result<Vec<_>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(batch.schema(), columns, &options)
}

struct Growing {
    data_type: DataType,
    width: usize,
    values: ValuesBuf,
    valid: Vec<bool>,
    nulls: usize,
    /// Strings and binary: the bytes, and the end of each value.
    payload: Vec<u8>,
    ends: Vec<usize>,
}

impl Growing {
    fn new(data_type: &DataType) -> Self {
        let physical = Physical::of(data_type).expect("types are checked when the plan is built");
        Self {
            data_type: data_type.clone(),
            width: physical.width(),
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

    /// Returns the bytes in use.
    fn bytes(&self) -> usize {
        let rows = self.valid.len();
        let values = if self.ends.is_empty() { rows * self.width } else { rows * size_of::<usize>() };
        values + self.payload.capacity() + self.valid.capacity()
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
        // Batches stay below 2 GiB of payload, see BATCH_PAYLOAD_BYTES; `build` refuses a longer value.
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

/// Owns the memory that an Arrow buffer shows.
struct MemoryOwner {
    _memory: Arc<Memory>,
}

// The memory is never looked at again, only dropped.
impl RefUnwindSafe for MemoryOwner {}

fn shared_buffer<T>(values: &[T], memory: &Arc<Memory>) -> Buffer {
    let kept = Arc::new(MemoryOwner { _memory: Arc::clone(memory) });
    let start = NonNull::from(values).cast::<u8>();
    // SAFETY: the values are published rows in this memory, initialised, and by CHUNK-3 never written again now that
    // it is exported; `kept` owns it until the last copy of the buffer is dropped.
    unsafe { Buffer::from_custom_allocation(start, size_of_val(values), kept) }
}

/// Returns true if Arrow stores such values as a block does.
fn is_shared(data_type: &DataType) -> bool {
    *data_type != DataType::Boolean
        && Physical::of(data_type).is_some_and(|physical| physical != Physical::View)
}

/// Exports a column of published rows as an Arrow array; without a copy where Arrow stores it the same way.
fn export_column(
    data_type: &DataType,
    column: Column<'_>,
    rows: usize,
    memory: &Arc<Memory>,
) -> Result<ArrayRef, ArrowError> {
    if !is_shared(data_type) {
        let mut copied = Growing::new(data_type);
        copied.append(column, 0, rows);
        return copied.finish();
    }
    let buffer = for_each_kind!(Values, column.values, values => shared_buffer(values, memory),
        (views, _payloads) => shared_buffer(views, memory));
    let nulls = column
        .valid
        .filter(|mask| mask.contains(&0))
        .map(|mask| NullBuffer::new(BooleanBuffer::collect_bool(rows, |row| mask[row] != 0)));
    let data = ArrayData::builder(data_type.clone()).len(rows).add_buffer(buffer).nulls(nulls).build()?;
    Ok(make_array(data))
}

/// Adds up the bytes of the strings among the rows `from..to` while they fit `room`; returns the first row that does
/// not fit, or `to`.
fn fitting(column: Column<'_>, from: usize, to: usize, room: usize) -> usize {
    let Values::View(views, _) = column.values else { return to };
    let mut bytes = 0;
    for (row, view) in views.iter().enumerate().take(to).skip(from) {
        bytes += if column.is_valid(row) { view_len(*view) } else { 0 };
        if bytes > room {
            return row;
        }
    }
    to
}

/// Gathers columns of runs into batches of one schema.
pub struct Exporter {
    schema: SchemaRef,
    columns: Vec<Growing>,
    rows: usize,
    batch_rows: usize,
    /// Payload limit of one column of a batch, and byte limit of all columns.
    payload_bytes: usize,
    batch_bytes: usize,
    /// The account that is charged for waiting batches, if any, and its charge for the unfinished one.
    account: Option<ResultAccount>,
    growing: Option<Hold>,
    finished: Vec<Parcel>,
}

impl Exporter {
    /// Creates an exporter of batches with that schema.
    pub fn new(schema: SchemaRef) -> Self {
        let columns = schema.fields().iter().map(|field| Growing::new(field.data_type())).collect();
        Self {
            schema,
            columns,
            rows: 0,
            batch_rows: BATCH_ROWS,
            payload_bytes: BATCH_PAYLOAD_BYTES,
            batch_bytes: usize::MAX,
            account: None,
            growing: None,
            finished: Vec::new(),
        }
    }

    /// Creates an exporter whose batches wait to be read, charged to `account` meanwhile.
    pub fn charged(schema: SchemaRef, account: ResultAccount) -> Self {
        let batch_bytes = account.batch_bytes();
        let payload_bytes = BATCH_PAYLOAD_BYTES.min(batch_bytes);
        Self { payload_bytes, batch_bytes, account: Some(account), ..Self::new(schema) }
    }

    /// Appends `rows` rows; `columns` are in the order of the schema.
    pub fn append(&mut self, columns: &[Column<'_>], rows: usize) -> Result<(), ArrowError> {
        let mut from = 0;
        while from < rows {
            let until = rows.min(from + (self.batch_rows - self.rows));
            let room = |growing: &Growing| self.payload_bytes.saturating_sub(growing.payload.len());
            let fits = self
                .columns
                .iter()
                .zip(columns)
                .map(|(growing, column)| fitting(*column, from, until, room(growing)));
            let fits = fits.min().unwrap_or(until);
            if fits == from && self.rows > 0 {
                self.seal()?;
                continue;
            }
            // A value longer than the limit of a batch has a batch of its own.
            let to = fits.max(from + 1);
            for (growing, column) in self.columns.iter_mut().zip(columns) {
                growing.append(*column, from, to);
            }
            self.rows += to - from;
            from = to;
            let bytes = self.charge_growing();
            if self.rows == self.batch_rows || bytes > self.batch_bytes {
                self.seal()?;
            }
        }
        Ok(())
    }

    /// Charges the rows that are in no batch yet; returns their bytes.
    fn charge_growing(&mut self) -> usize {
        let Some(account) = &self.account else { return 0 };
        let bytes = self.columns.iter().map(Growing::bytes).sum();
        self.growing.get_or_insert_with(|| account.hold(0)).set(bytes);
        bytes
    }

    /// Takes the rows of a lease; `columns` maps each column of the schema to one of the lease.
    ///
    /// Many rows become a batch of their own, without a copy; few are appended, and so are rows without a column that
    /// could be shared.
    pub fn take(&mut self, lease: &Lease, columns: &[usize]) -> Result<(), ArrowError> {
        let rows = lease.rows();
        let shares = self.schema.fields().iter().any(|field| is_shared(field.data_type()));
        let texts = columns.iter().map(|&column| fitting(lease.column(column), 0, rows, self.payload_bytes));
        if rows < SHARED_ROWS || !shares || texts.min().is_some_and(|fits| fits < rows) {
            let columns: Vec<_> = columns.iter().map(|&column| lease.column(column)).collect();
            return self.append(&columns, rows);
        }
        self.seal()?;
        let (memory, claim) = match &self.account {
            Some(_) => {
                let (memory, claim) = lease.claim();
                (memory, Some(claim))
            }
            None => (lease.export(), None),
        };
        let arrays: Vec<ArrayRef> = self
            .schema
            .fields()
            .iter()
            .zip(columns)
            .map(|(field, &column)| export_column(field.data_type(), lease.column(column), rows, &memory))
            .collect::<Result<_, _>>()?;
        let copied = |(field, array): (&FieldRef, &ArrayRef)| match is_shared(field.data_type()) {
            true => array.nulls().map_or(0, |nulls| nulls.buffer().capacity()),
            false => array.get_array_memory_size(),
        };
        let copied = self.schema.fields().iter().zip(&arrays).map(copied).sum();
        let hold = self.account.as_ref().map(|account| account.hold(copied));
        let batch = self.batch(arrays, rows)?;
        self.finished.push(Parcel::new(batch, claim, hold));
        Ok(())
    }

    /// Makes a batch of the appended rows, however few.
    pub fn seal(&mut self) -> Result<(), ArrowError> {
        if self.rows > 0 {
            let columns = self.columns.iter_mut().map(Growing::finish).collect::<Result<_, _>>()?;
            let batch = self.batch(columns, self.rows)?;
            let mut hold = self.growing.take();
            if let Some(hold) = &mut hold {
                hold.set(batch.get_array_memory_size());
            }
            self.finished.push(Parcel::new(batch, None, hold));
            self.rows = 0;
        }
        Ok(())
    }

    fn batch(&self, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch, ArrowError> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
    }

    /// Returns true if rows were taken that are in no batch yet.
    pub fn holds_rows(&self) -> bool {
        self.rows > 0
    }

    /// Takes the finished batches, as parcels that wait to be read.
    pub fn take_parcels(&mut self) -> Vec<Parcel> {
        std::mem::take(&mut self.finished)
    }

    /// Takes the finished batches.
    pub fn take_finished(&mut self) -> Vec<RecordBatch> {
        self.finished.drain(..).map(Parcel::hand_out).collect()
    }

    /// Returns all batches, the last one as full as it is.
    pub fn finish(mut self) -> Result<Vec<RecordBatch>, ArrowError> {
        self.seal()?;
        Ok(self.take_finished())
    }
}
