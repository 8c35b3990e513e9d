//! Parses text into values.
//!
//! The whole text must be the value, without spaces around it:
//! - integers: digits, with or without a sign; floats as Rust and Python parse them (`1.5`, `1e9`, `nan`, `-inf`)
//! - bools: `true` and `false`, in any case
//! - decimals: digits, optionally with a point; digits beyond the scale are cut off
//! - dates: `2024-05-01`; times: `12:30`, `12:30:15`, `12:30:15.25`; timestamps: a date, or a date and a time with `T`
//!   or a space between them. Digits of a fraction beyond the unit are cut off.
//! - timestamps with a zone: the same; a trailing `Z` or offset such as `+02:00` names the instant, otherwise it is
//!   the local time of the zone, the earlier one when the clocks are set back.

use arrow_schema::{DataType, TimeUnit};
use penstock_memory::view::with_bytes;
use penstock_memory::{Column, ColumnBuf, Native};

use crate::calendar;
use crate::typing::units_in;
use crate::zone::Zone;

/// Fills `out` with `read` of each text that counts; returns true if one of them is no value.
fn all<T: Native>(
    column: Column<'_>,
    wanted: Option<&[u8]>,
    out: &mut ColumnBuf,
    read: impl Fn(&[u8]) -> Option<T>,
) -> bool {
    let (views, payloads) = column.views();
    let mut failed = false;
    out.refill::<T>().extend(views.iter().enumerate().map(|(row, &view)| {
        if wanted.is_some_and(|mask| mask[row] == 0) {
            return T::default();
        }
        let value = with_bytes(view, payloads, &read);
        failed |= value.is_none();
        value.unwrap_or_default()
    }));
    failed
}

/// Parses a text as Rust does.
fn plain<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Parses texts as values of `to`; returns true if a text that counts is no such value.
pub(crate) fn parse(
    to: &DataType,
    zone: Option<Zone>,
    column: Column<'_>,
    wanted: Option<&[u8]>,
    out: &mut ColumnBuf,
) -> bool {
    match to {
        DataType::Int8 => all::<i8>(column, wanted, out, plain),
        DataType::Int16 => all::<i16>(column, wanted, out, plain),
        DataType::Int32 => all::<i32>(column, wanted, out, plain),
        DataType::Int64 => all::<i64>(column, wanted, out, plain),
        DataType::UInt8 => all::<u8>(column, wanted, out, plain),
        DataType::UInt16 => all::<u16>(column, wanted, out, plain),
        DataType::UInt32 => all::<u32>(column, wanted, out, plain),
        DataType::UInt64 => all::<u64>(column, wanted, out, plain),
        DataType::Float32 => {
            all::<f32>(column, wanted, out, |text| plain(text).filter(|value| fits(*value, text)))
        }
        DataType::Float64 => {
            all::<f64>(column, wanted, out, |text| plain(text).filter(|value| fits(*value, text)))
        }
        DataType::Boolean => all::<u8>(column, wanted, out, boolean),
        DataType::Decimal128(precision, scale) => {
            let limit = 10_i128.pow((*precision).into());
            all::<i128>(column, wanted, out, |text| decimal(text, *scale, limit))
        }
        DataType::Date32 => all::<i32>(column, wanted, out, |text| i32::try_from(date(text)?).ok()),
        DataType::Date64 => all::<i64>(column, wanted, out, |text| Some(date(text)? * 86_400_000)),
        DataType::Time32(unit) => {
            all::<i32>(column, wanted, out, |text| i32::try_from(time(text, *unit)?).ok())
        }
        DataType::Time64(unit) => all::<i64>(column, wanted, out, |text| time(text, *unit)),
        DataType::Timestamp(unit, _) => all::<i64>(column, wanted, out, |text| timestamp(text, *unit, zone)),
        _ => unreachable!("the compiler allows only types that can be parsed"),
    }
}

/// Returns true unless digits were parsed as infinity.
fn fits(value: impl Into<f64>, text: &[u8]) -> bool {
    let value: f64 = value.into();
    value.is_finite() || !text.iter().any(u8::is_ascii_digit)
}

fn boolean(text: &[u8]) -> Option<u8> {
    if text.eq_ignore_ascii_case(b"true") {
        Some(1)
    } else {
        text.eq_ignore_ascii_case(b"false").then_some(0)
    }
}

/// Parses a text of digits only.
fn digits(text: &[u8]) -> Option<i128> {
    text.iter().try_fold(0_i128, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| i128::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

fn decimal(text: &[u8], scale: i8, limit: i128) -> Option<i128> {
    let (negative, text) = match text.split_first()? {
        (b'-', rest) => (true, rest),
        (b'+', rest) => (false, rest),
        _ => (false, text),
    };
    let point = text.iter().position(|&byte| byte == b'.');
    let (whole, fraction) = point.map_or((text, &text[..0]), |point| (&text[..point], &text[point + 1..]));
    if whole.is_empty() && fraction.is_empty() || !fraction.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = if scale >= 0 {
        let places = usize::from(scale.unsigned_abs());
        let kept = &fraction[..fraction.len().min(places)];
        let unit = 10_i128.checked_pow(kept.len() as u32)?;
        let value = digits(whole)?.checked_mul(unit)?.checked_add(digits(kept)?)?;
        value.checked_mul(10_i128.checked_pow((places - kept.len()) as u32)?)?
    } else {
        digits(whole)? / 10_i128.checked_pow(u32::from(scale.unsigned_abs()))?
    };
    (value < limit).then_some(if negative { -value } else { value })
}

/// Parses exactly `count` digits at the start; returns the number and the rest.
fn number(text: &[u8], count: usize) -> Option<(i64, &[u8])> {
    let (first, rest) = text.split_at_checked(count)?;
    Some((digits(first)? as i64, rest))
}

/// Returns the text after a byte.
fn after(text: &[u8], byte: u8) -> Option<&[u8]> {
    text.split_first().and_then(|(&first, rest)| (first == byte).then_some(rest))
}

/// Parses a date at the start; returns the day since the epoch and the rest.
fn leading_date(text: &[u8]) -> Option<(i64, &[u8])> {
    let (year, rest) = number(text, 4)?;
    let (month, rest) = number(after(rest, b'-')?, 2)?;
    let (day, rest) = number(after(rest, b'-')?, 2)?;
    Some((calendar::days(year, month, day)?, rest))
}

fn date(text: &[u8]) -> Option<i64> {
    leading_date(text).filter(|(_, rest)| rest.is_empty()).map(|(day, _)| day)
}

/// Parses a time of day at the start; returns it and the rest.
fn leading_time(text: &[u8], unit: TimeUnit) -> Option<(i64, &[u8])> {
    let (hour, rest) = number(text, 2)?;
    let (minute, rest) = number(after(rest, b':')?, 2)?;
    let (second, rest) = match after(rest, b':') {
        Some(rest) => number(rest, 2)?,
        None => (0, rest),
    };
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let per_second = units_in(TimeUnit::Second, unit) as i64;
    let whole = (hour * 3600 + minute * 60 + second) * per_second;
    let Some(rest) = after(rest, b'.') else { return Some((whole, rest)) };
    let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if count == 0 || count > 9 {
        return None;
    }
    let (fraction, rest) = number(rest, count)?;
    let nanos = fraction * 10_i64.pow(9 - count as u32);
    Some((whole + nanos / (1_000_000_000 / per_second), rest))
}

fn time(text: &[u8], unit: TimeUnit) -> Option<i64> {
    leading_time(text, unit).filter(|(_, rest)| rest.is_empty()).map(|(time, _)| time)
}

fn timestamp(text: &[u8], unit: TimeUnit, zone: Option<Zone>) -> Option<i64> {
    let (day, rest) = leading_date(text)?;
    let per_second = units_in(TimeUnit::Second, unit) as i64;
    let (of_day, rest) = match rest.split_first() {
        None => (0, rest),
        Some((b'T' | b' ', rest)) => leading_time(rest, unit)?,
        Some(_) => return None,
    };
    let (seconds, fraction) = (day * 86_400 + of_day / per_second, of_day % per_second);
    let seconds = match (zone, rest) {
        (None, []) => seconds,
        (None, _) => return None,
        (Some(zone), []) => zone.utc(seconds)?,
        (Some(_), [b'Z']) => seconds,
        (Some(_), offset) => match Zone::read(std::str::from_utf8(offset).ok()?)? {
            Zone::Fixed(ahead) if matches!(offset[0], b'+' | b'-') => seconds - ahead,
            _ => return None,
        },
    };
    seconds.checked_mul(per_second)?.checked_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals() {
        let limit = 10_i128.pow(5);
        for (text, value) in [
            ("1.5", Some(150)),
            ("-1.239", Some(-123)),
            (".5", Some(50)),
            ("+7", Some(700)),
            ("7.", Some(700)),
            ("999.99", Some(99_999)),
            ("1000", None),
            ("", None),
            (".", None),
            ("-", None),
            ("1e3", None),
            ("1.2.3", None),
            (" 1", None),
            ("99999999999999999999999999999999999999999999", None),
        ] {
            assert_eq!(decimal(text.as_bytes(), 2, limit), value, "{text}");
        }
        assert_eq!(decimal(b"-1299.5", -2, limit), Some(-12));
    }

    #[test]
    fn times() {
        let read = |text: &str, zone: Option<&str>| {
            timestamp(text.as_bytes(), TimeUnit::Millisecond, zone.map(|name| Zone::read(name).unwrap()))
        };
        for (text, zone, value) in [
            ("1970-01-01", None, Some(0)),
            ("1969-12-31T23:59:59.9999", None, Some(-1)),
            ("1970-01-01 00:01", None, Some(60_000)),
            ("1970-01-01T00:00:01Z", None, None),
            ("1970-01-01T00:00:01Z", Some("Europe/Berlin"), Some(1_000)),
            ("1970-01-01T02:00:01+02:00", Some("UTC"), Some(1_000)),
            ("1970-01-01T01:00:01", Some("Europe/Berlin"), Some(1_000)),
            ("2024-03-31T02:30:00", Some("Europe/Berlin"), None),
            ("1970-01-01T24:00:00", None, None),
            ("1970-02-30", None, None),
            ("1970-1-1", None, None),
            ("1970-01-01T", None, None),
            ("1970-01-01T00", None, None),
            ("1970-01-01T00:00:00.", None, None),
            ("1970-01-01T00:00:00.0000000001", None, None),
            ("1970-01-01T00:00UTC", Some("UTC"), None),
            ("9999-12-31T23:59:59.999", None, Some(253_402_300_799_999)),
        ] {
            assert_eq!(read(text, zone), value, "{text}");
        }
        assert_eq!(timestamp(b"9999-12-31", TimeUnit::Nanosecond, None), None);
        assert_eq!(time(b"01:02:03.5", TimeUnit::Microsecond), Some(3_723_500_000));
        assert_eq!(time(b"24:00", TimeUnit::Second), None);
    }

    #[test]
    fn numbers_are_never_infinite_by_accident() {
        assert!(!fits(f64::INFINITY, b"1e999") && fits(f64::INFINITY, b"inf") && fits(1.5, b"1.5"));
        assert_eq!(boolean(b"TRUE"), Some(1));
        assert_eq!(boolean(b"yes"), None);
    }
}
