//! The steps of a plan.

use std::fmt;

use arrow_schema::SchemaRef;
use penstock_expr::Expr;
use penstock_operators::aggregates::AggregateKind;
use penstock_operators::join::JoinKind;
use penstock_progress::{Aligned, Windows};

use super::function::{Function, Watermarks};
use super::table::TableStep;

/// What a stream is called that has no name of its own.
pub const STREAM: &str = "stream";

/// An aggregate as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Aggregate {
    /// Which one.
    pub kind: AggregateKind,
    /// What it aggregates; `None` counts rows.
    pub input: Option<Expr>,
    /// The name of its column, when one was given.
    pub name: Option<String>,
}

impl Aggregate {
    /// The name of its column: as given, or made of the input and the kind.
    pub fn output_name(&self) -> String {
        match (&self.name, &self.input) {
            (Some(name), _) => name.clone(),
            (None, None) => self.kind.name().to_owned(),
            (None, Some(input)) => format!("{}_{}", input.output_name(), self.kind.name()),
        }
    }
}

impl fmt::Display for Aggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.input {
            None => write!(f, "{}()", self.kind.name()),
            Some(input) => write!(f, "{}({input})", self.kind.name()),
        }
    }
}

/// Windows, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowKind {
    /// Side by side.
    Tumbling {
        /// How long they are.
        size: i64,
        /// How far they are moved from the epoch.
        offset: i64,
    },
    /// Overlapping.
    Sliding {
        /// How long they are.
        size: i64,
        /// From one to the next.
        slide: i64,
        /// How far they are moved from the epoch.
        offset: i64,
    },
    /// As long as rows follow each other closely.
    Session {
        /// The pause that ends one.
        gap: i64,
    },
}

impl WindowKind {
    /// The same, on a grid, if they are.
    pub fn aligned(self) -> Option<Aligned> {
        match self {
            Self::Tumbling { size, offset } => Aligned::tumbling(size, offset),
            Self::Sliding { size, slide, offset } => Aligned::new(size, slide, offset),
            Self::Session { .. } => None,
        }
    }

    /// The windows; `None` if there are none such.
    pub fn windows(self) -> Option<Windows> {
        match self {
            Self::Session { gap } => (gap > 0).then_some(Windows::Session { gap }),
            _ => self.aligned().map(Windows::Aligned),
        }
    }
}

/// Where rows come in.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamStep {
    /// What data for it is known by.
    pub name: Option<String>,
    /// The columns that batches must have.
    pub schema: SchemaRef,
    /// The time column: one of those, or another that says when rows arrived.
    pub time: Option<String>,
    /// Whether that is the end of a window, and the time the last tick before it.
    pub is_end: bool,
    /// How far the watermark follows behind the latest time, in ticks.
    pub delay: i64,
    /// When rows arrived is their time, by the clock.
    pub arrival: Option<Arrival>,
    /// Where watermarks are taken from, instead of the times.
    pub watermark: Option<Watermarks>,
    /// Nobody waits for the stream once it has been silent for so long.
    pub idle_after_ns: Option<u64>,
    /// How far ahead of the watermark a time may be, in ticks; a row beyond that is rejected.
    pub max_ahead: Option<i64>,
}

/// Which arrival counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// When a row was handed to the engine.
    Ingestion,
    /// When a row was first processed.
    Processing,
}

impl Arrival {
    /// All of them, by name.
    pub const NAMES: [(&'static str, Self); 2] =
        [("ingestion", Self::Ingestion), ("processing", Self::Processing)];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ingestion => "ingestion",
            Self::Processing => "processing",
        }
    }
}

/// Aggregates per window and key.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowStep {
    /// The windows.
    pub window: WindowKind,
    /// The keys.
    pub by: Vec<Expr>,
    /// The aggregates.
    pub aggregates: Vec<Aggregate>,
    /// For how long after its end a window still takes rows in, in ticks.
    pub allowed_lateness: i64,
    /// Windows close by the clock when no row has come for so long.
    pub close_after_ns: Option<u64>,
}

/// Aggregates of two streams per window and key.
#[derive(Clone, Debug, PartialEq)]
pub struct CoGroupStep {
    /// The windows.
    pub window: WindowKind,
    /// The keys of either stream.
    pub by: [Vec<Expr>; 2],
    /// The aggregates of either stream.
    pub aggregates: [Vec<Aggregate>; 2],
}

/// Pairs of rows of two streams with the same key in the same window.
#[derive(Clone, Debug, PartialEq)]
pub struct JoinStep {
    /// The windows.
    pub window: WindowKind,
    /// Which rows without a partner are kept.
    pub kind: JoinKind,
    /// The keys of either stream.
    pub on: [Vec<String>; 2],
    /// What is put behind the names of columns of the second stream that the first has, too.
    pub suffix: String,
}

/// The first rows by some column, per window and key.
#[derive(Clone, Debug, PartialEq)]
pub struct TopKStep {
    /// The windows.
    pub window: WindowKind,
    /// The keys.
    pub by: Vec<Expr>,
    /// How many rows.
    pub k: usize,
    /// What they are ordered by.
    pub order: Expr,
    /// Whether the largest come first.
    pub largest: bool,
}

/// A function over batches.
#[derive(Clone, Debug, PartialEq)]
pub struct MapStep {
    /// The function.
    pub function: Function,
    /// The columns of what it gives back.
    pub schema: SchemaRef,
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Where rows come in.
    Stream(StreamStep),
    /// Keeps the rows for which the predicate holds.
    Filter(Expr),
    /// Keeps only these columns.
    Select(Vec<Expr>),
    /// Adds or replaces columns.
    WithColumns(Vec<Expr>),
    /// Joins with a table that does not change.
    Lookup(TableStep),
    /// Calls a function with batches of rows.
    Map(MapStep),
    /// The rows of several streams.
    Union,
    /// Aggregates per window and key.
    Window(WindowStep),
    /// The rows that came too late for the window before it.
    Late,
    /// Aggregates of two streams per window and key.
    CoGroup(CoGroupStep),
    /// Pairs of rows of two streams.
    Join(JoinStep),
    /// The first rows by some column.
    TopK(TopKStep),
}

impl Step {
    /// The operator's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Stream(_) => STREAM,
            Self::Filter(_) => "filter",
            Self::Select(_) => "select",
            Self::WithColumns(_) => "with_columns",
            Self::Lookup(_) => "lookup",
            Self::Map(_) => "map_batches",
            Self::Union => "union",
            Self::Window(_) => "window",
            Self::Late => "late",
            Self::CoGroup(_) => "cogroup",
            Self::Join(_) => "join",
            Self::TopK(_) => "top_k",
        }
    }

    /// The name of a stream: its own, or that of all streams without one.
    pub fn stream_name(&self) -> Option<&str> {
        match self {
            Self::Stream(stream) => Some(stream.name.as_deref().unwrap_or(STREAM)),
            _ => None,
        }
    }

    /// Its windows, and for how long after their end they take rows in, if it has any.
    pub fn window(&self) -> Option<(WindowKind, i64)> {
        match self {
            Self::Window(step) => Some((step.window, step.allowed_lateness)),
            Self::CoGroup(step) => Some((step.window, 0)),
            Self::Join(step) => Some((step.window, 0)),
            Self::TopK(step) => Some((step.window, 0)),
            _ => None,
        }
    }

    /// Whether it keeps rows, so that what comes out are results and not the rows that came in.
    pub fn is_stateful(&self) -> bool {
        matches!(self, Self::Window(_) | Self::CoGroup(_) | Self::Join(_) | Self::TopK(_))
    }
}
