//! What a plan asks about an expression without running it.

use penstock_expr::expr::Kind;
use penstock_expr::{BinaryOp, Expr, ScalarFunction, UnaryOp};

/// Lists the columns that some expressions read, each once, in the order in which they are met.
pub fn columns_of<'a>(exprs: impl IntoIterator<Item = &'a Expr>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for expr in exprs {
        visit(expr, &mut |kind| {
            if let Kind::Column(name) = kind
                && !found.contains(name)
            {
                found.push(name.clone());
            }
        });
    }
    found
}

/// Returns whether an expression may have no value for a row, so that the row is rejected or the query fails.
///
/// `false` is a promise. `true` is not: arithmetic counts as fallible whatever its types are.
pub fn may_fail(expr: &Expr) -> bool {
    let mut fallible = false;
    visit(expr, &mut |kind| {
        fallible |= match kind {
            Kind::Column(_) | Kind::Literal(_) | Kind::Alias(..) | Kind::When(..) => false,
            Kind::Binary(op, ..) => {
                !matches!(
                    op,
                    BinaryOp::Equal | BinaryOp::NotEqual | BinaryOp::And | BinaryOp::Or | BinaryOp::Xor
                ) && !is_ordering(*op)
            }
            Kind::Unary(op, _) => matches!(op, UnaryOp::Negate),
            Kind::Call(function, _) => !is_total(*function),
            Kind::Cast(..) => true,
        };
    });
    fallible
}

/// Returns the name under which a column passes expressions unchanged, if it does.
pub(crate) fn passed(exprs: &[Expr], column: &str) -> Option<String> {
    exprs.iter().find(|expr| expr.as_column() == Some(column)).map(Expr::output_name)
}

fn is_ordering(op: BinaryOp) -> bool {
    matches!(op, BinaryOp::Less | BinaryOp::LessEqual | BinaryOp::Greater | BinaryOp::GreaterEqual)
}

/// Whether a function has a value for every row.
fn is_total(function: ScalarFunction) -> bool {
    matches!(
        function,
        ScalarFunction::Coalesce
            | ScalarFunction::Length
            | ScalarFunction::ByteLength
            | ScalarFunction::Contains
            | ScalarFunction::StartsWith
            | ScalarFunction::EndsWith
    )
}

fn visit<'a>(expr: &'a Expr, see: &mut dyn FnMut(&'a Kind)) {
    // Expressions are at most `MAX_DEPTH` deep.
    see(expr.kind());
    match expr.kind() {
        Kind::Column(_) | Kind::Literal(_) => {}
        Kind::Binary(_, left, right) => {
            visit(left, see);
            visit(right, see);
        }
        Kind::Unary(_, inner) | Kind::Alias(inner, _) | Kind::Cast(inner, _) => visit(inner, see),
        Kind::When(branches, otherwise) => {
            for (condition, value) in branches {
                visit(condition, see);
                visit(value, see);
            }
            otherwise.iter().for_each(|otherwise| visit(otherwise, see));
        }
        Kind::Call(_, inputs) => inputs.iter().for_each(|input| visit(input, see)),
    }
}

#[cfg(test)]
mod tests {
    use penstock_expr::Literal;

    use super::*;

    fn col(name: &str) -> Expr {
        Expr::column(name)
    }

    #[test]
    fn columns_are_listed_once_wherever_they_are_read() {
        let sum = col("a").binary(BinaryOp::Add, col("b")).unwrap();
        let chosen = Expr::when(vec![(col("c"), sum)], Some(col("a"))).unwrap();
        assert_eq!(columns_of([&chosen, &col("d")]), ["c", "a", "b", "d"]);
    }

    #[test]
    fn comparisons_cannot_fail_and_arithmetic_may() {
        let one = || Expr::literal(Literal::Int(1));
        assert!(!may_fail(&col("a").binary(BinaryOp::Less, one()).unwrap()));
        assert!(may_fail(&col("a").binary(BinaryOp::Add, one()).unwrap()));
        let inside = col("a").binary(BinaryOp::Divide, one()).unwrap();
        assert!(may_fail(&inside.binary(BinaryOp::Less, one()).unwrap()), "an operand counts");
    }

    #[test]
    fn a_column_passes_under_its_alias() {
        let exprs = [col("a").alias("b").unwrap(), col("c")];
        assert_eq!(passed(&exprs, "a").as_deref(), Some("b"));
        assert_eq!(passed(&exprs, "c").as_deref(), Some("c"));
        assert_eq!(passed(&exprs, "b"), None);
    }
}
