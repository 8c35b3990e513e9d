//! Boolean kernels, with SQL's three-valued logic for `&` and `|`.

use penstock_memory::{Column, ColumnBuf};

use crate::expr::BinaryOp;

/// Computes `left op right`; both hold bytes that are 0 or 1.
pub(crate) fn logic(op: BinaryOp, left: Column<'_>, right: Column<'_>, out: &mut ColumnBuf) {
    let (a, b) = (left.fixed::<u8>(), right.fixed::<u8>());
    if left.valid.is_some() || right.valid.is_some() {
        let everywhere = vec![1; a.len()];
        let known = [left, right].map(|column| column.valid.unwrap_or(&everywhere));
        known_or_not(op, (a, known[0]), (b, known[1]), out);
        return;
    }
    let values = out.refill::<u8>();
    let pairs = a.iter().zip(b);
    match op {
        BinaryOp::And => values.extend(pairs.map(|(a, b)| a & b)),
        BinaryOp::Or => values.extend(pairs.map(|(a, b)| a | b)),
        _ => values.extend(pairs.map(|(a, b)| a ^ b)),
    }
}

/// Returns values and masks of both sides, row by row: known and true, known and false.
fn sides<'a>(
    (a, a_known): (&'a [u8], &'a [u8]),
    (b, b_known): (&'a [u8], &'a [u8]),
) -> impl Iterator<Item = ((u8, u8), (u8, u8))> {
    let side = |(&value, &known): (&u8, &u8)| (value & known, (value ^ 1) & known);
    a.iter().zip(a_known).map(side).zip(b.iter().zip(b_known).map(side))
}

/// Computes `left op right` where either may be null. A known side that decides, false for `&` and true for `|`, makes
/// the result known.
fn known_or_not(op: BinaryOp, left: (&[u8], &[u8]), right: (&[u8], &[u8]), out: &mut ColumnBuf) {
    let rows = || sides(left, right);
    let values = out.refill::<u8>();
    match op {
        BinaryOp::And => values.extend(rows().map(|((a, _), (b, _))| a & b)),
        BinaryOp::Or => values.extend(rows().map(|((a, _), (b, _))| a | b)),
        _ => values.extend(rows().map(|((a, not_a), (b, not_b))| a & not_b | not_a & b)),
    }
    let known = out.refill_mask();
    match op {
        BinaryOp::And => known.extend(rows().map(|((a, not_a), (b, not_b))| a & b | not_a | not_b)),
        BinaryOp::Or => known.extend(rows().map(|((a, not_a), (b, not_b))| a | b | not_a & not_b)),
        _ => known.extend(rows().map(|((a, not_a), (b, not_b))| (a | not_a) & (b | not_b))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_memory::Physical;
    use proptest::prelude::*;

    fn column(values: &[Option<bool>]) -> ColumnBuf {
        let mut column = ColumnBuf::new(Physical::U8);
        // Values under a null must not matter (COLUMN-2).
        column.refill::<u8>().extend(values.iter().map(|value| u8::from(value.unwrap_or(true))));
        column.refill_mask().extend(values.iter().map(|value| u8::from(value.is_some())));
        column
    }

    fn expected(op: BinaryOp, left: Option<bool>, right: Option<bool>) -> Option<bool> {
        match (op, left, right) {
            (BinaryOp::And, Some(false), _) | (BinaryOp::And, _, Some(false)) => Some(false),
            (BinaryOp::Or, Some(true), _) | (BinaryOp::Or, _, Some(true)) => Some(true),
            (BinaryOp::And, Some(_), Some(_)) => Some(true),
            (BinaryOp::Or, Some(_), Some(_)) => Some(false),
            (_, Some(left), Some(right)) => Some(left != right),
            _ => None,
        }
    }

    proptest! {
        #[test]
        fn columns_follow_them_too(
            rows in prop_oneof![Just(0_usize), Just(1), Just(63), Just(64), Just(65)].prop_flat_map(|rows| {
                prop::collection::vec(any::<(Option<bool>, Option<bool>)>(), rows)
            }),
            full in any::<(bool, bool)>(),
        ) {
            // With a mask on both sides, on one, and on none.
            let side = |full: bool, value: Option<bool>| if full { value.or(Some(false)) } else { value };
            let left: Vec<_> = rows.iter().map(|row| side(full.0, row.0)).collect();
            let right: Vec<_> = rows.iter().map(|row| side(full.1, row.1)).collect();
            let (mut a, mut b) = (column(&left), column(&right));
            a.clear_mask_if_full();
            b.clear_mask_if_full();
            for op in [BinaryOp::And, BinaryOp::Or, BinaryOp::Xor] {
                let mut out = ColumnBuf::new(Physical::U8);
                logic(op, a.as_column(), b.as_column(), &mut out);
                let given = out.as_column();
                prop_assert_eq!(given.fixed::<u8>().len(), left.len());
                for row in 0..left.len() {
                    let answer = given.is_valid(row).then(|| given.fixed::<u8>()[row] == 1);
                    prop_assert_eq!(answer, expected(op, left[row], right[row]));
                }
            }
        }
    }

    #[test]
    fn follows_the_truth_tables() {
        let all = [Some(true), Some(false), None];
        for left in all {
            for right in all {
                let and = if left == Some(false) || right == Some(false) {
                    Some(false)
                } else {
                    left.zip(right).map(|_| true)
                };
                let or = if left == Some(true) || right == Some(true) {
                    Some(true)
                } else {
                    left.zip(right).map(|_| false)
                };
                let xor = left.zip(right).map(|(left, right)| left != right);
                for (op, expected) in [(BinaryOp::And, and), (BinaryOp::Or, or), (BinaryOp::Xor, xor)] {
                    let mut out = ColumnBuf::new(Physical::U8);
                    logic(op, column(&[left]).as_column(), column(&[right]).as_column(), &mut out);
                    let given = out.as_column();
                    let given = given.is_valid(0).then(|| given.fixed::<u8>()[0] == 1);
                    assert_eq!(given, expected, "{left:?} {} {right:?}", op.symbol());
                }
            }
        }
    }
}
