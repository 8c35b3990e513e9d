//! An Arrow batch made readable run by run.
//!
//! Columns are matched with the declared schema by name, once per batch. Fixed-width values stay where they are and
//! are lent out as slices. Values that Arrow stores in another form (bitmaps, offset strings, dictionaries) are
//! converted into a [`ColumnBuf`] for the rows of one run at a time, and only for the columns that the plan reads.
//!
//! BATCH-1. Variable-width columns are validated in full before they are read, so that foreign offsets and views
//!     cannot point outside their buffers. Values under a null do not count: if one is not valid, the column is copied
//!     without it.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use penstock_types::TypeName;
use thiserror::Error;

use crate::column::{Column, ColumnBuf, Physical, Values};
use crate::payload::Payload;
use crate::undefined::defined;
use crate::view::{are_ascii, make_view_within};

/// A batch that does not fit the declared schema.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{reason}")]
pub struct BatchError {
    /// The column at fault.
    pub column: String,
    /// What is wrong with it.
    pub reason: String,
}

/// One column of a batch, ready to be read.
enum ColumnSource {
    /// Not read by the plan.
    Unread,
    Fixed(Fixed, Option<NullBuffer>),
    Bool(BooleanBuffer, Option<NullBuffer>),
    Offsets32(ScalarBuffer<i32>, Buffer, Option<NullBuffer>),
    Offsets64(ScalarBuffer<i64>, Buffer, Option<NullBuffer>),
    Views(ScalarBuffer<u128>, Vec<Payload>, Option<NullBuffer>),
    /// Decoded for the rows of a run, by Arrow's kernel.
    Dictionary(ArrayRef, DataType),
}

enum Fixed {
    I8(ScalarBuffer<i8>),
    I16(ScalarBuffer<i16>),
    I32(ScalarBuffer<i32>),
    I64(ScalarBuffer<i64>),
    U8(ScalarBuffer<u8>),
    U16(ScalarBuffer<u16>),
    U32(ScalarBuffer<u32>),
    U64(ScalarBuffer<u64>),
    F32(ScalarBuffer<f32>),
    F64(ScalarBuffer<f64>),
    I128(ScalarBuffer<i128>),
}

impl Fixed {
    fn slice(&self, start: usize, len: usize) -> Values<'_> {
        macro_rules! each {
            ($($kind:ident),*) => { match self { $(Self::$kind(buffer) => Values::$kind(&buffer[start..start + len]),)* } };
        }
        each!(I8, I16, I32, I64, U8, U16, U32, U64, F32, F64, I128)
    }
}

/// The columns of a schema that a plan reads.
#[derive(Clone, Debug)]
pub struct SourceColumns {
    schema: SchemaRef,
    read: Vec<bool>,
}

impl SourceColumns {
    /// Selects every column of `schema` whose flag in `read` is set.
    pub fn new(schema: SchemaRef, read: Vec<bool>) -> Self {
        debug_assert_eq!(schema.fields().len(), read.len());
        Self { schema, read }
    }

    /// Returns the declared schema.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns true if column `column` is read.
    pub fn is_read(&self, column: usize) -> bool {
        self.read[column]
    }

    /// Returns the bytes per row of the columns that are read.
    pub fn row_width(&self) -> usize {
        self.schema
            .fields()
            .iter()
            .zip(&self.read)
            .filter(|(_, read)| **read)
            .filter_map(|(field, _)| Physical::of(field.data_type()))
            .map(Physical::width)
            .sum()
    }

    /// Checks `batch` against the schema: names, types and nullability.
    pub fn check(schema: &SchemaRef, batch: &RecordBatch) -> Result<(), BatchError> {
        Self::new(Arc::clone(schema), vec![false; schema.fields().len()]).open(batch).map(|_| ())
    }

    /// Checks `batch` against the schema and makes its columns readable.
    pub fn open(&self, batch: &RecordBatch) -> Result<Batch, BatchError> {
        let mut columns = Vec::with_capacity(self.read.len());
        for (field, read) in self.schema.fields().iter().zip(&self.read) {
            let fail = |reason: String| BatchError { column: field.name().clone(), reason };
            let Some(array) = batch.column_by_name(field.name()) else {
                let schema = batch.schema();
                let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
                return Err(fail(format!(
                    "column \"{}\" of the declared schema is missing; the batch has: {}",
                    field.name(),
                    names.join(", ")
                )));
            };
            if !interchangeable(field.data_type(), array.data_type()) {
                return Err(fail(format!(
                    "column \"{}\" is declared as {} but the batch has {}; cast it, or declare the stream with the type the data has",
                    field.name(),
                    TypeName(field.data_type()),
                    TypeName(array.data_type())
                )));
            }
            let invalid =
                |error| fail(format!("column \"{}\" is not valid Arrow data: {error}", field.name()));
            if !field.is_nullable() {
                // The nulls of a dictionary are those of its keys.
                if matches!(array.data_type(), DataType::Dictionary(..)) {
                    valid_column(array).map_err(invalid)?;
                }
                let nulls = array.logical_null_count();
                if nulls > 0 {
                    return Err(fail(format!(
                        "column \"{}\" is declared as not null but the batch has {nulls} nulls in it",
                        field.name(),
                    )));
                }
            }
            // An empty batch is never read, and a slice without rows need not pass validation.
            columns.push(if *read && batch.num_rows() > 0 {
                open_column(array).map_err(invalid)?
            } else {
                ColumnSource::Unread
            });
        }
        Ok(Batch { columns, rows: batch.num_rows() })
    }
}

/// Returns the type of a column downstream of the source: dictionaries are decoded at the border.
pub fn decoded(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => values,
        other => other,
    }
}

/// Returns true if a batch column of type `given` may serve as `declared`: the same type, in any encoding.
fn interchangeable(declared: &DataType, given: &DataType) -> bool {
    use DataType::{Binary, BinaryView, LargeBinary, LargeUtf8, Utf8, Utf8View};
    let (declared, given) = (decoded(declared), decoded(given));
    declared == given
        || (matches!(declared, Utf8 | LargeUtf8 | Utf8View) && matches!(given, Utf8 | LargeUtf8 | Utf8View))
        || (matches!(declared, Binary | LargeBinary | BinaryView)
            && matches!(given, Binary | LargeBinary | BinaryView))
}

fn payloads(buffers: &[Buffer]) -> Vec<Payload> {
    buffers.iter().cloned().map(Payload::from).collect()
}

/// Validates a column of variable width in full (BATCH-1).
fn validate(array: &ArrayRef) -> Result<(), ArrowError> {
    let variable = matches!(Physical::of(array.data_type()), Some(Physical::View));
    let dictionary = matches!(array.data_type(), DataType::Dictionary(..));
    if let Some(array) = array.as_string_view_opt() {
        let data = array.to_data();
        data.validate()?;
        data.validate_nulls()?;
        if !are_ascii(array.views(), array.data_buffers()) {
            data.validate_values()?;
        }
    } else if variable || dictionary {
        array.to_data().validate_full()?;
    }
    Ok(())
}

/// Returns a column that obeys Arrow's rules: `array` itself, or a copy with empty values under its nulls if only
/// those break the rules.
///
/// # Errors
/// The rule that the column breaks.
pub fn valid_column(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let Err(error) = validate(array) else { return Ok(Arc::clone(array)) };
    let defined = defined(array).map_err(|_| error)?;
    validate(&defined)?;
    Ok(defined)
}

fn open_column(array: &ArrayRef) -> Result<ColumnSource, ArrowError> {
    let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0).cloned();
    let array = &valid_column(array)?;
    Ok(match array.data_type() {
        DataType::Boolean => ColumnSource::Bool(array.as_boolean().values().clone(), nulls),
        DataType::Utf8 => {
            let array = array.as_string::<i32>();
            ColumnSource::Offsets32(array.offsets().inner().clone(), array.values().clone(), nulls)
        }
        DataType::LargeUtf8 => {
            let array = array.as_string::<i64>();
            ColumnSource::Offsets64(array.offsets().inner().clone(), array.values().clone(), nulls)
        }
        DataType::Binary => {
            let array = array.as_binary::<i32>();
            ColumnSource::Offsets32(array.offsets().inner().clone(), array.values().clone(), nulls)
        }
        DataType::LargeBinary => {
            let array = array.as_binary::<i64>();
            ColumnSource::Offsets64(array.offsets().inner().clone(), array.values().clone(), nulls)
        }
        DataType::Utf8View => {
            let array = array.as_string_view();
            ColumnSource::Views(array.views().clone(), payloads(array.data_buffers()), nulls)
        }
        DataType::BinaryView => {
            let array = array.as_binary_view();
            ColumnSource::Views(array.views().clone(), payloads(array.data_buffers()), nulls)
        }
        DataType::Dictionary(_, values) => {
            // Views let the decoded strings share the payload of the dictionary.
            let decoded = match values.as_ref() {
                DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8View,
                DataType::Binary | DataType::LargeBinary | DataType::BinaryView => DataType::BinaryView,
                other => other.clone(),
            };
            ColumnSource::Dictionary(Arc::clone(array), decoded)
        }
        data_type => {
            let mut data = array.to_data();
            data.align_buffers(); // foreign memory may be aligned to 8 bytes where i128 needs 16
            let (buffer, offset, len) = (data.buffers()[0].clone(), data.offset(), data.len());
            macro_rules! fixed {
                ($($kind:ident),*) => {
                    match Physical::of(data_type) {
                        $(Some(Physical::$kind) => Fixed::$kind(ScalarBuffer::new(buffer, offset, len)),)*
                        Some(Physical::View) | None => unreachable!("types are checked when the plan is built"),
                    }
                };
            }
            ColumnSource::Fixed(fixed!(I8, I16, I32, I64, U8, U16, U32, U64, F32, F64, I128), nulls)
        }
    })
}

/// Selects the rows of a run to load.
#[derive(Clone, Copy)]
pub enum LoadRows<'a> {
    /// Every row.
    All,
    /// These rows, counted from the start of the run.
    Selected(&'a [u32]),
}

/// A batch whose columns can be read run by run.
pub struct Batch {
    columns: Vec<ColumnSource>,
    rows: usize,
}

impl Batch {
    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the values of a fixed-width column for the rows `start..start + len`, without a copy and regardless of
    /// nulls; `None` when the column has to be converted first.
    pub fn borrow(&self, column: usize, start: usize, len: usize) -> Option<Values<'_>> {
        match &self.columns[column] {
            ColumnSource::Fixed(fixed, _) => Some(fixed.slice(start, len)),
            _ => None,
        }
    }

    /// Returns true if the column has a null in `start..start + len`.
    pub fn has_nulls(&self, column: usize, start: usize, len: usize) -> bool {
        self.first_null(column, start, len).is_some()
    }

    /// Returns the first null of the column in `start..start + len`, counted from `start`.
    pub fn first_null(&self, column: usize, start: usize, len: usize) -> Option<usize> {
        self.nulls_of(column, start, len)?.iter().position(|valid| !valid)
    }

    /// Returns the nulls of the column in `start..start + len`; `None` when there is none.
    pub fn nulls_of(&self, column: usize, start: usize, len: usize) -> Option<NullBuffer> {
        let nulls = match &self.columns[column] {
            ColumnSource::Unread => None,
            ColumnSource::Fixed(_, nulls)
            | ColumnSource::Bool(_, nulls)
            | ColumnSource::Offsets32(_, _, nulls)
            | ColumnSource::Offsets64(_, _, nulls)
            | ColumnSource::Views(_, _, nulls) => nulls.clone(),
            ColumnSource::Dictionary(array, _) => array.logical_nulls(),
        };
        Some(nulls?.slice(start, len)).filter(|nulls| nulls.null_count() > 0)
    }

    /// Loads the mask of a fixed-width column whose values are borrowed. Leaves `into` without a mask when no row of
    /// the run is null.
    pub fn load_mask(&self, column: usize, start: usize, len: usize, into: &mut ColumnBuf) {
        let ColumnSource::Fixed(_, nulls) = &self.columns[column] else {
            unreachable!("only borrowed columns have their mask loaded alone");
        };
        load_mask(nulls.as_ref(), start, len, LoadRows::All, into);
    }

    /// Converts the rows of a run into the engine's column form.
    ///
    /// `into` must have the storage type of the column. The batch must have rows.
    pub fn load(&self, column: usize, start: usize, len: usize, rows: LoadRows<'_>, into: &mut ColumnBuf) {
        match &self.columns[column] {
            ColumnSource::Unread => unreachable!("the plan reads only the columns it asked for"),
            ColumnSource::Fixed(fixed, nulls) => {
                let everything: Vec<u32>;
                let rows = match rows {
                    LoadRows::Selected(rows) => rows,
                    LoadRows::All => {
                        everything = (0..len as u32).collect();
                        &everything
                    }
                };
                into.gather(Column { values: fixed.slice(start, len), valid: None }, rows);
                load_mask(nulls.as_ref(), start, len, LoadRows::Selected(rows), into);
            }
            ColumnSource::Bool(bits, nulls) => {
                let bits = bits.slice(start, len);
                let bytes = into.refill::<u8>();
                match rows {
                    LoadRows::All => unpack_bits(&bits, bytes),
                    LoadRows::Selected(rows) => {
                        bytes.extend(rows.iter().map(|&row| u8::from(bits.value(row as usize))));
                    }
                }
                load_mask(nulls.as_ref(), start, len, rows, into);
            }
            ColumnSource::Offsets32(offsets, payload, nulls) => {
                load_offsets(&offsets[start..=start + len], payload, rows, into);
                load_mask(nulls.as_ref(), start, len, rows, into);
            }
            ColumnSource::Offsets64(offsets, payload, nulls) => {
                load_offsets(&offsets[start..=start + len], payload, rows, into);
                load_mask(nulls.as_ref(), start, len, rows, into);
            }
            ColumnSource::Views(views, payload, nulls) => {
                let views = &views[start..start + len];
                let (out, buffers) = into.refill_views();
                match rows {
                    LoadRows::All => out.extend_from_slice(views),
                    LoadRows::Selected(rows) => out.extend(rows.iter().map(|&row| views[row as usize])),
                }
                buffers.extend_from_slice(payload);
                load_mask(nulls.as_ref(), start, len, rows, into);
            }
            ColumnSource::Dictionary(array, decoded) => {
                let values = arrow_cast::cast(&array.slice(start, len), decoded)
                    .expect("a validated dictionary decodes to its own value type");
                let values = open_column(&values).expect("arrow's kernels return valid data");
                Self { columns: vec![values], rows: len }.load(0, 0, len, rows, into);
                // A null may be in the indices or in the values; Arrow's kernel sees only the former when it decodes
                // to views.
                load_mask(array.logical_nulls().as_ref(), start, len, rows, into);
            }
        }
    }
}

fn unpack_bits(bits: &BooleanBuffer, into: &mut Vec<u8>) {
    let chunks = bits.bit_chunks();
    for chunk in chunks.iter() {
        into.extend((0..64).map(|bit| (chunk >> bit) as u8 & 1));
    }
    let rest = chunks.remainder_bits();
    into.extend((0..chunks.remainder_len()).map(|bit| (rest >> bit) as u8 & 1));
}

fn load_mask(nulls: Option<&NullBuffer>, start: usize, len: usize, rows: LoadRows<'_>, into: &mut ColumnBuf) {
    let Some(nulls) = nulls.map(|nulls| nulls.slice(start, len)).filter(|nulls| nulls.null_count() > 0)
    else {
        into.clear_mask();
        return;
    };
    let mask = into.refill_mask();
    match rows {
        LoadRows::All => unpack_bits(nulls.inner(), mask),
        LoadRows::Selected(rows) => {
            mask.extend(rows.iter().map(|&row| u8::from(nulls.is_valid(row as usize))))
        }
    }
}

fn load_offsets<O: Copy + TryInto<usize>>(
    offsets: &[O],
    payload: &Buffer,
    rows: LoadRows<'_>,
    into: &mut ColumnBuf,
) {
    let at = |row: usize| offsets[row].try_into().ok().expect("validated offsets are not negative");
    let (views, buffers) = into.refill_views();
    let bytes = payload.as_slice();
    // Views hold 32-bit offsets: a run that spans more payload than that gets several buffers.
    let mut base = at(0);
    buffers.push(payload.slice(base).into());
    let mut push = |row: usize| {
        let (from, to) = (at(row), at(row + 1));
        if to - base > u32::MAX as usize {
            base = from;
            buffers.push(payload.slice(base).into());
        }
        views.push(make_view_within(bytes, (from, to), buffers.len() as u32 - 1, (from - base) as u32));
    };
    match rows {
        LoadRows::All => (0..offsets.len() - 1).for_each(&mut push),
        LoadRows::Selected(rows) => rows.iter().for_each(|&row| push(row as usize)),
    }
}
