//! Key groups of columns against the hash of each value, and of one value in columns of different types.

use crate::columns;

use arrow_schema::{DataType, TimeUnit};
use columns::{Cell, Value, any_key, stored, text};
use penstock_memory::{ColumnBuf, Physical};
use penstock_operators::keys::groups::{groups, hashes};
use penstock_types::key_hash::{self, Hash};
use proptest::prelude::*;

fn types() -> Vec<DataType> {
    use DataType::{
        Binary, Boolean, Date32, Date64, Decimal128, Duration, Float32, Float64, Int8, Int16, Int32, Int64,
        Time32, Time64, Timestamp, UInt8, UInt16, UInt32, UInt64, Utf8, Utf8View,
    };
    vec![
        Boolean,
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
        Decimal128(20, 3),
        Utf8,
        Utf8View,
        Binary,
        Date32,
        Date64,
        Timestamp(TimeUnit::Second, None),
        Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
        Duration(TimeUnit::Millisecond),
        Time32(TimeUnit::Second),
        Time64(TimeUnit::Microsecond),
        DataType::Dictionary(Box::new(Int32), Box::new(Utf8)),
    ]
}

/// Hashes one value, by the table in the documentation of the hash.
fn of_value(data_type: &DataType, value: &Value) -> Hash {
    let day = 86_400_000_000_000_i128;
    match (data_type, value) {
        (DataType::Boolean, Value::Int(value)) => key_hash::boolean(*value != 0),
        (DataType::UInt64, Value::Int(value)) => key_hash::unsigned(*value as u64),
        (DataType::Decimal128(_, scale), Value::Int(value)) => key_hash::decimal(*value, *scale),
        (DataType::Date32, Value::Int(value)) => key_hash::timestamp(value * day),
        (DataType::Date64, Value::Int(value)) => key_hash::timestamp(value * 1_000_000),
        (DataType::Timestamp(TimeUnit::Second, _), Value::Int(value)) => {
            key_hash::timestamp(value * 1_000_000_000)
        }
        (DataType::Timestamp(..), Value::Int(value)) => key_hash::timestamp(*value),
        (DataType::Duration(_), Value::Int(value)) => key_hash::duration(value * 1_000_000),
        (DataType::Time32(_), Value::Int(value)) => key_hash::time(value * 1_000_000_000),
        (DataType::Time64(_), Value::Int(value)) => key_hash::time(value * 1_000),
        (_, Value::Int(value)) => key_hash::integer(*value as i64),
        (_, Value::Float(value)) => key_hash::float(*value),
        (DataType::Binary, Value::Bytes(bytes)) => key_hash::binary(bytes),
        (_, Value::Bytes(bytes)) => key_hash::text(bytes),
    }
}

fn any_cell(data_type: &DataType) -> BoxedStrategy<Cell> {
    let value = match data_type {
        DataType::Boolean => (0_i128..2).prop_map(Value::Int).boxed(),
        other => any_key(Physical::of(other).unwrap()),
    };
    prop::option::weighted(0.8, value).boxed()
}

proptest! {
    #[test]
    fn columns_hash_as_their_values(
        (types, rows) in prop::collection::vec(prop::sample::select(types()), 0..4).prop_flat_map(|types| {
            let row: Vec<_> = types.iter().map(any_cell).collect();
            (Just(types), prop::collection::vec(row, 0..20))
        }),
    ) {
        let columns: Vec<ColumnBuf> = columns::columns(&rows, types.len())
            .iter()
            .zip(&types)
            .map(|(cells, data_type)| stored(Physical::of(data_type).unwrap(), cells))
            .collect();
        let columns: Vec<_> = columns.iter().map(ColumnBuf::as_column).collect();
        let (mut found, mut of_rows) = (vec![1; 3], vec![1; 3]);
        hashes(&columns, &types, rows.len(), &mut of_rows);
        groups(&columns, &types, rows.len(), &mut found);
        for (number, row) in rows.iter().enumerate() {
            let expected = row.iter().zip(&types).fold(key_hash::START, |so_far, (cell, data_type)| {
                let hash = cell.as_ref().map_or(key_hash::NULL, |value| of_value(data_type, value));
                key_hash::combine(so_far, hash)
            });
            prop_assert_eq!((of_rows[number], found[number]), (expected, key_hash::group(expected)));
        }
    }
}

fn hash_of(data_type: &DataType, cell: Cell) -> Hash {
    let column = stored(Physical::of(data_type).unwrap(), &[cell]);
    let mut out = Vec::new();
    hashes(&[column.as_column()], std::slice::from_ref(data_type), 1, &mut out);
    out[0]
}

#[test]
fn equal_values_of_different_types_have_one_hash() {
    use DataType::{
        Date32, Date64, Decimal128, Dictionary, Duration, Float32, Float64, Int8, Int64, LargeUtf8,
        Timestamp, UInt8, UInt64, Utf8,
    };
    let int = |value: i128| Some(Value::Int(value));
    let same = |left: (&DataType, Cell), right: (&DataType, Cell)| {
        let texts = format!("{left:?} and {right:?}");
        assert_eq!(hash_of(left.0, left.1), hash_of(right.0, right.1), "{texts}");
    };
    same((&Int8, int(5)), (&Int64, int(5)));
    same((&UInt8, int(200)), (&UInt64, int(200)));
    same((&UInt64, int(i64::MAX.into())), (&Int64, int(i64::MAX.into())));
    same((&Float32, Some(Value::Float(0.25))), (&Float64, Some(Value::Float(0.25))));
    same((&Float64, Some(Value::Float(-0.0))), (&Float32, Some(Value::Float(0.0))));
    same((&Float64, Some(Value::Float(-f64::NAN))), (&Float32, Some(Value::Float(f64::NAN))));
    same((&Decimal128(10, 2), int(150)), (&Decimal128(38, 1), int(15)));
    let seconds = Timestamp(TimeUnit::Second, None);
    let nanoseconds = Timestamp(TimeUnit::Nanosecond, Some("UTC".into()));
    same((&seconds, int(86_400)), (&nanoseconds, int(86_400_000_000_000)));
    same((&Date32, int(1)), (&seconds, int(86_400)));
    same((&Date64, int(86_400_000)), (&Date32, int(1)));
    same((&Duration(TimeUnit::Second), int(1)), (&Duration(TimeUnit::Microsecond), int(1_000_000)));
    same((&Utf8, text("key")), (&LargeUtf8, text("key")));
    same((&Utf8, text("key")), (&Dictionary(Box::new(Int8), Box::new(Utf8)), text("key")));
    same((&Utf8, None), (&Int64, None));
}
