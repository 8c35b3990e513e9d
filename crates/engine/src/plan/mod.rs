//! A pipeline as it was written: a list of steps, each checked when it is added.
//!
//! P1. A plan that exists can run: names, types, durations and tables were checked by the builder.
//! P2. Plans do not change. Every method gives a new plan that shares its steps with the old one.

mod explain;
mod json;
mod step;
mod table;

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use penstock_expr::{Expr, Expression, Scope, compile};
use penstock_memory::Physical;
use penstock_memory::batch::decoded;
use penstock_operators::LookupKind;
use penstock_operators::aggregates::AccumulatorFactory;
use penstock_progress::Tumbling;
use penstock_types::{PlanError, Span, Tick, TypeName};

pub use json::lookup_kind;
pub use step::{Aggregate, Step};
pub use table::TableStep;

/// Names of the bounds of a window in its results.
pub const WINDOW_BOUNDS: [&str; 2] = ["window_start", "window_end"];

/// An immutable pipeline.
#[derive(Clone, Debug)]
pub struct Plan {
    steps: Vec<Arc<Step>>,
    /// The columns behind each step.
    schemas: Vec<SchemaRef>,
    time: Option<String>,
}

impl PartialEq for Plan {
    fn eq(&self, other: &Self) -> bool {
        self.steps == other.steps
    }
}

impl Eq for Plan {}

impl Hash for Plan {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Equal plans explain themselves in the same words; large tables are not hashed.
        self.explain().hash(state);
    }
}

/// Refuses a column of a type that the engine does not run.
pub(crate) fn check_supported(field: &Field) -> Result<(), PlanError> {
    if Physical::of(field.data_type()).is_some() {
        return Ok(());
    }
    let hint = match field.data_type() {
        DataType::Float16 => "; cast it to float32",
        DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal256(..) => {
            "; cast it to decimal128"
        }
        DataType::FixedSizeBinary(_) => "; cast it to binary",
        DataType::Null => "; give it a type",
        DataType::Struct(_) => "; put its fields into columns of their own",
        _ => "; leave it out of the schema, or cast it to a supported type",
    };
    Err(PlanError::UnsupportedType {
        column: field.name().clone(),
        type_name: TypeName(field.data_type()).to_string(),
        hint: hint.to_owned(),
    })
}

fn check_unique<'a>(names: impl IntoIterator<Item = &'a str>, advice: &str) -> Result<(), PlanError> {
    let mut seen = std::collections::HashSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(PlanError::Invalid(format!("two columns are named \"{name}\"; {advice}")));
        }
    }
    Ok(())
}

fn field_of(name: String, expression: &Expression) -> Field {
    Field::new(name, expression.data_type.clone(), expression.nullable)
}

impl Plan {
    /// A stream of rows with that schema. Event time is in the column `time`, and rows arrive at most
    /// `delay` behind the latest one.
    pub fn stream(schema: &Schema, time: Option<&str>, delay: Span) -> Result<Self, PlanError> {
        let fields = schema.fields();
        fields.iter().try_for_each(|field| check_supported(field))?;
        check_unique(fields.iter().map(|field| field.name().as_str()), "give one of them another name")?;
        let mut ticks = 0;
        if let Some(name) = time {
            let tick = tick_of(schema, name)?;
            ticks = delay.ticks(tick)?;
            if ticks < 0 {
                return Err(PlanError::Duration {
                    text: ticks.to_string(),
                    reason: "a delay cannot be negative".to_owned(),
                });
            }
        }
        let plain = |field: &Arc<Field>| {
            Field::new(field.name(), decoded(field.data_type()).clone(), field.is_nullable())
        };
        let declared: Vec<Field> = fields
            .iter()
            .map(|field| Field::new(field.name(), field.data_type().clone(), field.is_nullable()))
            .collect();
        let downstream: Vec<Field> = fields.iter().map(plain).collect();
        Ok(Self {
            steps: vec![Arc::new(Step::Stream {
                schema: Arc::new(Schema::new(declared)),
                time: time.map(str::to_owned),
                delay: ticks,
            })],
            schemas: vec![Arc::new(Schema::new(downstream))],
            time: time.map(str::to_owned),
        })
    }

    /// The columns that come out.
    pub fn schema(&self) -> &SchemaRef {
        self.schemas.last().expect("a plan has a step")
    }

    /// The time column, when event time is still known.
    pub fn time(&self) -> Option<&str> {
        self.time.as_deref()
    }

    /// The steps, the stream first.
    pub fn steps(&self) -> &[Arc<Step>] {
        &self.steps
    }

    /// The unit of event time.
    pub(crate) fn tick(&self) -> Option<Tick> {
        self.steps.first().and_then(|step| match &**step {
            Step::Stream { schema, time: Some(time), .. } => tick_of(schema, time).ok(),
            _ => None,
        })
    }

    /// What the stream was declared with: its columns, its time column and the delay in ticks.
    pub(crate) fn declared(&self) -> (&SchemaRef, Option<&str>, i64) {
        let Some(Step::Stream { schema, time, delay }) = self.steps.first().map(|step| &**step) else {
            unreachable!("a plan starts with a stream")
        };
        (schema, time.as_deref(), *delay)
    }

    /// The plan as far as its declaration: a stream that does nothing else.
    pub fn declaration(&self) -> Self {
        let (_, time, _) = self.declared();
        let time = time.map(str::to_owned);
        Self { steps: self.steps[..1].to_vec(), schemas: self.schemas[..1].to_vec(), time }
    }

    /// The declared time column and its type.
    pub(crate) fn source_time(&self) -> Option<(&str, &DataType)> {
        let (schema, time, _) = self.declared();
        let (_, field) = schema.fields().find(time?)?;
        Some((field.name(), field.data_type()))
    }

    /// The columns behind each step.
    pub(crate) fn schemas(&self) -> &[SchemaRef] {
        &self.schemas
    }

    fn check(&self, expr: &Expr) -> Result<Expression, PlanError> {
        check_expr(self.schema(), expr)
    }

    fn then(&self, step: Step, schema: Vec<Field>, time: Option<String>) -> Self {
        let (mut steps, mut schemas) = (self.steps.clone(), self.schemas.clone());
        steps.push(Arc::new(step));
        schemas.push(Arc::new(Schema::new(schema)));
        Self { steps, schemas, time }
    }

    fn fields(&self) -> Vec<Field> {
        self.schema().fields().iter().map(|field| field.as_ref().clone()).collect()
    }

    /// Keeps the rows for which `predicate` holds.
    pub fn filter(&self, predicate: Expr) -> Result<Self, PlanError> {
        let checked = self.check(&predicate)?;
        if checked.data_type != DataType::Boolean {
            return Err(PlanError::mismatch(
                &predicate,
                format!(
                    "a filter needs a bool, and this is {}; compare it with something",
                    TypeName(&checked.data_type)
                ),
            ));
        }
        Ok(self.then(Step::Filter(predicate), self.fields(), self.time.clone()))
    }

    /// Keeps only these columns.
    pub fn select(&self, exprs: Vec<Expr>) -> Result<Self, PlanError> {
        if exprs.is_empty() {
            return Err(PlanError::Invalid("select() needs at least one column".to_owned()));
        }
        let fields = exprs
            .iter()
            .map(|expr| Ok(field_of(expr.output_name(), &self.check(expr)?)))
            .collect::<Result<Vec<_>, PlanError>>()?;
        check_unique(
            fields.iter().map(|field| field.name().as_str()),
            "rename one of them with .alias(\"...\")",
        )?;
        let time = self
            .time
            .as_deref()
            .and_then(|time| exprs.iter().find(|expr| expr.as_column() == Some(time)).map(Expr::output_name));
        Ok(self.then(Step::Select(exprs), fields, time))
    }

    /// Adds columns, or replaces those of the same name.
    pub fn with_columns(&self, exprs: Vec<Expr>) -> Result<Self, PlanError> {
        let mut fields = self.fields();
        let names: Vec<String> = exprs.iter().map(Expr::output_name).collect();
        check_unique(names.iter().map(String::as_str), "rename one of them with .alias(\"...\")")?;
        for (expr, name) in exprs.iter().zip(&names) {
            let field = field_of(name.clone(), &self.check(expr)?);
            if self.time.as_deref() == Some(name) && expr.as_column() != Some(name) {
                return Err(PlanError::Invalid(format!(
                    "\"{name}\" is the time column and cannot be replaced: lateness was decided by it; give the new column another name"
                )));
            }
            match fields.iter_mut().find(|existing| existing.name() == name) {
                Some(existing) => *existing = field,
                None => fields.push(field),
            }
        }
        Ok(self.then(Step::WithColumns(exprs), fields, self.time.clone()))
    }

    /// Joins each row with the row of `table` that has the same key.
    pub fn lookup(&self, table: &RecordBatch, on: Vec<String>, kind: LookupKind) -> Result<Self, PlanError> {
        let table = TableStep::new(table, on, kind, self.schema())?;
        let mut fields = self.fields();
        for field in table.added() {
            if fields.iter().any(|existing| existing.name() == field.name()) {
                return Err(PlanError::Invalid(format!(
                    "the lookup table has a column \"{}\", and so has the stream; rename it in the table",
                    field.name()
                )));
            }
            let nullable = field.is_nullable() || kind == LookupKind::Left;
            fields.push(Field::new(field.name(), field.data_type().clone(), nullable));
        }
        Ok(self.then(Step::Lookup(table), fields, self.time.clone()))
    }

    /// Checks the window part of [`Plan::tumbling`]: the size in ticks, and the keys.
    pub fn check_window(&self, size: Span, by: &[Expr]) -> Result<(i64, Vec<Field>), PlanError> {
        let Some(tick) = self.time.as_ref().and_then(|_| self.tick()) else {
            return Err(PlanError::MissingTime(self.why_no_time()));
        };
        let ticks = size.ticks(tick)?;
        if Tumbling::new(ticks).is_none() {
            return Err(PlanError::Duration {
                text: tick.describe(i128::from(ticks)),
                reason: "the size of a window must be positive".to_owned(),
            });
        }
        let keys = by
            .iter()
            .map(|expr| Ok(field_of(expr.output_name(), &self.check(expr)?)))
            .collect::<Result<Vec<_>, PlanError>>()?;
        Ok((ticks, keys))
    }

    fn why_no_time(&self) -> String {
        let declared = self.steps.first().and_then(|step| match &**step {
            Step::Stream { time, .. } => time.as_deref(),
            _ => None,
        });
        match declared {
            None => {
                let candidates: Vec<&str> = self
                    .schema()
                    .fields()
                    .iter()
                    .filter(|field| {
                        matches!(
                            field.data_type(),
                            DataType::Timestamp(..) | DataType::Date32 | DataType::Date64
                        )
                    })
                    .map(|field| field.name().as_str())
                    .collect();
                let hint = if candidates.is_empty() {
                    String::new()
                } else {
                    format!(" (it could be: {})", candidates.join(", "))
                };
                format!(
                    "a window needs event time, and this stream has no time column; name it: ps.stream(schema, time=\"...\"){hint}"
                )
            }
            Some(time) if self.steps.iter().any(|step| matches!(&**step, Step::Tumbling { .. })) => format!(
                "the result of a window has no time column (\"{time}\" went into the first window), and a window over windows is not supported yet"
            ),
            Some(time) => {
                format!("select() dropped the time column \"{time}\"; keep it to use a window behind it")
            }
        }
    }

    /// Aggregates per key in tumbling windows.
    pub fn tumbling(&self, size: Span, by: Vec<Expr>, aggregates: Vec<Aggregate>) -> Result<Self, PlanError> {
        let (size, keys) = self.check_window(size, &by)?;
        if aggregates.is_empty() {
            return Err(PlanError::Invalid("agg() needs at least one aggregate, such as count()".to_owned()));
        }
        let time = self.time.as_deref().expect("check_window found it");
        let time_type =
            self.schema().field_with_name(time).expect("the time column is in the schema").data_type();
        let bound_type =
            if matches!(Tick::of(time_type), Some(Tick::Plain)) { &DataType::Int64 } else { time_type };
        let mut fields: Vec<Field> =
            WINDOW_BOUNDS.iter().map(|name| Field::new(*name, bound_type.clone(), false)).collect();
        fields.extend(keys);
        for aggregate in &aggregates {
            let input = aggregate.input.as_ref().map(|expr| self.check(expr)).transpose()?;
            let data_type = input.as_ref().map(|input| input.data_type.clone());
            let factory = AccumulatorFactory::new(aggregate.kind, data_type, aggregate.to_string())?;
            let counts = aggregate.kind == penstock_operators::aggregates::AggregateKind::Count;
            let nullable = !counts && input.is_none_or(|input| input.nullable);
            fields.push(Field::new(aggregate.output_name(), factory.output().clone(), nullable));
        }
        check_unique(
            fields.iter().map(|field| field.name().as_str()),
            "rename the key or the aggregate with .alias(\"...\"), or as a keyword: agg(name=...)",
        )?;
        Ok(self.then(Step::Tumbling { size, by, aggregates }, fields, None))
    }
}

/// Checks an expression against a schema.
pub(crate) fn check_expr(schema: &Schema, expr: &Expr) -> Result<Expression, PlanError> {
    let slots: Vec<usize> = (0..schema.fields().len()).collect();
    compile(expr, Scope { schema, slots: &slots })
}

fn tick_of(schema: &Schema, time: &str) -> Result<Tick, PlanError> {
    let Some((_, field)) = schema.fields().find(time) else {
        return Err(PlanError::unknown_column(
            time,
            schema.fields().iter().map(|field| field.name().as_str()),
        ));
    };
    Tick::of(field.data_type()).ok_or_else(|| {
        PlanError::mismatch(
            format!("time=\"{time}\""),
            format!(
                "a {} column cannot carry event time; use a timestamp, a date or an integer column",
                TypeName(field.data_type())
            ),
        )
    })
}
