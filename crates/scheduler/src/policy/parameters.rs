//! Parameters of policies: typed, listed, and set by name.

use std::fmt;

use penstock_types::closest;

/// The value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A number of rows.
    Rows(u64),
    /// A time in nanoseconds.
    Duration(u64),
    /// Any finite number.
    Number(f64),
    /// Yes or no.
    Flag(bool),
}

impl Value {
    /// Returns what its type is called.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Rows(_) => "rows",
            Self::Duration(_) => "duration",
            Self::Number(_) => "number",
            Self::Flag(_) => "flag",
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rows(rows) => write!(f, "{rows}"),
            Self::Duration(ns) => write!(f, "{ns}ns"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Flag(flag) => write!(f, "{flag}"),
        }
    }
}

/// A parameter of a policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// What users call it.
    pub name: &'static str,
    /// What it means, in one line.
    pub about: &'static str,
    /// Its value now. Only values of the same type can be set.
    pub value: Value,
}

/// Why a parameter was not set.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ParameterError {
    /// The policy has no such parameter.
    #[error("policy \"{policy}\" has no parameter \"{name}\"{}", hint(closest))]
    Unknown {
        /// The policy.
        policy: &'static str,
        /// The name that was given.
        name: String,
        /// The parameter that was most likely meant.
        closest: Option<&'static str>,
    },
    /// The value has another type.
    #[error("parameter \"{name}\" of policy \"{policy}\" is a {wanted}, not a {given}")]
    WrongType {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        name: &'static str,
        /// The type of its value.
        wanted: &'static str,
        /// The type that was given.
        given: &'static str,
    },
    /// The value is out of range.
    #[error("parameter \"{name}\" of policy \"{policy}\" is {range}, not {given}")]
    OutOfRange {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        name: &'static str,
        /// Which values there are.
        range: &'static str,
        /// The value that was given.
        given: Value,
    },
}

fn hint(closest: &Option<&'static str>) -> String {
    closest.map_or_else(String::new, |name| format!("; did you mean \"{name}\"?"))
}

/// Returns the parameter of that name, if `value` has its type.
pub(crate) fn find(
    policy: &'static str,
    parameters: &[Parameter],
    name: &str,
    value: Value,
) -> Result<Parameter, ParameterError> {
    let Some(found) = parameters.iter().find(|parameter| parameter.name == name) else {
        let closest = closest(name, parameters.iter().map(|parameter| parameter.name));
        return Err(ParameterError::Unknown { policy, name: name.to_owned(), closest });
    };
    let (wanted, given) = (found.value.kind(), value.kind());
    if wanted != given {
        return Err(ParameterError::WrongType { policy, name: found.name, wanted, given });
    }
    Ok(Parameter { value, ..*found })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMETERS: [Parameter; 2] = [
        Parameter { name: "block_rows", about: "Rows of a run.", value: Value::Rows(2048) },
        Parameter { name: "patience", about: "A wait.", value: Value::Duration(5) },
    ];

    #[test]
    fn a_parameter_is_found_by_its_name_and_keeps_its_type() {
        let found = find("some", &PARAMETERS, "patience", Value::Duration(9)).expect("it has one");
        assert_eq!((found.name, found.value), ("patience", Value::Duration(9)));
        let error = find("some", &PARAMETERS, "patience", Value::Flag(true)).expect_err("another type");
        assert_eq!(error.to_string(), "parameter \"patience\" of policy \"some\" is a duration, not a flag");
    }

    #[test]
    fn an_unknown_name_is_told_with_the_closest_one() {
        let text =
            |name| find("some", &PARAMETERS, name, Value::Rows(1)).expect_err("no such name").to_string();
        assert_eq!(
            text("blok_rows"),
            "policy \"some\" has no parameter \"blok_rows\"; did you mean \"block_rows\"?"
        );
        assert_eq!(text("zzzzzzzz"), "policy \"some\" has no parameter \"zzzzzzzz\"");
    }
}
