//! The steps, one file each: everything that is known of a step, and the method of [`Plan`] that adds it.
//!
//! A new step is a new file here, a line in the list below, and nothing else in this crate.

use std::sync::Arc;

use penstock_types::PlanError;
use serde_json::Value;

use crate::plan::Plan;
use crate::step::Node;
use crate::text::{StepReader, bad};

mod aggregation;
#[cfg(test)]
mod samples;

/// Declares the steps, and reads each from JSON by the names under which it is written.
macro_rules! steps {
    ($($file:ident: $($name:literal)|+,)*) => {
        $(pub mod $file;)*

        /// Every name of a step in JSON.
        const NAMES: &[&str] = &[$($($name,)+)*];

        fn read_named(name: &str, text: Value, from: &StepReader<'_>) -> Option<Result<Plan, PlanError>> {
            match name {
                $($($name => Some($file::read($name, text, from)),)+)*
                _ => None,
            }
        }
    };
}

steps! {
    stream: "stream",
    filter: "filter",
    select: "select",
    with_columns: "with_columns",
    lookup: "lookup",
    map_batches: "map_batches",
    union: "union",
    window: "window" | "tumbling",
    late: "late",
    cogroup: "cogroup",
    join: "join",
    top_k: "top_k",
}

/// Reads a step that was written as JSON, over the plans that it reads.
pub(crate) fn read(mut text: Value, from: &StepReader<'_>) -> Result<Plan, PlanError> {
    let fields = text.as_object_mut().ok_or_else(|| bad("a step is not an object"))?;
    let name = fields.remove("step").ok_or_else(|| bad("missing field `step`"))?;
    let name = name.as_str().ok_or_else(|| bad("the name of a step is not a string"))?;
    read_named(name, text, from).unwrap_or_else(|| {
        let names: Vec<String> = NAMES.iter().map(|name| format!("`{name}`")).collect();
        Err(bad(format!("unknown step `{name}`, expected one of {}", names.join(", "))))
    })
}

/// Why the states of an operator with two inputs do not merge.
const TWO_STREAMS: &str = "it reads two streams";

/// The input of a step that reads one.
fn single(inputs: &[Arc<Node>]) -> &Arc<Node> {
    let [input] = inputs else { unreachable!("the builders give it one input") };
    input
}

/// The inputs of a step that reads two.
fn pair(inputs: &[Arc<Node>]) -> [&Arc<Node>; 2] {
    let [left, right] = inputs else { unreachable!("the builders give it two inputs") };
    [left, right]
}

/// Adds the time column to those that a step reads.
fn add_time(columns: &mut Vec<String>, input: &Node) {
    if let Some(time) = input.time()
        && !columns.contains(&time.column)
    {
        columns.push(time.column.clone());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn steps_without_a_known_name_are_refused() {
        let none = StepReader { inputs: &[], functions: &[] };
        for (text, words) in [
            (json!([]), "not an object"),
            (json!({}), "missing field `step`"),
            (json!({"step": 1}), "not a string"),
            (json!({"step": "sort"}), "unknown step `sort`"),
            (json!({"step": "filter"}), "missing field `predicate`"),
        ] {
            let error = read(text, &none).unwrap_err().to_string();
            assert!(error.contains(words), "{words}: {error}");
        }
    }
}
