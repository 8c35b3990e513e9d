//! Evaluation of a compiled expression over a run.

use penstock_memory::run::take_spare;
use penstock_memory::{ColumnBuf, Physical, Run};
use penstock_types::ComputeError;

use crate::arithmetic::{Number, arithmetic, fails};
use crate::comparison::{Ordered, compare, compare_views};
use crate::compile::Expression;
use crate::expr::BinaryOp;
use crate::failure::{Failures, Rejected};
use crate::intermediate::{Intermediate, column_of, joined_mask, one_row};
use crate::label::{Label, MapLabel};
use crate::logic::logic;
use crate::map::Map;
use crate::matching::matches;
use crate::node::CompiledNode;
use crate::operand::with_number;
use crate::scaled::{self, Scale, UNSCALED};

/// Computes columns over one run; steps reuse each other's scratch.
pub(crate) struct Evaluator<'a, 'r> {
    run: &'a Run,
    scratch: &'a mut Vec<ColumnBuf>,
    pub(crate) failures: Failures<'r>,
}

impl<'a> Evaluator<'a, '_> {
    pub(crate) fn rows(&self) -> usize {
        self.run.len()
    }

    pub(crate) fn take(&mut self, physical: Physical) -> ColumnBuf {
        take_spare(self.scratch, physical)
    }

    pub(crate) fn give(&mut self, value: Intermediate<'_>) {
        if let Intermediate::Owned(column) = value {
            self.scratch.push(column);
        }
    }

    /// Makes a row null where either side is null.
    fn join_masks(left: &Intermediate<'_>, right: &Intermediate<'_>, out: &mut ColumnBuf) {
        match (left.valid(), right.valid()) {
            (None, None) => out.clear_mask(),
            (Some(mask), None) | (None, Some(mask)) => out.refill_mask().extend_from_slice(mask),
            (Some(left), Some(right)) => {
                out.refill_mask().extend(left.iter().zip(right).map(|(left, right)| left & right));
            }
        }
    }

    pub(crate) fn eval(&mut self, node: &'a CompiledNode) -> Result<Intermediate<'a>, ComputeError> {
        match node {
            CompiledNode::Slot(slot) => Ok(Intermediate::Borrowed(self.run.column(*slot))),
            CompiledNode::Constant(column) => Ok(Intermediate::Same(column)),
            CompiledNode::Null => Ok(Intermediate::Null),
            CompiledNode::Arithmetic { op, on, left, right, scale, label } => {
                let (left, right) = (self.eval(left)?, self.eval(right)?);
                self.binary(*on, left, right, |evaluator, left, right, out| {
                    with_number!(*on, T => evaluator.compute::<T>((*op, *scale), left, right, out, label))
                })
            }
            CompiledNode::Compare { op, on, left, right, scale } => {
                let (left, right) = (self.eval(left)?, self.eval(right)?);
                self.binary(Physical::U8, left, right, |evaluator, left, right, out| {
                    let rows = evaluator.rows();
                    if *on == Physical::View {
                        let mask = joined_mask(left, right);
                        compare_views(*op, left.views(), right.views(), mask.as_deref(), rows, out.refill());
                    } else if *scale != UNSCALED {
                        compare_scaled(*op, *on, left, right, *scale, rows, out);
                    } else {
                        with_number!(*on, T => compare_numbers::<T>(*op, left, right, rows, out));
                    }
                    Self::join_masks(left, right, out);
                    Ok(())
                })
            }
            CompiledNode::Logic { op, left, right } => {
                let (left, right) = (self.eval(left)?, self.eval(right)?);
                let (left, right) = (self.spread(left), self.spread(right));
                let mut out = self.take(Physical::U8);
                logic(*op, column_of(&left), column_of(&right), &mut out);
                self.give(left);
                self.give(right);
                Ok(Intermediate::Owned(out))
            }
            CompiledNode::Not(input) => {
                let input = self.eval(input)?;
                let input = self.spread(input);
                let mut out = self.take(Physical::U8);
                let column = column_of(&input);
                out.refill::<u8>().extend(column.fixed::<u8>().iter().map(|value| value ^ 1));
                if let Some(mask) = column.valid {
                    out.refill_mask().extend_from_slice(mask);
                }
                self.give(input);
                Ok(Intermediate::Owned(out))
            }
            CompiledNode::IsNull { input, wanted } => {
                let input = self.eval(input)?;
                let (rows, wanted) = (self.rows(), *wanted);
                let mut out = self.take(Physical::U8);
                let values = out.refill::<u8>();
                match (&input, input.valid()) {
                    (Intermediate::Null, _) => values.resize(rows, wanted),
                    (_, None) => values.resize(rows, 1 - wanted),
                    (_, Some(mask)) => values.extend(mask.iter().map(move |valid| valid ^ wanted)),
                }
                self.give(input);
                Ok(Intermediate::Owned(out))
            }
            CompiledNode::Map { map, input, given } => {
                let input = self.eval(input)?;
                self.map(map, input, given.as_ref())
            }
            CompiledNode::Match { op, left, right } => {
                let (left, right) = (self.eval(left)?, self.eval(right)?);
                self.binary(Physical::U8, left, right, |evaluator, left, right, out| {
                    let rows = evaluator.rows();
                    let mask = joined_mask(left, right);
                    matches(*op, left.views(), right.views(), mask.as_deref(), rows, out.refill());
                    if let Some(mask) = mask {
                        out.refill_mask().extend_from_slice(&mask);
                    }
                    Ok(())
                })
            }
            CompiledNode::When { on, branches, otherwise } => self.when(*on, branches, otherwise),
            CompiledNode::Coalesce { on, inputs } => self.coalesce(*on, inputs),
        }
    }

    fn binary(
        &mut self,
        out: Physical,
        left: Intermediate<'a>,
        right: Intermediate<'a>,
        kernel: impl FnOnce(
            &mut Self,
            &Intermediate<'_>,
            &Intermediate<'_>,
            &mut ColumnBuf,
        ) -> Result<(), ComputeError>,
    ) -> Result<Intermediate<'a>, ComputeError> {
        if matches!(left, Intermediate::Null) || matches!(right, Intermediate::Null) {
            self.give(left);
            self.give(right);
            return Ok(Intermediate::Null);
        }
        let mut column = self.take(out);
        kernel(self, &left, &right, &mut column)?;
        self.give(left);
        self.give(right);
        Ok(Intermediate::Owned(column))
    }

    /// Maps each value; nulls stay null.
    fn map(
        &mut self,
        map: &Map,
        input: Intermediate<'a>,
        given: Option<&MapLabel>,
    ) -> Result<Intermediate<'a>, ComputeError> {
        if matches!(input, Intermediate::Null) {
            return Ok(Intermediate::Null);
        }
        let input = self.spread(input);
        let column = column_of(&input);
        let mut out = self.take(map.storage(column.values.physical()));
        let failed = map.apply(column, self.failures.wanted(column.valid).as_deref(), &mut out);
        if let (true, Some(given)) = (failed, given) {
            let mut probe = self.take(out.physical());
            let probe_cell = std::cell::RefCell::new(&mut probe);
            self.failures.settle(
                column.values.len(),
                column.valid,
                |row| map.apply(one_row(column, row), None, &mut probe_cell.borrow_mut()),
                |row| map.error(given, one_row(column, row)),
            )?;
            self.scratch.push(probe);
        }
        if let Some(mask) = column.valid {
            out.refill_mask().extend_from_slice(mask);
        }
        self.give(input);
        Ok(Intermediate::Owned(out))
    }

    /// Expands any value to one value per row.
    pub(crate) fn spread(&mut self, value: Intermediate<'a>) -> Intermediate<'a> {
        match value {
            Intermediate::Same(constant) => {
                let mut column = self.take(constant.physical());
                let rows = vec![0; self.rows()];
                column.gather(constant.as_column(), &rows);
                Intermediate::Owned(column)
            }
            Intermediate::Null => {
                let mut column = self.take(Physical::U8);
                column.fill_null(self.rows());
                Intermediate::Owned(column)
            }
            other => other,
        }
    }
}

fn compare_numbers<T: Ordered>(
    op: BinaryOp,
    left: &Intermediate<'_>,
    right: &Intermediate<'_>,
    rows: usize,
    out: &mut ColumnBuf,
) {
    compare::<T>(op, left.operand(), right.operand(), rows, out.refill());
}

fn compare_scaled(
    op: BinaryOp,
    on: Physical,
    left: &Intermediate<'_>,
    right: &Intermediate<'_>,
    scale: Scale,
    rows: usize,
    out: &mut ColumnBuf,
) {
    match on {
        Physical::I64 => {
            scaled::compare::<i64>(op, left.operand(), right.operand(), scale, rows, out.refill())
        }
        _ => scaled::compare::<i128>(op, left.operand(), right.operand(), scale, rows, out.refill()),
    }
}

/// Computes on operands in different units, both stored as `T`; returns true if some row has no result.
fn arithmetic_scaled<T: Number>(
    op: BinaryOp,
    (left, right): (&Intermediate<'_>, &Intermediate<'_>),
    scale: Scale,
    rows: usize,
    out: &mut ColumnBuf,
) -> bool {
    match T::PHYSICAL {
        Physical::I64 => {
            scaled::arithmetic::<i64>(op, left.operand(), right.operand(), scale, rows, out.refill())
        }
        _ => scaled::arithmetic::<i128>(op, left.operand(), right.operand(), scale, rows, out.refill()),
    }
}

/// Returns true if that row has no result.
fn fails_scaled<T: Number>(
    op: BinaryOp,
    (left, right): (&Intermediate<'_>, &Intermediate<'_>),
    scale: Scale,
    row: usize,
) -> bool {
    match T::PHYSICAL {
        Physical::I64 => {
            scaled::apply::<i64>(op, left.operand().at(row), right.operand().at(row), scale).is_none()
        }
        _ => scaled::apply::<i128>(op, left.operand().at(row), right.operand().at(row), scale).is_none(),
    }
}

impl Evaluator<'_, '_> {
    fn compute<T: Number>(
        &mut self,
        (op, scale): (BinaryOp, Scale),
        left: &Intermediate<'_>,
        right: &Intermediate<'_>,
        out: &mut ColumnBuf,
        label: &Label,
    ) -> Result<(), ComputeError> {
        let rows = self.rows();
        let (a, b) = (left.operand::<T>(), right.operand::<T>());
        let valid = joined_mask(left, right);
        let failed = if scale == UNSCALED {
            arithmetic(op, a, b, rows, out.refill())
        } else {
            arithmetic_scaled::<T>(op, (left, right), scale, rows, out)
        };
        if failed {
            let error = |row| {
                let (a, b) = (a.at(row), b.at(row));
                let values = format!("{a:?} {} {b:?}", op.symbol());
                let expression = label.text.clone();
                if matches!(op, BinaryOp::FloorDivide | BinaryOp::Modulo) && T::is_forbidden_divisor(b) {
                    ComputeError::DivisionByZero { expression, values }
                } else {
                    ComputeError::Overflow { expression, type_name: label.type_name.clone(), values }
                }
            };
            let fails = |row| {
                if scale == UNSCALED {
                    fails(op, a.at(row), b.at(row))
                } else {
                    fails_scaled::<T>(op, (left, right), scale, row)
                }
            };
            self.failures.settle(rows, valid.as_deref(), fails, error)?;
        }
        if let Some(mask) = valid {
            out.refill_mask().extend_from_slice(&mask);
        }
        Ok(())
    }
}

impl Expression {
    /// Computes the column for every row present in the run.
    pub fn evaluate(&self, run: &mut Run) -> Result<ColumnBuf, ComputeError> {
        self.evaluate_with(run, Failures::strict())
    }

    /// Computes the column for every row present in the run. A row that fails becomes null, and is added to `rejected`
    /// with its error.
    ///
    /// `rejected` stays in ascending order, with each row once: rows that another expression rejected before keep
    /// their error and are null here as well. So the column may hold nulls even where [`Expression::nullable`] is
    /// false; the caller drops rejected rows before any reader sees them.
    pub fn evaluate_lenient(&self, run: &mut Run, rejected: &mut Vec<Rejected>) -> ColumnBuf {
        let failures = Failures::lenient(rejected, run.len());
        let mut column =
            self.evaluate_with(run, failures).expect("FAILURE-1: a rejected row cannot fail again");
        if !rejected.is_empty() {
            rejected.sort_unstable_by_key(|rejected| rejected.row);
            let mut good = vec![true; run.len()];
            for Rejected { row, .. } in &*rejected {
                good[*row as usize] = false;
            }
            column.mask_out(|row| !good[row]);
        }
        column
    }

    fn evaluate_with(&self, run: &mut Run, failures: Failures<'_>) -> Result<ColumnBuf, ComputeError> {
        run.ready(self.slots());
        let mut scratch = run.take_scratch();
        let column = self.evaluate_beside(run, &mut scratch, failures);
        run.return_scratch(scratch);
        column
    }

    fn evaluate_beside(
        &self,
        run: &Run,
        scratch: &mut Vec<ColumnBuf>,
        failures: Failures<'_>,
    ) -> Result<ColumnBuf, ComputeError> {
        let mut evaluator = Evaluator { run, scratch, failures };
        let value = evaluator.eval(&self.root)?;
        Ok(match value {
            Intermediate::Owned(column) => column,
            Intermediate::Same(constant) => {
                let mut column = evaluator.take(constant.physical());
                column.gather(constant.as_column(), &vec![0; run.len()]);
                column
            }
            Intermediate::Borrowed(borrowed) => {
                let rows: Vec<u32> = (0..run.len() as u32).collect();
                let mut column = evaluator.take(self.physical());
                column.gather(borrowed, &rows);
                column
            }
            Intermediate::Null => {
                let mut column = evaluator.take(self.physical());
                column.fill_null(run.len());
                column
            }
        })
    }
}
