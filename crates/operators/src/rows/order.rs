//! The engine's order of two cells: null first, NaN last, -0.0 as 0.0, strings bytewise.

use std::cmp::Ordering;

use penstock_expr::comparison::Ordered;
use penstock_memory::{Column, Values, view};

fn order<T: Ordered>(left: T, right: T) -> Ordering {
    if T::before(left, right) {
        Ordering::Less
    } else if T::same(left, right) {
        Ordering::Equal
    } else {
        Ordering::Greater
    }
}

/// Compares a cell of one column with a cell of another of the same storage.
pub(crate) fn compare_cells(
    left: Column<'_>,
    left_row: usize,
    right: Column<'_>,
    right_row: usize,
) -> Ordering {
    match (left.is_valid(left_row), right.is_valid(right_row)) {
        (true, true) => {}
        (left, right) => return left.cmp(&right),
    }
    macro_rules! compare {
        ($($kind:ident)*) => {
            match (left.values, right.values) {
                $((Values::$kind(left), Values::$kind(right)) => order(left[left_row], right[right_row]),)*
                (Values::View(left, payloads), Values::View(right, others)) => {
                    view::compare(left[left_row], payloads, right[right_row], others)
                }
                _ => panic!("a compiled plan compares columns of one storage type"),
            }
        };
    }
    compare!(I8 I16 I32 I64 U8 U16 U32 U64 F32 F64 I128)
}
