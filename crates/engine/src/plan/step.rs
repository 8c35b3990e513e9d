//! The steps of a plan.

use std::fmt;

use arrow_schema::SchemaRef;
use penstock_expr::Expr;
use penstock_operators::aggregates::AggregateKind;

use super::table::TableStep;

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

/// One step of a plan.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Where rows come in.
    Stream {
        /// The columns that batches must have.
        schema: SchemaRef,
        /// The time column.
        time: Option<String>,
        /// How far the watermark follows behind the latest time, in ticks.
        delay: i64,
    },
    /// Keeps the rows for which the predicate holds.
    Filter(Expr),
    /// Keeps only these columns.
    Select(Vec<Expr>),
    /// Adds or replaces columns.
    WithColumns(Vec<Expr>),
    /// Joins with a table that does not change.
    Lookup(TableStep),
    /// Aggregates in tumbling windows.
    Tumbling {
        /// Ticks of a window.
        size: i64,
        /// The keys.
        by: Vec<Expr>,
        /// The aggregates.
        aggregates: Vec<Aggregate>,
    },
}

impl Step {
    /// The operator's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Stream { .. } => "stream",
            Self::Filter(_) => "filter",
            Self::Select(_) => "select",
            Self::WithColumns(_) => "with_columns",
            Self::Lookup(_) => "lookup",
            Self::Tumbling { .. } => "window",
        }
    }
}
