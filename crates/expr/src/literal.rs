//! Values written into an expression.

use std::fmt;
use std::hash::{Hash, Hasher};

use arrow_schema::{DataType, TimeUnit};
use penstock_types::Tick;
use serde::{Deserialize, Serialize};

use crate::format::{write_date, write_decimal};

/// A value written into an expression.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Literal {
    /// Null, of the type that the context requires.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number between the least `i64` and the largest `u64`.
    #[serde(with = "as_text")]
    Int(i128),
    /// A float, exact to the bit.
    #[serde(with = "as_text")]
    Float(f64),
    /// Text.
    String(String),
    /// Bytes.
    Binary(Vec<u8>),
    /// `value / 10^scale`.
    Decimal {
        /// The digits, with sign.
        #[serde(with = "as_text")]
        value: i128,
        /// Digits after the point.
        scale: i8,
    },
    /// Microseconds since the epoch.
    Timestamp {
        /// Microseconds since the epoch, in UTC when `aware`.
        micros: i64,
        /// True if the value is an instant (it had a time zone), false if it is a wall clock reading.
        aware: bool,
    },
    /// Days since the epoch.
    Date(i32),
    /// Microseconds.
    Duration(i64),
}

/// Serialises numbers that JSON cannot hold exactly as text.
mod as_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use std::str::FromStr;

    pub fn serialize<T: std::fmt::Debug, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{value:?}"))
    }

    pub fn deserialize<'de, T: FromStr, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|_| D::Error::custom(format!("{text:?} is not a number")))
    }
}

impl PartialEq for Literal {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(left), Self::Bool(right)) => left == right,
            (Self::Int(left), Self::Int(right)) => left == right,
            // A plan equals itself, so a literal NaN equals itself; -0.0 and 0.0 are written differently.
            (Self::Float(left), Self::Float(right)) => {
                left.to_bits() == right.to_bits() || (left.is_nan() && right.is_nan())
            }
            (Self::String(left), Self::String(right)) => left == right,
            (Self::Binary(left), Self::Binary(right)) => left == right,
            (Self::Decimal { value, scale }, Self::Decimal { value: other, scale: other_scale }) => {
                value == other && scale == other_scale
            }
            (Self::Timestamp { micros, aware }, Self::Timestamp { micros: other, aware: other_aware }) => {
                micros == other && aware == other_aware
            }
            (Self::Date(left), Self::Date(right)) => left == right,
            (Self::Duration(left), Self::Duration(right)) => left == right,
            _ => false,
        }
    }
}

impl Eq for Literal {}

impl Hash for Literal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.to_string().hash(state);
    }
}

impl Literal {
    /// Returns the type of the value when the context requires no other.
    pub fn data_type(&self) -> DataType {
        match self {
            Self::Null => DataType::Null,
            Self::Bool(_) => DataType::Boolean,
            Self::Int(value) if i64::try_from(*value).is_ok() => DataType::Int64,
            Self::Int(_) => DataType::UInt64,
            Self::Float(_) => DataType::Float64,
            Self::String(_) => DataType::Utf8,
            Self::Binary(_) => DataType::Binary,
            Self::Decimal { value, scale } => {
                let digits = value.unsigned_abs().checked_ilog10().map_or(1, |log| log + 1) as u8;
                DataType::Decimal128(digits.max(scale.unsigned_abs()), *scale)
            }
            Self::Timestamp { aware, .. } => {
                DataType::Timestamp(TimeUnit::Microsecond, aware.then(|| "UTC".into()))
            }
            Self::Date(_) => DataType::Date32,
            Self::Duration(_) => DataType::Duration(TimeUnit::Microsecond),
        }
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(true) => f.write_str("True"),
            Self::Bool(false) => f.write_str("False"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::String(text) => write!(f, "{text:?}"),
            Self::Binary(bytes) => write!(f, "b\"{}\"", bytes.escape_ascii()),
            Self::Decimal { value, scale } => write!(f, "decimal(\"{}\")", decimal_text(*value, *scale)),
            Self::Timestamp { micros, aware } => {
                let (days, rest) = (micros.div_euclid(DAY_MICROS), micros.rem_euclid(DAY_MICROS));
                let (seconds, fraction) = (rest / 1_000_000, rest % 1_000_000);
                let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
                write!(f, "timestamp(\"{} {hours:02}:{minutes:02}:{seconds:02}", date_text(days))?;
                if fraction != 0 {
                    write!(f, ".{fraction:06}")?;
                }
                f.write_str(if *aware { "Z\")" } else { "\")" })
            }
            Self::Date(days) => write!(f, "date(\"{}\")", date_text(i64::from(*days))),
            Self::Duration(micros) => {
                write!(f, "duration(\"{}\")", Tick::Microsecond.describe(i128::from(*micros)))
            }
        }
    }
}

const DAY_MICROS: i64 = 86_400_000_000;

/// Formats `value / 10^scale`.
fn decimal_text(value: i128, scale: i8) -> String {
    let mut text = String::new();
    write_decimal(&mut text, value, scale).expect("a string takes all that is written");
    text
}

/// Formats a day since the epoch in the Gregorian calendar.
fn date_text(days: i64) -> String {
    let mut text = String::new();
    write_date(&mut text, days).expect("a string takes all that is written");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_print_as_people_write_them() {
        let cases = [
            (Literal::Date(0), "date(\"1970-01-01\")"),
            (Literal::Date(-1), "date(\"1969-12-31\")"),
            (Literal::Date(19_782), "date(\"2024-02-29\")"),
            (Literal::Date(-719_162), "date(\"0001-01-01\")"),
            (Literal::Timestamp { micros: -1, aware: false }, "timestamp(\"1969-12-31 23:59:59.999999\")"),
            (
                Literal::Timestamp { micros: 1_714_521_600_000_000, aware: true },
                "timestamp(\"2024-05-01 00:00:00Z\")",
            ),
            (Literal::Duration(90_000_000), "duration(\"1m30s\")"),
            (Literal::Decimal { value: 150, scale: 2 }, "decimal(\"1.50\")"),
            (Literal::Decimal { value: -5, scale: 3 }, "decimal(\"-0.005\")"),
            (Literal::Decimal { value: 7, scale: -2 }, "decimal(\"700\")"),
        ];
        for (literal, text) in cases {
            assert_eq!(literal.to_string(), text);
        }
    }
}
