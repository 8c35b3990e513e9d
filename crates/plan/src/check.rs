//! Checks that several steps share: types, names, expressions, durations.

use std::collections::HashSet;

use arrow_schema::{DataType, Field, Schema};
use penstock_expr::{Expr, ExprScope, Expression, compile};
use penstock_memory::Physical;
use penstock_types::{PlanError, Span, Tick, TypeName};

/// Refuses a column of a type that the engine does not run.
pub fn check_supported(field: &Field) -> Result<(), PlanError> {
    if Physical::of(field.data_type()).is_some() {
        return Ok(());
    }
    let hint = match field.data_type() {
        DataType::Float16 => "; cast it to float32",
        DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal256(..) => {
            "; cast it to decimal128"
        }
        DataType::FixedSizeBinary(_) => "; cast it to binary",
        DataType::Null => "; give it a type",
        DataType::Struct(_) => "; put its fields into columns of their own",
        _ => "; leave it out of the schema, or cast it to a supported type",
    };
    Err(PlanError::UnsupportedType {
        column: field.name().clone(),
        type_name: TypeName(field.data_type()).to_string(),
        hint: hint.to_owned(),
    })
}

/// Refuses two columns of one name.
pub(crate) fn check_unique<'a>(
    names: impl IntoIterator<Item = &'a str>,
    advice: &str,
) -> Result<(), PlanError> {
    let mut seen = HashSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(PlanError::Invalid(format!("two columns are named \"{name}\"; {advice}")));
        }
    }
    Ok(())
}

/// The names of some columns, in order.
pub(crate) fn names(fields: &[Field]) -> impl Iterator<Item = &str> {
    fields.iter().map(|field| field.name().as_str())
}

/// The columns of a schema, as plain fields.
pub(crate) fn fields(schema: &Schema) -> Vec<Field> {
    schema.fields().iter().map(|field| field.as_ref().clone()).collect()
}

/// Checks an expression against the columns that it can read.
pub fn check_expr(schema: &Schema, expr: &Expr) -> Result<Expression, PlanError> {
    let slots: Vec<usize> = (0..schema.fields().len()).collect();
    compile(expr, ExprScope { schema, slots: &slots })
}

/// Returns the columns that some expressions compute.
pub(crate) fn expr_fields(schema: &Schema, exprs: &[Expr]) -> Result<Vec<Field>, PlanError> {
    exprs.iter().map(|expr| Ok(expr_field(expr.output_name(), &check_expr(schema, expr)?))).collect()
}

/// The column that an expression computes, under that name.
pub(crate) fn expr_field(name: String, expression: &Expression) -> Field {
    Field::new(name, expression.data_type.clone(), expression.nullable)
}

/// Converts a duration by the clock to nanoseconds.
pub(crate) fn clock_ns(span: Span, what: &str) -> Result<u64, PlanError> {
    let wrong = |text: String, reason: &str| PlanError::Duration { text, reason: format!("{what} {reason}") };
    match span {
        Span::Nanos(ns) => match u64::try_from(ns) {
            Ok(ns) if ns > 0 => Ok(ns),
            _ => Err(wrong(Tick::Nanosecond.describe(ns), "must be positive, and less than 500 years")),
        },
        Span::Ticks(ticks) => {
            Err(wrong(ticks.to_string(), "goes by the clock: write it with a unit, such as \"5s\""))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_that_no_operator_runs_are_refused_with_a_hint() {
        let of = |data_type| check_supported(&Field::new("x", data_type, true)).unwrap_err().to_string();
        assert!(of(DataType::Float16).ends_with("; cast it to float32"));
        assert!(of(DataType::Null).ends_with("; give it a type"));
        assert!(check_supported(&Field::new("x", DataType::Int64, true)).is_ok());
    }

    #[test]
    fn names_are_unique() {
        assert!(check_unique(["a", "b"], "rename").is_ok());
        let error = check_unique(["a", "b", "a"], "rename").unwrap_err();
        assert_eq!(error.to_string(), "two columns are named \"a\"; rename");
    }

    #[test]
    fn a_duration_by_the_clock_needs_a_unit_and_is_positive() {
        assert_eq!(clock_ns(Span::Nanos(5), "x").unwrap(), 5);
        assert!(clock_ns(Span::Nanos(0), "x").unwrap_err().to_string().contains("x must be positive"));
        assert!(clock_ns(Span::Ticks(5), "x").unwrap_err().to_string().contains("goes by the clock"));
    }
}
