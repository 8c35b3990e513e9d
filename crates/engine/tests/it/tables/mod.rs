//! A lookup table with a column of every type.

#![allow(dead_code, reason = "each test binary uses a part of this module")]

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray,
};
use arrow_cast::cast;
use arrow_schema::DataType::{
    Binary, BinaryView, Boolean, Date32, Date64, Decimal128, Dictionary, Duration, Float32, Float64, Int8,
    Int16, Int32, Int64, LargeBinary, LargeUtf8, Time32, Time64, Timestamp, UInt8, UInt16, UInt32, UInt64,
    Utf8, Utf8View,
};
use arrow_schema::{DataType, Field, Schema, TimeUnit};

/// Every type that a stream may have, dictionaries of some among them.
pub fn every_type() -> Vec<DataType> {
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
        Date32,
        Date64,
        Time32(TimeUnit::Second),
        Time32(TimeUnit::Millisecond),
        Time64(TimeUnit::Microsecond),
        Time64(TimeUnit::Nanosecond),
        Decimal128(38, 10),
        Decimal128(12, -2),
        Utf8,
        LargeUtf8,
        Utf8View,
        Binary,
        LargeBinary,
        BinaryView,
    ];
    for unit in [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond] {
        types.push(Timestamp(unit, None));
        types.push(Timestamp(unit, Some("Europe/Berlin".into())));
        types.push(Duration(unit));
    }
    for values in [Utf8, LargeBinary, Int64, Decimal128(9, 2), Timestamp(TimeUnit::Second, None)] {
        types.push(Dictionary(Box::new(Int16), Box::new(values)));
    }
    types
}

/// Distinct values of that type where it has enough of them; every fifth row is null.
pub fn column(data_type: &DataType, rows: usize) -> ArrayRef {
    let present = |row: usize| row % 5 != 4;
    let long = |row: usize| format!("{row}: {}", "text ".repeat(row % 7));
    let whole = || (0..rows).map(|row| present(row).then_some(row as i64 % 100 - 20));
    match data_type {
        Utf8 | LargeUtf8 | Utf8View => {
            let values: StringArray = (0..rows).map(|row| present(row).then(|| long(row))).collect();
            cast(&values, data_type).unwrap()
        }
        Binary | LargeBinary | BinaryView => {
            let values = (0..rows)
                .map(|row| present(row).then(|| [&[0, 255, row as u8], long(row).as_bytes()].concat()));
            cast(&values.collect::<BinaryArray>(), data_type).unwrap()
        }
        Boolean => {
            Arc::new((0..rows).map(|row| present(row).then_some(row % 3 == 0)).collect::<BooleanArray>())
        }
        Float32 | Float64 => {
            let special = [f64::NAN, -0.0, f64::INFINITY, f64::MIN_POSITIVE];
            let values = (0..rows)
                .map(|row| present(row).then(|| special.get(row).copied().unwrap_or(row as f64 / 8.0)));
            cast(&values.collect::<Float64Array>(), data_type).unwrap()
        }
        Decimal128(precision, scale) => {
            let values = whole().map(|value| value.map(|value| i128::from(value) * 10_i128.pow(8) + 7));
            let values = values.collect::<Decimal128Array>();
            Arc::new(values.with_precision_and_scale(*precision, *scale).unwrap())
        }
        UInt8 | UInt16 | UInt32 | UInt64 => {
            let values = whole().map(|value| value.map(|value| value + 20));
            cast(&values.collect::<Int64Array>(), data_type).unwrap()
        }
        Dictionary(_, values) => {
            let plain = column(values, rows);
            cast(&plain, data_type).unwrap()
        }
        Date32 | Time32(_) => {
            cast(&cast(&whole().collect::<Int64Array>(), &Int32).unwrap(), data_type).unwrap()
        }
        _ => cast(&whole().collect::<Int64Array>(), data_type).unwrap(),
    }
}

/// A table with the column `key`, `0..rows`, and a column of every type.
pub fn table_of_every_type(rows: usize) -> RecordBatch {
    let mut fields = vec![Field::new("key", Int64, false)];
    let mut columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from_iter_values(0..rows as i64))];
    for (number, data_type) in every_type().iter().enumerate() {
        fields.push(Field::new(format!("column {number}"), data_type.clone(), true));
        columns.push(column(data_type, rows));
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}
