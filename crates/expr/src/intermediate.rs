//! Intermediate results of an expression.

use std::borrow::Cow;

use penstock_memory::{Column, ColumnBuf, Native, Payloads, Values};

use crate::blend::BlendInput;
use crate::operand::Operand;

/// The result of a step.
pub(crate) enum Intermediate<'a> {
    Borrowed(Column<'a>),
    Owned(ColumnBuf),
    /// One row for all.
    Same(&'a ColumnBuf),
    Null,
}

impl Intermediate<'_> {
    pub(crate) fn valid(&self) -> Option<&[u8]> {
        match self {
            Self::Borrowed(column) => column.valid,
            Self::Owned(column) => column.mask(),
            Self::Same(_) | Self::Null => None,
        }
    }

    pub(crate) fn source(&self) -> BlendInput<'_> {
        match self {
            Self::Borrowed(column) => BlendInput::Rows(*column),
            Self::Owned(column) => BlendInput::Rows(column.as_column()),
            Self::Same(column) => BlendInput::Same(column.as_column()),
            Self::Null => BlendInput::Null,
        }
    }

    pub(crate) fn operand<T: Native>(&self) -> Operand<'_, T> {
        match self {
            Self::Borrowed(column) => Operand::Rows(column.fixed()),
            Self::Owned(column) => Operand::Rows(column.as_column().fixed()),
            Self::Same(column) => Operand::Same(column.as_column().fixed::<T>()[0]),
            Self::Null => unreachable!("nulls are handled before kernels are called"),
        }
    }

    pub(crate) fn views(&self) -> (Operand<'_, u128>, Payloads<'_>) {
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
            Self::Null => unreachable!("nulls are handled before kernels are called"),
        }
    }
}

/// Returns the column of a value that was expanded.
pub(crate) fn column_of<'v>(value: &'v Intermediate<'_>) -> Column<'v> {
    match value {
        Intermediate::Borrowed(column) => *column,
        Intermediate::Owned(column) => column.as_column(),
        Intermediate::Same(_) | Intermediate::Null => unreachable!("values are expanded first"),
    }
}

/// Returns the mask of rows in which both sides are valid.
pub(crate) fn joined_mask<'v>(
    left: &'v Intermediate<'_>,
    right: &'v Intermediate<'_>,
) -> Option<Cow<'v, [u8]>> {
    match (left.valid(), right.valid()) {
        (None, None) => None,
        (Some(mask), None) | (None, Some(mask)) => Some(Cow::Borrowed(mask)),
        (Some(left), Some(right)) => Some(left.iter().zip(right).map(|(left, right)| left & right).collect()),
    }
}

/// Returns one row of a column, as a column.
pub(crate) fn one_row(column: Column<'_>, row: usize) -> Column<'_> {
    macro_rules! slice {
        ($($kind:ident),*) => {
            match column.values {
                $(Values::$kind(values) => Values::$kind(&values[row..=row]),)*
                Values::View(views, payloads) => Values::View(&views[row..=row], payloads),
            }
        };
    }
    let values = slice!(I8, I16, I32, I64, U8, U16, U32, U64, F32, F64, I128);
    Column { values, valid: None }
}
