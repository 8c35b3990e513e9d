//! The pieces of JSON that several steps are written in.

use std::sync::Arc;

use arrow_schema::{Field, Schema};
use penstock_expr::Expr;
use penstock_operators::aggregates::AggregateKind;
use penstock_types::{PlanError, Span, Tick, TypeName, describe_field, parse_type};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::aggregate::Aggregate;
use crate::function::Function;
use crate::plan::Plan;
use crate::window::{WindowKind, WindowSpan};

/// What a step is read from, besides its own fields.
pub(crate) struct StepReader<'a> {
    /// The plans that it reads.
    pub(crate) inputs: &'a [Plan],
    /// The functions that go along with the text.
    pub(crate) functions: &'a [Function],
}

impl<'a> StepReader<'a> {
    /// The inputs of a step that reads so many.
    pub(crate) fn inputs<const N: usize>(&self) -> Result<&'a [Plan; N], PlanError> {
        self.inputs.try_into().map_err(|_| self.wrong_inputs())
    }

    fn wrong_inputs(&self) -> PlanError {
        bad(format!("a step reads {} others, which it cannot", self.inputs.len()))
    }
}

/// Refuses text that no plan wrote.
pub(crate) fn bad(reason: impl std::fmt::Display) -> PlanError {
    PlanError::Invalid(format!("this is not the JSON of a plan: {reason}"))
}

#[derive(Serialize)]
struct NamedStep<'a, T> {
    step: &'a str,
    #[serde(flatten)]
    text: T,
}

/// Writes a step as an object that begins with its name.
pub(crate) fn written(step: &str, text: impl Serialize) -> Result<String, PlanError> {
    serde_json::to_string(&NamedStep { step, text }).map_err(bad)
}

/// Reads the fields of a step.
pub(crate) fn fields<T: DeserializeOwned>(text: Value) -> Result<T, PlanError> {
    serde_json::from_value(text).map_err(bad)
}

/// A step without fields.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoFields {}

/// A column of a schema.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FieldText {
    name: String,
    #[serde(rename = "type")]
    type_name: String,
    nullable: bool,
}

pub(crate) fn write_schema(schema: &Schema) -> Vec<FieldText> {
    let write = |field: &Arc<Field>| FieldText {
        name: field.name().clone(),
        type_name: TypeName(field.data_type()).to_string(),
        nullable: field.is_nullable(),
    };
    schema.fields().iter().map(write).collect()
}

pub(crate) fn read_schema(schema: &[FieldText]) -> Result<Schema, PlanError> {
    let fields = schema
        .iter()
        .map(|field| {
            let data_type = parse_type(&field.type_name)
                .ok_or_else(|| bad(format!("\"{}\" is not a type", field.type_name)))?;
            Ok(Arc::new(Field::new(&field.name, data_type, field.nullable)))
        })
        .collect::<Result<Vec<_>, PlanError>>()?;
    Ok(Schema::new(fields))
}

/// An aggregate.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AggregateText {
    kind: String,
    input: Option<Expr>,
    name: Option<String>,
}

pub(crate) fn write_aggregates(aggregates: &[Aggregate]) -> Vec<AggregateText> {
    let write = |aggregate: &Aggregate| AggregateText {
        kind: aggregate.kind.name().to_owned(),
        input: aggregate.input.clone(),
        name: aggregate.name.clone(),
    };
    aggregates.iter().map(write).collect()
}

pub(crate) fn read_aggregates(aggregates: Vec<AggregateText>) -> Result<Vec<Aggregate>, PlanError> {
    let read = |aggregate: AggregateText| {
        let kind = AggregateKind::from_name(&aggregate.kind)
            .ok_or_else(|| bad(format!("\"{}\" is not an aggregate", aggregate.kind)))?;
        Ok(Aggregate { kind, input: aggregate.input, name: aggregate.name })
    };
    aggregates.into_iter().map(read).collect()
}

/// Windows, in ticks.
#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum WindowText {
    Tumbling { size: i64, offset: i64 },
    Sliding { size: i64, slide: i64, offset: i64 },
    Session { gap: i64 },
}

pub(crate) fn write_window(window: WindowKind) -> WindowText {
    match window {
        WindowKind::Tumbling { size, offset } => WindowText::Tumbling { size, offset },
        WindowKind::Sliding { size, slide, offset } => WindowText::Sliding { size, slide, offset },
        WindowKind::Session { gap } => WindowText::Session { gap },
    }
}

pub(crate) fn read_window(window: &WindowText) -> WindowSpan {
    let ticks = Span::Ticks;
    match *window {
        WindowText::Tumbling { size, offset } => {
            WindowSpan::Tumbling { size: ticks(size), offset: ticks(offset) }
        }
        WindowText::Sliding { size, slide, offset } => {
            WindowSpan::Sliding { size: ticks(size), slide: ticks(slide), offset: ticks(offset) }
        }
        WindowText::Session { gap } => WindowSpan::Session { gap: ticks(gap) },
    }
}

/// Lists columns in words.
pub(crate) fn columns(schema: &Schema) -> String {
    schema.fields().iter().map(|field| describe_field(field)).collect::<Vec<_>>().join(", ")
}

/// Returns `name = expression`, or only the expression when it has its own name.
pub(crate) fn named(expr: &Expr) -> String {
    match expr.kind() {
        penstock_expr::expr::Kind::Alias(inner, name) => format!("{name} = {inner}"),
        _ => expr.to_string(),
    }
}

/// Lists expressions in words.
pub(crate) fn list(exprs: &[Expr]) -> String {
    exprs.iter().map(named).collect::<Vec<_>>().join(", ")
}

/// Lists keys in words.
pub(crate) fn by(keys: &[Expr]) -> String {
    if keys.is_empty() { String::new() } else { format!(", by {}", list(keys)) }
}

/// Describes a duration by the clock, if there is one.
pub(crate) fn by_clock(what: &str, ns: Option<u64>) -> String {
    ns.map_or(String::new(), |ns| format!("{what} {}", Tick::Nanosecond.describe(i128::from(ns))))
}

/// Lists aggregates in words, one a line.
pub(crate) fn aggregate_lines(aggregates: &[Aggregate]) -> String {
    aggregates.iter().map(|aggregate| format!("\n{} = {aggregate}", aggregate.output_name())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_begins_with_its_name() {
        #[derive(Serialize)]
        struct Text {
            z: i64,
            a: &'static str,
        }
        assert_eq!(written("filter", Text { z: 1, a: "x" }).unwrap(), r#"{"step":"filter","z":1,"a":"x"}"#);
        assert_eq!(written("union", NoFields {}).unwrap(), r#"{"step":"union"}"#);
    }

    #[test]
    fn windows_read_back() {
        for window in [
            WindowKind::Tumbling { size: 10, offset: -3 },
            WindowKind::Sliding { size: 10, slide: 5, offset: 0 },
            WindowKind::Session { gap: 7 },
        ] {
            let text = serde_json::to_value(write_window(window)).unwrap();
            let read = read_window(&fields(text).unwrap()).in_ticks(Tick::Plain);
            assert_eq!(read, Ok(window));
        }
    }

    #[test]
    fn unknown_fields_are_refused() {
        let error = fields::<NoFields>(serde_json::json!({"x": 1})).err().unwrap();
        assert!(error.to_string().contains("unknown field `x`"), "{error}");
    }
}
