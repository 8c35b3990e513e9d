//! Boolean kernels, with SQL's three-valued logic for `&` and `|`.

use penstock_memory::{Column, ColumnBuf};

use crate::expr::BinaryOp;

/// Computes `left op right`; both hold bytes that are 0 or 1.
pub(crate) fn logic(op: BinaryOp, left: Column<'_>, right: Column<'_>, out: &mut ColumnBuf) {
    let (a, b) = (left.fixed::<u8>(), right.fixed::<u8>());
    let values = out.refill::<u8>();
    let pairs = a.iter().zip(b);
    match op {
        BinaryOp::And => values.extend(pairs.map(|(a, b)| a & b)),
        BinaryOp::Or => values.extend(pairs.map(|(a, b)| a | b)),
        _ => values.extend(pairs.map(|(a, b)| a ^ b)),
    }
    if left.valid.is_none() && right.valid.is_none() {
        return;
    }
    // A side that is known and decides (false for &, true for |) makes the result known.
    let decides = |value: u8| match op {
        BinaryOp::And => value == 0,
        BinaryOp::Or => value == 1,
        _ => false,
    };
    let known: Vec<(u8, u8)> = (0..a.len())
        .map(|row| {
            let (left_known, right_known) = (left.is_valid(row), right.is_valid(row));
            match (left_known, right_known) {
                (true, true) => (values[row], 1),
                (true, false) if decides(a[row]) => (a[row], 1),
                (false, true) if decides(b[row]) => (b[row], 1),
                _ => (0, 0),
            }
        })
        .collect();
    values.clear();
    values.extend(known.iter().map(|(value, _)| value));
    out.refill_mask().extend(known.iter().map(|(_, valid)| valid));
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_memory::Physical;

    fn column(values: &[Option<bool>]) -> ColumnBuf {
        let mut column = ColumnBuf::new(Physical::U8);
        // What stands under a null must not matter (C2).
        column.refill::<u8>().extend(values.iter().map(|value| u8::from(value.unwrap_or(true))));
        column.refill_mask().extend(values.iter().map(|value| u8::from(value.is_some())));
        column
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
