//! How rows come in: the declaration of a stream, which sources are opened by.

use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};

use crate::function::Watermarks;
use crate::time::Arrival;

/// What a stream is called that has no name of its own.
pub const STREAM: &str = "stream";

/// A declared stream.
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
    /// How far the watermark follows the largest time, in ticks.
    pub delay: i64,
    /// When rows arrived is their time, by the clock.
    pub arrival: Option<Arrival>,
    /// Where watermarks are taken from, instead of the times.
    pub watermark: Option<Watermarks>,
    /// After so long without a row, the stream holds no watermark back.
    pub idle_after_ns: Option<u64>,
    /// How far ahead of the watermark a time may be, in ticks; a row further ahead is rejected.
    pub max_ahead: Option<i64>,
}

impl StreamStep {
    /// A stream of that name, with rows of that schema in no particular order of time.
    pub(crate) fn named(name: &str, schema: &SchemaRef) -> Self {
        Self {
            name: Some(name.to_owned()),
            schema: Arc::clone(schema),
            time: None,
            is_end: false,
            delay: 0,
            arrival: None,
            watermark: None,
            idle_after_ns: None,
            max_ahead: None,
        }
    }

    /// What data for it is known by: its own name, or that of all streams without one.
    pub fn data_name(&self) -> &str {
        self.name.as_deref().unwrap_or(STREAM)
    }

    /// Returns the number of a column of its batches; panics unless it is there.
    pub fn column(&self, name: &str) -> usize {
        self.schema.fields().find(name).expect("PLAN-1: the column is there").0
    }

    /// Lists the columns of its batches that event time is read off.
    pub fn clock_columns(&self) -> Vec<usize> {
        let Some(time) = self.time.as_ref().filter(|_| self.arrival.is_none()) else { return Vec::new() };
        let mut columns = vec![self.column(time)];
        if let Some(Watermarks::Column(marks) | Watermarks::Before(marks)) = &self.watermark {
            columns.push(self.column(marks));
        }
        columns
    }

    /// The same stream over batches of other columns.
    pub(crate) fn over(&self, schema: Schema) -> Self {
        Self { schema: Arc::new(schema), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use arrow_schema::{DataType, Field};

    use super::*;

    #[test]
    fn event_time_is_read_off_the_columns_that_hold_it() {
        let fields = ["v", "t", "w"].map(|name| Field::new(name, DataType::Int64, false));
        let schema = Arc::new(Schema::new(fields.to_vec()));
        let plain = StreamStep { time: Some("t".to_owned()), ..StreamStep::named("a", &schema) };
        assert_eq!(plain.clock_columns(), [1]);
        let watermark = Some(Watermarks::Column("w".to_owned()));
        assert_eq!(StreamStep { watermark, ..plain.clone() }.clock_columns(), [1, 2]);
        let arrival = Some(Arrival::Ingestion);
        assert!(StreamStep { arrival, time: Some("now".to_owned()), ..plain }.clock_columns().is_empty());
        assert!(StreamStep::named("a", &schema).clock_columns().is_empty());
    }
}
