//! Arithmetic kernels.
//!
//! Integers are checked. The loop computes wrapped results and gathers one flag; only when the flag is set does a
//! second pass look for rows that count and really failed (`failure`). For sums and differences the flag is the sign
//! bit of a number, so that the loop processes several rows at a time. `//` and `%` floor, as in Python: the remainder
//! has the sign of the divisor.

use penstock_memory::Native;

use crate::expr::BinaryOp;
use crate::operand::{Operand, zip};
use crate::reciprocal::Reciprocal;

/// Largest magnitude of a decimal of 38 digits, plus one.
const DECIMAL_LIMIT: i128 = 10_i128.pow(38);

/// A type that supports arithmetic.
pub trait Number: Native {
    /// Computes `left op right`; the flag is true if it failed. The value is unspecified then.
    fn apply<const OP: u8>(left: Self, right: Self) -> (Self, bool);
    /// Computes `left op right`, for a sum or a difference; sets the upper bit of `flags` if it failed.
    fn flagged<const OP: u8>(left: Self, right: Self, flags: Self) -> (Self, Self);
    /// Returns true if the upper bit of `flags` is set.
    fn is_raised(flags: Self) -> bool;
    /// Returns true if `value` is the zero that integers cannot be divided by.
    fn is_forbidden_divisor(value: Self) -> bool;
    /// Computes `left // divisor`, or its remainder, where that is faster for one divisor than for many, and cannot
    /// fail; returns false otherwise.
    fn divided_by<const OP: u8>(_left: &[Self], _divisor: Self, _out: &mut Vec<Self>) -> bool {
        false
    }
}

pub(crate) const ADD: u8 = 0;
pub(crate) const SUBTRACT: u8 = 1;
pub(crate) const MULTIPLY: u8 = 2;
pub(crate) const DIVIDE: u8 = 3;
pub(crate) const FLOOR_DIVIDE: u8 = 4;
pub(crate) const MODULO: u8 = 5;

macro_rules! signed {
    ($($type:ty $({ $($more:item)* })?),*) => {$(
        impl Number for $type {
            $($($more)*)?
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
            #[inline(always)]
            fn flagged<const OP: u8>(left: Self, right: Self, flags: Self) -> (Self, Self) {
                // By signs rather than by the processor's flag, of which there is one for many rows.
                if OP == ADD {
                    let value = left.wrapping_add(right);
                    (value, flags | ((left ^ value) & (right ^ value)))
                } else {
                    let value = left.wrapping_sub(right);
                    (value, flags | ((left ^ right) & (left ^ value)))
                }
            }
            fn is_raised(flags: Self) -> bool { flags < 0 }
            fn is_forbidden_divisor(value: Self) -> bool { value == 0 }
        }
    )*};
}
signed!(i8, i16, i32, i64 {
    fn divided_by<const OP: u8>(left: &[Self], divisor: Self, out: &mut Vec<Self>) -> bool {
        let Some(reciprocal) = Reciprocal::new(divisor) else { return false };
        match OP {
            FLOOR_DIVIDE => out.extend(left.iter().map(|&left| reciprocal.floor_divide(left))),
            MODULO => out.extend(left.iter().map(|&left| reciprocal.rest(left))),
            _ => return false,
        }
        true
    }
});

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
            #[inline(always)]
            fn flagged<const OP: u8>(left: Self, right: Self, flags: Self) -> (Self, Self) {
                // The carry out of the upper bit, or the borrow into it.
                if OP == ADD {
                    let value = left.wrapping_add(right);
                    (value, flags | (left & right) | ((left | right) & !value))
                } else {
                    let value = left.wrapping_sub(right);
                    (value, flags | (!left & right) | ((!left | right) & value))
                }
            }
            fn is_raised(flags: Self) -> bool { flags >> (Self::BITS - 1) == 1 }
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
                        // `left - rest` is a multiple of `right` up to rounding, so the quotient may be slightly off:
                        // it is rounded down, unless it lies more than half way to the next.
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
            #[inline(always)]
            fn flagged<const OP: u8>(left: Self, right: Self, flags: Self) -> (Self, Self) {
                (Self::apply::<OP>(left, right).0, flags)
            }
            fn is_raised(_flags: Self) -> bool { false }
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
    #[inline(always)]
    fn flagged<const OP: u8>(left: Self, right: Self, flags: Self) -> (Self, Self) {
        let (value, wrong) = Self::apply::<OP>(left, right);
        (value, if wrong { -1 } else { flags })
    }
    fn is_raised(flags: Self) -> bool {
        flags < 0
    }
    fn is_forbidden_divisor(_value: Self) -> bool {
        false
    }
}

fn compute<T: Number, const OP: u8>(
    left: Operand<'_, T>,
    right: Operand<'_, T>,
    rows: usize,
    out: &mut Vec<T>,
) -> bool {
    if let (Operand::Rows(left), Operand::Same(right)) = (left, right)
        && T::divided_by::<OP>(left, right, out)
    {
        return false;
    }
    if OP == ADD || OP == SUBTRACT {
        let mut flags = T::default();
        zip(left, right, rows, out, |left, right| {
            let (value, raised) = T::flagged::<OP>(left, right, flags);
            flags = raised;
            value
        });
        return T::is_raised(flags);
    }
    let mut failed = false;
    zip(left, right, rows, out, |left, right| {
        let (value, wrong) = T::apply::<OP>(left, right);
        failed |= wrong;
        value
    });
    failed
}

/// Runs `$body` with `$op` bound to the number of an arithmetic operator.
macro_rules! with_operator {
    ($given:expr, $op:ident => $body:expr) => {
        match $given {
            BinaryOp::Add => {
                const $op: u8 = ADD;
                $body
            }
            BinaryOp::Subtract => {
                const $op: u8 = SUBTRACT;
                $body
            }
            BinaryOp::Multiply => {
                const $op: u8 = MULTIPLY;
                $body
            }
            BinaryOp::Divide => {
                const $op: u8 = DIVIDE;
                $body
            }
            BinaryOp::FloorDivide => {
                const $op: u8 = FLOOR_DIVIDE;
                $body
            }
            BinaryOp::Modulo => {
                const $op: u8 = MODULO;
                $body
            }
            _ => unreachable!("the compiler sends comparisons and logic to their own kernels"),
        }
    };
}

/// Computes `left op right` for `rows` rows; returns true if the result of some row, null or not, does not exist.
pub(crate) fn arithmetic<T: Number>(
    op: BinaryOp,
    left: Operand<'_, T>,
    right: Operand<'_, T>,
    rows: usize,
    out: &mut Vec<T>,
) -> bool {
    with_operator!(op, OP => compute::<T, OP>(left, right, rows, out))
}

/// Returns true if `left op right` does not exist.
pub(crate) fn fails<T: Number>(op: BinaryOp, left: T, right: T) -> bool {
    with_operator!(op, OP => T::apply::<OP>(left, right).1)
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

    /// Pairs of any values, in columns of every length around whole strides.
    fn pairs<T: Arbitrary>() -> impl Strategy<Value = Vec<(T, T)>> {
        let len = prop_oneof![Just(0_usize), Just(1), Just(2), Just(63), Just(64), Just(65)];
        len.prop_flat_map(|len| prop::collection::vec(any::<(T, T)>(), len))
    }

    /// Adds and subtracts columns, from `skipped` on, and a column and its first value. `results` computes those of
    /// one row.
    fn check<T: Number>(pairs: &[(T, T)], skipped: usize, results: impl Fn(T, T) -> [Option<T>; 2]) {
        let pairs = &pairs[skipped.min(pairs.len())..];
        let (left, right): (Vec<T>, Vec<T>) = pairs.iter().copied().unzip();
        let (a, b) = (Operand::Rows(&left[..]), Operand::Rows(&right[..]));
        let one = Operand::Same(left.first().copied().unwrap_or_default());
        for (a, b) in [(a, b), (a, one), (one, b)] {
            for (number, op) in [BinaryOp::Add, BinaryOp::Subtract].into_iter().enumerate() {
                let mut out = Vec::new();
                let failed = arithmetic(op, a, b, left.len(), &mut out);
                let expected: Vec<Option<T>> =
                    (0..left.len()).map(|row| results(a.at(row), b.at(row))[number]).collect();
                assert_eq!(failed, expected.contains(&None), "{} of {left:?} and {right:?}", op.symbol());
                assert_eq!(out.len(), expected.len());
                for (given, expected) in out.iter().zip(&expected) {
                    assert!(expected.is_none_or(|expected| expected == *given), "{given:?} for {expected:?}");
                }
            }
        }
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
        fn sums_and_differences_are_those_of_single_rows(
            bytes in pairs::<i8>(), unsigned in pairs::<u16>(), wide in pairs::<i64>(), largest in pairs::<u64>(),
            decimals in pairs::<i128>(), floats in pairs::<f64>(), skipped in 0..70_usize,
        ) {
            check(&bytes, skipped, |left, right| [left.checked_add(right), left.checked_sub(right)]);
            check(&unsigned, skipped, |left, right| [left.checked_add(right), left.checked_sub(right)]);
            check(&wide, skipped, |left, right| [left.checked_add(right), left.checked_sub(right)]);
            // Small values as well, whose sums seldom overflow.
            let small: Vec<_> = wide.iter().map(|(left, right)| (left >> 2, right >> 2)).collect();
            check(&small, skipped, |left, right| [left.checked_add(right), left.checked_sub(right)]);
            check(&largest, skipped, |left, right| [left.checked_add(right), left.checked_sub(right)]);
            let small: Vec<_> = largest.iter().map(|(left, right)| (left >> 1 | 1 << 63, right >> 1)).collect();
            check(&small, skipped, |left, right| [left.checked_add(right), left.checked_sub(right)]);
            let decimals: Vec<_> =
                decimals.iter().map(|(left, right)| (left % DECIMAL_LIMIT, right % DECIMAL_LIMIT)).collect();
            let fits = |value: Option<i128>| value.filter(|value| value.unsigned_abs() < DECIMAL_LIMIT as u128);
            check(&decimals, skipped, |left, right| [left.checked_add(right), left.checked_sub(right)].map(fits));
            let floats: Vec<_> =
                floats.into_iter().filter(|(left, right)| (left + right - left + right).is_finite()).collect();
            check(&floats, skipped, |left, right| [Some(left + right), Some(left - right)]);
        }

        #[test]
        fn a_column_fails_when_a_row_does(values in prop::collection::vec(any::<i8>(), 1..50)) {
            let mut out = Vec::new();
            let failed = arithmetic(BinaryOp::Add, Operand::Rows(&values), Operand::Same(100), values.len(), &mut out);
            prop_assert_eq!(failed, values.iter().any(|value| fails(BinaryOp::Add, *value, 100)));
            prop_assert_eq!(failed, values.iter().any(|value| value.checked_add(100).is_none()));
        }
    }
}
