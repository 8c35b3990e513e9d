//! Rows that a source does not take: those without a time, and those whose time is too far ahead of the watermark.
//!
//! A row is judged by the rows before it that were taken, whatever run or batch it comes in. A rejected row does not move
//! the watermark.

use arrow_array::{Int64Array, RecordBatch, UInt32Array};
use arrow_cast::display::array_value_to_string;
use arrow_schema::{DataType, SchemaRef};
use arrow_select::take::take_record_batch;
use penstock_memory::Run;
use penstock_memory::batch::decoded;
use penstock_progress::NEVER;
use penstock_types::Tick;

use super::times::widen;
use super::{EventClock, TimeFrom};
use crate::error::RunError;
use crate::rejects::{LETTER_COLUMNS, Rejects};

/// A row that a source does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bad {
    /// The row of the run.
    pub row: u32,
    why: Why,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    NullTime,
    /// That value of a column of the batch is too far ahead.
    Ahead {
        column: usize,
        time: i64,
        watermark: i64,
    },
}

/// Returns the rows of the run that are taken.
pub fn good_rows(run: &mut Run, bad: &[Bad]) -> Vec<u32> {
    let mut good = run.selection();
    let mut bad = bad.iter().map(|bad| bad.row).peekable();
    good.extend((0..run.len() as u32).filter(|row| bad.next_if_eq(row).is_none()));
    good
}

impl EventClock {
    /// Returns the rows `start..start + len` of the batch that cannot be taken, in order. The run has just begun with them.
    pub fn screen(&self, run: &mut Run, time: usize, (start, len): (usize, usize), offset: i64) -> Vec<Bad> {
        let nulls = run.batch().nulls_of(time, start, len);
        let null = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
        let mut bad: Vec<Bad> = Vec::new();
        if nulls.is_some() {
            bad.extend(
                (0..len).filter(|&row| null(row)).map(|row| Bad { row: row as u32, why: Why::NullTime }),
            );
        }
        let Some(most) = self.max_ahead else { return bad };
        let (marks, moves) = match self.from {
            TimeFrom::Columns { marks, .. } => (marks.map(|(column, _)| column), !self.is_imposed),
            TimeFrom::Marked { .. } | TimeFrom::Wall(_) => (None, false),
        };
        let before = self.progress.watermark();
        if before == NEVER && !moves {
            return bad;
        }
        run.ready(&[time]);
        let mut times = Vec::with_capacity(len);
        widen(run.column(time), &mut times);
        let bound = before.saturating_add(most).saturating_sub(offset);
        if before > NEVER && marks.is_none() && times.iter().all(|&time| time <= bound) {
            return bad; // the watermark only rises
        }
        let mut said: Vec<Option<i64>> = Vec::new();
        if let Some(column) = marks {
            run.ready(&[column]);
            let mut wide = Vec::with_capacity(len);
            widen(run.column(column), &mut wide);
            let valid = run.column(column);
            said.extend(wide.into_iter().enumerate().map(|(row, mark)| valid.is_valid(row).then_some(mark)));
        }
        let moved = |time: i64| time.saturating_add(offset);
        let mark = |row: usize| if marks.is_some() { said[row] } else { Some(times[row]) };
        let rows = (0..len)
            .filter(|&row| !null(row))
            .map(|row| (row, moved(times[row]), if moves { mark(row).map(moved) } else { None }));
        for (row, watermark) in self.progress.rows_ahead(rows, most) {
            let is_time = moved(times[row]) > watermark.saturating_add(most);
            let column = marks.filter(|_| !is_time).unwrap_or(time);
            let ahead = if column == time { times[row] } else { mark(row).unwrap_or(times[row]) };
            let why = Why::Ahead { column, time: ahead, watermark: watermark.saturating_sub(offset) };
            bad.push(Bad { row: row as u32, why });
        }
        bad.sort_unstable_by_key(|bad| bad.row);
        bad
    }
}

/// Formats a time for people.
fn say(ticks: i64, data_type: &DataType) -> String {
    let written = arrow_cast::cast(&Int64Array::from(vec![ticks]), data_type)
        .and_then(|time| array_value_to_string(&time, 0));
    written.unwrap_or_else(|_| ticks.to_string())
}

impl Bad {
    /// Says why it is not taken. Columns are those of the declared schema.
    fn reason(&self, schema: &SchemaRef, clock: &EventClock) -> String {
        match self.why {
            Why::NullTime => format!("column \"{}\" is null: the row has no time", clock.name),
            Why::Ahead { column, time, watermark } => {
                let field = schema.field(column);
                let data_type = decoded(field.data_type());
                let tick = Tick::of(data_type).unwrap_or(Tick::Plain);
                let by = tick.describe(i128::from(time) - i128::from(watermark));
                let most = tick.describe(i128::from(clock.max_ahead.unwrap_or(0)));
                format!(
                    "column \"{}\" is {}, which is {by} ahead of the watermark {}, more than max_ahead={most}",
                    field.name(),
                    say(time, data_type),
                    say(watermark, data_type),
                )
            }
        }
    }

    /// Returns the error that fails the query, where such rows are not left out; the run begins with row `first` of the
    /// whole input.
    pub fn error(&self, schema: &SchemaRef, clock: &EventClock, first: u64) -> RunError {
        let row = first + u64::from(self.row);
        match self.why {
            Why::NullTime => RunError::NullTime { column: clock.name.clone(), row },
            Why::Ahead { .. } => RunError::TimeAhead { reason: self.reason(schema, clock), row },
        }
    }
}

/// Hands rejected rows of a batch out as letters, from `start` on, with the declared columns, if letters are read.
pub fn reject(
    rejects: &mut Rejects,
    (batch, start): (&RecordBatch, usize),
    (schema, clock): (&SchemaRef, &EventClock),
    bad: &[Bad],
) -> Result<(), RunError> {
    if !rejects.has_letters() {
        return Ok(());
    }
    let columns: Vec<usize> =
        schema.fields().iter().filter_map(|field| batch.schema().index_of(field.name()).ok()).collect();
    let rows: UInt32Array = bad.iter().map(|bad| start as u32 + bad.row).collect();
    let rows = take_record_batch(&batch.project(&columns)?, &rows)?;
    rejects.reject_each("stream", &rows, bad.iter().map(|bad| bad.reason(schema, clock)))
}

/// Hands a batch out as letters that does not fit the declared schema, if letters are read.
pub fn reject_batch(rejects: &mut Rejects, batch: &RecordBatch, reason: &str) -> Result<(), RunError> {
    let kept = |name: &str| !LETTER_COLUMNS.contains(&name);
    let schema = batch.schema();
    let columns: Vec<usize> =
        (0..schema.fields().len()).filter(|&column| kept(schema.field(column).name())).collect();
    rejects.reject("stream", &batch.project(&columns)?, reason)
}
