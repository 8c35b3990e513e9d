//! Aggregates as they were written.

use std::fmt;

use arrow_schema::{Field, Schema};
use penstock_expr::Expr;
use penstock_operators::aggregates::{AccumulatorFactory, AggregateKind};
use penstock_types::PlanError;

use crate::check::check_expr;

/// An aggregate as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Aggregate {
    /// Which one.
    pub kind: AggregateKind,
    /// What it aggregates; `None` counts rows.
    pub input: Option<Expr>,
    /// The name of its column, when one was given.
    pub name: Option<String>,
}

impl Aggregate {
    /// The name of its column: as given, or made of the input and the kind.
    pub fn output_name(&self) -> String {
        match (&self.name, &self.input) {
            (Some(name), _) => name.clone(),
            (None, None) => self.kind.name().to_owned(),
            (None, Some(input)) => format!("{}_{}", input.output_name(), self.kind.name()),
        }
    }

    /// Makes the factory of its state, for input of that type.
    pub(crate) fn factory(
        &self,
        input: Option<arrow_schema::DataType>,
    ) -> Result<AccumulatorFactory, PlanError> {
        AccumulatorFactory::new(self.kind, input, self.to_string())
    }
}

impl fmt::Display for Aggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.input {
            None => write!(f, "{}()", self.kind.name()),
            Some(input) => write!(f, "{}({input})", self.kind.name()),
        }
    }
}

/// The expressions that some aggregates read.
pub(crate) fn inputs(aggregates: &[Aggregate]) -> impl Iterator<Item = &Expr> {
    aggregates.iter().filter_map(|aggregate| aggregate.input.as_ref())
}

/// Returns the columns of the aggregates over rows of that schema. With `is_alone`, every result has at least one row.
pub(crate) fn aggregate_fields(
    schema: &Schema,
    aggregates: &[Aggregate],
    is_alone: bool,
) -> Result<Vec<Field>, PlanError> {
    let mut fields = Vec::new();
    for aggregate in aggregates {
        let input = aggregate.input.as_ref().map(|expr| check_expr(schema, expr)).transpose()?;
        let factory = aggregate.factory(input.as_ref().map(|input| input.data_type.clone()))?;
        let nullable = match aggregate.kind {
            AggregateKind::Count | AggregateKind::CountDistinct => false,
            // Of one value there is none.
            AggregateKind::Var | AggregateKind::Std => true,
            _ => !is_alone || input.is_none_or(|input| input.nullable),
        };
        fields.push(Field::new(aggregate.output_name(), factory.output().clone(), nullable));
    }
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use arrow_schema::DataType;

    use super::*;

    fn of(kind: AggregateKind, input: Option<&str>) -> Aggregate {
        Aggregate { kind, input: input.map(Expr::column), name: None }
    }

    #[test]
    fn a_column_is_named_after_its_input_and_kind() {
        assert_eq!(of(AggregateKind::Count, None).output_name(), "count");
        assert_eq!(of(AggregateKind::Sum, Some("v")).output_name(), "v_sum");
        let named = Aggregate { name: Some("total".to_owned()), ..of(AggregateKind::Sum, Some("v")) };
        assert_eq!(
            (named.output_name(), named.to_string()),
            ("total".to_owned(), "sum(col(\"v\"))".to_owned())
        );
    }

    #[test]
    fn results_are_null_where_a_stream_may_bring_no_row() {
        let schema = Schema::new(vec![Field::new("v", DataType::Int64, false)]);
        let aggregates = [of(AggregateKind::Count, None), of(AggregateKind::Max, Some("v"))];
        let nullable = |is_alone| {
            let fields = aggregate_fields(&schema, &aggregates, is_alone).unwrap();
            fields.iter().map(Field::is_nullable).collect::<Vec<_>>()
        };
        assert_eq!((nullable(true), nullable(false)), (vec![false, false], vec![false, true]));
    }
}
