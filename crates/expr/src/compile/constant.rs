//! Literals as constants of a type.

use arrow_buffer::Buffer;
use arrow_schema::{DataType, TimeUnit};
use penstock_memory::{ColumnBuf, Physical, Values, view::make_view};

use crate::compile::physical;
use crate::conversion::{decimal_to_f64, widen};
use crate::literal::Literal;
use crate::node::CompiledNode;
use crate::typing::{integer_holds, is_binary, is_string, units_in};

/// Makes a constant of a fixed-width type.
pub(crate) fn number(value: i128, data_type: &DataType) -> CompiledNode {
    let mut column = ColumnBuf::new(physical(data_type));
    widen(Values::I128(&[value]), physical(data_type), &mut column);
    CompiledNode::Constant(column)
}

pub(crate) fn float(value: f64, data_type: &DataType) -> CompiledNode {
    let mut column = ColumnBuf::new(physical(data_type));
    widen(Values::F64(&[value]), physical(data_type), &mut column);
    CompiledNode::Constant(column)
}

fn bytes(value: &[u8]) -> CompiledNode {
    let mut column = ColumnBuf::new(Physical::View);
    let (views, buffers) = column.refill_views();
    views.push(make_view(value, 0, 0));
    buffers.push(Buffer::from_vec(value.to_vec()).into());
    CompiledNode::Constant(column)
}

pub(crate) fn scale_up(value: i128, digits: i16) -> Option<i128> {
    10_i128.checked_pow(u32::try_from(digits).ok()?).and_then(|factor| value.checked_mul(factor))
}

/// Appends `zeros` zeros to `value`, if the result has at most `precision` digits.
fn decimal(value: i128, zeros: i16, precision: u8) -> Option<i128> {
    scale_up(value, zeros).filter(|value| value.unsigned_abs() < 10_u128.pow(u32::from(precision)))
}

/// Makes a constant of exactly that type from a literal; `None` when the value is not of that type.
pub(crate) fn constant(literal: &Literal, data_type: &DataType) -> Option<CompiledNode> {
    match (literal, data_type) {
        (Literal::Null, _) => Some(CompiledNode::Null),
        (Literal::Bool(value), DataType::Boolean) => Some(number(i128::from(*value), data_type)),
        (Literal::Int(value), data_type) if integer_holds(data_type, *value) => {
            Some(number(*value, data_type))
        }
        (Literal::Int(value), DataType::Float32 | DataType::Float64) => Some(float(*value as f64, data_type)),
        (Literal::Int(value), DataType::Decimal128(precision, scale)) => {
            decimal(*value, i16::from(*scale), *precision).map(|value| number(value, data_type))
        }
        (Literal::Float(value), DataType::Float32 | DataType::Float64) => Some(float(*value, data_type)),
        (Literal::Decimal { value, scale }, DataType::Decimal128(precision, wanted)) => {
            decimal(*value, i16::from(*wanted) - i16::from(*scale), *precision)
                .map(|value| number(value, data_type))
        }
        (Literal::Decimal { value, scale }, DataType::Float64) => {
            Some(float(decimal_to_f64(*value, *scale), data_type))
        }
        (Literal::String(text), data_type) if is_string(data_type) => Some(bytes(text.as_bytes())),
        (Literal::Binary(value), data_type) if is_binary(data_type) => Some(bytes(value)),
        (Literal::Timestamp { micros, aware }, DataType::Timestamp(unit, zone))
            if *aware == zone.is_some() =>
        {
            in_unit(*micros, *unit).map(|value| number(value, data_type))
        }
        (Literal::Duration(micros), DataType::Duration(unit)) => {
            in_unit(*micros, *unit).map(|value| number(value, data_type))
        }
        (Literal::Date(days), DataType::Date32) => Some(number(i128::from(*days), data_type)),
        (Literal::Date(days), DataType::Date64) => Some(number(i128::from(*days) * 86_400_000, data_type)),
        _ => None,
    }
}

/// Converts microseconds to another unit, if the result is a whole number that fits.
fn in_unit(micros: i64, unit: TimeUnit) -> Option<i128> {
    let value = match unit {
        TimeUnit::Nanosecond => i128::from(micros) * 1000,
        coarser => {
            let factor = i128::from(units_in(coarser, TimeUnit::Microsecond) as i64);
            if i128::from(micros) % factor != 0 {
                return None;
            }
            i128::from(micros) / factor
        }
    };
    i64::try_from(value).is_ok().then_some(value)
}
