//! Conversions between numbers.
//!
//! The compiler inserts [`widen`] between operands of different types: it loses only digits that a float cannot hold.
//! The others are parts of casts; they report whether a row that counts has no result.

use penstock_memory::{ColumnBuf, Native, Physical, Values};

use crate::reciprocal::Reciprocal;

/// Rounds digits that the target cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// Towards zero.
    Truncate,
    /// To the next whole number below.
    Floor,
    /// To the next whole number above.
    Ceil,
    /// To the nearest whole number, half away from zero.
    Nearest,
}

/// Returns true if `bad` holds for some row that counts: one whose byte in `wanted` is not 0.
#[inline]
pub(crate) fn any_wanted<T: Copy>(values: &[T], wanted: Option<&[u8]>, bad: impl Fn(T) -> bool) -> bool {
    match wanted {
        None => values.iter().fold(false, |any, &value| any | bad(value)),
        Some(mask) => {
            values.iter().zip(mask).fold(false, |any, (&value, &wanted)| any | (bad(value) & (wanted != 0)))
        }
    }
}

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

/// Writes `values` into `out` as `to`, which has these limits; floats are truncated towards zero. Returns true if a
/// row that counts exceeds the limits.
pub(crate) fn narrow(
    values: Values<'_>,
    to: Physical,
    (low, high): (i128, i128),
    wanted: Option<&[u8]>,
    out: &mut ColumnBuf,
) -> bool {
    fn beyond<T: Native + PartialOrd + TryFrom<i128>>(
        values: &[T],
        limits: (i128, i128),
        widest: (T, T),
        wanted: Option<&[u8]>,
    ) -> bool {
        let low = T::try_from(limits.0).unwrap_or(widest.0);
        let high = T::try_from(limits.1).unwrap_or(widest.1);
        any_wanted(values, wanted, |value| (value < low) | (value > high))
    }
    macro_rules! beyond {
        ($type:ident, $values:expr) => {
            beyond::<$type>($values, (low, high), ($type::MIN, $type::MAX), wanted)
        };
    }
    macro_rules! beyond_float {
        ($type:ident, $values:expr) => {{
            // Every value that truncates to `low` lies above `low - 1`, if there is such a number.
            let (least, end) = (low as $type, (high + 1) as $type);
            let below = least - 1.0;
            if below < least {
                any_wanted($values, wanted, |value| !((value > below) & (value < end)))
            } else {
                any_wanted($values, wanted, |value| !((value >= least) & (value < end)))
            }
        }};
    }
    let failed = match values {
        Values::I8(values) => beyond!(i8, values),
        Values::I16(values) => beyond!(i16, values),
        Values::I32(values) => beyond!(i32, values),
        Values::I64(values) => beyond!(i64, values),
        Values::U8(values) => beyond!(u8, values),
        Values::U16(values) => beyond!(u16, values),
        Values::U32(values) => beyond!(u32, values),
        Values::U64(values) => beyond!(u64, values),
        Values::I128(values) => beyond!(i128, values),
        Values::F32(values) => beyond_float!(f32, values),
        Values::F64(values) => beyond_float!(f64, values),
        Values::View(..) => unreachable!("strings are parsed"),
    };
    widen(values, to, out);
    failed
}

/// Converts `values` to `float32`. A finite number that becomes infinite fails.
pub(crate) fn shrink(values: &[f64], wanted: Option<&[u8]>, out: &mut Vec<f32>) -> bool {
    out.extend(values.iter().map(|&value| value as f32));
    any_wanted(values, wanted, |value| value.is_finite() & (value as f32).is_infinite())
}

/// Writes 1 where a number is not zero.
pub(crate) fn to_bool(values: Values<'_>, out: &mut Vec<u8>) {
    fn not_default<T: Native>(values: &[T], out: &mut Vec<u8>) {
        out.extend(values.iter().map(|value| u8::from(*value != T::default())));
    }
    penstock_memory::for_each_kind!(Values, values, values => not_default(values, out),
        (_views, _payloads) => unreachable!("strings are parsed"));
}

/// Computes `values * factor`; fails beyond 64 bits.
pub(crate) fn multiply_i64(values: &[i64], factor: i64, wanted: Option<&[u8]>, out: &mut Vec<i64>) -> bool {
    out.extend(values.iter().map(|&value| value.wrapping_mul(factor)));
    let (low, high) = (i64::MIN / factor, i64::MAX / factor);
    any_wanted(values, wanted, |value| (value < low) | (value > high))
}

/// Computes `values * factor`; fails at `limit` and beyond.
pub(crate) fn multiply_i128(
    values: &[i128],
    (factor, limit): (i128, i128),
    wanted: Option<&[u8]>,
    out: &mut Vec<i128>,
) -> bool {
    out.extend(values.iter().map(|&value| value.wrapping_mul(factor)));
    let most = (limit - 1) / factor;
    any_wanted(values, wanted, |value| (value < -most) | (value > most))
}

/// Computes `value / divisor`, for a positive divisor.
#[inline]
fn quotient(value: i128, divisor: i128, rounding: Rounding) -> i128 {
    let floor = value.div_euclid(divisor);
    let rest = value.rem_euclid(divisor);
    match rounding {
        Rounding::Truncate => value / divisor,
        Rounding::Floor => floor,
        Rounding::Ceil => floor + i128::from(rest != 0),
        Rounding::Nearest if rest == divisor - rest => floor + i128::from(value > 0),
        Rounding::Nearest => floor + i128::from(rest > divisor - rest),
    }
}

/// Computes `values / divisor`, for a positive divisor.
pub(crate) fn divide(values: Values<'_>, divisor: i128, rounding: Rounding, out: &mut ColumnBuf) {
    match values {
        Values::I64(values) => {
            let divisor = divisor as i64;
            let out = out.refill::<i64>();
            match rounding {
                Rounding::Floor => {
                    let reciprocal = Reciprocal::new(divisor).expect("a factor is above zero");
                    out.extend(values.iter().map(|&value| reciprocal.floor_divide(value)));
                }
                _ => out.extend(values.iter().map(|value| value / divisor)),
            }
        }
        Values::I128(values) => {
            out.refill::<i128>().extend(values.iter().map(|&value| quotient(value, divisor, rounding)))
        }
        _ => unreachable!("units of 64 bits and digits of decimals are divided"),
    }
}

/// Rounds `values` to multiples of `unit`; fails beyond 38 digits.
pub(crate) fn round_decimal(
    values: &[i128],
    (unit, rounding): (i128, Rounding),
    wanted: Option<&[u8]>,
    out: &mut Vec<i128>,
) -> bool {
    // A value under a null may be any number, so the product may overflow.
    out.extend(values.iter().map(|&value| quotient(value, unit, rounding).wrapping_mul(unit)));
    let limit = 10_i128.pow(38);
    any_wanted(out, wanted, |value| (value <= -limit) | (value >= limit))
}

/// Rounds `values` down to multiples of `step`; fails below 64 bits.
pub(crate) fn floor_to(values: &[i64], step: i64, wanted: Option<&[u8]>, out: &mut Vec<i64>) -> bool {
    let reciprocal = Reciprocal::new(step).expect("a step is above zero");
    out.extend(values.iter().map(|&value| value.wrapping_sub(reciprocal.rest(value))));
    // The first representable multiple: everything before it is in a step that begins beyond 64 bits.
    let rest = i64::MIN.rem_euclid(step);
    let first = if rest == 0 { i64::MIN } else { i64::MIN.saturating_add(step - rest) };
    any_wanted(values, wanted, |value| value < first)
}

/// Computes `value` times `10^scale`, rounded to the nearest whole number (half to even); `None` beyond `limit`.
pub(crate) fn float_to_decimal(value: f64, scale: i8, limit: i128) -> Option<i128> {
    if !value.is_finite() {
        return None;
    }
    let whole = if scale >= 0 {
        // The text has every digit of the float, rounded once.
        let text = format!("{value:.*}", usize::from(scale.unsigned_abs()));
        text.replace('.', "").parse::<i128>().ok()?
    } else {
        divided_text(value, usize::from(scale.unsigned_abs()))?
    };
    (whole.unsigned_abs() < limit.unsigned_abs()).then_some(whole)
}

/// Divides `value` by `10^places`, rounded to the nearest whole number (half to even); `None` beyond 128 bits.
fn divided_text(value: f64, places: usize) -> Option<i128> {
    // As text, since the digits before the division may exceed 128 bits.
    let text = format!("{:.0}", value.abs().trunc());
    let (kept, dropped) = text.split_at(text.len().saturating_sub(places));
    let floor: i128 = if kept.is_empty() { 0 } else { kept.parse().ok()? };
    let half = format!("5{}", "0".repeat(places - 1));
    let rest = format!("{dropped:0>places$}");
    let above_half = rest > half || (rest == half && (value.fract() != 0.0 || floor % 2 != 0));
    let whole = floor + i128::from(above_half);
    Some(if value < 0.0 { -whole } else { whole })
}

/// Returns the float nearest to `value / 10^scale`.
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

    #[test]
    fn floats_are_cut_off_towards_zero_within_the_limits() {
        let check = |value: f64, to: Physical, limits: (i128, i128)| {
            let mut out = ColumnBuf::new(to);
            narrow(Values::F64(&[value]), to, limits, None, &mut out)
        };
        let long = (i64::MIN.into(), i64::MAX.into());
        assert!(!check(-9_223_372_036_854_775_808.0, Physical::I64, long));
        assert!(check(9_223_372_036_854_775_808.0, Physical::I64, long));
        assert!(!check(-128.9, Physical::I8, (-128, 127)) && check(-129.0, Physical::I8, (-128, 127)));
        assert!(!check(127.9, Physical::I8, (-128, 127)) && check(128.0, Physical::I8, (-128, 127)));
        assert!(!check(-0.9, Physical::U8, (0, 255)) && check(-1.0, Physical::U8, (0, 255)));
        assert!(check(f64::NAN, Physical::U8, (0, 255)) && check(f64::INFINITY, Physical::U8, (0, 255)));
    }

    #[test]
    fn floats_become_the_nearest_decimal() {
        let ten = 10_i128.pow(10);
        assert_eq!(float_to_decimal(0.29, 2, ten), Some(29));
        assert_eq!(float_to_decimal(-0.125, 2, ten), Some(-12));
        assert_eq!(float_to_decimal(0.375, 2, ten), Some(38));
        assert_eq!(float_to_decimal(250.0, -2, ten), Some(2));
        assert_eq!(float_to_decimal(250.5, -2, ten), Some(3));
        assert_eq!(float_to_decimal(-350.0, -2, ten), Some(-4));
        assert_eq!(float_to_decimal(50.0, -2, ten), Some(0));
        assert_eq!(float_to_decimal(-51.0, -2, ten), Some(-1));
        assert_eq!(float_to_decimal(7.0, -2, ten), Some(0));
        let most = 10_i128.pow(38);
        let beyond_128_bits = 170_141_183_460_469_231_731_687_303_715_884_105_728_u128;
        assert_eq!(float_to_decimal(2.0_f64.powi(127), -1, most), Some((beyond_128_bits / 10 + 1) as i128));
        assert_eq!(
            float_to_decimal(-9.9e40, -3, most),
            Some(-99_000_000_000_000_005_062_655_574_772_205_899_219)
        );
        assert_eq!(float_to_decimal(1e10, 0, ten), None);
        assert_eq!(float_to_decimal(1e300, 2, ten), None);
        assert_eq!(float_to_decimal(f64::NAN, 2, ten), None);
    }

    #[test]
    fn steps_begin_within_64_bits() {
        let mut out = Vec::new();
        assert!(!floor_to(&[-1, 0, 59, i64::MAX], 60, None, &mut out));
        assert_eq!(out[..3], [-60, 0, 0]);
        assert!(floor_to(&[i64::MIN], 60, None, &mut Vec::new()));
        assert!(!floor_to(&[i64::MIN], 60, Some(&[0]), &mut Vec::new()));
        assert!(!floor_to(&[i64::MIN], 64, None, &mut Vec::new()));
    }

    #[test]
    fn quotients_round_as_requested() {
        for (value, truncate, floor, ceil, nearest) in [
            (15, 1, 1, 2, 2),
            (-15, -1, -2, -1, -2),
            (14, 1, 1, 2, 1),
            (-14, -1, -2, -1, -1),
            (20, 2, 2, 2, 2),
        ] {
            assert_eq!(quotient(value, 10, Rounding::Truncate), truncate);
            assert_eq!(quotient(value, 10, Rounding::Floor), floor);
            assert_eq!(quotient(value, 10, Rounding::Ceil), ceil);
            assert_eq!(quotient(value, 10, Rounding::Nearest), nearest);
        }
    }
}
