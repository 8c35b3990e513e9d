//! Values written into an expression.

use std::fmt;
use std::hash::{Hash, Hasher};

use arrow_schema::{DataType, TimeUnit};
use serde::{Deserialize, Serialize};

/// A value written into an expression.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Literal {
    /// Null, of the type that its surroundings ask for.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number between the least `i64` and the largest `u64`.
    #[serde(with = "as_text")]
    Int(i128),
    /// A float, kept to the bit.
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
        /// Whether the value names an instant (it had a time zone) or a wall clock reading.
        aware: bool,
    },
    /// Days since the epoch.
    Date(i32),
    /// Microseconds.
    Duration(i64),
}

/// Numbers that JSON cannot hold exactly travel as text.
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
    /// The type the value has when nothing around it asks for another.
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
            Self::Decimal { value, scale } => write!(f, "decimal({value}e{})", -i16::from(*scale)),
            Self::Timestamp { micros, aware } => {
                write!(f, "timestamp({micros}us{})", if *aware { ", UTC" } else { "" })
            }
            Self::Date(days) => write!(f, "date({days}d)"),
            Self::Duration(micros) => write!(f, "duration({micros}us)"),
        }
    }
}
