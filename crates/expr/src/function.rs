//! Functions by name: methods of an expression, of `.str` or of `.dt`.

use std::ops::RangeInclusive;

use penstock_types::{PlanError, closest};

/// A function of one or more expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the variants are the names of the functions")]
pub enum ScalarFunction {
    Abs,
    Floor,
    Ceil,
    Round,
    Sqrt,
    Coalesce,
    Length,
    ByteLength,
    Lower,
    Upper,
    Contains,
    StartsWith,
    EndsWith,
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
    Weekday,
    OrdinalDay,
    Date,
    Truncate,
}

const FUNCTIONS: [(ScalarFunction, &str); 24] = [
    (ScalarFunction::Abs, "abs"),
    (ScalarFunction::Floor, "floor"),
    (ScalarFunction::Ceil, "ceil"),
    (ScalarFunction::Round, "round"),
    (ScalarFunction::Sqrt, "sqrt"),
    (ScalarFunction::Coalesce, "coalesce"),
    (ScalarFunction::Length, "str.length"),
    (ScalarFunction::ByteLength, "str.byte_length"),
    (ScalarFunction::Lower, "str.lower"),
    (ScalarFunction::Upper, "str.upper"),
    (ScalarFunction::Contains, "str.contains"),
    (ScalarFunction::StartsWith, "str.starts_with"),
    (ScalarFunction::EndsWith, "str.ends_with"),
    (ScalarFunction::Year, "dt.year"),
    (ScalarFunction::Month, "dt.month"),
    (ScalarFunction::Day, "dt.day"),
    (ScalarFunction::Hour, "dt.hour"),
    (ScalarFunction::Minute, "dt.minute"),
    (ScalarFunction::Second, "dt.second"),
    (ScalarFunction::Millisecond, "dt.millisecond"),
    (ScalarFunction::Weekday, "dt.weekday"),
    (ScalarFunction::OrdinalDay, "dt.ordinal_day"),
    (ScalarFunction::Date, "dt.date"),
    (ScalarFunction::Truncate, "dt.truncate"),
];

impl ScalarFunction {
    /// Returns the name, with its namespace.
    pub fn name(self) -> &'static str {
        FUNCTIONS
            .iter()
            .find(|(function, _)| *function == self)
            .map(|(_, name)| *name)
            .expect("every function is in the table")
    }

    /// Returns all names.
    pub fn names() -> impl Iterator<Item = &'static str> {
        FUNCTIONS.iter().map(|(_, name)| *name)
    }

    /// Returns the function of that name.
    pub fn from_name(name: &str) -> Result<Self, PlanError> {
        FUNCTIONS.iter().find(|(_, known)| *known == name).map(|(function, _)| *function).ok_or_else(|| {
            let meant = closest(name, Self::names()).map(|near| format!(" (did you mean \"{near}\"?)"));
            PlanError::Invalid(format!("unknown function \"{name}\"{}", meant.unwrap_or_default()))
        })
    }

    /// Returns the number of expressions it takes, including the receiver.
    pub fn arity(self) -> RangeInclusive<usize> {
        match self {
            Self::Coalesce => 1..=usize::MAX,
            Self::Contains | Self::StartsWith | Self::EndsWith | Self::Truncate => 2..=2,
            _ => 1..=1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_misspelt_ones_are_answered() {
        for (function, name) in FUNCTIONS {
            assert_eq!(ScalarFunction::from_name(name), Ok(function));
            assert_eq!(function.name(), name);
        }
        let error = ScalarFunction::from_name("str.lenght").unwrap_err().to_string();
        assert_eq!(error, "unknown function \"str.lenght\" (did you mean \"str.length\"?)");
    }
}
