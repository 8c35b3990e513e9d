//! Functions of one value, over whole columns.
//!
//! MAP-1. A map reports a failure only for rows that count: those whose byte in `wanted` is not 0, all of them without
//!     a mask. Its results for other rows are unspecified, but initialised, and views among them can be followed.

use arrow_schema::DataType;
use penstock_memory::{Column, ColumnBuf, Physical};
use penstock_types::{ComputeError, TypeName};

use crate::calendar::{CalendarField, parts};
use crate::conversion::{self, Rounding, any_wanted, decimal_to_f64, float_to_decimal, widen};
use crate::format::{format, shown};
use crate::label::MapLabel;
use crate::parse::parse;
use crate::rounding::{abs, round_float};
use crate::strings::{any_not_text, change_case, lengths};
use crate::zone::Zone;

/// A function of one value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Map {
    /// Converts to another number type, by Rust's conversion.
    Widen(Physical),
    DecimalToFloat(i8),
    /// Converts to another integer type with these limits.
    Narrow {
        to: Physical,
        low: i128,
        high: i128,
    },
    /// Converts `float64` to `float32`.
    Shrink,
    ToBool,
    /// With a limit for digits of decimals, without one for 64-bit counts.
    Multiply {
        factor: i128,
        limit: Option<i128>,
    },
    Divide {
        factor: i128,
        rounding: Rounding,
    },
    FloatToDecimal {
        scale: i8,
        limit: i128,
    },
    RoundFloat(Rounding),
    /// Rounds a decimal to a multiple of its unit.
    RoundDecimal {
        rounding: Rounding,
        unit: i128,
    },
    Abs,
    Sqrt,
    /// Rounds down to a multiple of a step.
    Floor(i64),
    /// Converts to local time of a zone, in seconds.
    Local(Zone),
    Part {
        part: CalendarField,
        per_day: i64,
    },
    /// A component of a time of day. Foreign data may hold invalid times.
    PartOfDay {
        part: CalendarField,
        per_day: i64,
    },
    Format {
        from: DataType,
        zone: Option<Zone>,
    },
    Parse {
        to: DataType,
        zone: Option<Zone>,
    },
    /// Validates bytes as text.
    CheckText,
    Length,
    ByteLength,
    Lower,
    Upper,
}

impl Map {
    /// Returns the storage of the results.
    pub(crate) fn storage(&self, input: Physical) -> Physical {
        match self {
            Self::Widen(to) | Self::Narrow { to, .. } => *to,
            Self::DecimalToFloat(_) | Self::Sqrt => Physical::F64,
            Self::Shrink => Physical::F32,
            Self::ToBool => Physical::U8,
            Self::FloatToDecimal { .. } => Physical::I128,
            Self::Length | Self::ByteLength => Physical::I64,
            Self::Parse { to, .. } => Physical::of(to).expect("expressions compute supported types only"),
            Self::Format { .. } => Physical::View,
            _ => input,
        }
    }

    /// Computes all rows into `out`; returns true if one that counts has no result (MAP-1).
    pub(crate) fn apply(&self, column: Column<'_>, wanted: Option<&[u8]>, out: &mut ColumnBuf) -> bool {
        match self {
            Self::Widen(to) => widen(column.values, *to, out),
            Self::DecimalToFloat(scale) => {
                let values = column.fixed::<i128>().iter();
                out.refill::<f64>().extend(values.map(|&value| decimal_to_f64(value, *scale)));
            }
            Self::Narrow { to, low, high } => {
                return conversion::narrow(column.values, *to, (*low, *high), wanted, out);
            }
            Self::Shrink => return conversion::shrink(column.fixed(), wanted, out.refill()),
            Self::ToBool => conversion::to_bool(column.values, out.refill()),
            Self::Multiply { factor, limit: Some(limit) } => {
                return conversion::multiply_i128(column.fixed(), (*factor, *limit), wanted, out.refill());
            }
            Self::Multiply { factor, limit: None } => {
                return conversion::multiply_i64(column.fixed(), *factor as i64, wanted, out.refill());
            }
            Self::Divide { factor, rounding } => conversion::divide(column.values, *factor, *rounding, out),
            Self::FloatToDecimal { scale, limit } => {
                let mut failed = false;
                let rows = column.fixed::<f64>().iter().enumerate().map(|(row, &value)| {
                    let value = float_to_decimal(value, *scale, *limit);
                    failed |= value.is_none() && wanted.is_none_or(|mask| mask[row] != 0);
                    value.unwrap_or_default()
                });
                out.refill::<i128>().extend(rows);
                return failed;
            }
            Self::RoundFloat(rounding) => round_float(column.values, *rounding, out),
            Self::RoundDecimal { rounding, unit } => {
                return conversion::round_decimal(column.fixed(), (*unit, *rounding), wanted, out.refill());
            }
            Self::Abs => return abs(column.values, wanted, out),
            Self::Sqrt => out.refill::<f64>().extend(column.fixed::<f64>().iter().map(|value| value.sqrt())),
            Self::Floor(step) => return conversion::floor_to(column.fixed(), *step, wanted, out.refill()),
            Self::Local(zone) => return zone.shift(column.fixed(), wanted, out.refill()),
            Self::Part { part, per_day } => parts(*part, *per_day, column.fixed(), out.refill()),
            Self::PartOfDay { part, per_day } => {
                parts(*part, *per_day, column.fixed(), out.refill());
                let day = 0..*per_day;
                return any_wanted(column.fixed::<i64>(), wanted, |time| !day.contains(&time));
            }
            Self::Format { from, zone } => return format(from, *zone, column, wanted, out),
            Self::Parse { to, zone } => return parse(to, *zone, column, wanted, out),
            Self::CheckText => {
                let (views, payloads) = column.views();
                let (into, into_payloads) = out.refill_views();
                into.extend_from_slice(views);
                into_payloads.extend(payloads.iter().cloned());
                return any_not_text(column, wanted);
            }
            Self::Length | Self::ByteLength => lengths(column, *self == Self::ByteLength, out.refill()),
            Self::Lower | Self::Upper => return change_case(column, *self == Self::Upper, out),
        }
        false
    }

    /// Returns the error for the single value of `column`.
    pub(crate) fn error(&self, given: &MapLabel, column: Column<'_>) -> ComputeError {
        let (expression, type_name) = (given.label.text.clone(), given.label.type_name.clone());
        let values = shown(&given.from, column);
        let not_a_number = match column.values {
            penstock_memory::Values::F32(values) => !values[0].is_finite(),
            penstock_memory::Values::F64(values) => !values[0].is_finite(),
            _ => false,
        };
        match self {
            Self::Lower | Self::Upper => {
                ComputeError::TooLarge(format!("{expression}: the result is longer than a string can be"))
            }
            Self::Format { .. } | Self::PartOfDay { .. } => ComputeError::Cast(format!(
                "{expression}: {values} of {} is no time of day; filter such rows out first",
                TypeName(&given.from)
            )),
            Self::Parse { .. } | Self::CheckText => ComputeError::Cast(format!(
                "{expression}: {values} cannot be read as {type_name}; filter such rows out first"
            )),
            _ if not_a_number => ComputeError::Cast(format!(
                "{expression}: {values} cannot be represented as {type_name}; filter such rows out first"
            )),
            _ => ComputeError::Overflow { expression, type_name, values },
        }
    }
}
