//! Comparison kernels.
//!
//! Floats have one order everywhere in the engine: -0.0 equals 0.0, NaN equals NaN, and NaN is
//! larger than every number. Strings and binary compare bytewise.

use std::cmp::Ordering;

use penstock_memory::{Native, Payloads, view};

use crate::expr::BinaryOp;
use crate::operand::{Operand, zip};

/// A type with the engine's order.
pub trait Ordered: Native {
    /// Whether both are the same value.
    fn same(left: Self, right: Self) -> bool;
    /// Whether `left` comes before `right`.
    fn before(left: Self, right: Self) -> bool;
}

macro_rules! ordered {
    ($($type:ty),*) => {$(
        impl Ordered for $type {
            #[inline(always)]
            fn same(left: Self, right: Self) -> bool { left == right }
            #[inline(always)]
            fn before(left: Self, right: Self) -> bool { left < right }
        }
    )*};
}
ordered!(i8, i16, i32, i64, u8, u16, u32, u64, i128);

macro_rules! ordered_float {
    ($($type:ty),*) => {$(
        impl Ordered for $type {
            #[inline(always)]
            fn same(left: Self, right: Self) -> bool { (left == right) | (left.is_nan() & right.is_nan()) }
            #[inline(always)]
            fn before(left: Self, right: Self) -> bool { (left < right) | (right.is_nan() & !left.is_nan()) }
        }
    )*};
}
ordered_float!(f32, f64);

/// Compares `left` with `right` for `rows` rows; 1 where the comparison holds.
pub(crate) fn compare<T: Ordered>(
    op: BinaryOp,
    left: Operand<'_, T>,
    right: Operand<'_, T>,
    rows: usize,
    out: &mut Vec<u8>,
) {
    match op {
        BinaryOp::Equal => zip(left, right, rows, out, |left, right| u8::from(T::same(left, right))),
        BinaryOp::NotEqual => zip(left, right, rows, out, |left, right| u8::from(!T::same(left, right))),
        BinaryOp::Less => zip(left, right, rows, out, |left, right| u8::from(T::before(left, right))),
        BinaryOp::LessEqual => zip(left, right, rows, out, |left, right| u8::from(!T::before(right, left))),
        BinaryOp::Greater => zip(left, right, rows, out, |left, right| u8::from(T::before(right, left))),
        BinaryOp::GreaterEqual => {
            zip(left, right, rows, out, |left, right| u8::from(!T::before(left, right)))
        }
        _ => unreachable!("the compiler sends arithmetic and logic to their own kernels"),
    }
}

/// Compares strings or binary.
pub(crate) fn compare_views(
    op: BinaryOp,
    (left, left_payloads): (Operand<'_, u128>, Payloads<'_>),
    (right, right_payloads): (Operand<'_, u128>, Payloads<'_>),
    valid: Option<&[u8]>,
    rows: usize,
    out: &mut Vec<u8>,
) {
    let holds: fn(Ordering) -> bool = match op {
        BinaryOp::Equal | BinaryOp::NotEqual => {
            let wanted = op == BinaryOp::Equal;
            out.extend((0..rows).map(|row| {
                // A view under a null points nowhere (C2), so it is not followed.
                let valid = valid.is_none_or(|mask| mask[row] != 0);
                u8::from(
                    valid
                        && view::equal(left.at(row), left_payloads, right.at(row), right_payloads) == wanted,
                )
            }));
            return;
        }
        BinaryOp::Less => Ordering::is_lt,
        BinaryOp::LessEqual => Ordering::is_le,
        BinaryOp::Greater => Ordering::is_gt,
        _ => Ordering::is_ge,
    };
    out.extend((0..rows).map(|row| {
        let valid = valid.is_none_or(|mask| mask[row] != 0);
        u8::from(valid && holds(view::compare(left.at(row), left_payloads, right.at(row), right_payloads)))
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_order_for_floats() {
        let ascending = [f64::NEG_INFINITY, -1.0, 0.0, 1.0, f64::INFINITY, f64::NAN];
        for (place, &left) in ascending.iter().enumerate() {
            for (other, &right) in ascending.iter().enumerate() {
                assert_eq!(f64::same(left, right), place == other);
                assert_eq!(f64::before(left, right), place < other);
            }
        }
        assert!(f32::same(-0.0, 0.0) && !f32::before(-0.0, 0.0));
    }
}
