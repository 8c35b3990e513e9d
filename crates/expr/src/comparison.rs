//! Comparison kernels.
//!
//! Floats have one order everywhere in the engine: -0.0 equals 0.0, NaN equals NaN, and NaN is
//! larger than every number. Strings and binary compare bytewise.

use std::cmp::Ordering;

use penstock_memory::{Native, Payloads, view};

use crate::expr::BinaryOp;
use crate::instructions::COMPARES_WIDE;
use crate::operand::{Operand, ask, ask_each};

/// A type with the engine's order.
pub trait Ordered: Native {
    /// Returns true if both are the same value.
    fn same(left: Self, right: Self) -> bool;
    /// Returns true if `left` comes before `right`.
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
ordered!(i8, i16, i32, u8, u16, u32, i128);

impl Ordered for i64 {
    #[inline(always)]
    fn same(left: Self, right: Self) -> bool {
        left == right
    }
    #[inline(always)]
    fn before(left: Self, right: Self) -> bool {
        if COMPARES_WIDE {
            return left < right;
        }
        // By the signs where they differ, otherwise by the difference, which then cannot overflow.
        ((left & !right) | (!(left ^ right) & left.wrapping_sub(right))) < 0
    }
}

impl Ordered for u64 {
    #[inline(always)]
    fn same(left: Self, right: Self) -> bool {
        left == right
    }
    #[inline(always)]
    fn before(left: Self, right: Self) -> bool {
        if COMPARES_WIDE {
            return left < right;
        }
        ((!left & right) | (!(left ^ right) & left.wrapping_sub(right))) >> 63 == 1
    }
}

macro_rules! ordered_float {
    ($($type:ty),*) => {$(
        impl Ordered for $type {
            #[inline(always)]
            fn same(left: Self, right: Self) -> bool { (left == right) | (left.is_nan() & right.is_nan()) }
            #[inline(always)]
            fn before(left: Self, right: Self) -> bool {
                // NaN is on neither side of `<=`, so a NaN on the right is never found at or below the left.
                #[allow(clippy::neg_cmp_op_on_partial_ord, reason = "an unordered pair is meant to be true here")]
                let not_behind = !(right <= left);
                not_behind & !left.is_nan()
            }
        }
    )*};
}
ordered_float!(f32, f64);

/// Compares `left` with `right` for `rows` rows; writes 1 where the comparison holds.
pub(crate) fn compare<T: Ordered>(
    op: BinaryOp,
    left: Operand<'_, T>,
    right: Operand<'_, T>,
    rows: usize,
    out: &mut Vec<u8>,
) {
    match op {
        BinaryOp::Equal => ask(left, right, rows, out, T::same),
        BinaryOp::NotEqual => ask(left, right, rows, out, |left, right| !T::same(left, right)),
        BinaryOp::Less => ask(left, right, rows, out, T::before),
        BinaryOp::LessEqual => ask(left, right, rows, out, |left, right| !T::before(right, left)),
        BinaryOp::Greater => ask(left, right, rows, out, |left, right| T::before(right, left)),
        BinaryOp::GreaterEqual => ask(left, right, rows, out, |left, right| !T::before(left, right)),
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
            if let (Operand::Rows(views), Operand::Same(constant)) = (left, right)
                && view::view_len(constant) <= view::INLINE_BYTES
            {
                // A short text is its view, so no payload is read.
                ask_each(views, out, |view| (view == constant) == wanted);
                return;
            }
            out.extend((0..rows).map(|row| {
                // A view under a null points nowhere (COLUMN-2) and is not followed.
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
    use proptest::prelude::*;

    type Holds = fn(Ordering) -> bool;

    const OPERATORS: [(BinaryOp, Holds); 6] = [
        (BinaryOp::Equal, Ordering::is_eq),
        (BinaryOp::NotEqual, Ordering::is_ne),
        (BinaryOp::Less, Ordering::is_lt),
        (BinaryOp::LessEqual, Ordering::is_le),
        (BinaryOp::Greater, Ordering::is_gt),
        (BinaryOp::GreaterEqual, Ordering::is_ge),
    ];

    /// Compares columns of the values, from `skipped` on, with each other and with the first value.
    fn check<T: Ordered>(pairs: &[(T, T)], skipped: usize, order: impl Fn(T, T) -> Ordering) {
        let (left, right): (Vec<T>, Vec<T>) = pairs.iter().copied().unzip();
        let (left, right) = (&left[skipped.min(left.len())..], &right[skipped.min(right.len())..]);
        let one = pairs.first().map_or(T::default(), |pair| pair.0);
        let (left_rows, right_rows, same) = (Operand::Rows(left), Operand::Rows(right), Operand::Same(one));
        for (op, holds) in OPERATORS {
            for (a, b) in [(left_rows, right_rows), (left_rows, same), (same, right_rows), (same, same)] {
                let mut out = Vec::new();
                compare(op, a, b, left.len(), &mut out);
                let expected: Vec<u8> =
                    (0..left.len()).map(|row| u8::from(holds(order(a.at(row), b.at(row))))).collect();
                assert_eq!(out, expected, "{} of {left:?} and {right:?}", op.symbol());
            }
        }
    }

    /// Pairs of values in columns of every length around those that are compared together.
    fn pairs<T: Copy + std::fmt::Debug>(
        value: impl Strategy<Value = T> + Clone,
    ) -> impl Strategy<Value = Vec<(T, T)>> {
        let len =
            prop_oneof![Just(0_usize), Just(1), Just(15), Just(16), Just(17), Just(63), Just(64), Just(65)];
        let pair = prop_oneof![2 => (value.clone(), value.clone()), 1 => value.prop_map(|one| (one, one))];
        len.prop_flat_map(move |len| prop::collection::vec(pair.clone(), len))
    }

    proptest! {
        #[test]
        fn integers_compare_as_rust_has_it(
            wide in pairs(prop_oneof![any::<i64>(), -2..2_i64, Just(i64::MIN), Just(i64::MAX)]),
            unsigned in pairs(prop_oneof![any::<u64>(), 0..2_u64, Just(u64::MAX), Just(1 << 63)]),
            narrow in pairs(any::<i8>()),
            skipped in 0..20_usize,
        ) {
            check(&wide, skipped, |left, right| left.cmp(&right));
            check(&unsigned, skipped, |left, right| left.cmp(&right));
            check(&narrow, skipped, |left, right| left.cmp(&right));
        }

        #[test]
        fn floats_compare_by_their_one_order(
            values in pairs(prop_oneof![
                any::<f64>(), Just(f64::NAN), Just(-f64::NAN), Just(0.0), Just(-0.0), Just(f64::INFINITY),
            ]),
            skipped in 0..20_usize,
        ) {
            let order = |left: f64, right: f64| {
                left.partial_cmp(&right).unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()))
            };
            check(&values, skipped, order);
            let narrow: Vec<(f32, f32)> =
                values.iter().map(|&(left, right)| (left as f32, right as f32)).collect();
            check(&narrow, skipped, |left, right| order(left.into(), right.into()));
        }

        #[test]
        fn texts_compare_with_a_constant(
            texts in prop::collection::vec(("[ab]{0,14}", any::<bool>()), 0..70),
            constant in prop_oneof!["[ab]{0,14}", Just("b".repeat(13))],
        ) {
            let mut column = penstock_memory::ColumnBuf::new(penstock_memory::Physical::View);
            let mut into = crate::text::TextWriter::new(&mut column);
            into.push(constant.as_bytes());
            texts.iter().for_each(|(text, same)| { into.push(if *same { &constant } else { text }.as_bytes()); });
            into.finish();
            let (views, payloads) = column.as_column().views();
            for (op, holds) in OPERATORS {
                let mut out = Vec::new();
                let sides = ((Operand::Rows(&views[1..]), payloads), (Operand::Same(views[0]), payloads));
                compare_views(op, sides.0, sides.1, None, texts.len(), &mut out);
                let expected: Vec<u8> = texts
                    .iter()
                    .map(|(text, same)| u8::from(holds(if *same { &constant } else { text }.cmp(&constant))))
                    .collect();
                prop_assert_eq!(out, expected);
            }
        }
    }

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
