//! Where rows come in: a stream, declared by its columns and its event time.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, TimeUnit};
use penstock_memory::batch::decoded;
use penstock_types::{PlanError, Span, Tick, TypeName, choose};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::bound::Bound;
use crate::check::{check_supported, check_unique, clock_ns};
use crate::function::{Function, Watermarks};
use crate::made::Made;
use crate::plan::Plan;
use crate::resources::Resources;
use crate::scope::Scope;
use crate::step::{Form, Node, Step, StepOutput, comparable};
use crate::stream::{STREAM, StreamStep};
use crate::text::{FieldText, StepReader, by_clock, columns, fields, read_schema, write_schema, written};
use crate::time::{Arrival, EventTime};

/// How a stream is declared.
#[derive(Clone, Copy, Debug, Default)]
pub struct StreamOptions<'a> {
    /// What data for it is known by.
    pub name: Option<&'a str>,
    /// The column that holds event time.
    pub time: Option<&'a str>,
    /// Whether that is the end of a window, and the time the last tick before it.
    pub is_end: bool,
    /// How far the watermark follows the largest time.
    pub delay: Option<Span>,
    /// When rows arrive is their time: the time column is added.
    pub arrival: Option<Arrival>,
    /// Where watermarks are taken from, instead of the times.
    pub watermark: Option<&'a Watermarks>,
    /// After so long without a row, the stream holds no watermark back.
    pub idle_after: Option<Span>,
    /// How far ahead of the watermark a time may be.
    pub max_ahead: Option<Span>,
}

/// Returns the columns of the rows of a stream: those of its batches with decoded types, and the time of arrival.
fn downstream(stream: &StreamStep) -> Result<Schema, PlanError> {
    let declared = stream.schema.fields();
    declared.iter().try_for_each(|field| check_supported(field))?;
    let names = declared.iter().map(|field| field.name().as_str());
    check_unique(names, "give one of them another name")?;
    let mut fields: Vec<Field> = declared
        .iter()
        .map(|field| Field::new(field.name(), decoded(field.data_type()).clone(), field.is_nullable()))
        .collect();
    if let (Some(_), Some(column)) = (stream.arrival, &stream.time) {
        if declared.find(column).is_some() {
            return Err(PlanError::Invalid(format!(
                "the column \"{column}\" is in the data already: name the time of arrival otherwise"
            )));
        }
        let now = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        fields.push(Field::new(column, now, false));
    }
    Ok(Schema::new(fields))
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

/// Converts the bound on how far ahead of the watermark a time may be to ticks.
fn ahead_ticks(most: Span, time: Option<Tick>, arrival: Option<Arrival>, delay: i64) -> Result<i64, PlanError> {
    let Some(tick) = time else {
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
    let ticks = most.ticks(tick)?;
    if ticks <= delay {
        let (most, delay) = (tick.describe(i128::from(ticks)), tick.describe(i128::from(delay)));
        return Err(PlanError::Duration {
            text: most,
            reason: format!(
                "max_ahead must be more than the delay, {delay}: the watermark stays behind the latest time by that much, so that no row could move it on"
            ),
        });
    }
    Ok(ticks)
}

/// Refuses watermarks that are not of the type of the time column.
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
        let found = schema.fields().find(name).map(|(_, field)| field);
        found.ok_or_else(|| PlanError::unknown_column(name, names))
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

impl Plan {
    /// Declares a stream of rows with that schema. Event time is in the column `time`, and rows arrive at most `delay`
    /// behind the latest one.
    pub fn stream(schema: &Schema, time: Option<&str>, delay: Span) -> Result<Self, PlanError> {
        Self::named_stream(None, schema, time, delay)
    }

    /// Declares a stream whose data is known by its name.
    pub fn named_stream(
        name: Option<&str>,
        schema: &Schema,
        time: Option<&str>,
        delay: Span,
    ) -> Result<Self, PlanError> {
        Self::declare(schema, StreamOptions { name, time, delay: Some(delay), ..StreamOptions::default() })
    }

    /// Declares a stream of rows with that schema.
    pub fn declare(schema: &Schema, options: StreamOptions<'_>) -> Result<Self, PlanError> {
        let StreamOptions { name, time, is_end, delay, arrival, watermark, idle_after, max_ahead } = options;
        let declared: Vec<Field> = schema
            .fields()
            .iter()
            .map(|field| Field::new(field.name(), field.data_type().clone(), field.is_nullable()))
            .collect();
        let mut stream = StreamStep {
            name: name.map(str::to_owned),
            schema: Arc::new(Schema::new(declared)),
            time: time.map(str::to_owned),
            is_end,
            delay: 0,
            arrival,
            watermark: watermark.cloned(),
            idle_after_ns: None,
            max_ahead: None,
        };
        // Types and names first: the errors about time name columns.
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
        let rows = downstream(&stream)?;
        let tick = time.map(|column| tick_of(&rows, column)).transpose()?;
        if let Some(tick) = tick {
            stream.delay = delay.unwrap_or(Span::Ticks(0)).ticks(tick)?;
            if stream.delay < 0 {
                return Err(PlanError::Duration {
                    text: stream.delay.to_string(),
                    reason: "a delay cannot be negative".to_owned(),
                });
            }
        }
        stream.max_ahead =
            max_ahead.map(|most| ahead_ticks(most, tick, arrival, stream.delay)).transpose()?;
        if let Some(watermark) = watermark {
            check_watermark(&rows, time, watermark)?;
        }
        stream.idle_after_ns = idle_after.map(|span| clock_ns(span, "idle_after")).transpose()?;
        Self::of(stream, Vec::new())
    }

    /// Bounds how far ahead of the watermark a time of a declared stream may be.
    pub fn with_max_ahead(&self, most: Span) -> Result<Self, PlanError> {
        let Some(stream) = self.as_stream() else {
            return Err(PlanError::Invalid("max_ahead= is for streams, where rows come in".to_owned()));
        };
        if stream.max_ahead.is_some() {
            return Err(PlanError::Invalid(
                "the stream has a max_ahead= already: give one of them".to_owned(),
            ));
        }
        let tick = self.root().time().map(|time| time.tick);
        let most = ahead_ticks(most, tick, stream.arrival, stream.delay)?;
        Self::of(StreamStep { max_ahead: Some(most), ..stream.clone() }, Vec::new())
    }

    /// Replaces the functions that return watermarks of a declared stream, each by the one paired with an equal one.
    pub fn with_watermarks(&self, replaced: &[(Watermarks, Watermarks)]) -> Self {
        let Some(stream) = self.as_stream() else { return self.clone() };
        let watermark = stream.watermark.as_ref().map(|written| written.replaced(replaced).clone());
        Self::of(StreamStep { watermark, ..stream.clone() }, Vec::new())
            .expect("a function of the same kind fits where the other did")
    }
}

impl StreamStep {
    /// Describes its event time.
    fn describe_time(&self, time: &str, tick: Tick) -> String {
        let arrival = self.arrival.map_or("", |arrival| match arrival {
            Arrival::Ingestion => " of arrival",
            Arrival::Processing => " of processing",
        });
        let marks = self.watermark.as_ref().map_or(String::new(), |from| match from {
            Watermarks::Column(name) => format!(", watermarks {name}"),
            Watermarks::Before(name) => format!(", judged by {name}"),
            Watermarks::Function(function) => format!(", watermarks {}()", function.name()),
        });
        let delay = tick.describe(i128::from(self.delay));
        let idle = by_clock(", idle after", self.idle_after_ns);
        let ahead = self
            .max_ahead
            .map_or(String::new(), |most| format!(", at most {} ahead", tick.describe(i128::from(most))));
        format!("\ntime{arrival} {time}{marks}, delay {delay}{ahead}{idle}")
    }
}

impl Step for StreamStep {
    comparable!();

    fn name(&self) -> &'static str {
        STREAM
    }

    fn form(&self) -> Form {
        Form::Source
    }

    fn output(&self, _inputs: &[Arc<Node>]) -> Result<StepOutput, PlanError> {
        let schema = downstream(self)?;
        let event_time = |column: &String| {
            Ok(EventTime { column: column.clone(), tick: tick_of(&schema, column)?, is_end: self.is_end })
        };
        let time = self.time.as_ref().map(event_time).transpose()?;
        if let Some(watermark) = &self.watermark {
            check_watermark(&schema, self.time.as_deref(), watermark)?;
        }
        Ok(StepOutput { schema: Arc::new(schema), time })
    }

    fn describe(&self, tick: Tick) -> String {
        let name = self.name.as_ref().map_or(String::new(), |name| format!("{name}\n"));
        let time = self.time.as_ref().map_or(String::new(), |time| self.describe_time(time, tick));
        format!("{name}{}{time}", columns(&self.schema))
    }

    fn write(&self, _functions: &mut Vec<Function>) -> Result<String, PlanError> {
        let (watermark, watermark_before) = match &self.watermark {
            None => (None, None),
            Some(Watermarks::Column(name)) => (Some(name.clone()), None),
            Some(Watermarks::Before(name)) => (None, Some(name.clone())),
            Some(Watermarks::Function(function)) => {
                return Err(PlanError::Invalid(format!(
                    "the watermarks of the stream come from the function {}, which cannot be written",
                    function.name()
                )));
            }
        };
        let text = StreamText {
            name: self.name.clone(),
            schema: write_schema(&self.schema),
            time: self.time.clone(),
            is_end: self.is_end,
            delay: self.delay,
            arrival: self.arrival.map(|arrival| arrival.name().to_owned()),
            watermark,
            watermark_before,
            idle_after_ns: self.idle_after_ns,
            max_ahead: self.max_ahead,
        };
        written("stream", text)
    }

    fn reads(&self, _port: usize, _input: &Node) -> Vec<String> {
        Vec::new()
    }

    fn carrying(self: Arc<Self>, _column: &str) -> Option<Arc<dyn Step>> {
        None
    }

    fn may_fail(&self) -> bool {
        // A batch may not fit, and a time may be null or too far ahead.
        true
    }

    fn is_pure(&self) -> bool {
        false
    }

    fn why_one_machine(&self) -> Option<&'static str> {
        if self.arrival.is_some() {
            Some("the time of a row is when it arrives")
        } else if self.watermark.is_some() {
            Some("watermarks are taken from the data, in the order in which it comes")
        } else if self.max_ahead.is_some() {
            Some("how far ahead a time is goes by the order in which rows come")
        } else if self.idle_after_ns.is_some() {
            Some("a silent stream is left alone by the clock")
        } else {
            None
        }
    }

    fn why_no_pause(&self) -> Option<&'static str> {
        self.idle_after_ns.map(|_| "a stream is not waited for after a while (idle_after=)")
    }

    fn bind(&self, scope: &mut Scope, _port: usize) -> Result<Bound, PlanError> {
        Ok(Bound::of(scope))
    }

    fn make(&self, _bounds: &[Bound], _resources: &Resources) -> Result<Made, PlanError> {
        Ok(Made::Nothing)
    }

    fn as_stream(&self) -> Option<&StreamStep> {
        Some(self)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StreamText {
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
}

pub(super) fn read(_name: &str, text: Value, from: &StepReader<'_>) -> Result<Plan, PlanError> {
    let text: StreamText = fields(text)?;
    from.inputs::<0>()?;
    let arrival = text.arrival.map(|name| choose("arrival", &name, &Arrival::NAMES)).transpose()?;
    let before = text.watermark_before.map(Watermarks::Before);
    let watermark = text.watermark.map(Watermarks::Column).or(before);
    let options = StreamOptions {
        name: text.name.as_deref(),
        time: text.time.as_deref(),
        is_end: text.is_end,
        delay: Some(Span::Ticks(text.delay)),
        arrival,
        watermark: watermark.as_ref(),
        idle_after: text.idle_after_ns.map(|ns| Span::Nanos(i128::from(ns))),
        max_ahead: text.max_ahead.map(Span::Ticks),
    };
    Plan::declare(&read_schema(&text.schema)?, options)
}
