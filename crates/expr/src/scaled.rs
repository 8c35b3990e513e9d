//! Kernels for operands that count in different units: decimals of two scales, times of two units.
//!
//! The operator and the change of unit are one step, so that a unit that does not fit is an error only in rows where
//! both sides have a value, and a comparison is exact whatever the units are.

use std::cmp::Ordering;

use crate::arithmetic::{ADD, Number, SUBTRACT};
use crate::comparison::Ordered;
use crate::expr::BinaryOp;
use crate::operand::{Operand, zip};

/// The factors of the left and the right side. At least one of them is 1.
pub(crate) type Scale = (i128, i128);

/// Both sides unchanged.
pub(crate) const UNSCALED: Scale = (1, 1);

/// A type that counts units.
pub(crate) trait Scalable: Number + Ordered {
    /// Returns `self * factor`, if that exists.
    fn scaled(self, factor: i128) -> Option<Self>;
    /// Returns it as a wide integer.
    fn wide(self) -> i128;
}

impl Scalable for i64 {
    #[inline]
    fn scaled(self, factor: i128) -> Option<Self> {
        i64::try_from(i128::from(self) * factor).ok()
    }
    #[inline]
    fn wide(self) -> i128 {
        i128::from(self)
    }
}

impl Scalable for i128 {
    #[inline]
    fn scaled(self, factor: i128) -> Option<Self> {
        self.checked_mul(factor)
    }
    #[inline]
    fn wide(self) -> i128 {
        self
    }
}

/// Compares `left * scale.0` with `right * scale.1`.
#[inline]
fn order<T: Scalable>(left: T, right: T, scale: Scale) -> Ordering {
    let (left, right) = (left.wide(), right.wide());
    match (left.checked_mul(scale.0), right.checked_mul(scale.1)) {
        (Some(left), Some(right)) => left.cmp(&right),
        // Only one side is multiplied; a product beyond 128 bits exceeds any value of the other side.
        (None, _) => left.cmp(&0),
        (_, None) => 0.cmp(&right),
    }
}

/// Compares for `rows` rows; writes 1 where the comparison holds.
pub(crate) fn compare<T: Scalable>(
    op: BinaryOp,
    left: Operand<'_, T>,
    right: Operand<'_, T>,
    scale: Scale,
    rows: usize,
    out: &mut Vec<u8>,
) {
    let holds: fn(Ordering) -> bool = match op {
        BinaryOp::Equal => Ordering::is_eq,
        BinaryOp::NotEqual => Ordering::is_ne,
        BinaryOp::Less => Ordering::is_lt,
        BinaryOp::LessEqual => Ordering::is_le,
        BinaryOp::Greater => Ordering::is_gt,
        _ => Ordering::is_ge,
    };
    zip(left, right, rows, out, |left, right| u8::from(holds(order(left, right, scale))));
}

/// Adds or subtracts, if the result exists.
#[inline]
pub(crate) fn apply<T: Scalable>(op: BinaryOp, left: T, right: T, scale: Scale) -> Option<T> {
    left.scaled(scale.0).zip(right.scaled(scale.1)).and_then(|(left, right)| {
        let (value, wrong) = match op {
            BinaryOp::Add => T::apply::<ADD>(left, right),
            _ => T::apply::<SUBTRACT>(left, right),
        };
        (!wrong).then_some(value)
    })
}

/// Adds or subtracts for `rows` rows; returns true if the result of some row, null or not, does not exist.
pub(crate) fn arithmetic<T: Scalable>(
    op: BinaryOp,
    left: Operand<'_, T>,
    right: Operand<'_, T>,
    scale: Scale,
    rows: usize,
    out: &mut Vec<T>,
) -> bool {
    let mut failed = false;
    zip(left, right, rows, out, |left, right| {
        let result = apply(op, left, right, scale);
        failed |= result.is_none();
        result.unwrap_or_default()
    });
    failed
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn products_beyond_128_bits_compare() {
        let factor = 10_i128.pow(38);
        assert_eq!(order(5_i128, 7, (factor, 1)), Ordering::Greater);
        assert_eq!(order(-5_i128, i128::MIN, (factor, 1)), Ordering::Less);
        assert_eq!(order(i128::MAX, 2, (1, factor)), Ordering::Less);
        assert_eq!(order(0_i128, 0, (factor, 1)), Ordering::Equal);
    }

    proptest! {
        #[test]
        fn scaled_addition_is_exact_or_an_error(left: i64, right: i64) {
            let mut out = Vec::new();
            let failed = arithmetic(
                BinaryOp::Add, Operand::Rows(&[left]), Operand::Rows(&[right]), (1000, 1), 1, &mut out);
            let scaled = i64::try_from(i128::from(left) * 1000).ok();
            match scaled.and_then(|left| left.checked_add(right)) {
                Some(sum) => prop_assert_eq!((failed, out[0]), (false, sum)),
                None => prop_assert!(failed),
            }
        }
    }
}
