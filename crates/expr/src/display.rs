//! Expressions as Python text.

use std::fmt;

use penstock_types::TypeName;

use crate::expr::{Expr, Kind, UnaryOp};
use crate::function::ScalarFunction;
use crate::literal::Literal;

/// Writes `expr` as an operand of an operator.
fn write_operand(expr: &Expr, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match expr.kind() {
        Kind::Binary(..) => write!(f, "({expr})"),
        _ => write!(f, "{expr}"),
    }
}

/// Writes `expr` as the receiver of a method.
fn write_receiver(expr: &Expr, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match expr.kind() {
        Kind::Binary(..) | Kind::Unary(UnaryOp::Negate | UnaryOp::Not, _) => write!(f, "({expr})"),
        Kind::Literal(_) => {
            f.write_str("lit(")?;
            write_argument(expr, f)?;
            f.write_str(")")
        }
        _ => write!(f, "{expr}"),
    }
}

/// Writes `expr` as an argument, within existing parentheses.
fn write_argument(expr: &Expr, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match expr.kind() {
        Kind::Literal(Literal::Null) => f.write_str("None"),
        _ => write!(f, "{expr}"),
    }
}

fn write_arguments(exprs: &[Expr], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("(")?;
    for (place, expr) in exprs.iter().enumerate() {
        if place > 0 {
            f.write_str(", ")?;
        }
        write_argument(expr, f)?;
    }
    f.write_str(")")
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            Kind::Column(name) => write!(f, "col({name:?})"),
            Kind::Literal(value) => write!(f, "{value}"),
            Kind::Binary(op, left, right) => {
                write_operand(left, f)?;
                write!(f, " {} ", op.symbol())?;
                write_operand(right, f)
            }
            Kind::Unary(op @ (UnaryOp::Negate | UnaryOp::Not), input) => {
                f.write_str(op.symbol())?;
                write_operand(input, f)
            }
            Kind::Unary(op, input) => {
                write_operand(input, f)?;
                write!(f, ".{}()", op.symbol())
            }
            Kind::Alias(input, name) => {
                write_operand(input, f)?;
                write!(f, ".alias({name:?})")
            }
            Kind::Cast(input, data_type) => {
                write_receiver(input, f)?;
                write!(f, ".cast(\"{}\")", TypeName(data_type))
            }
            Kind::When(branches, otherwise) => {
                for (place, (condition, value)) in branches.iter().enumerate() {
                    f.write_str(if place == 0 { "when(" } else { ".when(" })?;
                    write_argument(condition, f)?;
                    f.write_str(").then(")?;
                    write_argument(value, f)?;
                    f.write_str(")")?;
                }
                if let Some(otherwise) = otherwise {
                    f.write_str(".otherwise(")?;
                    write_argument(otherwise, f)?;
                    f.write_str(")")?;
                }
                Ok(())
            }
            Kind::Call(function @ ScalarFunction::Coalesce, inputs) => {
                f.write_str(function.name())?;
                write_arguments(inputs, f)
            }
            Kind::Call(function, inputs) => {
                write_receiver(&inputs[0], f)?;
                write!(f, ".{}", function.name())?;
                write_arguments(&inputs[1..], f)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::BinaryOp;
    use arrow_schema::{DataType, TimeUnit};

    #[test]
    fn expressions_print_as_python() {
        let a = Expr::column("a");
        let int = |value| Expr::literal(Literal::Int(value));
        let sum = a.clone().binary(BinaryOp::Add, int(1)).unwrap();
        let above = a.clone().binary(BinaryOp::Greater, int(1)).unwrap();
        let null = Expr::literal(Literal::Null);
        let call = |function, inputs: &[&Expr]| {
            Expr::call(function, inputs.iter().map(|&expr| expr.clone()).collect()).unwrap()
        };
        let text = Expr::literal(Literal::String("x".to_owned()));
        let branches = vec![(above.clone(), int(2)), (a.clone(), null.clone())];
        for (expr, printed) in [
            (a.clone().cast(DataType::Int64).unwrap(), "col(\"a\").cast(\"int64\")"),
            (
                sum.clone().cast(DataType::Timestamp(TimeUnit::Second, Some("UTC".into()))).unwrap(),
                "(col(\"a\") + 1).cast(\"timestamp[s, tz=UTC]\")",
            ),
            (int(-1).cast(DataType::Int8).unwrap(), "lit(-1).cast(\"int8\")"),
            (null.cast(DataType::Int8).unwrap(), "lit(None).cast(\"int8\")"),
            (
                Expr::when(branches.clone(), Some(int(3))).unwrap(),
                "when(col(\"a\") > 1).then(2).when(col(\"a\")).then(None).otherwise(3)",
            ),
            (Expr::when(branches[..1].to_vec(), None).unwrap(), "when(col(\"a\") > 1).then(2)"),
            (call(ScalarFunction::Contains, &[&a, &text]), "col(\"a\").str.contains(\"x\")"),
            (call(ScalarFunction::Lower, &[&a]), "col(\"a\").str.lower()"),
            (call(ScalarFunction::Coalesce, &[&sum, &int(0)]), "coalesce(col(\"a\") + 1, 0)"),
            (call(ScalarFunction::Abs, &[&a.clone().unary(UnaryOp::Negate).unwrap()]), "(-col(\"a\")).abs()"),
        ] {
            assert_eq!(expr.to_string(), printed);
        }
    }
}
