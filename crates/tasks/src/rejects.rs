//! Rows that an operator rejects: left out and counted, or handed out as dead letters.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use penstock_expr::Rejected;
use penstock_memory::{ColumnBuf, Exporter, Parcel, Run, SlotId};
use penstock_operators::Stateless;
use penstock_types::ComputeError;

use crate::error::RunError;
use crate::results::Results;

/// Names of the columns that a dead letter has besides those of the row.
pub const LETTER_COLUMNS: [&str; 2] = ["rejected_by", "rejected_because"];

/// What becomes of rows that an operator rejects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// The query fails.
    #[default]
    Fail,
    /// They are left out, and counted.
    Skip,
    /// They are left out, counted, and handed out as dead letters.
    Letters,
}

/// The columns that an operator sees, and their slots.
pub struct Sight {
    /// The columns.
    pub schema: SchemaRef,
    /// Their slots.
    pub slots: Vec<SlotId>,
}

impl Sight {
    /// Those columns, in these slots.
    pub fn new(schema: &Schema, slots: &[SlotId]) -> Arc<Self> {
        Arc::new(Self { schema: Arc::new(schema.clone()), slots: slots.to_vec() })
    }
}

/// How a task deals with rejected rows.
pub struct Rejects {
    letters: Option<Results>,
    /// Letters that were not taken yet. Nothing else is done before they are.
    waiting: VecDeque<Parcel>,
    /// Whether the first of them was offered and had no room: the task is woken when there is some.
    is_refused: bool,
}

impl Rejects {
    /// Rows go to `letters` if that is there.
    pub fn new(letters: Option<Results>) -> Self {
        Self { letters, waiting: VecDeque::new(), is_refused: false }
    }

    /// Takes the rows out of the run for which the operator fails, and returns how many.
    ///
    /// # Errors
    /// The error of the operator, if no row is to blame.
    pub fn take_out(
        &mut self,
        (name, stage, sight): (&str, &mut dyn Stateless, Option<&Arc<Sight>>),
        run: &mut Run,
        error: ComputeError,
    ) -> Result<u64, RunError> {
        let mut rejected = Vec::new();
        stage.rejects(run, &mut rejected);
        if rejected.is_empty() {
            return Err(RunError::Compute { operator: name.to_owned(), error });
        }
        if let (Some(results), Some(sight)) = (&self.letters, sight) {
            let letters = letters(name, sight, run, &rejected)?;
            self.waiting.extend(letters.into_iter().map(|letter| Parcel::copied(letter, results.account())));
        }
        let mut good = run.selection();
        let mut bad = rejected.iter().map(|rejected| rejected.row).peekable();
        good.extend((0..run.len() as u32).filter(|row| bad.next_if_eq(row).is_none()));
        run.select(good);
        Ok(rejected.len() as u64)
    }

    /// Rejects a row that an operator was handed as a batch.
    ///
    /// # Errors
    /// A letter that Arrow cannot hold.
    pub fn reject(&mut self, name: &str, row: &RecordBatch, reason: &str) -> Result<(), RunError> {
        self.reject_each(name, row, std::iter::repeat_n(reason.to_owned(), row.num_rows()))
    }

    /// Rejects rows of a batch, each for a reason of its own.
    ///
    /// # Errors
    /// A letter that Arrow cannot hold.
    pub fn reject_each(
        &mut self,
        name: &str,
        rows: &RecordBatch,
        reasons: impl Iterator<Item = String>,
    ) -> Result<(), RunError> {
        if let Some(results) = &self.letters {
            self.waiting.push_back(Parcel::copied(letter(name, rows, reasons)?, results.account()));
        }
        Ok(())
    }

    /// Returns true if rejected rows are handed out.
    pub fn has_letters(&self) -> bool {
        self.letters.is_some()
    }

    /// Hands letters out. Returns true if none is left.
    pub fn hand_out(&mut self) -> bool {
        let Some(letters) = &self.letters else { return true };
        self.is_refused = false;
        while let Some(letter) = self.waiting.pop_front() {
            if let Some(back) = letters.offer(letter) {
                self.waiting.push_front(back);
                self.is_refused = true;
                return false;
            }
        }
        true
    }

    /// Returns true if letters wait for room. Those that have not been offered yet wait for the task's next step instead.
    pub fn is_blocked(&self) -> bool {
        self.is_refused
    }

    /// Returns true if letters are left to be handed out.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }
}

/// Returns the rejected rows as they came to the operator, each with its name and the reason.
fn letters(
    name: &str,
    sight: &Sight,
    run: &mut Run,
    rejected: &[Rejected],
) -> Result<Vec<RecordBatch>, RunError> {
    let rows: Vec<u32> = rejected.iter().map(|rejected| rejected.row).collect();
    run.ready(&sight.slots);
    let mut copies = Vec::new();
    for &slot in &sight.slots {
        let column = run.column(slot);
        let mut copied = ColumnBuf::new(column.values.physical());
        copied.gather(column, &rows);
        copies.push(copied);
    }
    let columns: Vec<_> = copies.iter().map(ColumnBuf::as_column).collect();
    let mut exporter = Exporter::new(Arc::clone(&sight.schema));
    exporter.append(&columns, rows.len())?;
    let mut reasons = rejected.iter().map(|rejected| rejected.error.to_string());
    exporter
        .finish()?
        .iter()
        .map(|batch| letter(name, batch, reasons.by_ref().take(batch.num_rows())))
        .collect()
}

/// Returns rows with the operator that rejected them and the reason for each.
fn letter(
    name: &str,
    rows: &RecordBatch,
    reasons: impl Iterator<Item = String>,
) -> Result<RecordBatch, RunError> {
    let schema = rows.schema();
    let mut fields: Vec<Field> = schema.fields().iter().map(|field| field.as_ref().clone()).collect();
    fields.extend(LETTER_COLUMNS.map(|name| Field::new(name, DataType::Utf8, false)));
    let mut columns = rows.columns().to_vec();
    columns.push(Arc::new(StringArray::from(vec![name; rows.num_rows()])) as ArrayRef);
    columns.push(Arc::new(StringArray::from_iter_values(reasons)) as ArrayRef);
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;
    use penstock_memory::Coordinator;
    use penstock_memory::coordinator::CoordinatorOptions;

    use super::*;
    use crate::clock::tests::Hand;
    use crate::results::Next;

    #[test]
    fn letters_block_a_task_only_once_they_were_refused() {
        let coordinator = Coordinator::new(CoordinatorOptions::default()).unwrap();
        let results = Results::new(coordinator.result_account(), Hand::at(0));
        let mut rejects = Rejects::new(Some(results.clone()));
        let row =
            RecordBatch::try_from_iter([("x", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]).unwrap();
        for _ in 0..1000 {
            rejects.reject("filter", &row, "it is odd").unwrap();
            assert!(rejects.is_waiting() && !rejects.is_blocked(), "the letter was not offered yet");
            if !rejects.hand_out() {
                break;
            }
            assert!(!rejects.is_waiting() && !rejects.is_blocked());
        }
        assert!(rejects.is_waiting() && rejects.is_blocked(), "the queue takes no more");
        assert!(matches!(results.take(), Next::Batch(_)));
        assert!(rejects.hand_out() && !rejects.is_waiting() && !rejects.is_blocked());
    }
}
