//! A compiled expression over a run.

use penstock_memory::run::take_spare;
use penstock_memory::{Column, ColumnBuf, Native, Payloads, Physical, Run};
use penstock_types::ComputeError;

use crate::arithmetic::{Number, arithmetic};
use crate::comparison::{Ordered, compare, compare_views};
use crate::compile::{Expression, Label, Node};
use crate::conversion::{decimal_to_f64, widen};
use crate::expr::BinaryOp;
use crate::logic::logic;
use crate::operand::Operand;
use crate::scaled::{self, Scale, UNSCALED};

/// What a step of an expression came to.
enum Value<'a> {
    Borrowed(Column<'a>),
    Owned(ColumnBuf),
    /// One row for all.
    Same(&'a ColumnBuf),
    Null,
}

impl Value<'_> {
    fn valid(&self) -> Option<&[u8]> {
        match self {
            Self::Borrowed(column) => column.valid,
            Self::Owned(column) => column.mask(),
            Self::Same(_) | Self::Null => None,
        }
    }

    fn operand<T: Native>(&self) -> Operand<'_, T> {
        match self {
            Self::Borrowed(column) => Operand::Rows(column.fixed()),
            Self::Owned(column) => Operand::Rows(column.as_column().fixed()),
            Self::Same(column) => Operand::Same(column.as_column().fixed::<T>()[0]),
            Self::Null => unreachable!("nulls are dealt with before kernels are called"),
        }
    }

    fn views(&self) -> (Operand<'_, u128>, Payloads<'_>) {
        match self {
            Self::Borrowed(column) => {
                let (views, buffers) = column.views();
                (Operand::Rows(views), buffers)
            }
            Self::Owned(column) => {
                let (views, buffers) = column.as_column().views();
                (Operand::Rows(views), buffers)
            }
            Self::Same(column) => {
                let (views, buffers) = column.as_column().views();
                (Operand::Same(views[0]), buffers)
            }
            Self::Null => unreachable!("nulls are dealt with before kernels are called"),
        }
    }
}

/// Computes columns over one run; scratch goes round between steps.
struct Evaluator<'a> {
    run: &'a Run,
    scratch: &'a mut Vec<ColumnBuf>,
}

/// Runs `$body` with `$type` bound to the number type that `$physical` stands for.
macro_rules! with_number {
    ($physical:expr, $type:ident => $body:expr) => {
        match $physical {
            Physical::I8 => {
                type $type = i8;
                $body
            }
            Physical::I16 => {
                type $type = i16;
                $body
            }
            Physical::I32 => {
                type $type = i32;
                $body
            }
            Physical::I64 => {
                type $type = i64;
                $body
            }
            Physical::U8 => {
                type $type = u8;
                $body
            }
            Physical::U16 => {
                type $type = u16;
                $body
            }
            Physical::U32 => {
                type $type = u32;
                $body
            }
            Physical::U64 => {
                type $type = u64;
                $body
            }
            Physical::F32 => {
                type $type = f32;
                $body
            }
            Physical::F64 => {
                type $type = f64;
                $body
            }
            Physical::I128 => {
                type $type = i128;
                $body
            }
            Physical::View => unreachable!("strings are not numbers"),
        }
    };
}

pub(crate) use with_number;

impl<'a> Evaluator<'a> {
    fn rows(&self) -> usize {
        self.run.len()
    }

    fn take(&mut self, physical: Physical) -> ColumnBuf {
        take_spare(self.scratch, physical)
    }

    fn give(&mut self, value: Value<'_>) {
        if let Value::Owned(column) = value {
            self.scratch.push(column);
        }
    }

    /// A null wherever either side is null.
    fn join_masks(left: &Value<'_>, right: &Value<'_>, out: &mut ColumnBuf) {
        match (left.valid(), right.valid()) {
            (None, None) => out.clear_mask(),
            (Some(mask), None) | (None, Some(mask)) => out.refill_mask().extend_from_slice(mask),
            (Some(left), Some(right)) => {
                out.refill_mask().extend(left.iter().zip(right).map(|(left, right)| left & right));
            }
        }
    }

    fn eval(&mut self, node: &'a Node) -> Result<Value<'a>, ComputeError> {
        match node {
            Node::Slot(slot) => Ok(Value::Borrowed(self.run.column(*slot))),
            Node::Constant(column) => Ok(Value::Same(column)),
            Node::Null => Ok(Value::Null),
            Node::Arithmetic { op, on, left, right, scale, label } => {
                let (left, right) = (self.eval(left)?, self.eval(right)?);
                self.binary(*on, left, right, |evaluator, left, right, out| {
                    let rows = evaluator.rows();
                    with_number!(*on, T => compute::<T>(*op, left, right, *scale, rows, out, label))
                })
            }
            Node::Compare { op, on, left, right, scale } => {
                let (left, right) = (self.eval(left)?, self.eval(right)?);
                self.binary(Physical::U8, left, right, |evaluator, left, right, out| {
                    let rows = evaluator.rows();
                    Self::join_masks(left, right, out);
                    if *on == Physical::View {
                        let mask = out.mask().map(<[u8]>::to_vec);
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
            Node::Logic { op, left, right } => {
                let (left, right) = (self.eval(left)?, self.eval(right)?);
                let (left, right) = (self.spread(left), self.spread(right));
                let mut out = self.take(Physical::U8);
                logic(*op, column_of(&left), column_of(&right), &mut out);
                self.give(left);
                self.give(right);
                Ok(Value::Owned(out))
            }
            Node::Not(input) => {
                let input = self.eval(input)?;
                let input = self.spread(input);
                let mut out = self.take(Physical::U8);
                let column = column_of(&input);
                out.refill::<u8>().extend(column.fixed::<u8>().iter().map(|value| value ^ 1));
                if let Some(mask) = column.valid {
                    out.refill_mask().extend_from_slice(mask);
                }
                self.give(input);
                Ok(Value::Owned(out))
            }
            Node::IsNull { input, wanted } => {
                let input = self.eval(input)?;
                let rows = self.rows();
                let mut out = self.take(Physical::U8);
                let values = out.refill::<u8>();
                match (&input, input.valid()) {
                    (Value::Null, _) => values.resize(rows, *wanted),
                    (_, None) => values.resize(rows, 1 - wanted),
                    (_, Some(mask)) => values.extend(mask.iter().map(|valid| valid ^ wanted)),
                }
                self.give(input);
                Ok(Value::Owned(out))
            }
            Node::Widen { to, input } => {
                let input = self.eval(input)?;
                self.convert(*to, input, |column, out| widen(column.values, *to, out))
            }
            Node::DecimalToFloat { scale, input } => {
                let input = self.eval(input)?;
                self.convert(Physical::F64, input, |column, out| {
                    let values = column.fixed::<i128>().iter();
                    out.refill::<f64>().extend(values.map(|&value| decimal_to_f64(value, *scale)));
                })
            }
        }
    }

    fn binary(
        &mut self,
        out: Physical,
        left: Value<'a>,
        right: Value<'a>,
        kernel: impl FnOnce(&Self, &Value<'_>, &Value<'_>, &mut ColumnBuf) -> Result<(), ComputeError>,
    ) -> Result<Value<'a>, ComputeError> {
        if matches!(left, Value::Null) || matches!(right, Value::Null) {
            self.give(left);
            self.give(right);
            return Ok(Value::Null);
        }
        let mut column = self.take(out);
        kernel(self, &left, &right, &mut column)?;
        self.give(left);
        self.give(right);
        Ok(Value::Owned(column))
    }

    fn convert(
        &mut self,
        to: Physical,
        input: Value<'a>,
        kernel: impl FnOnce(Column<'_>, &mut ColumnBuf),
    ) -> Result<Value<'a>, ComputeError> {
        if matches!(input, Value::Null) {
            return Ok(Value::Null);
        }
        let input = self.spread(input);
        let mut out = self.take(to);
        let column = column_of(&input);
        kernel(column, &mut out);
        if let Some(mask) = column.valid {
            out.refill_mask().extend_from_slice(mask);
        }
        self.give(input);
        Ok(Value::Owned(out))
    }

    /// A value per row, whatever it was.
    fn spread(&mut self, value: Value<'a>) -> Value<'a> {
        match value {
            Value::Same(constant) => {
                let mut column = self.take(constant.physical());
                let rows = vec![0; self.rows()];
                column.gather(constant.as_column(), &rows);
                Value::Owned(column)
            }
            Value::Null => {
                let mut column = self.take(Physical::U8);
                column.fill_null(self.rows());
                Value::Owned(column)
            }
            other => other,
        }
    }
}

fn column_of<'v>(value: &'v Value<'_>) -> Column<'v> {
    match value {
        Value::Borrowed(column) => *column,
        Value::Owned(column) => column.as_column(),
        Value::Same(_) | Value::Null => unreachable!("values are spread first"),
    }
}

fn compare_numbers<T: Ordered>(
    op: BinaryOp,
    left: &Value<'_>,
    right: &Value<'_>,
    rows: usize,
    out: &mut ColumnBuf,
) {
    compare::<T>(op, left.operand(), right.operand(), rows, out.refill());
}

fn compare_scaled(
    op: BinaryOp,
    on: Physical,
    left: &Value<'_>,
    right: &Value<'_>,
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

/// Arithmetic on operands in different units; both are stored as `T`.
fn arithmetic_scaled<T: Number>(
    op: BinaryOp,
    (left, right): (&Value<'_>, &Value<'_>),
    scale: Scale,
    valid: Option<&[u8]>,
    rows: usize,
    out: &mut ColumnBuf,
) -> Result<(), usize> {
    match T::PHYSICAL {
        Physical::I64 => {
            scaled::arithmetic::<i64>(op, left.operand(), right.operand(), scale, valid, rows, out.refill())
        }
        _ => {
            scaled::arithmetic::<i128>(op, left.operand(), right.operand(), scale, valid, rows, out.refill())
        }
    }
}

fn compute<T: Number>(
    op: BinaryOp,
    left: &Value<'_>,
    right: &Value<'_>,
    scale: Scale,
    rows: usize,
    out: &mut ColumnBuf,
    label: &Label,
) -> Result<(), ComputeError> {
    let (a, b) = (left.operand::<T>(), right.operand::<T>());
    let joined: Option<Vec<u8>> = match (left.valid(), right.valid()) {
        (Some(left), Some(right)) => Some(left.iter().zip(right).map(|(left, right)| left & right).collect()),
        _ => None,
    };
    let valid = joined.as_deref().or(left.valid()).or(right.valid());
    let computed = if scale == UNSCALED {
        arithmetic(op, a, b, valid, rows, out.refill())
    } else {
        arithmetic_scaled::<T>(op, (left, right), scale, valid, rows, out)
    };
    if let Err(row) = computed {
        let (a, b) = (a.at(row), b.at(row));
        let values = format!("{a:?} {} {b:?}", op.symbol());
        let expression = label.text.clone();
        let divided = matches!(op, BinaryOp::FloorDivide | BinaryOp::Modulo) && T::is_forbidden_divisor(b);
        return Err(if divided {
            ComputeError::DivisionByZero { expression, values }
        } else {
            ComputeError::Overflow { expression, type_name: label.type_name.clone(), values }
        });
    }
    if let Some(mask) = valid {
        out.refill_mask().extend_from_slice(mask);
    }
    Ok(())
}

impl Expression {
    /// Computes the column for every row that is left in the run.
    pub fn evaluate(&self, run: &mut Run) -> Result<ColumnBuf, ComputeError> {
        run.ready(self.slots());
        let mut scratch = run.take_scratch();
        let column = self.evaluate_beside(run, &mut scratch);
        run.return_scratch(scratch);
        column
    }

    fn evaluate_beside(&self, run: &Run, scratch: &mut Vec<ColumnBuf>) -> Result<ColumnBuf, ComputeError> {
        let mut evaluator = Evaluator { run, scratch };
        let value = evaluator.eval(&self.root)?;
        Ok(match value {
            Value::Owned(column) => column,
            Value::Same(constant) => {
                let mut column = evaluator.take(constant.physical());
                column.gather(constant.as_column(), &vec![0; run.len()]);
                column
            }
            Value::Borrowed(borrowed) => {
                let rows: Vec<u32> = (0..run.len() as u32).collect();
                let mut column = evaluator.take(self.physical());
                column.gather(borrowed, &rows);
                column
            }
            Value::Null => {
                let mut column = evaluator.take(self.physical());
                column.fill_null(run.len());
                column
            }
        })
    }
}
