//! A plan as JSON.
//!
//! Reading a plan goes through the same builder as writing one does, so that text from anywhere
//! gives a plan that can run (P1) or an error, never something in between.

use std::sync::Arc;

use arrow_schema::{Field, Schema};
use penstock_expr::Expr;
use penstock_operators::LookupKind;
use penstock_operators::aggregates::AggregateKind;
use penstock_types::{PlanError, Span, TypeName, parse_type};
use serde::{Deserialize, Serialize};

use super::table::PortableTable;
use super::{Aggregate, Plan, Step};

/// Version of the format; a reader refuses others.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    penstock_plan: u32,
    steps: Vec<StepText>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FieldText {
    name: String,
    #[serde(rename = "type")]
    type_name: String,
    nullable: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AggregateText {
    kind: String,
    input: Option<Expr>,
    name: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case", deny_unknown_fields)]
enum StepText {
    Stream { schema: Vec<FieldText>, time: Option<String>, delay: i64 },
    Filter { predicate: Expr },
    Select { columns: Vec<Expr> },
    WithColumns { columns: Vec<Expr> },
    Lookup { table: PortableTable, on: Vec<String>, how: String },
    Tumbling { size: i64, by: Vec<Expr>, aggregates: Vec<AggregateText> },
}

fn bad(reason: impl std::fmt::Display) -> PlanError {
    PlanError::Invalid(format!("this is not the JSON of a plan: {reason}"))
}

/// How a lookup is named in text.
pub fn lookup_kind(how: &str) -> Result<LookupKind, PlanError> {
    match how {
        "inner" => Ok(LookupKind::Inner),
        "left" => Ok(LookupKind::Left),
        other => Err(PlanError::Invalid(format!("how=\"{other}\" is not known; use \"inner\" or \"left\""))),
    }
}

fn write(step: &Step) -> Result<StepText, PlanError> {
    Ok(match step {
        Step::Stream { schema, time, delay } => StepText::Stream {
            schema: schema
                .fields()
                .iter()
                .map(|field| FieldText {
                    name: field.name().clone(),
                    type_name: TypeName(field.data_type()).to_string(),
                    nullable: field.is_nullable(),
                })
                .collect(),
            time: time.clone(),
            delay: *delay,
        },
        Step::Filter(predicate) => StepText::Filter { predicate: predicate.clone() },
        Step::Select(columns) => StepText::Select { columns: columns.clone() },
        Step::WithColumns(columns) => StepText::WithColumns { columns: columns.clone() },
        Step::Lookup(table) => StepText::Lookup {
            table: table.portable()?,
            on: table.on().to_vec(),
            how: match table.kind() {
                LookupKind::Inner => "inner".to_owned(),
                LookupKind::Left => "left".to_owned(),
            },
        },
        Step::Tumbling { size, by, aggregates } => StepText::Tumbling {
            size: *size,
            by: by.clone(),
            aggregates: aggregates
                .iter()
                .map(|aggregate| AggregateText {
                    kind: aggregate.kind.name().to_owned(),
                    input: aggregate.input.clone(),
                    name: aggregate.name.clone(),
                })
                .collect(),
        },
    })
}

fn read_stream(schema: &[FieldText], time: Option<&str>, delay: i64) -> Result<Plan, PlanError> {
    let fields = schema
        .iter()
        .map(|field| {
            let data_type = parse_type(&field.type_name)
                .ok_or_else(|| bad(format!("\"{}\" is not a type", field.type_name)))?;
            Ok(Arc::new(Field::new(&field.name, data_type, field.nullable)))
        })
        .collect::<Result<Vec<_>, PlanError>>()?;
    Plan::stream(&Schema::new(fields), time, Span::Ticks(delay))
}

impl Plan {
    /// The plan as JSON.
    pub fn to_json(&self) -> Result<String, PlanError> {
        let steps = self.steps.iter().map(|step| write(step)).collect::<Result<_, _>>()?;
        serde_json::to_string(&Document { penstock_plan: VERSION, steps }).map_err(bad)
    }

    /// The plan that was written as JSON.
    pub fn from_json(text: &str) -> Result<Self, PlanError> {
        let document: Document = serde_json::from_str(text).map_err(bad)?;
        if document.penstock_plan != VERSION {
            let found = document.penstock_plan;
            return Err(bad(format!("it has version {found}, and this engine reads version {VERSION}")));
        }
        let mut plan: Option<Self> = None;
        for step in document.steps {
            let next = match (plan, step) {
                (None, StepText::Stream { schema, time, delay }) => {
                    read_stream(&schema, time.as_deref(), delay)
                }
                (None, _) => Err(bad("the first step is not a stream")),
                (Some(_), StepText::Stream { .. }) => Err(bad("a stream stands behind the first step")),
                (Some(plan), StepText::Filter { predicate }) => plan.filter(predicate),
                (Some(plan), StepText::Select { columns }) => plan.select(columns),
                (Some(plan), StepText::WithColumns { columns }) => plan.with_columns(columns),
                (Some(plan), StepText::Lookup { table, on, how }) => {
                    plan.lookup(&table.table()?, on, lookup_kind(&how)?)
                }
                (Some(plan), StepText::Tumbling { size, by, aggregates }) => {
                    let aggregates = aggregates
                        .into_iter()
                        .map(|aggregate| {
                            let kind = AggregateKind::from_name(&aggregate.kind)
                                .ok_or_else(|| bad(format!("\"{}\" is not an aggregate", aggregate.kind)))?;
                            Ok(Aggregate { kind, input: aggregate.input, name: aggregate.name })
                        })
                        .collect::<Result<_, PlanError>>()?;
                    plan.tumbling(Span::Ticks(size), by, aggregates)
                }
            };
            plan = Some(next?);
        }
        plan.ok_or_else(|| bad("it has no steps"))
    }
}
