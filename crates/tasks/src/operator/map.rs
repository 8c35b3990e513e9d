//! A function of the user's over the rows of a stream: batches go out, others come back.
//!
//! A function that fails for a batch is called again with parts of it, down to single rows, to find those to blame.

use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::SchemaRef;
use arrow_select::filter::filter_record_batch;
use penstock_memory::{BatchError, Exporter, Physical, Run, SlotId, SourceColumns, Values};
use penstock_types::OutsideError;

use crate::error::RunError;
use crate::event_time::times::widen;
use crate::functions::{FunctionToken, Token, Turn};
use crate::rejects::{Rejects, Sight};
use crate::waker::Waker;
use penstock_plan::Function;

/// The name of the operator.
pub const NAME: &str = "map_batches";

/// Where the time of a row that comes back is found.
#[derive(Clone, Copy, Debug)]
pub struct MappedTime {
    /// The column of the batch.
    pub column: usize,
    /// The slot that it goes to, if it is read.
    pub slot: Option<SlotId>,
    /// Whether the column is the end of a window, and the time the last tick before it.
    pub is_end: bool,
}

/// A function at work.
pub struct Mapper {
    function: Function,
    sight: Arc<Sight>,
    columns: SourceColumns,
    time: Option<MappedTime>,
    turn: Turn,
    /// What has come back and was not passed on yet; rows of the first from `next` on.
    back: std::collections::VecDeque<RecordBatch>,
    next: usize,
    batches: u64,
}

impl Mapper {
    /// Calls `function` with the columns that it sees; what comes back has that schema. The task of `waker` does so.
    pub fn new(
        function: Function,
        sight: Arc<Sight>,
        schema: &SchemaRef,
        time: Option<MappedTime>,
        waker: Arc<dyn Waker>,
    ) -> Self {
        let columns = SourceColumns::new(Arc::clone(schema), vec![true; schema.fields().len()]);
        let turn = Turn::new(waker);
        let back = Default::default();
        Self { function, sight, columns, time, turn, back, next: 0, batches: 0 }
    }

    /// Takes the token for the interpreter. Without it, the task is woken later.
    pub fn token(&mut self, functions: &Arc<FunctionToken>) -> Option<Token> {
        self.turn.take(functions)
    }

    /// Stops waiting for the token, until it asks again.
    pub fn leave_token(&mut self) {
        self.turn.leave();
    }

    /// Calls the function with the rows of a run. Returns how many rows it has rejected.
    ///
    /// # Errors
    /// What the function has raised, without `rejects`.
    pub fn consume(&mut self, run: &mut Run, rejects: Option<&mut Rejects>) -> Result<u64, RunError> {
        run.ready(&self.sight.slots);
        let columns: Vec<_> = self.sight.slots.iter().map(|&slot| run.column(slot)).collect();
        let mut exporter = Exporter::new(Arc::clone(&self.sight.schema));
        exporter.append(&columns, run.len())?;
        let batches = exporter.finish()?;
        let mut rejects = rejects;
        let mut rejected = 0;
        for batch in batches {
            rejected += self.call(batch, rejects.as_deref_mut())?;
        }
        Ok(rejected)
    }

    fn call(&mut self, batch: RecordBatch, rejects: Option<&mut Rejects>) -> Result<u64, RunError> {
        match self.function.0.call(batch.clone()) {
            Ok(back) => {
                self.keep(back);
                Ok(0)
            }
            Err(error) => self.search(batch, error, rejects),
        }
    }

    fn keep(&mut self, back: RecordBatch) {
        if back.num_rows() > 0 {
            self.back.push_back(back);
        }
    }

    /// Looks for the rows that a batch failed for. The others count, unless the query fails with the first.
    fn search(
        &mut self,
        batch: RecordBatch,
        error: OutsideError,
        mut rejects: Option<&mut Rejects>,
    ) -> Result<u64, RunError> {
        let mut rejected = 0;
        // Parts that are still to be looked at, the first of them last.
        let mut parts = vec![(batch, Some(error))];
        while let Some((part, failed)) = parts.pop() {
            let error = match failed {
                Some(error) => error,
                None => match self.function.0.call(part.clone()) {
                    Ok(back) => {
                        self.keep(back);
                        continue;
                    }
                    Err(error) => error,
                },
            };
            let rows = part.num_rows();
            if rows <= 1 {
                match &mut rejects {
                    Some(rejects) => {
                        // A slice would keep the whole batch for as long as the letter waits.
                        let row = penstock_memory::export::compacted(&part)?;
                        rejects.reject(NAME, &row, &self.function.0.describe(&error))?;
                        rejected += rows as u64;
                    }
                    None => {
                        let error = self.function.0.blame(error, &part);
                        return Err(RunError::Outside { what: NAME, error });
                    }
                }
                continue;
            }
            let half = rows / 2;
            parts.push((part.slice(half, rows - half), None));
            parts.push((part.slice(0, half), None));
        }
        Ok(rejected)
    }

    /// Returns true if rows have come back that were not passed on.
    pub fn has_output(&self) -> bool {
        !self.back.is_empty()
    }

    /// Refuses columns that were not declared, if that is a mistake.
    fn check_columns(&self, batch: &RecordBatch) -> Result<(), BatchError> {
        let known = self.columns.schema();
        let batch = batch.schema();
        let added =
            batch.fields().iter().map(|field| field.name()).filter(|name| known.index_of(name).is_err());
        let added: Vec<&str> = added.map(String::as_str).collect();
        match added.first() {
            Some(first) if self.function.0.declares_all() => Err(BatchError {
                column: (*first).to_owned(),
                reason: format!(
                    "{} gives back columns that the stream does not have: {}; declare what it gives back with map_batches(..., schema=...), or leave them out",
                    self.function.0.name(),
                    added.join(", ")
                ),
            }),
            _ => Ok(()),
        }
    }

    /// Begins a run of at most `room` rows that have come back. Returns how many rows it is, and how many were rejected
    /// because they have no time.
    ///
    /// # Errors
    /// A batch that does not fit; a row without a time, without `rejects`.
    pub fn emit(
        &mut self,
        out: &mut Run,
        room: usize,
        rejects: Option<&mut Rejects>,
    ) -> Result<(usize, u64), RunError> {
        let rejected = if self.next == 0 { self.open_next(out, rejects)? } else { 0 };
        let Some(batch) = self.back.front() else { return Ok((0, rejected)) };
        let rows = room.min(batch.num_rows() - self.next);
        out.begin(&self.columns, self.next, rows);
        if let Some(MappedTime { column, slot: Some(slot), is_end }) = self.time
            && slot != column
        {
            put_time(out, (column, slot), is_end);
        }
        self.next += rows;
        if self.next == batch.num_rows() {
            self.back.pop_front();
            self.next = 0;
        }
        Ok((rows, rejected))
    }

    /// Opens the next batch that has rows with a time, if there is one. Returns how many rows without one were rejected.
    fn open_next(&mut self, out: &mut Run, mut rejects: Option<&mut Rejects>) -> Result<u64, RunError> {
        let mut rejected = 0;
        while let Some(batch) = self.back.front() {
            let opened = out.open(&self.columns, batch).and_then(|()| self.check_columns(batch));
            opened.map_err(|error| RunError::Batch { number: self.batches, error })?;
            self.batches += 1;
            let (rows, bad) = (batch.num_rows() as u64, self.reject_null_times(out, rejects.as_deref_mut())?);
            rejected += bad;
            if bad < rows {
                break;
            }
        }
        Ok(rejected)
    }

    /// Takes rows without a time out of the first batch, which was just opened, and drops the batch if none is left.
    fn reject_null_times(&mut self, out: &mut Run, rejects: Option<&mut Rejects>) -> Result<u64, RunError> {
        let (Some(time), Some(batch)) = (self.time, self.back.front()) else { return Ok(0) };
        let Some(nulls) = out.batch().nulls_of(time.column, 0, batch.num_rows()) else { return Ok(0) };
        let column = self.columns.schema().field(time.column).name();
        let Some(rejects) = rejects else {
            let row = nulls.iter().position(|valid| !valid).unwrap_or(0) as u64;
            return Err(RunError::NullTime { column: column.clone(), row });
        };
        let reason = format!("column \"{column}\" is null: the row has no time");
        let bad = BooleanArray::new(!nulls.inner(), None);
        rejects.reject(NAME, &filter_record_batch(batch, &bad)?, &reason)?;
        let good = filter_record_batch(batch, &BooleanArray::new(nulls.inner().clone(), None))?;
        out.close();
        self.back.pop_front();
        if good.num_rows() > 0 {
            out.open(&self.columns, &good)
                .map_err(|error| RunError::Batch { number: self.batches - 1, error })?;
            self.back.push_front(good);
        }
        Ok(nulls.null_count() as u64)
    }
}

/// Fills the slot of the time, where that is not the column itself.
fn put_time(out: &mut Run, (column, slot): (usize, SlotId), is_end: bool) {
    out.ready(&[column]);
    let mut wide = out.scratch(Physical::I64);
    let times: &mut Vec<i64> = wide.refill();
    match out.column(column).values {
        Values::I64(values) => times.extend_from_slice(values),
        _ => widen(out.column(column), times),
    }
    if is_end {
        times.iter_mut().for_each(|time| *time = time.saturating_sub(1));
    }
    out.put(slot, wide);
}
