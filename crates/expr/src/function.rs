//! Functions by name: what is written as a method of an expression, of `.str` or of `.dt`.

use std::ops::RangeInclusive;

use penstock_types::{PlanError, closest};

/// A function of one or more expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the variants are the names of the functions")]
pub enum Function {
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

const FUNCTIONS: [(Function, &str); 24] = [
    (Function::Abs, "abs"),
    (Function::Floor, "floor"),
    (Function::Ceil, "ceil"),
    (Function::Round, "round"),
    (Function::Sqrt, "sqrt"),
    (Function::Coalesce, "coalesce"),
    (Function::Length, "str.length"),
    (Function::ByteLength, "str.byte_length"),
    (Function::Lower, "str.lower"),
    (Function::Upper, "str.upper"),
    (Function::Contains, "str.contains"),
    (Function::StartsWith, "str.starts_with"),
    (Function::EndsWith, "str.ends_with"),
    (Function::Year, "dt.year"),
    (Function::Month, "dt.month"),
    (Function::Day, "dt.day"),
    (Function::Hour, "dt.hour"),
    (Function::Minute, "dt.minute"),
    (Function::Second, "dt.second"),
    (Function::Millisecond, "dt.millisecond"),
    (Function::Weekday, "dt.weekday"),
    (Function::OrdinalDay, "dt.ordinal_day"),
    (Function::Date, "dt.date"),
    (Function::Truncate, "dt.truncate"),
];

impl Function {
    /// The name, with the namespace it is written in.
    pub fn name(self) -> &'static str {
        FUNCTIONS
            .iter()
            .find(|(function, _)| *function == self)
            .map(|(_, name)| *name)
            .expect("every function is in the table")
    }

    /// Every name there is.
    pub fn names() -> impl Iterator<Item = &'static str> {
        FUNCTIONS.iter().map(|(_, name)| *name)
    }

    /// The function of that name.
    pub fn from_name(name: &str) -> Result<Self, PlanError> {
        FUNCTIONS.iter().find(|(_, known)| *known == name).map(|(function, _)| *function).ok_or_else(|| {
            let meant = closest(name, Self::names()).map(|near| format!(" (did you mean \"{near}\"?)"));
            PlanError::Invalid(format!("unknown function \"{name}\"{}", meant.unwrap_or_default()))
        })
    }

    /// How many expressions it takes, the one it is called on included.
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
            assert_eq!(Function::from_name(name), Ok(function));
            assert_eq!(function.name(), name);
        }
        let error = Function::from_name("str.lenght").unwrap_err().to_string();
        assert_eq!(error, "unknown function \"str.lenght\" (did you mean \"str.length\"?)");
    }
}
