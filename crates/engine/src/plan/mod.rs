//! A pipeline as it was written: steps that read each other, each checked when it is added.
//!
//! P1. A plan that exists can run: names, types, durations and tables were checked by the builder.
//! P2. Plans do not change. Every method gives a new plan that shares its steps with the old one.
//!
//! - [`node`]: steps and how they hang together
//! - [`windows`]: windows, joins and what else brings rows together by time
//! - [`outputs`]: several plans that run as one
//! - `explain`, `json`: in words, and to be stored

mod event_time;
mod explain;
pub mod function;
mod json;
pub mod node;
pub mod outputs;
pub mod stages;
mod step;
mod table;
mod windows;

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use penstock_expr::{Expr, Expression, Scope, compile};
use penstock_memory::Physical;
use penstock_memory::batch::decoded;
use penstock_operators::LookupKind;
use penstock_types::{PlanError, Span, Tick, TypeName};

pub use function::{BatchFunction, Function, WatermarkFunction, Watermarks};
pub use json::{join_kind, lookup_kind};
pub use node::{EventTime, Graph, Node};
pub use outputs::Outputs;
pub use step::{
    Aggregate, Arrival, CoGroupStep, JoinStep, MapStep, STREAM, Step, StreamStep, TopKStep, WindowKind,
    WindowStep,
};
pub use table::TableStep;
pub use windows::{CORRECTION, RANK, WINDOW_BOUNDS, WindowSpan};

/// An immutable pipeline.
#[derive(Clone, Debug)]
pub struct Plan {
    root: Arc<Node>,
}

impl PartialEq for Plan {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.root, &other.root) || self.graph().is_same(&other.graph())
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
        Self::named_stream(None, schema, time, delay)
    }

    /// The same, where data for it is known by its name.
    pub fn named_stream(
        name: Option<&str>,
        schema: &Schema,
        time: Option<&str>,
        delay: Span,
    ) -> Result<Self, PlanError> {
        Self::declare(schema, StreamOptions { name, time, delay: Some(delay), ..StreamOptions::default() })
    }

    /// A stream of rows with that schema.
    pub fn declare(schema: &Schema, options: StreamOptions<'_>) -> Result<Self, PlanError> {
        let StreamOptions { name, time, is_end, delay, arrival, watermark, idle_after, max_ahead } = options;
        let fields = schema.fields();
        fields.iter().try_for_each(|field| check_supported(field))?;
        check_unique(fields.iter().map(|field| field.name().as_str()), "give one of them another name")?;
        if idle_after.is_some() && time.is_none() {
            return Err(PlanError::MissingTime(
                "idle_after= says when nobody waits for the stream, but without time=\"...\" nobody does"
                    .to_owned(),
            ));
        }
        if name.is_some_and(str::is_empty) {
            return Err(PlanError::Invalid("the name of a stream cannot be empty".to_owned()));
        }
        let mut downstream: Vec<Field> = fields
            .iter()
            .map(|field| Field::new(field.name(), decoded(field.data_type()).clone(), field.is_nullable()))
            .collect();
        if let (Some(_), Some(column)) = (arrival, time) {
            if schema.fields().find(column).is_some() {
                return Err(PlanError::Invalid(format!(
                    "the column \"{column}\" is in the data already: name the time of arrival otherwise"
                )));
            }
            downstream.push(Field::new(
                column,
                DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
                false,
            ));
        }
        let downstream = Schema::new(downstream);
        let (mut ticks, mut event_time) = (0, None);
        if let Some(column) = time {
            let tick = tick_of(&downstream, column)?;
            ticks = delay.unwrap_or(Span::Ticks(0)).ticks(tick)?;
            if ticks < 0 {
                return Err(PlanError::Duration {
                    text: ticks.to_string(),
                    reason: "a delay cannot be negative".to_owned(),
                });
            }
            event_time = Some(EventTime { column: column.to_owned(), tick, is_end });
        }
        let max_ahead =
            max_ahead.map(|most| ahead_ticks(most, event_time.as_ref(), arrival, ticks)).transpose()?;
        if let Some(watermark) = watermark {
            check_watermark(&downstream, time, watermark)?;
        }
        let declared: Vec<Field> = fields
            .iter()
            .map(|field| Field::new(field.name(), field.data_type().clone(), field.is_nullable()))
            .collect();
        let step = Step::Stream(StreamStep {
            name: name.map(str::to_owned),
            schema: Arc::new(Schema::new(declared)),
            time: time.map(str::to_owned),
            is_end,
            delay: ticks,
            arrival,
            watermark: watermark.cloned(),
            idle_after_ns: idle_after.map(|span| clock_ns(span, "idle_after")).transpose()?,
            max_ahead,
        });
        Ok(Self { root: Node::new(step, Vec::new(), Arc::new(downstream), event_time) })
    }

    /// A stream that is only declared, with that bound on how far ahead of the watermark a time may be.
    pub fn with_max_ahead(&self, most: Span) -> Result<Self, PlanError> {
        let Step::Stream(stream) = self.root.step() else {
            return Err(PlanError::Invalid("max_ahead= is for streams, where rows come in".to_owned()));
        };
        if stream.max_ahead.is_some() {
            return Err(PlanError::Invalid(
                "the stream has a max_ahead= already: give one of them".to_owned(),
            ));
        }
        let most = ahead_ticks(most, self.root.time(), stream.arrival, stream.delay)?;
        let step = Step::Stream(StreamStep { max_ahead: Some(most), ..stream.clone() });
        let (schema, time) = (Arc::clone(self.root.schema()), self.root.time().cloned());
        Ok(Self { root: Node::new(step, Vec::new(), schema, time) })
    }

    /// The last step.
    pub fn root(&self) -> &Arc<Node> {
        &self.root
    }

    /// All steps.
    pub fn graph(&self) -> Graph {
        Graph::of([&self.root]).expect("streams were checked when they came together")
    }

    /// The columns that come out.
    pub fn schema(&self) -> &SchemaRef {
        self.root.schema()
    }

    /// The time column, when event time is still known.
    pub fn time(&self) -> Option<&str> {
        self.root.time().map(|time| time.column.as_str())
    }

    /// The names of its streams, in the order in which they were written.
    pub fn streams(&self) -> Vec<String> {
        let graph = self.graph();
        graph.nodes().iter().filter_map(|node| node.step().stream_name().map(str::to_owned)).collect()
    }

    /// The stream, when nothing else follows.
    pub fn as_stream(&self) -> Option<&StreamStep> {
        match self.root.step() {
            Step::Stream(stream) => Some(stream),
            _ => None,
        }
    }

    /// The plan as far as the declaration of its one stream; `None` when it has several.
    pub fn declaration(&self) -> Option<Self> {
        let graph = self.graph();
        let mut streams = graph.nodes().iter().filter(|node| node.step().stream_name().is_some());
        match (streams.next(), streams.next()) {
            (Some(stream), None) => Some(Self { root: Arc::clone(stream) }),
            _ => None,
        }
    }

    /// Visits the steps that no other plan has.
    pub fn visit_own(&self, visit: &mut dyn FnMut(&Step)) {
        let mut nodes = vec![&self.root];
        while let Some(node) = nodes.pop() {
            if Arc::strong_count(node) == 1 {
                visit(node.step());
                nodes.extend(node.inputs());
            }
        }
    }

    /// The declaration of a stream with other functions that say watermarks, each in the place of an equal one.
    pub(crate) fn with_watermarks(&self, replaced: &[(Watermarks, Watermarks)]) -> Self {
        let Step::Stream(stream) = self.root.step() else { return self.clone() };
        let watermark = stream.watermark.as_ref().map(|written| written.replaced(replaced).clone());
        let step = Step::Stream(StreamStep { watermark, ..stream.clone() });
        Self { root: Node::new(step, Vec::new(), Arc::clone(self.schema()), self.root.time().cloned()) }
    }

    fn check(&self, expr: &Expr) -> Result<Expression, PlanError> {
        check_expr(self.schema(), expr)
    }

    fn then(&self, step: Step, schema: Vec<Field>, time: Option<EventTime>) -> Self {
        Self { root: Node::new(step, vec![Arc::clone(&self.root)], Arc::new(Schema::new(schema)), time) }
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
        Ok(self.then(Step::Filter(predicate), self.fields(), self.root.time().cloned()))
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
        let time = self.root.time().and_then(|time| {
            let kept = exprs.iter().find(|expr| expr.as_column() == Some(&time.column))?;
            Some(EventTime { column: kept.output_name(), ..time.clone() })
        });
        Ok(self.then(Step::Select(exprs), fields, time))
    }

    /// Adds columns, or replaces those of the same name.
    pub fn with_columns(&self, exprs: Vec<Expr>) -> Result<Self, PlanError> {
        let mut fields = self.fields();
        let names: Vec<String> = exprs.iter().map(Expr::output_name).collect();
        check_unique(names.iter().map(String::as_str), "rename one of them with .alias(\"...\")")?;
        for (expr, name) in exprs.iter().zip(&names) {
            let field = field_of(name.clone(), &self.check(expr)?);
            if self.time() == Some(name) && expr.as_column() != Some(name) {
                return Err(PlanError::Invalid(format!(
                    "\"{name}\" is the time column and cannot be replaced: lateness was decided by it; give the new column another name"
                )));
            }
            match fields.iter_mut().find(|existing| existing.name() == name) {
                Some(existing) => *existing = field,
                None => fields.push(field),
            }
        }
        Ok(self.then(Step::WithColumns(exprs), fields, self.root.time().cloned()))
    }

    /// Joins each row with the row of `table` that has the same key.
    pub fn lookup(&self, table: &RecordBatch, on: Vec<String>, kind: LookupKind) -> Result<Self, PlanError> {
        self.named_lookup(table, on, kind, None)
    }

    /// The same, where the table can be replaced by its name while the query runs.
    pub fn named_lookup(
        &self,
        table: &RecordBatch,
        on: Vec<String>,
        kind: LookupKind,
        name: Option<String>,
    ) -> Result<Self, PlanError> {
        let table = TableStep::new(table, on, kind, self.schema())?.named(name);
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
        Ok(self.then(Step::Lookup(table), fields, self.root.time().cloned()))
    }

    /// Calls a function with batches of rows: what it gives back, of that schema, goes on.
    pub fn map_batches(&self, function: Function, schema: &Schema) -> Result<Self, PlanError> {
        schema.fields().iter().try_for_each(|field| check_supported(field))?;
        check_unique(
            schema.fields().iter().map(|field| field.name().as_str()),
            "give one of them another name",
        )?;
        let given: Vec<Field> = schema
            .fields()
            .iter()
            .map(|field| Field::new(field.name(), field.data_type().clone(), field.is_nullable()))
            .collect();
        let plain =
            given.iter().map(|field| field.clone().with_data_type(decoded(field.data_type()).clone()));
        let plain: Vec<Field> = plain.collect();
        // Whoever gives the time column back, of the same type, keeps event time.
        let keeps = |time: &&EventTime| {
            let before = self.schema().field_with_name(&time.column).map(Field::data_type).ok();
            plain.iter().any(|field| field.name() == &time.column && Some(field.data_type()) == before)
        };
        let time = self.root.time().filter(keeps).cloned();
        let step = MapStep { function, schema: Arc::new(Schema::new(given)) };
        Ok(self.then(Step::Map(step), plain, time))
    }

    /// The rows of all of these, as they come. They have the same columns.
    pub fn union(plans: &[Self]) -> Result<Self, PlanError> {
        let [first, others @ ..] = plans else {
            return Err(PlanError::Invalid("union() needs at least one stream".to_owned()));
        };
        let mut fields = first.fields();
        for (number, other) in others.iter().enumerate() {
            check_alike(&fields, &other.fields(), number + 2)?;
            if first.root.time() != other.root.time() {
                let say = |plan: &Self| match plan.root.time() {
                    Some(time) if time.is_end => format!("the windows of \"{}\"", time.column),
                    Some(time) => format!("\"{}\"", time.column),
                    None => "no time column".to_owned(),
                };
                return Err(PlanError::Invalid(format!(
                    "a union needs one event time: the first stream has {}, stream {} has {}",
                    say(first),
                    number + 2,
                    say(other)
                )));
            }
            for (field, other) in fields.iter_mut().zip(other.schema().fields()) {
                if other.is_nullable() && !field.is_nullable() {
                    *field = field.clone().with_nullable(true);
                }
            }
        }
        let inputs: Vec<Arc<Node>> = plans.iter().map(|plan| Arc::clone(&plan.root)).collect();
        Graph::of(&inputs)?;
        let time = first.root.time().cloned();
        Ok(Self { root: Node::new(Step::Union, inputs, Arc::new(Schema::new(fields)), time) })
    }
}

/// Refuses streams whose columns are not those of the first.
fn check_alike(wanted: &[Field], found: &[Field], number: usize) -> Result<(), PlanError> {
    let names = |fields: &[Field]| {
        fields.iter().map(|field| format!("\"{}\"", field.name())).collect::<Vec<_>>().join(", ")
    };
    if names(wanted) != names(found) {
        return Err(PlanError::Invalid(format!(
            "a union needs the same columns in the same order: the first stream has {}, stream {number} has {}; bring them into line with select()",
            names(wanted),
            names(found)
        )));
    }
    for (wanted, found) in wanted.iter().zip(found) {
        if wanted.data_type() != found.data_type() {
            return Err(PlanError::mismatch(
                format!("column \"{}\" of a union", wanted.name()),
                format!(
                    "it is {} in the first stream and {} in stream {number}",
                    TypeName(wanted.data_type()),
                    TypeName(found.data_type())
                ),
            ));
        }
    }
    Ok(())
}

/// Checks an expression against a schema.
pub(crate) fn check_expr(schema: &Schema, expr: &Expr) -> Result<Expression, PlanError> {
    let slots: Vec<usize> = (0..schema.fields().len()).collect();
    compile(expr, Scope { schema, slots: &slots })
}

/// How a stream is declared.
#[derive(Clone, Copy, Debug, Default)]
pub struct StreamOptions<'a> {
    /// What data for it is known by.
    pub name: Option<&'a str>,
    /// The column that holds event time.
    pub time: Option<&'a str>,
    /// Whether that is the end of a window, and the time the last tick before it.
    pub is_end: bool,
    /// How far the watermark stays behind the largest time.
    pub delay: Option<Span>,
    /// When rows arrive is their time: the time column is added.
    pub arrival: Option<Arrival>,
    /// Where watermarks are taken from, instead of the times.
    pub watermark: Option<&'a Watermarks>,
    /// Nobody waits for the stream once it has been silent for so long.
    pub idle_after: Option<Span>,
    /// How far ahead of the watermark a time may be.
    pub max_ahead: Option<Span>,
}

/// How far ahead of the watermark a time may be, in ticks.
fn ahead_ticks(
    most: Span,
    time: Option<&EventTime>,
    arrival: Option<Arrival>,
    delay: i64,
) -> Result<i64, PlanError> {
    let Some(time) = time else {
        return Err(PlanError::MissingTime(
            "max_ahead= says how far ahead of the watermark a time may be, but no column holds times: add time=\"...\""
                .to_owned(),
        ));
    };
    if arrival.is_some() {
        return Err(PlanError::Invalid(
            "the time of arrival comes from the clock, and is never ahead: leave max_ahead= out".to_owned(),
        ));
    }
    let ticks = most.ticks(time.tick)?;
    if ticks <= delay {
        let (most, delay) = (time.tick.describe(i128::from(ticks)), time.tick.describe(i128::from(delay)));
        return Err(PlanError::Duration {
            text: most,
            reason: format!(
                "max_ahead must be more than the delay, {delay}: the watermark stays behind the latest time by that much, so that no row could move it on"
            ),
        });
    }
    Ok(ticks)
}

/// A duration by the clock, in nanoseconds.
fn clock_ns(span: Span, what: &str) -> Result<u64, PlanError> {
    let wrong = |text: String, reason: &str| PlanError::Duration { text, reason: format!("{what} {reason}") };
    match span {
        Span::Nanos(ns) => match u64::try_from(ns) {
            Ok(ns) if ns > 0 => Ok(ns),
            _ => Err(wrong(Tick::Nanosecond.describe(ns), "must be positive, and less than 500 years")),
        },
        Span::Ticks(ticks) => {
            Err(wrong(ticks.to_string(), "goes by the clock: write it with a unit, such as \"5s\""))
        }
    }
}

/// Watermarks are of the type of the time column.
fn check_watermark(schema: &Schema, time: Option<&str>, from: &Watermarks) -> Result<(), PlanError> {
    let Some(time) = time else {
        return Err(PlanError::MissingTime(
            "watermark= says how far event time has come, but no column says what that is: add time=\"...\""
                .to_owned(),
        ));
    };
    let (Watermarks::Column(name) | Watermarks::Before(name)) = from else { return Ok(()) };
    let field = |name: &str| {
        let names = schema.fields().iter().map(|field| field.name().as_str());
        schema
            .fields()
            .find(name)
            .map(|(_, field)| field)
            .ok_or_else(|| PlanError::unknown_column(name, names))
    };
    let (marks, times) = (field(name)?, field(time)?);
    if marks.data_type() != times.data_type() {
        return Err(PlanError::mismatch(
            format!("watermark=\"{name}\""),
            format!(
                "watermarks are of the type of the time column, and it is {} while \"{time}\" is {}",
                TypeName(marks.data_type()),
                TypeName(times.data_type())
            ),
        ));
    }
    Ok(())
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
                "a {} column cannot carry event time; use a timestamp, a date or an integer column, or cast it in a query of its own and begin another one with ps.stream(query.schema, time=\"{time}\") and source=query",
                TypeName(field.data_type())
            ),
        )
    })
}
