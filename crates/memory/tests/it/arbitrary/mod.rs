//! Random columns of every supported Arrow type, each beside a plain model of its values.
//!
//! A row is drawn as a seed, or as null; the seed picks a value of the column's type, limits and both kinds of string
//! (inside a view, outside it) among them.

#![allow(dead_code, reason = "each test binary uses a part of this module")]

use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, BinaryViewBuilder, LargeBinaryBuilder, LargeStringBuilder, StringBuilder,
    StringViewBuilder,
};
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, DictionaryArray, Int16Array, PrimitiveArray, make_array,
};
use arrow_schema::{DataType, TimeUnit};
use penstock_memory::batch::decoded;
use penstock_memory::view::{make_view, with_bytes};
use penstock_memory::{Column, ColumnBuf, Physical, Values};
use proptest::prelude::*;

/// The value of a row. Floats are compared bit by bit, bools are 0 and 1.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    Int(i128),
    Float(u64),
    Bytes(Vec<u8>),
}

/// A column in the model: `None` where it is null.
pub type Cells = Vec<Option<Value>>;

/// A row before its column has a type.
pub type Seed = Option<u64>;

pub fn seeds(rows: impl Into<prop::collection::SizeRange>) -> impl Strategy<Value = Vec<Seed>> {
    prop::collection::vec(prop::option::weighted(0.8, any::<u64>()), rows)
}

/// Every supported type, dictionaries of most among them.
pub fn types() -> Vec<DataType> {
    use DataType::{
        Binary, BinaryView, Boolean, Date32, Date64, Decimal128, Dictionary, Duration, Float32, Float64,
        Int8, Int16, Int32, Int64, LargeBinary, LargeUtf8, Time32, Time64, Timestamp, UInt8, UInt16, UInt32,
        UInt64, Utf8, Utf8View,
    };
    let mut types = vec![
        Int8,
        Int16,
        Int32,
        Int64,
        UInt8,
        UInt16,
        UInt32,
        UInt64,
        Float32,
        Float64,
        Boolean,
        Timestamp(TimeUnit::Second, None),
        Timestamp(TimeUnit::Millisecond, Some("Europe/Berlin".into())),
        Timestamp(TimeUnit::Microsecond, None),
        Timestamp(TimeUnit::Nanosecond, Some("+02:00".into())),
        Date32,
        Date64,
        Time32(TimeUnit::Second),
        Time64(TimeUnit::Nanosecond),
        Duration(TimeUnit::Microsecond),
        Decimal128(38, 10),
        Decimal128(5, -2),
        Utf8,
        LargeUtf8,
        Utf8View,
        Binary,
        LargeBinary,
        BinaryView,
    ];
    let plain = [
        Utf8,
        LargeUtf8,
        Utf8View,
        Binary,
        LargeBinary,
        BinaryView,
        Boolean,
        Int64,
        Float64,
        Decimal128(9, 2),
    ];
    types.extend(plain.map(|values| Dictionary(Box::new(Int16), Box::new(values))));
    types
}

pub fn any_type() -> impl Strategy<Value = DataType> {
    prop::sample::select(types())
}

/// Returns a number between `low` and `high`, both limits and zero more often than the rest.
fn int(seed: u64, low: i128, high: i128) -> i128 {
    match seed % 8 {
        0 => low,
        1 => high,
        2 => 0,
        3 => 1,
        _ => {
            let magnitude = i128::from(seed).wrapping_mul(0x9E37_79B9_7F4A_7C15).rem_euclid(high + 1);
            if low < 0 && seed & 8 > 0 { -magnitude } else { magnitude }
        }
    }
}

fn bytes(seed: u64, text: bool) -> Vec<u8> {
    // 12 bytes is the longest value that fits in a view.
    let len = [0, 1, 4, 5, 11, 12, 13, 40][(seed % 8) as usize];
    let bytes = (0..len).map(|place| (seed >> 3).wrapping_mul(place + 7) as u8);
    if text { bytes.map(|byte| b'a' + byte % 26).collect() } else { bytes.collect() }
}

/// Returns the value of that type for a seed.
pub fn value(data_type: &DataType, seed: u64) -> Value {
    use DataType::{
        Binary, BinaryView, Boolean, Date32, Decimal128, Float32, Float64, Int8, Int16, Int32, LargeBinary,
        Time32, UInt8, UInt16, UInt32, UInt64,
    };
    match decoded(data_type) {
        Boolean => Value::Int(i128::from(seed & 1)),
        Int8 => Value::Int(int(seed, i8::MIN.into(), i8::MAX.into())),
        Int16 => Value::Int(int(seed, i16::MIN.into(), i16::MAX.into())),
        Int32 | Date32 | Time32(_) => Value::Int(int(seed, i32::MIN.into(), i32::MAX.into())),
        UInt8 => Value::Int(int(seed, 0, u8::MAX.into())),
        UInt16 => Value::Int(int(seed, 0, u16::MAX.into())),
        UInt32 => Value::Int(int(seed, 0, u32::MAX.into())),
        UInt64 => Value::Int(int(seed, 0, u64::MAX.into())),
        Decimal128(precision, _) => {
            let limit = 10_i128.pow(u32::from(*precision)) - 1;
            Value::Int(int(seed, -limit, limit))
        }
        Float32 => {
            let special = [f32::NAN, -0.0, f32::INFINITY, f32::MIN_POSITIVE, 1.5];
            let value = special.get((seed % 16) as usize).copied();
            Value::Float(value.map_or(u64::from(seed as u32), |value| u64::from(value.to_bits())))
        }
        Float64 => {
            let special = [f64::NAN, -0.0, f64::NEG_INFINITY, f64::MIN_POSITIVE, 1.5];
            Value::Float(special.get((seed % 16) as usize).map_or(seed, |value| value.to_bits()))
        }
        Binary | LargeBinary | BinaryView => Value::Bytes(bytes(seed, false)),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Value::Bytes(bytes(seed, true)),
        _ => Value::Int(int(seed, i64::MIN.into(), i64::MAX.into())),
    }
}

pub fn cells(data_type: &DataType, seeds: &[Seed]) -> Cells {
    seeds.iter().map(|seed| seed.map(|seed| value(data_type, seed))).collect()
}

fn ints<T: ArrowPrimitiveType>(data_type: &DataType, cells: &Cells) -> ArrayRef
where
    T::Native: TryFrom<i128, Error: std::fmt::Debug>,
{
    let numbers = cells.iter().map(|cell| match cell {
        Some(Value::Int(value)) => Some(T::Native::try_from(*value).unwrap()),
        Some(other) => panic!("{other:?} is not an integer"),
        None => None,
    });
    let array = numbers.collect::<PrimitiveArray<T>>();
    make_array(array.to_data().into_builder().data_type(data_type.clone()).build().unwrap())
}

fn floats<T: ArrowPrimitiveType>(cells: &Cells, from_bits: fn(u64) -> T::Native) -> ArrayRef {
    let numbers = cells.iter().map(|cell| match cell {
        Some(Value::Float(bits)) => Some(from_bits(*bits)),
        Some(other) => panic!("{other:?} is not a float"),
        None => None,
    });
    Arc::new(numbers.collect::<PrimitiveArray<T>>())
}

fn slices(cells: &Cells) -> impl Iterator<Item = Option<&[u8]>> {
    cells.iter().map(|cell| match cell {
        Some(Value::Bytes(bytes)) => Some(bytes.as_slice()),
        Some(other) => panic!("{other:?} is not bytes"),
        None => None,
    })
}

fn texts(cells: &Cells) -> impl Iterator<Item = Option<&str>> {
    slices(cells).map(|bytes| bytes.map(|bytes| std::str::from_utf8(bytes).unwrap()))
}

/// Makes a dictionary of the distinct values. Every other null is among the values, not among the indices.
fn dictionary(values: &DataType, cells: &Cells) -> ArrayRef {
    let mut distinct: Cells = vec![None];
    let mut indices: Vec<Option<i16>> = Vec::new();
    for (row, cell) in cells.iter().enumerate() {
        if cell.is_none() && row % 2 == 0 {
            indices.push(None);
            continue;
        }
        let place = distinct.iter().position(|known| known == cell).unwrap_or_else(|| {
            distinct.push(cell.clone());
            distinct.len() - 1
        });
        indices.push(Some(place as i16));
    }
    Arc::new(DictionaryArray::new(Int16Array::from(indices), array(values, &distinct)))
}

/// Makes the Arrow array of that type with these values.
pub fn array(data_type: &DataType, cells: &Cells) -> ArrayRef {
    use DataType::{
        Binary, BinaryView, Boolean, Date32, Decimal128, Dictionary, Float32, Float64, Int8, Int16, Int32,
        LargeBinary, LargeUtf8, Time32, UInt8, UInt16, UInt32, UInt64, Utf8, Utf8View,
    };
    macro_rules! build {
        ($builder:ty, $values:expr) => {{
            let mut builder = <$builder>::new();
            $values.for_each(|value| builder.append_option(value));
            Arc::new(builder.finish())
        }};
    }
    match data_type {
        Int8 => ints::<Int8Type>(data_type, cells),
        Int16 => ints::<Int16Type>(data_type, cells),
        Int32 | Date32 | Time32(_) => ints::<Int32Type>(data_type, cells),
        UInt8 => ints::<UInt8Type>(data_type, cells),
        UInt16 => ints::<UInt16Type>(data_type, cells),
        UInt32 => ints::<UInt32Type>(data_type, cells),
        UInt64 => ints::<UInt64Type>(data_type, cells),
        Float32 => floats::<Float32Type>(cells, |bits| f32::from_bits(bits as u32)),
        Float64 => floats::<Float64Type>(cells, f64::from_bits),
        Boolean => {
            let bools = cells.iter().map(|cell| cell.as_ref().map(|cell| *cell == Value::Int(1)));
            Arc::new(bools.collect::<BooleanArray>())
        }
        Decimal128(precision, scale) => {
            let numbers = cells.iter().map(|cell| match cell {
                Some(Value::Int(value)) => Some(*value),
                Some(other) => panic!("{other:?} is not a decimal"),
                None => None,
            });
            let array = numbers.collect::<Decimal128Array>();
            Arc::new(array.with_precision_and_scale(*precision, *scale).unwrap())
        }
        Utf8 => build!(StringBuilder, texts(cells)),
        LargeUtf8 => build!(LargeStringBuilder, texts(cells)),
        Utf8View => build!(StringViewBuilder, texts(cells)),
        Binary => build!(BinaryBuilder, slices(cells)),
        LargeBinary => build!(LargeBinaryBuilder, slices(cells)),
        BinaryView => build!(BinaryViewBuilder, slices(cells)),
        Dictionary(_, values) => dictionary(values, cells),
        _ => ints::<Int64Type>(data_type, cells),
    }
}

/// The same, as a slice out of the middle of a longer array.
pub fn sliced(data_type: &DataType, seeds: &[Seed], before: usize, after: usize) -> ArrayRef {
    let mut padded: Vec<Seed> = (0..before as u64).map(|row| (row % 3 > 0).then_some(row)).collect();
    padded.extend_from_slice(seeds);
    padded.extend((0..after as u64).map(|row| (row % 2 > 0).then_some(row)));
    array(data_type, &cells(data_type, &padded)).slice(before, seeds.len())
}

/// Returns the values of a column of a run.
pub fn read(column: Column<'_>) -> Cells {
    macro_rules! each {
        ($values:expr, $wrap:expr) => {{
            let wrap = $wrap;
            let rows = $values.iter().enumerate();
            rows.map(|(row, &value)| column.is_valid(row).then(|| wrap(value))).collect()
        }};
    }
    if let Some(mask) = column.valid {
        assert_eq!(mask.len(), column.values.len(), "COLUMN-1: a mask is as long as the values");
        assert!(mask.iter().all(|&valid| valid < 2), "COLUMN-1: a mask is made of zeros and ones");
    }
    match column.values {
        Values::I8(values) => each!(values, |value: i8| Value::Int(value.into())),
        Values::I16(values) => each!(values, |value: i16| Value::Int(value.into())),
        Values::I32(values) => each!(values, |value: i32| Value::Int(value.into())),
        Values::I64(values) => each!(values, |value: i64| Value::Int(value.into())),
        Values::U8(values) => each!(values, |value: u8| Value::Int(value.into())),
        Values::U16(values) => each!(values, |value: u16| Value::Int(value.into())),
        Values::U32(values) => each!(values, |value: u32| Value::Int(value.into())),
        Values::U64(values) => each!(values, |value: u64| Value::Int(value.into())),
        Values::I128(values) => each!(values, Value::Int),
        Values::F32(values) => each!(values, |value: f32| Value::Float(value.to_bits().into())),
        Values::F64(values) => each!(values, |value: f64| Value::Float(value.to_bits())),
        Values::View(views, buffers) => {
            each!(views, |view| with_bytes(view, buffers, |bytes| Value::Bytes(bytes.to_vec())))
        }
    }
}

/// Makes a column with these values. Values under a null are nonsense, as they may be (COLUMN-2).
pub fn column(data_type: &DataType, cells: &Cells) -> ColumnBuf {
    let physical = Physical::of(data_type).unwrap();
    let mut column = ColumnBuf::new(physical);
    macro_rules! fill {
        ($($kind:ident $type:ty),*) => {
            match physical {
                $(Physical::$kind => column.refill::<$type>().extend(cells.iter().map(|cell| match cell {
                    Some(Value::Int(value)) => *value as $type,
                    _ => 77 as $type,
                })),)*
                Physical::F32 => column.refill::<f32>().extend(cells.iter().map(|cell| match cell {
                    Some(Value::Float(bits)) => f32::from_bits(*bits as u32),
                    _ => 77.0,
                })),
                Physical::F64 => column.refill::<f64>().extend(cells.iter().map(|cell| match cell {
                    Some(Value::Float(bits)) => f64::from_bits(*bits),
                    _ => 77.0,
                })),
                Physical::View => {
                    let (views, buffers) = column.refill_views();
                    let mut payload = Vec::new();
                    for cell in cells {
                        // A view under a null points nowhere.
                        views.push(match cell {
                            Some(Value::Bytes(bytes)) => make_view(bytes, 0, payload.len() as u32),
                            _ => u128::MAX,
                        });
                        if let Some(Value::Bytes(bytes)) = cell {
                            payload.extend_from_slice(bytes);
                        }
                    }
                    buffers.push(arrow_buffer::Buffer::from_vec(payload).into());
                }
            }
        };
    }
    fill!(I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, I128 i128);
    if cells.contains(&None) {
        column.refill_mask().extend(cells.iter().map(|cell| u8::from(cell.is_some())));
    }
    column
}
