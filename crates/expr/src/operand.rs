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
