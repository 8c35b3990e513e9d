//! The key groups of rows, column by column.
//!
//! [`penstock_types::key_hash`] fixes the hash of a value and the combination of several columns; this module only has
//! the loops.

use arrow_schema::{DataType, TimeUnit};
use penstock_memory::view::with_bytes;
use penstock_memory::{Column, Values};
use penstock_types::KeyGroup;
use penstock_types::key_hash::{self, Hash};

/// Returns the nanoseconds of one tick of a unit.
fn nanoseconds(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}

/// Fills `out` with the hash of each row's key.
pub fn hashes(columns: &[Column<'_>], types: &[DataType], rows: usize, out: &mut Vec<Hash>) {
    out.clear();
    out.resize(rows, key_hash::START);
    for (column, data_type) in columns.iter().zip(types) {
        add_column(*column, data_type, out);
    }
}

/// Fills `out` with the key group of each row's key.
pub fn groups(columns: &[Column<'_>], types: &[DataType], rows: usize, out: &mut Vec<KeyGroup>) {
    let mut of_rows = Vec::new();
    hashes(columns, types, rows, &mut of_rows);
    out.clear();
    out.extend(of_rows.iter().map(|&hash| key_hash::group(hash)));
}

fn add_each<T: Copy>(values: &[T], valid: Option<&[u8]>, out: &mut [Hash], of: impl Fn(T) -> Hash) {
    match valid {
        None => {
            out.iter_mut().zip(values).for_each(|(hash, &value)| *hash = key_hash::combine(*hash, of(value)))
        }
        Some(mask) => {
            for ((hash, &value), &valid) in out.iter_mut().zip(values).zip(mask) {
                *hash = key_hash::combine(*hash, if valid != 0 { of(value) } else { key_hash::NULL });
            }
        }
    }
}

fn add_column(column: Column<'_>, data_type: &DataType, out: &mut [Hash]) {
    let valid = column.valid;
    if let DataType::Dictionary(_, values) = data_type {
        return add_column(column, values, out);
    }
    match (column.values, data_type) {
        (Values::U8(values), DataType::Boolean) => {
            add_each(values, valid, out, |value| key_hash::boolean(value != 0));
        }
        (Values::I64(values), DataType::Timestamp(unit, _)) => {
            let scale = nanoseconds(*unit);
            add_each(values, valid, out, |value| key_hash::timestamp(i128::from(value) * scale));
        }
        (Values::I64(values), DataType::Date64) => {
            add_each(values, valid, out, |value| key_hash::timestamp(i128::from(value) * 1_000_000));
        }
        (Values::I32(values), DataType::Date32) => {
            add_each(values, valid, out, |value| {
                key_hash::timestamp(i128::from(value) * 86_400 * 1_000_000_000)
            });
        }
        (Values::I64(values), DataType::Duration(unit)) => {
            let scale = nanoseconds(*unit);
            add_each(values, valid, out, |value| key_hash::duration(i128::from(value) * scale));
        }
        (Values::I64(values), DataType::Time64(unit)) => {
            let scale = nanoseconds(*unit);
            add_each(values, valid, out, |value| key_hash::time(i128::from(value) * scale));
        }
        (Values::I32(values), DataType::Time32(unit)) => {
            let scale = nanoseconds(*unit);
            add_each(values, valid, out, |value| key_hash::time(i128::from(value) * scale));
        }
        (Values::I128(values), DataType::Decimal128(_, scale)) => {
            let scale = *scale;
            add_each(values, valid, out, |value| key_hash::decimal(value, scale));
        }
        (Values::I8(values), _) => add_each(values, valid, out, |value| key_hash::integer(value.into())),
        (Values::I16(values), _) => add_each(values, valid, out, |value| key_hash::integer(value.into())),
        (Values::I32(values), _) => add_each(values, valid, out, |value| key_hash::integer(value.into())),
        (Values::I64(values), _) => add_each(values, valid, out, key_hash::integer),
        (Values::U8(values), _) => add_each(values, valid, out, |value| key_hash::integer(value.into())),
        (Values::U16(values), _) => add_each(values, valid, out, |value| key_hash::integer(value.into())),
        (Values::U32(values), _) => add_each(values, valid, out, |value| key_hash::integer(value.into())),
        (Values::U64(values), _) => add_each(values, valid, out, key_hash::unsigned),
        (Values::I128(values), _) => add_each(values, valid, out, |value| key_hash::decimal(value, 0)),
        (Values::F32(values), _) => add_each(values, valid, out, |value| key_hash::float(value.into())),
        (Values::F64(values), _) => add_each(values, valid, out, key_hash::float),
        (Values::View(views, payloads), _) => {
            let text = matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
            let of: fn(&[u8]) -> Hash = if text { key_hash::text } else { key_hash::binary };
            // A view under a null points nowhere.
            for (row, (hash, &view)) in out.iter_mut().zip(views).enumerate() {
                let value =
                    if column.is_valid(row) { with_bytes(view, payloads, of) } else { key_hash::NULL };
                *hash = key_hash::combine(*hash, value);
            }
        }
    }
}
