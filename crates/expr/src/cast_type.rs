//! The types that an expression can be cast to, by name.

use arrow_schema::DataType;
use penstock_memory::Physical;
use penstock_types::{PlanError, parse_type, suggest_type};

/// Returns the type of that name, if expressions can have it.
pub fn read_type(name: &str) -> Result<DataType, PlanError> {
    let Some(data_type) = parse_type(name) else {
        let hint = suggest_type(name);
        return Err(PlanError::Invalid(format!("cast(): there is no type \"{name}\"{hint}")));
    };
    if Physical::of(&data_type).is_none() || matches!(data_type, DataType::Dictionary(..)) {
        return Err(PlanError::Invalid(format!("cast(): expressions are never of type \"{name}\"")));
    }
    Ok(data_type)
}

#[cfg(test)]
mod tests {
    use penstock_types::COMMON_TYPES;

    use super::*;

    #[test]
    fn names_are_read_or_answered_with_the_closest() {
        for name in COMMON_TYPES {
            assert!(read_type(name).is_ok(), "{name}");
        }
        for (name, part) in [
            ("in64", "(did you mean \"int64\"?)"),
            ("timestamp[mss]", "(did you mean \"timestamp[ms]\"?)"),
            ("", "some types are: bool"),
            ("null", "never of type \"null\""),
            ("float16", "never of type"),
            ("dictionary<values=string, indices=int8>", "never of type"),
        ] {
            let error = read_type(name).unwrap_err().to_string();
            assert!(error.contains(part), "{name}: {error}");
        }
    }
}
