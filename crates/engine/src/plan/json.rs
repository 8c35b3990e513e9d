//! A plan as JSON.
//!
//! Reading a plan goes through the same builder as writing one does, so that text from anywhere
//! gives a plan that can run (P1) or an error, never something in between.

use std::sync::Arc;

use arrow_schema::{Field, Schema};
use penstock_expr::Expr;
use penstock_operators::LookupKind;
use penstock_operators::aggregates::AggregateKind;
use penstock_operators::join::JoinKind;
use penstock_types::{PlanError, Span, TypeName, parse_type};
use serde::{Deserialize, Serialize};

use super::table::PortableTable;
use super::{
    Aggregate, Arrival, Function, Graph, Outputs, Plan, Step, StreamOptions, Watermarks, WindowKind,
    WindowSpan,
};
use crate::options::choose;

/// Version of the format that is written.
const VERSION: u32 = 2;
/// The first version: streams without names, one step behind the other, tumbling windows only.
const FIRST_VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    penstock_plan: u32,
    steps: Vec<StepText>,
    /// The steps that each step reads, by number; each reads the one before it when this is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    inputs: Option<Vec<Vec<usize>>>,
    /// The outputs by name, and the step that each is; the last step is the only one when this is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outputs: Option<Vec<(String, usize)>>,
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
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum WindowText {
    Tumbling { size: i64, offset: i64 },
    Sliding { size: i64, slide: i64, offset: i64 },
    Session { gap: i64 },
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case", deny_unknown_fields)]
enum StepText {
    Stream {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        schema: Vec<FieldText>,
        time: Option<String>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_end: bool,
        delay: i64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arrival: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        watermark: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        watermark_before: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        idle_after_ns: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_ahead: Option<i64>,
    },
    Filter {
        predicate: Expr,
    },
    Select {
        columns: Vec<Expr>,
    },
    WithColumns {
        columns: Vec<Expr>,
    },
    Lookup {
        table: PortableTable,
        on: Vec<String>,
        how: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// A window of the first version.
    Tumbling {
        size: i64,
        by: Vec<Expr>,
        aggregates: Vec<AggregateText>,
    },
    MapBatches {
        /// The number of the function among those that go along.
        function: usize,
        schema: Vec<FieldText>,
    },
    Union {},
    Window {
        window: WindowText,
        by: Vec<Expr>,
        aggregates: Vec<AggregateText>,
        allowed_lateness: i64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        close_after_ns: Option<u64>,
    },
    Late {},
    Cogroup {
        window: WindowText,
        by: [Vec<Expr>; 2],
        aggregates: [Vec<AggregateText>; 2],
    },
    Join {
        window: WindowText,
        on: [Vec<String>; 2],
        how: String,
        suffix: String,
    },
    TopK {
        window: WindowText,
        by: Vec<Expr>,
        k: usize,
        order: Expr,
        largest: bool,
    },
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

/// How a join is named in text.
pub fn join_kind(how: &str) -> Result<JoinKind, PlanError> {
    let kinds: Vec<(&'static str, JoinKind)> =
        JoinKind::names().filter_map(|name| JoinKind::from_name(name).map(|kind| (name, kind))).collect();
    choose("how", how, &kinds)
}

fn write_window(window: WindowKind) -> WindowText {
    match window {
        WindowKind::Tumbling { size, offset } => WindowText::Tumbling { size, offset },
        WindowKind::Sliding { size, slide, offset } => WindowText::Sliding { size, slide, offset },
        WindowKind::Session { gap } => WindowText::Session { gap },
    }
}

fn read_window(window: &WindowText) -> WindowSpan {
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

fn write_aggregates(aggregates: &[Aggregate]) -> Vec<AggregateText> {
    let write = |aggregate: &Aggregate| AggregateText {
        kind: aggregate.kind.name().to_owned(),
        input: aggregate.input.clone(),
        name: aggregate.name.clone(),
    };
    aggregates.iter().map(write).collect()
}

fn read_aggregates(aggregates: Vec<AggregateText>) -> Result<Vec<Aggregate>, PlanError> {
    let read = |aggregate: AggregateText| {
        let kind = AggregateKind::from_name(&aggregate.kind)
            .ok_or_else(|| bad(format!("\"{}\" is not an aggregate", aggregate.kind)))?;
        Ok(Aggregate { kind, input: aggregate.input, name: aggregate.name })
    };
    aggregates.into_iter().map(read).collect()
}

fn write_schema(schema: &Schema) -> Vec<FieldText> {
    let write = |field: &Arc<Field>| FieldText {
        name: field.name().clone(),
        type_name: TypeName(field.data_type()).to_string(),
        nullable: field.is_nullable(),
    };
    schema.fields().iter().map(write).collect()
}

fn write(step: &Step, functions: &mut Vec<Function>) -> Result<StepText, PlanError> {
    Ok(match step {
        Step::Stream(stream) => StepText::Stream {
            name: stream.name.clone(),
            schema: write_schema(&stream.schema),
            time: stream.time.clone(),
            is_end: stream.is_end,
            delay: stream.delay,
            arrival: stream.arrival.map(|arrival| arrival.name().to_owned()),
            watermark: match &stream.watermark {
                None | Some(Watermarks::Before(_)) => None,
                Some(Watermarks::Column(name)) => Some(name.clone()),
                Some(Watermarks::Function(function)) => {
                    return Err(PlanError::Invalid(format!(
                        "the watermarks of the stream come from the function {}, which cannot be written",
                        function.name()
                    )));
                }
            },
            watermark_before: match &stream.watermark {
                Some(Watermarks::Before(name)) => Some(name.clone()),
                _ => None,
            },
            idle_after_ns: stream.idle_after_ns,
            max_ahead: stream.max_ahead,
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
            name: table.given_name().cloned(),
        },
        Step::Map(step) => {
            functions.push(step.function.clone());
            StepText::MapBatches { function: functions.len() - 1, schema: write_schema(&step.schema) }
        }
        Step::Union => StepText::Union {},
        Step::Window(step) => StepText::Window {
            window: write_window(step.window),
            by: step.by.clone(),
            aggregates: write_aggregates(&step.aggregates),
            allowed_lateness: step.allowed_lateness,
            close_after_ns: step.close_after_ns,
        },
        Step::Late => StepText::Late {},
        Step::CoGroup(step) => StepText::Cogroup {
            window: write_window(step.window),
            by: step.by.clone(),
            aggregates: [write_aggregates(&step.aggregates[0]), write_aggregates(&step.aggregates[1])],
        },
        Step::Join(step) => StepText::Join {
            window: write_window(step.window),
            on: step.on.clone(),
            how: step.kind.name().to_owned(),
            suffix: step.suffix.clone(),
        },
        Step::TopK(step) => StepText::TopK {
            window: write_window(step.window),
            by: step.by.clone(),
            k: step.k,
            order: step.order.clone(),
            largest: step.largest,
        },
    })
}

fn read_schema(schema: &[FieldText]) -> Result<Schema, PlanError> {
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

fn read(step: StepText, inputs: &[Plan], functions: &[Function]) -> Result<Plan, PlanError> {
    Ok(match (step, inputs) {
        (
            StepText::Stream {
                name,
                schema,
                time,
                is_end,
                delay,
                arrival,
                watermark,
                watermark_before,
                idle_after_ns,
                max_ahead,
            },
            [],
        ) => {
            let arrival = arrival.map(|name| choose("arrival", &name, &Arrival::NAMES)).transpose()?;
            let before = watermark_before.map(Watermarks::Before);
            let watermark = watermark.map(Watermarks::Column).or(before);
            let options = StreamOptions {
                name: name.as_deref(),
                time: time.as_deref(),
                is_end,
                delay: Some(Span::Ticks(delay)),
                arrival,
                watermark: watermark.as_ref(),
                idle_after: idle_after_ns.map(|ns| Span::Nanos(i128::from(ns))),
                max_ahead: max_ahead.map(Span::Ticks),
            };
            Plan::declare(&read_schema(&schema)?, options)?
        }
        (StepText::Filter { predicate }, [plan]) => plan.filter(predicate)?,
        (StepText::Select { columns }, [plan]) => plan.select(columns)?,
        (StepText::WithColumns { columns }, [plan]) => plan.with_columns(columns)?,
        (StepText::Lookup { table, on, how, name }, [plan]) => {
            plan.named_lookup(&table.table()?, on, lookup_kind(&how)?, name)?
        }
        (StepText::MapBatches { function, schema }, [plan]) => {
            let Some(function) = functions.get(function) else {
                return Err(bad(
                    "it calls a function, and functions are not part of the text: pickle the plan",
                ));
            };
            plan.map_batches(function.clone(), &read_schema(&schema)?)?
        }
        (StepText::Union {}, plans) => Plan::union(plans)?,
        (StepText::Tumbling { size, by, aggregates }, [plan]) => {
            let window = read_window(&WindowText::Tumbling { size, offset: 0 });
            plan.window(window, by, read_aggregates(aggregates)?, Span::Ticks(0), None)?
        }
        (StepText::Window { window, by, aggregates, allowed_lateness, close_after_ns }, [plan]) => {
            let lateness = Span::Ticks(allowed_lateness);
            let close_after = close_after_ns.map(|ns| Span::Nanos(i128::from(ns)));
            plan.window(read_window(&window), by, read_aggregates(aggregates)?, lateness, close_after)?
        }
        (StepText::Late {}, [plan]) => plan.late()?,
        (StepText::Cogroup { window, by, aggregates: [left, right] }, [plan, other]) => {
            let aggregates = [read_aggregates(left)?, read_aggregates(right)?];
            plan.cogroup(other, read_window(&window), by, aggregates)?
        }
        (StepText::Join { window, on, how, suffix }, [plan, other]) => {
            plan.join(other, read_window(&window), on, join_kind(&how)?, &suffix)?
        }
        (StepText::TopK { window, by, k, order, largest }, [plan]) => {
            plan.top_k(read_window(&window), by, k, order, largest)?
        }
        (_, inputs) => return Err(bad(format!("a step reads {} others, which it cannot", inputs.len()))),
    })
}

/// The text, and the functions that it speaks of.
type Written = (String, Vec<Function>);

fn document(graph: &Graph, outputs: Option<Vec<(String, usize)>>) -> Result<Written, PlanError> {
    let count = graph.nodes().len();
    let mut functions = Vec::new();
    let steps =
        graph.nodes().iter().map(|node| write(node.step(), &mut functions)).collect::<Result<_, _>>()?;
    let before = |number: usize| number.checked_sub(1).into_iter().collect::<Vec<_>>();
    let is_line = (0..count).all(|number| graph.inputs(number) == before(number));
    let inputs = (!is_line).then(|| (0..count).map(|number| graph.inputs(number).to_vec()).collect());
    let document = Document { penstock_plan: VERSION, steps, inputs, outputs };
    Ok((serde_json::to_string(&document).map_err(bad)?, functions))
}

/// The text alone, if it says everything.
fn alone((text, functions): Written) -> Result<String, PlanError> {
    match functions.first() {
        None => Ok(text),
        Some(function) => Err(PlanError::Invalid(format!(
            "the plan calls the function {}, which cannot be written as JSON; pickle the plan instead",
            function.0.name()
        ))),
    }
}

/// Every step of a document, and its outputs.
type Built = (Vec<Plan>, Option<Vec<(String, usize)>>);

fn build(text: &str, functions: &[Function]) -> Result<Built, PlanError> {
    let document: Document = serde_json::from_str(text).map_err(bad)?;
    if !(FIRST_VERSION..=VERSION).contains(&document.penstock_plan) {
        let found = document.penstock_plan;
        return Err(bad(format!("it has version {found}, and this engine reads versions up to {VERSION}")));
    }
    let count = document.steps.len();
    let inputs = document
        .inputs
        .unwrap_or_else(|| (0..count).map(|number| number.checked_sub(1).into_iter().collect()).collect());
    if inputs.len() != count {
        return Err(bad(format!("it has {count} steps, and inputs for {}", inputs.len())));
    }
    let mut plans: Vec<Plan> = Vec::new();
    let mut is_read = vec![false; count];
    for (step, inputs) in document.steps.into_iter().zip(inputs) {
        let mut read_plans = Vec::new();
        for input in inputs {
            let Some(plan) = plans.get(input) else {
                return Err(bad("a step reads one that does not stand before it"));
            };
            is_read[input] = true;
            read_plans.push(plan.clone());
        }
        plans.push(read(step, &read_plans, functions)?);
    }
    if let Some(outputs) = &document.outputs {
        for (name, number) in outputs {
            match is_read.get_mut(*number) {
                Some(is_read) => *is_read = true,
                None => return Err(bad(format!("the output \"{name}\" is a step that it does not have"))),
            }
        }
    } else if let Some(last) = is_read.last_mut() {
        *last = true;
    }
    match is_read.iter().position(|is_read| !is_read) {
        Some(number) => Err(bad(format!("nobody reads step {number}"))),
        None if plans.is_empty() => Err(bad("it has no steps")),
        None => Ok((plans, document.outputs)),
    }
}

impl Plan {
    /// The plan as JSON.
    pub fn to_json(&self) -> Result<String, PlanError> {
        alone(self.to_parts()?)
    }

    /// The plan as JSON, and the functions that it calls.
    pub fn to_parts(&self) -> Result<(String, Vec<Function>), PlanError> {
        document(&self.graph(), None)
    }

    /// The plan that was written as JSON.
    pub fn from_json(text: &str) -> Result<Self, PlanError> {
        Self::from_parts(text, &[])
    }

    /// The plan that was written as JSON, and the functions that it calls.
    pub fn from_parts(text: &str, functions: &[Function]) -> Result<Self, PlanError> {
        match build(text, functions)? {
            (mut plans, None) => Ok(plans.pop().expect("a document without steps is refused")),
            (_, Some(_)) => Err(bad("it has several outputs")),
        }
    }
}

impl Outputs {
    /// The plans as JSON.
    pub fn to_json(&self) -> Result<String, PlanError> {
        alone(self.to_parts()?)
    }

    /// The plans as JSON, and the functions that they call.
    pub fn to_parts(&self) -> Result<(String, Vec<Function>), PlanError> {
        let graph = self.graph();
        let names = self.plans().iter().map(|(name, _)| name.clone());
        let outputs = names.zip(graph.roots().iter().copied()).collect();
        document(&graph, Some(outputs))
    }

    /// The plans that were written as JSON.
    pub fn from_json(text: &str) -> Result<Self, PlanError> {
        Self::from_parts(text, &[])
    }

    /// The plans that were written as JSON, and the functions that they call.
    pub fn from_parts(text: &str, functions: &[Function]) -> Result<Self, PlanError> {
        let (plans, outputs) = build(text, functions)?;
        let Some(outputs) = outputs else { return Err(bad("it is one plan, without names of outputs")) };
        Self::new(outputs.into_iter().map(|(name, number)| (name, plans[number].clone())).collect())
    }
}
