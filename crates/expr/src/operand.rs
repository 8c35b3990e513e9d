//! An operand of a kernel: a value per row, or one value for all rows.

use crate::instructions::ASKED;

/// The operand on one side of a kernel.
#[derive(Clone, Copy)]
pub enum Operand<'a, T> {
    /// A value per row.
    Rows(&'a [T]),
    /// One value for all rows.
    Same(T),
}

impl<T: Copy> Operand<'_, T> {
    /// Returns the value at `row`.
    #[inline]
    pub fn at(&self, row: usize) -> T {
        match self {
            Self::Rows(values) => values[row],
            Self::Same(value) => *value,
        }
    }
}

/// Fills `out` with `f` of both sides, in one loop that the compiler can vectorise for each shape.
#[inline]
pub fn zip<T: Copy, U>(
    left: Operand<'_, T>,
    right: Operand<'_, T>,
    rows: usize,
    out: &mut Vec<U>,
    mut f: impl FnMut(T, T) -> U,
) {
    match (left, right) {
        (Operand::Rows(left), Operand::Rows(right)) => {
            out.extend(left.iter().zip(right).map(|(&left, &right)| f(left, right)));
        }
        (Operand::Rows(left), Operand::Same(right)) => out.extend(left.iter().map(|&left| f(left, right))),
        (Operand::Same(left), Operand::Rows(right)) => out.extend(right.iter().map(|&right| f(left, right))),
        (Operand::Same(left), Operand::Same(right)) => out.extend((0..rows).map(|_| f(left, right))),
    }
}

/// Fills `out` with the answers of both sides: 1 where `f` holds.
#[inline]
pub fn ask<T: Copy>(
    left: Operand<'_, T>,
    right: Operand<'_, T>,
    rows: usize,
    out: &mut Vec<u8>,
    f: impl Fn(T, T) -> bool,
) {
    match (left, right) {
        (Operand::Rows(left), Operand::Rows(right)) => {
            out.resize(left.len(), 0);
            let (left, left_rest) = left.as_chunks::<ASKED>();
            let (right, right_rest) = right.as_chunks::<ASKED>();
            let (out, out_rest) = out.as_chunks_mut::<ASKED>();
            for ((out, left), right) in out.iter_mut().zip(left).zip(right) {
                *out = std::array::from_fn(|row| u8::from(f(left[row], right[row])));
            }
            for ((out, &left), &right) in out_rest.iter_mut().zip(left_rest).zip(right_rest) {
                *out = u8::from(f(left, right));
            }
        }
        (Operand::Rows(left), Operand::Same(right)) => ask_each(left, out, |left| f(left, right)),
        (Operand::Same(left), Operand::Rows(right)) => ask_each(right, out, |right| f(left, right)),
        (Operand::Same(left), Operand::Same(right)) => out.resize(rows, u8::from(f(left, right))),
    }
}

/// Fills `out` with the answers of one side: 1 where `f` holds.
#[inline]
pub fn ask_each<T: Copy>(values: &[T], out: &mut Vec<u8>, f: impl Fn(T) -> bool) {
    out.resize(values.len(), 0);
    let (values, values_rest) = values.as_chunks::<ASKED>();
    let (out, out_rest) = out.as_chunks_mut::<ASKED>();
    for (out, values) in out.iter_mut().zip(values) {
        *out = std::array::from_fn(|row| u8::from(f(values[row])));
    }
    for (out, &value) in out_rest.iter_mut().zip(values_rest) {
        *out = u8::from(f(value));
    }
}

/// Runs `$body` with `$type` bound to the number type of `$physical`.
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
