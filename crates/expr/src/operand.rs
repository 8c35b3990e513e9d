//! An operand of a kernel: a value per row, or one value for all rows.

/// What a kernel reads on one side.
#[derive(Clone, Copy)]
pub enum Operand<'a, T> {
    /// A value per row.
    Rows(&'a [T]),
    /// One value for all rows.
    Same(T),
}

impl<T: Copy> Operand<'_, T> {
    /// The value at `row`.
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

/// Whether `f` of both sides holds for some row.
#[inline]
pub fn any_row<T: Copy>(
    left: Operand<'_, T>,
    right: Operand<'_, T>,
    rows: usize,
    f: impl Fn(T, T) -> bool,
) -> bool {
    // Without a way out, so that the compiler can vectorise it.
    match (left, right) {
        (Operand::Rows(left), Operand::Rows(right)) => {
            left.iter().zip(right).fold(false, |any, (&left, &right)| any | f(left, right))
        }
        (Operand::Rows(left), Operand::Same(right)) => {
            left.iter().fold(false, |any, &left| any | f(left, right))
        }
        (Operand::Same(left), Operand::Rows(right)) => {
            right.iter().fold(false, |any, &right| any | f(left, right))
        }
        (Operand::Same(left), Operand::Same(right)) => rows > 0 && f(left, right),
    }
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
