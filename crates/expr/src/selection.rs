//! Selects the rows that pass a predicate.
//!
//! A comparison of a column with a constant, the most common filter, goes straight from values to row numbers; every
//! other predicate is computed as a column of bools first.

use penstock_memory::{Column, ColumnBuf, Physical, Run};
use penstock_types::ComputeError;

use crate::bits::{select_ones, select_where};
use crate::comparison::Ordered;
use crate::compile::Expression;
use crate::expr::BinaryOp;
use crate::failure::Rejected;
use crate::node::CompiledNode;
use crate::operand::with_number;
use crate::scaled::UNSCALED;

fn select_compared<T: Ordered>(op: BinaryOp, values: &[T], constant: T, rows: &mut Vec<u32>) {
    match op {
        BinaryOp::Equal => select_where(values, rows, |value| T::same(value, constant)),
        BinaryOp::NotEqual => select_where(values, rows, |value| !T::same(value, constant)),
        BinaryOp::Less => select_where(values, rows, |value| T::before(value, constant)),
        BinaryOp::LessEqual => select_where(values, rows, |value| !T::before(constant, value)),
        BinaryOp::Greater => select_where(values, rows, |value| T::before(constant, value)),
        _ => select_where(values, rows, |value| !T::before(value, constant)),
    }
}

fn select_true(column: Column<'_>, rows: &mut Vec<u32>) {
    let holds = column.fixed::<u8>();
    match column.valid {
        None => select_ones(holds, rows),
        Some(valid) => {
            let known: Vec<u8> = holds.iter().zip(valid).map(|(holds, valid)| holds & valid).collect();
            select_ones(&known, rows);
        }
    }
}

impl Expression {
    /// Returns column and constant, if this is a plain comparison of the two.
    fn simple_comparison<'a>(
        &'a self,
        run: &'a Run,
    ) -> Option<(BinaryOp, Physical, Column<'a>, &'a ColumnBuf)> {
        let CompiledNode::Compare { op, on, left, right, scale: UNSCALED } = &self.root else { return None };
        let (CompiledNode::Slot(slot), CompiledNode::Constant(constant)) = (&**left, &**right) else {
            return None;
        };
        let column = run.column(*slot);
        (*on != Physical::View && column.valid.is_none()).then_some((*op, *on, column, constant))
    }

    /// Appends the numbers of the rows for which this predicate, a bool, is true. Null is not.
    pub fn select(&self, run: &mut Run, rows: &mut Vec<u32>) -> Result<(), ComputeError> {
        run.ready(self.slots());
        if let Some((op, on, column, constant)) = self.simple_comparison(run) {
            with_number!(on, T => {
                select_compared::<T>(op, column.fixed(), constant.as_column().fixed::<T>()[0], rows);
            });
            return Ok(());
        }
        if let Some(slot) = self.as_slot() {
            select_true(run.column(slot), rows);
            return Ok(());
        }
        let holds = self.evaluate(run)?;
        select_true(holds.as_column(), rows);
        run.give_back(holds);
        Ok(())
    }

    /// Appends the numbers of the rows for which this predicate is true. A row that fails is not selected, and is
    /// added to `rejected`, as in [`Expression::evaluate_lenient`].
    pub fn select_lenient(&self, run: &mut Run, rows: &mut Vec<u32>, rejected: &mut Vec<Rejected>) {
        let holds = self.evaluate_lenient(run, rejected);
        select_true(holds.as_column(), rows);
        run.give_back(holds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn selects_what_holds(values in prop::collection::vec(-3_i64..3, 0..200), constant in -3_i64..3) {
            for (op, holds) in [
                (BinaryOp::Equal, i64::eq as fn(&i64, &i64) -> bool),
                (BinaryOp::NotEqual, i64::ne),
                (BinaryOp::Less, i64::lt),
                (BinaryOp::LessEqual, i64::le),
                (BinaryOp::Greater, i64::gt),
                (BinaryOp::GreaterEqual, i64::ge),
            ] {
                let mut rows = Vec::new();
                select_compared(op, &values, constant, &mut rows);
                let expected: Vec<u32> =
                    (0..values.len() as u32).filter(|&row| holds(&values[row as usize], &constant)).collect();
                prop_assert_eq!(rows, expected);
            }
        }

        #[test]
        fn selects_what_is_known_and_true(
            values in prop::collection::vec(any::<Option<bool>>(), 0..200),
            masked in any::<bool>(),
        ) {
            let mut column = ColumnBuf::new(Physical::U8);
            // Values under a null must not matter (COLUMN-2).
            column.refill::<u8>().extend(values.iter().map(|value| u8::from(value.unwrap_or(true))));
            if masked {
                column.refill_mask().extend(values.iter().map(|value| u8::from(value.is_some())));
            }
            let mut rows = Vec::new();
            select_true(column.as_column(), &mut rows);
            let holds = |row: &u32| values[*row as usize].unwrap_or(!masked);
            let expected: Vec<u32> = (0..values.len() as u32).filter(holds).collect();
            prop_assert_eq!(rows, expected);
        }
    }
}
