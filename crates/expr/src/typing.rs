//! The rules for combining types.

use arrow_schema::{DataType, TimeUnit};

/// Returns signedness and width of an integer type.
pub(crate) fn integer(data_type: &DataType) -> Option<(bool, u32)> {
    Some(match data_type {
        DataType::Int8 => (true, 8),
        DataType::Int16 => (true, 16),
        DataType::Int32 => (true, 32),
        DataType::Int64 => (true, 64),
        DataType::UInt8 => (false, 8),
        DataType::UInt16 => (false, 16),
        DataType::UInt32 => (false, 32),
        DataType::UInt64 => (false, 64),
        _ => return None,
    })
}

pub(crate) fn is_float(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Float32 | DataType::Float64)
}

pub(crate) fn is_string(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

pub(crate) fn is_binary(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

/// Returns true if values of the integer type can be as large as `value`.
pub(crate) fn integer_holds(data_type: &DataType, value: i128) -> bool {
    integer(data_type).is_some_and(|(signed, bits)| {
        if signed {
            (-(1_i128 << (bits - 1))..1_i128 << (bits - 1)).contains(&value)
        } else {
            (0..1_i128 << bits).contains(&value)
        }
    })
}

/// Returns the integer type that holds both; `None` when only 128 bits would.
pub(crate) fn common_integer(left: &DataType, right: &DataType) -> Option<DataType> {
    let ((left_signed, left_bits), (right_signed, right_bits)) = (integer(left)?, integer(right)?);
    if left_signed == right_signed {
        return Some(if left_bits >= right_bits { left.clone() } else { right.clone() });
    }
    let (signed_bits, unsigned_bits) =
        if left_signed { (left_bits, right_bits) } else { (right_bits, left_bits) };
    match signed_bits.max(unsigned_bits * 2) {
        8 | 16 => Some(DataType::Int16),
        32 => Some(DataType::Int32),
        64 => Some(DataType::Int64),
        _ => None,
    }
}

/// Returns the float type for two numbers of which at least one is a float.
pub(crate) fn common_float(left: &DataType, right: &DataType) -> DataType {
    let fits_f32 = |data_type: &DataType| {
        *data_type == DataType::Float32 || integer(data_type).is_some_and(|(_, bits)| bits <= 16)
    };
    if fits_f32(left) && fits_f32(right) { DataType::Float32 } else { DataType::Float64 }
}

/// Returns an integer or decimal type as precision and scale.
pub(crate) fn as_decimal(data_type: &DataType) -> Option<(u8, i8)> {
    if let DataType::Decimal128(precision, scale) = data_type {
        return Some((*precision, *scale));
    }
    let precision = match integer(data_type)? {
        (_, 8) => 3,
        (_, 16) => 5,
        (_, 32) => 10,
        (true, _) => 19,
        (false, _) => 20,
    };
    Some((precision, 0))
}

fn fineness(unit: TimeUnit) -> u32 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 1,
        TimeUnit::Microsecond => 2,
        TimeUnit::Nanosecond => 3,
    }
}

/// Returns the finer of two units.
pub(crate) fn finer(left: TimeUnit, right: TimeUnit) -> TimeUnit {
    if fineness(left) >= fineness(right) { left } else { right }
}

/// Returns the number of `to` in one `from`.
pub(crate) fn units_in(from: TimeUnit, to: TimeUnit) -> i128 {
    1000_i128.pow(fineness(to) - fineness(from))
}

/// Returns the smallest and the largest whole number that a column of this type holds; `None` when it is no count.
pub(crate) fn whole_range(data_type: &DataType) -> Option<(i128, i128)> {
    use DataType::{Boolean, Date32, Date64, Duration, Time32, Time64, Timestamp};
    if let Some((signed, bits)) = integer(data_type) {
        return Some(if signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) });
    }
    match data_type {
        Boolean => Some((0, 1)),
        Date32 => Some((i32::MIN.into(), i32::MAX.into())),
        Date64 | Timestamp(..) | Duration(_) => Some((i64::MIN.into(), i64::MAX.into())),
        Time32(_) | Time64(_) => per_day(data_type).map(|units| (0, i128::from(units) - 1)),
        _ => None,
    }
}

/// The same for source columns: a time of day may exceed the day.
pub(crate) fn stored_range(data_type: &DataType) -> Option<(i128, i128)> {
    match data_type {
        DataType::Time32(_) => Some((i32::MIN.into(), i32::MAX.into())),
        DataType::Time64(_) => Some((i64::MIN.into(), i64::MAX.into())),
        other => whole_range(other),
    }
}

/// Returns the unit of a type that counts time; a `date32` counts days, for which there is no `TimeUnit`.
pub(crate) fn unit_of(data_type: &DataType) -> Option<TimeUnit> {
    use DataType::{Date32, Date64, Duration, Time32, Time64, Timestamp};
    match data_type {
        Timestamp(unit, _) | Duration(unit) | Time32(unit) | Time64(unit) => Some(*unit),
        Date32 => Some(TimeUnit::Second),
        Date64 => Some(TimeUnit::Millisecond),
        _ => None,
    }
}

/// Returns the number of its units in a day.
pub(crate) fn per_day(data_type: &DataType) -> Option<i64> {
    if *data_type == DataType::Date32 {
        return Some(1);
    }
    unit_of(data_type).map(|unit| 86_400 * units_in(TimeUnit::Second, unit) as i64)
}
