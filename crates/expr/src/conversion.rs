//! Conversions that the compiler puts between operands of different types.
//!
//! They lose nothing: a wider integer, a float as the language rules define, or a finer unit with
//! the multiplication checked.

use penstock_memory::{ColumnBuf, Physical, Values};

/// Writes `values` into `out` as `to`, by Rust's numeric conversion.
pub(crate) fn widen(values: Values<'_>, to: Physical, out: &mut ColumnBuf) {
    macro_rules! all {
        ($type:ty) => {
            match values {
                Values::I8(from) => out.refill::<$type>().extend(from.iter().map(|&value| value as $type)),
                Values::I16(from) => out.refill::<$type>().extend(from.iter().map(|&value| value as $type)),
                Values::I32(from) => out.refill::<$type>().extend(from.iter().map(|&value| value as $type)),
                Values::I64(from) => out.refill::<$type>().extend(from.iter().map(|&value| value as $type)),
                Values::U8(from) => out.refill::<$type>().extend(from.iter().map(|&value| value as $type)),
                Values::U16(from) => out.refill::<$type>().extend(from.iter().map(|&value| value as $type)),
                Values::U32(from) => out.refill::<$type>().extend(from.iter().map(|&value| value as $type)),
                Values::U64(from) => out.refill::<$type>().extend(from.iter().map(|&value| value as $type)),
                Values::F32(from) => out.refill::<$type>().extend(from.iter().map(|&value| value as $type)),
                Values::F64(from) => out.refill::<$type>().extend(from.iter().map(|&value| value as $type)),
                Values::I128(from) => out.refill::<$type>().extend(from.iter().map(|&value| value as $type)),
                Values::View(..) => unreachable!("strings are never converted to numbers"),
            }
        };
    }
    match to {
        Physical::I8 => all!(i8),
        Physical::I16 => all!(i16),
        Physical::I32 => all!(i32),
        Physical::I64 => all!(i64),
        Physical::U8 => all!(u8),
        Physical::U16 => all!(u16),
        Physical::U32 => all!(u32),
        Physical::U64 => all!(u64),
        Physical::F32 => all!(f32),
        Physical::F64 => all!(f64),
        Physical::I128 => all!(i128),
        Physical::View => unreachable!("numbers are never converted to strings"),
    }
}

/// The float nearest to `value / 10^scale`.
pub fn decimal_to_f64(value: i128, scale: i8) -> f64 {
    // Both sides exact in a double: one division, rounded once.
    if value.unsigned_abs() < 1 << 53 && scale.unsigned_abs() <= 22 {
        let power = 10_f64.powi(i32::from(scale.unsigned_abs()));
        return if scale >= 0 { value as f64 / power } else { value as f64 * power };
    }
    format!("{value}e{}", -i16::from(scale)).parse().expect("digits and an exponent are a number")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_round_once() {
        assert_eq!(decimal_to_f64(125, 2), 1.25);
        assert_eq!(decimal_to_f64(-125, -2), -12_500.0);
        assert_eq!(decimal_to_f64(10_i128.pow(37) + 1, 37), 1.0);
        assert_eq!(decimal_to_f64(123_456_789_012_345_678_901_234_567_890, 20), 1_234_567_890.123_456_8);
    }
}
