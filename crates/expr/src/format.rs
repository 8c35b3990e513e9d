//! Values as text.
//!
//! Integers in digits; floats in the shortest form that parses back (`1.5`, `1e300`, `NaN`, `inf`); bools as `true`
//! and `false`; decimals with all their digits; times in ISO 8601, with the digits of their unit where the fraction is
//! not zero (`2024-05-01T12:00:00.250`), and with the offset where the type has a zone.

use std::fmt::{self, Write};

use arrow_schema::{DataType, TimeUnit};
use penstock_memory::view::with_bytes;
use penstock_memory::{Column, ColumnBuf, Values};

use crate::calendar::{Civil, civil};
use crate::conversion::any_wanted;
use crate::text::TextWriter;
use crate::typing::{per_day, unit_of, units_in};
use crate::zone::Zone;

/// Writes `value / 10^scale`.
pub(crate) fn write_decimal(text: &mut impl Write, value: i128, scale: i8) -> fmt::Result {
    let sign = if value < 0 { "-" } else { "" };
    let places = usize::from(scale.max(0).unsigned_abs());
    let zeros = if value == 0 { 0 } else { usize::from(scale.min(0).unsigned_abs()) };
    let digits = format!("{:0>width$}", value.unsigned_abs(), width = places + 1);
    let (whole, fraction) = digits.split_at(digits.len() - places);
    let point = if places > 0 { "." } else { "" };
    write!(text, "{sign}{whole}{:0<zeros$}{point}{fraction}", "")
}

/// Writes a day since the epoch.
pub(crate) fn write_date(text: &mut impl Write, days: i64) -> fmt::Result {
    let Civil { year, month, day } = civil(days);
    write!(text, "{year:04}-{month:02}-{day:02}")
}

/// Writes a time of day.
fn write_time(text: &mut impl Write, time: i64, unit: TimeUnit) -> fmt::Result {
    let per_second = units_in(TimeUnit::Second, unit) as i64;
    let (seconds, fraction) = (time.div_euclid(per_second), time.rem_euclid(per_second));
    write!(text, "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)?;
    if fraction != 0 {
        let digits = per_second.ilog10() as usize;
        write!(text, ".{fraction:0digits$}")?;
    }
    Ok(())
}

fn write_offset(text: &mut impl Write, seconds: i64) -> fmt::Result {
    let (sign, ahead) = (if seconds < 0 { '-' } else { '+' }, seconds.abs());
    write!(text, "{sign}{:02}:{:02}", ahead / 3600, ahead / 60 % 60)?;
    // Before time zones were standardised, clocks followed the sun to the second.
    if ahead % 60 != 0 { write!(text, ":{:02}", ahead % 60) } else { Ok(()) }
}

/// Calls `each` with the text of each value of a type; with nothing for values that do not count.
fn texts(
    from: &DataType,
    zone: Option<Zone>,
    column: Column<'_>,
    wanted: Option<&[u8]>,
    mut each: impl FnMut(&str),
) {
    let mut text = String::new();
    macro_rules! write_all {
        ($values:expr, |$out:ident, $value:ident| $write:expr) => {
            for (row, &$value) in $values.iter().enumerate() {
                text.clear();
                if wanted.is_none_or(|mask| mask[row] != 0) {
                    let $out = &mut text;
                    $write.expect("a string takes all that is written");
                }
                each(&text);
            }
        };
    }
    let units = per_day(from).unwrap_or(1);
    match (from, column.values) {
        (DataType::Boolean, Values::U8(values)) => {
            write_all!(values, |text, value| text.write_str(if value == 0 { "false" } else { "true" }));
        }
        (DataType::Decimal128(_, scale), Values::I128(values)) => {
            write_all!(values, |text, value| write_decimal(text, value, *scale));
        }
        (DataType::Date32, Values::I32(values)) => {
            write_all!(values, |text, value| write_date(text, value.into()));
        }
        (DataType::Date64, Values::I64(values)) => {
            write_all!(values, |text, value| write_date(text, value.div_euclid(units)));
        }
        (DataType::Timestamp(unit, _), Values::I64(values)) => {
            let per_second = units_in(TimeUnit::Second, *unit) as i64;
            write_all!(values, |text, value| {
                let offset = zone.map(|zone| zone.offset(value.div_euclid(per_second)));
                // Wide enough for the last representable time plus a positive offset.
                let local = i128::from(value) + i128::from(offset.unwrap_or(0)) * i128::from(per_second);
                let units = i128::from(units);
                write_date(text, local.div_euclid(units) as i64)
                    .and_then(|()| text.write_char('T'))
                    .and_then(|()| write_time(text, local.rem_euclid(units) as i64, *unit))
                    .and_then(|()| match offset {
                        None => Ok(()),
                        Some(_) if zone == Some(Zone::UTC) => text.write_char('Z'),
                        Some(offset) => write_offset(text, offset),
                    })
            });
        }
        (DataType::Time32(unit), Values::I32(values)) => {
            write_all!(values, |text, value| write_time(text, value.into(), *unit));
        }
        (DataType::Time64(unit), Values::I64(values)) => {
            write_all!(values, |text, value| write_time(text, value, *unit));
        }
        (_, Values::I8(values)) => write_all!(values, |text, value| write!(text, "{value}")),
        (_, Values::I16(values)) => write_all!(values, |text, value| write!(text, "{value}")),
        (_, Values::I32(values)) => write_all!(values, |text, value| write!(text, "{value}")),
        (_, Values::I64(values)) => write_all!(values, |text, value| write!(text, "{value}")),
        (_, Values::U8(values)) => write_all!(values, |text, value| write!(text, "{value}")),
        (_, Values::U16(values)) => write_all!(values, |text, value| write!(text, "{value}")),
        (_, Values::U32(values)) => write_all!(values, |text, value| write!(text, "{value}")),
        (_, Values::U64(values)) => write_all!(values, |text, value| write!(text, "{value}")),
        (_, Values::I128(values)) => write_all!(values, |text, value| write!(text, "{value}")),
        (_, Values::F32(values)) => write_all!(values, |text, value| write!(text, "{value:?}")),
        (_, Values::F64(values)) => write_all!(values, |text, value| write!(text, "{value:?}")),
        (_, Values::View(..)) => unreachable!("strings are texts already"),
    }
}

/// Returns true if a value that counts is not a time of day, although its type says so: foreign data may hold any
/// number.
fn any_beyond_a_day(from: &DataType, column: Column<'_>, wanted: Option<&[u8]>) -> bool {
    let day = 0..per_day(from).unwrap_or(i64::MAX);
    match (from, column.values) {
        (DataType::Time32(_), Values::I32(values)) => {
            any_wanted(values, wanted, |value| !day.contains(&i64::from(value)))
        }
        (DataType::Time64(_), Values::I64(values)) => {
            any_wanted(values, wanted, |value| !day.contains(&value))
        }
        _ => false,
    }
}

/// Formats each value; returns true if one that counts has no text.
pub(crate) fn format(
    from: &DataType,
    zone: Option<Zone>,
    column: Column<'_>,
    wanted: Option<&[u8]>,
    out: &mut ColumnBuf,
) -> bool {
    let mut into = TextWriter::new(out);
    texts(from, zone, column, wanted, |text| {
        into.push(text.as_bytes());
    });
    into.finish();
    any_beyond_a_day(from, column, wanted)
}

/// Length of the longest quoted text in a message.
const QUOTED_BYTES: usize = 100;

/// Formats one value for a message: texts in quotes, cut when they are long.
pub(crate) fn shown(from: &DataType, column: Column<'_>) -> String {
    if let Values::View(views, payloads) = column.values {
        return with_bytes(views[0], payloads, |bytes| {
            let cut = &bytes[..bytes.len().min(QUOTED_BYTES)];
            let dots = if cut.len() < bytes.len() { "..." } else { "" };
            format!("{:?}{dots}", String::from_utf8_lossy(cut).trim_end_matches('\u{fffd}'))
        });
    }
    // A value inside a chain of maps may be stored wider than its type: then it is a count.
    let stored = penstock_memory::Physical::of(from);
    let plain = stored != Some(column.values.physical())
        || matches!(from, DataType::Duration(_))
        || any_beyond_a_day(from, column, None);
    let from = if plain && unit_of(from).is_some() { &DataType::Int64 } else { from };
    let mut shown = String::new();
    texts(from, None, column, None, |text| shown.push_str(text));
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown_i64(from: DataType, zone: Option<&str>, value: i64) -> String {
        let mut shown = String::new();
        let column = Column { values: Values::I64(&[value]), valid: None };
        texts(&from, zone.and_then(Zone::read), column, None, |text| shown.push_str(text));
        shown
    }

    #[test]
    fn times_are_written_as_in_iso_8601() {
        let stamp = |unit| DataType::Timestamp(unit, None);
        assert_eq!(shown_i64(stamp(TimeUnit::Second), None, -1), "1969-12-31T23:59:59");
        assert_eq!(shown_i64(stamp(TimeUnit::Millisecond), None, 250), "1970-01-01T00:00:00.250");
        assert_eq!(shown_i64(stamp(TimeUnit::Nanosecond), None, 1), "1970-01-01T00:00:00.000000001");
        assert_eq!(shown_i64(stamp(TimeUnit::Second), Some("UTC"), 0), "1970-01-01T00:00:00Z");
        assert_eq!(
            shown_i64(stamp(TimeUnit::Second), Some("Europe/Berlin"), 1_711_846_800),
            "2024-03-31T03:00:00+02:00"
        );
        assert_eq!(shown_i64(stamp(TimeUnit::Second), Some("-03:30"), 0), "1969-12-31T20:30:00-03:30");
        assert_eq!(shown_i64(stamp(TimeUnit::Second), Some("Europe/Berlin"), i64::MAX).len(), 33);
        assert_eq!(
            shown_i64(DataType::Time64(TimeUnit::Microsecond), None, 3_600_000_001),
            "01:00:00.000001"
        );
        assert_eq!(shown_i64(DataType::Date64, None, -86_400_000), "1969-12-31");
    }

    #[test]
    fn a_time_beyond_the_day_is_shown_as_the_number_it_is() {
        let time = DataType::Time64(TimeUnit::Microsecond);
        for (value, text) in [
            (-1, "-1"),
            (86_400_000_000, "86400000000"),
            (i64::MIN, "-9223372036854775808"),
            (86_399_999_999, "23:59:59.999999"),
        ] {
            let column = Column { values: Values::I64(&[value]), valid: None };
            assert_eq!(shown(&time, column), text);
            let fails =
                format(&time, None, column, None, &mut ColumnBuf::new(penstock_memory::Physical::View));
            assert_eq!(fails, text.len() != 15);
            let not_wanted = Some(&[0][..]);
            assert!(!format(
                &time,
                None,
                column,
                not_wanted,
                &mut ColumnBuf::new(penstock_memory::Physical::View)
            ));
        }
    }
}
