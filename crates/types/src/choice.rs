//! Options that are chosen by name.

use crate::{PlanError, closest};

/// Returns the one of `names` that `text` says, or an error that lists them all.
pub fn choose<T: Copy>(option: &str, text: &str, names: &[(&'static str, T)]) -> Result<T, PlanError> {
    if let Some((_, chosen)) = names.iter().find(|(name, _)| *name == text) {
        return Ok(*chosen);
    }
    let all: Vec<String> = names.iter().map(|(name, _)| format!("\"{name}\"")).collect();
    let hint = closest(text, names.iter().map(|(name, _)| *name))
        .map_or(String::new(), |name| format!("; did you mean \"{name}\"?"));
    Err(PlanError::Invalid(format!("{option} is {}, not \"{text}\"{hint}", listed(&all))))
}

fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [(&str, u8); 3] = [("one", 1), ("two", 2), ("three", 3)];

    #[test]
    fn a_known_name_is_chosen() {
        assert_eq!(choose("size", "two", &NAMES), Ok(2));
    }

    #[test]
    fn an_unknown_name_is_refused_with_all_names_and_the_closest() {
        let error = choose("size", "tow", &NAMES).unwrap_err().to_string();
        assert_eq!(error, "size is \"one\", \"two\" or \"three\", not \"tow\"; did you mean \"two\"?");
        let error = choose("size", "elsewhere", &NAMES).unwrap_err().to_string();
        assert_eq!(error, "size is \"one\", \"two\" or \"three\", not \"elsewhere\"");
    }
}
