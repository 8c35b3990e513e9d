//! Arithmetic kernels.
//!
//! Integers are checked. The loop computes wrapped results and gathers one flag; only when the flag
//! is up does a second pass look for the first row that is not null and really failed.
//! `//` and `%` floor, as in Python: the remainder has the sign of the divisor.

use penstock_memory::Native;

use crate::expr::BinaryOp;
use crate::operand::{Operand, zip};

/// Largest magnitude of a decimal of 38 digits, plus one.
const DECIMAL_LIMIT: i128 = 10_i128.pow(38);

/// A type that can be computed with.
pub trait Number: Native {
    /// `left op right`, and whether it went wrong. The value is unspecified when it did.
    fn apply<const OP: u8>(left: Self, right: Self) -> (Self, bool);
    /// Whether `value` is the zero that integers cannot be divided by.
    fn is_forbidden_divisor(value: Self) -> bool;
}

pub(crate) const ADD: u8 = 0;
pub(crate) const SUBTRACT: u8 = 1;
pub(crate) const MULTIPLY: u8 = 2;
pub(crate) const DIVIDE: u8 = 3;
pub(crate) const FLOOR_DIVIDE: u8 = 4;
pub(crate) const MODULO: u8 = 5;

macro_rules! signed {
    ($($type:ty),*) => {$(
        impl Number for $type {
            #[inline(always)]
            fn apply<const OP: u8>(left: Self, right: Self) -> (Self, bool) {
                match OP {
                    ADD => left.overflowing_add(right),
                    SUBTRACT => left.overflowing_sub(right),
                    MULTIPLY => left.overflowing_mul(right),
                    FLOOR_DIVIDE => {
                        if right == 0 { return (0, true); }
                        let (quotient, overflow) = left.overflowing_div(right);
                        let inexact = left.wrapping_rem(right) != 0 && (left < 0) != (right < 0);
                        (quotient - Self::from(inexact), overflow)
                    }
                    MODULO => {
                        if right == 0 { return (0, true); }
                        let rest = left.wrapping_rem(right);
                        (if rest != 0 && (rest < 0) != (right < 0) { rest + right } else { rest }, false)
                    }
                    _ => unreachable!("integers are divided as floats"),
                }
            }
            fn is_forbidden_divisor(value: Self) -> bool { value == 0 }
        }
    )*};
}
signed!(i8, i16, i32, i64);

macro_rules! unsigned {
    ($($type:ty),*) => {$(
        impl Number for $type {
            #[inline(always)]
            fn apply<const OP: u8>(left: Self, right: Self) -> (Self, bool) {
                match OP {
                    ADD => left.overflowing_add(right),
                    SUBTRACT => left.overflowing_sub(right),
                    MULTIPLY => left.overflowing_mul(right),
                    FLOOR_DIVIDE => left.checked_div(right).map_or((0, true), |quotient| (quotient, false)),
                    MODULO => left.checked_rem(right).map_or((0, true), |rest| (rest, false)),
                    _ => unreachable!("integers are divided as floats"),
                }
            }
            fn is_forbidden_divisor(value: Self) -> bool { value == 0 }
        }
    )*};
}
unsigned!(u8, u16, u32, u64);

macro_rules! float {
    ($($type:ty),*) => {$(
        impl Number for $type {
            #[inline(always)]
            fn apply<const OP: u8>(left: Self, right: Self) -> (Self, bool) {
                let value = match OP {
                    ADD => left + right,
                    SUBTRACT => left - right,
                    MULTIPLY => left * right,
                    DIVIDE => left / right,
                    FLOOR_DIVIDE => {
                        let rest = left % right;
                        let quotient = (left - rest) / right;
                        let floored = if rest != 0.0 && (rest < 0.0) != (right < 0.0) { quotient - 1.0 } else { quotient };
                        // `left - rest` is a multiple of `right` up to rounding, so the quotient may be off by a
                        // little: it is taken down, unless it lies more than half way to the next.
                        let whole = floored.floor();
                        let whole = if floored - whole > 0.5 { whole + 1.0 } else { whole };
                        if whole == 0.0 { (0.0 as $type).copysign(left / right) } else { whole }
                    }
                    _ => {
                        let rest = left % right;
                        if rest == 0.0 {
                            (0.0 as $type).copysign(right)
                        } else if (rest < 0.0) != (right < 0.0) && !rest.is_nan() {
                            rest + right
                        } else {
                            rest
                        }
                    }
                };
                (value, false)
            }
            fn is_forbidden_divisor(_value: Self) -> bool { false }
        }
    )*};
}
float!(f32, f64);

impl Number for i128 {
    #[inline(always)]
    fn apply<const OP: u8>(left: Self, right: Self) -> (Self, bool) {
        let (value, overflow) = match OP {
            ADD => left.overflowing_add(right),
            SUBTRACT => left.overflowing_sub(right),
            MULTIPLY => left.overflowing_mul(right),
            _ => unreachable!("decimals are divided as floats"),
        };
        (value, overflow || value.unsigned_abs() >= DECIMAL_LIMIT as u128)
    }
    fn is_forbidden_divisor(_value: Self) -> bool {
        false
    }
}

fn compute<T: Number, const OP: u8>(
    left: Operand<'_, T>,
    right: Operand<'_, T>,
    valid: Option<&[u8]>,
    rows: usize,
    out: &mut Vec<T>,
) -> Result<(), usize> {
    let mut failed = false;
    zip(left, right, rows, out, |left, right| {
        let (value, wrong) = T::apply::<OP>(left, right);
        failed |= wrong;
        value
    });
    if !failed {
        return Ok(());
    }
    let is_valid = |row: usize| valid.is_none_or(|mask| mask[row] != 0);
    match (0..rows).find(|&row| is_valid(row) && T::apply::<OP>(left.at(row), right.at(row)).1) {
        Some(row) => Err(row),
        None => Ok(()),
    }
}

/// Computes `left op right` for `rows` rows. `Err` names the first valid row whose result does not exist.
pub(crate) fn arithmetic<T: Number>(
    op: BinaryOp,
    left: Operand<'_, T>,
    right: Operand<'_, T>,
    valid: Option<&[u8]>,
    rows: usize,
    out: &mut Vec<T>,
) -> Result<(), usize> {
    match op {
        BinaryOp::Add => compute::<T, ADD>(left, right, valid, rows, out),
        BinaryOp::Subtract => compute::<T, SUBTRACT>(left, right, valid, rows, out),
        BinaryOp::Multiply => compute::<T, MULTIPLY>(left, right, valid, rows, out),
        BinaryOp::Divide => compute::<T, DIVIDE>(left, right, valid, rows, out),
        BinaryOp::FloorDivide => compute::<T, FLOOR_DIVIDE>(left, right, valid, rows, out),
        BinaryOp::Modulo => compute::<T, MODULO>(left, right, valid, rows, out),
        _ => unreachable!("the compiler sends comparisons and logic to their own kernels"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn floors_as_python_does() {
        let cases = [(7, 2, 3, 1), (-7, 2, -4, 1), (7, -2, -4, -1), (-7, -2, 3, -1), (6, -3, -2, 0)];
        for (left, right, quotient, rest) in cases {
            assert_eq!(i64::apply::<FLOOR_DIVIDE>(left, right), (quotient, false));
            assert_eq!(i64::apply::<MODULO>(left, right), (rest, false));
            assert_eq!(f64::apply::<FLOOR_DIVIDE>(left as f64, right as f64).0, quotient as f64);
            assert_eq!(f64::apply::<MODULO>(left as f64, right as f64).0, rest as f64);
        }
        assert!(i8::apply::<FLOOR_DIVIDE>(-128, -1).1);
        assert_eq!(i8::apply::<MODULO>(-128, -1), (0, false));
        assert!(f64::apply::<MODULO>(1.0, 0.0).0.is_nan());
    }

    proptest! {
        #[test]
        fn checked_against_wide_integers(left: i8, right: i8) {
            let (wide_left, wide_right) = (i32::from(left), i32::from(right));
            let fits = |wide: i32| i8::try_from(wide).ok();
            let given = |(value, wrong): (i8, bool)| (!wrong).then_some(value);
            prop_assert_eq!(given(i8::apply::<ADD>(left, right)), fits(wide_left + wide_right));
            prop_assert_eq!(given(i8::apply::<MULTIPLY>(left, right)), fits(wide_left * wide_right));
            if right != 0 {
                let floor = (f64::from(left) / f64::from(right)).floor() as i32;
                prop_assert_eq!(given(i8::apply::<FLOOR_DIVIDE>(left, right)), fits(floor));
                prop_assert_eq!(given(i8::apply::<MODULO>(left, right)), fits(wide_left - floor * wide_right));
            }
        }

        #[test]
        fn nulls_never_fail(values in prop::collection::vec((any::<i8>(), any::<bool>()), 1..50)) {
            let numbers: Vec<i8> = values.iter().map(|(value, _)| *value).collect();
            let mask: Vec<u8> = values.iter().map(|(_, valid)| u8::from(*valid)).collect();
            let mut out = Vec::new();
            let result = arithmetic(
                BinaryOp::Add, Operand::Rows(&numbers), Operand::Same(100), Some(&mask), numbers.len(), &mut out);
            let expected = values.iter().position(|(value, valid)| *valid && value.checked_add(100).is_none());
            prop_assert_eq!(result.err(), expected);
        }
    }
}
