//! The rows of several streams, as they come.

use std::sync::Arc;

use arrow_schema::{Field, Schema};
use penstock_types::{PlanError, Tick, TypeName};
use serde_json::Value;

use crate::bound::Bound;
use crate::check::fields as fields_of;
use crate::function::Function;
use crate::made::Made;
use crate::plan::Plan;
use crate::resources::Resources;
use crate::scope::Scope;
use crate::step::{Form, Graph, Node, Step, StepOutput, Times, comparable};
use crate::text::{NoFields, StepReader, fields, written};

/// Brings streams of the same columns together.
#[derive(Clone, Debug, PartialEq)]
pub struct UnionStep;

impl Plan {
    /// Brings the rows of all of these together, as they come. They have the same columns.
    pub fn union(plans: &[Self]) -> Result<Self, PlanError> {
        Self::of(UnionStep, plans.iter().map(|plan| Arc::clone(plan.root())).collect())
    }
}

/// Refuses streams whose columns are not those of the first.
fn check_alike(wanted: &[Field], found: &[Field], number: usize) -> Result<(), PlanError> {
    let names = |fields: &[Field]| {
        fields.iter().map(|field| format!("\"{}\"", field.name())).collect::<Vec<_>>().join(", ")
    };
    if names(wanted) != names(found) {
        return Err(PlanError::Invalid(format!(
            "a union needs the same columns in the same order: the first stream has {}, stream {number} has {}; bring them into line with select()",
            names(wanted),
            names(found)
        )));
    }
    for (wanted, found) in wanted.iter().zip(found) {
        if wanted.data_type() != found.data_type() {
            return Err(PlanError::mismatch(
                format!("column \"{}\" of a union", wanted.name()),
                format!(
                    "it is {} in the first stream and {} in stream {number}",
                    TypeName(wanted.data_type()),
                    TypeName(found.data_type())
                ),
            ));
        }
    }
    Ok(())
}

/// Describes the event time of a stream.
fn describe_time(node: &Node) -> String {
    match node.time() {
        Some(time) if time.is_end => format!("the windows of \"{}\"", time.column),
        Some(time) => format!("\"{}\"", time.column),
        None => "no time column".to_owned(),
    }
}

impl Step for UnionStep {
    comparable!();

    fn name(&self) -> &'static str {
        "union"
    }

    fn form(&self) -> Form {
        Form::Union
    }

    fn output(&self, inputs: &[Arc<Node>]) -> Result<StepOutput, PlanError> {
        let [first, others @ ..] = inputs else {
            return Err(PlanError::Invalid("union() needs at least one stream".to_owned()));
        };
        let mut fields = fields_of(first.schema());
        for (number, other) in others.iter().enumerate() {
            check_alike(&fields, &fields_of(other.schema()), number + 2)?;
            if first.time() != other.time() {
                return Err(PlanError::Invalid(format!(
                    "a union needs one event time: the first stream has {}, stream {} has {}",
                    describe_time(first),
                    number + 2,
                    describe_time(other)
                )));
            }
            for (field, other) in fields.iter_mut().zip(other.schema().fields()) {
                if other.is_nullable() && !field.is_nullable() {
                    *field = field.clone().with_nullable(true);
                }
            }
        }
        Graph::of(inputs)?;
        Ok(StepOutput { schema: Arc::new(Schema::new(fields)), time: first.time().cloned() })
    }

    fn describe(&self, _tick: Tick) -> String {
        "all rows".to_owned()
    }

    fn write(&self, _functions: &mut Vec<Function>) -> Result<String, PlanError> {
        written(self.name(), NoFields {})
    }

    fn reads(&self, _port: usize, _input: &Node) -> Vec<String> {
        Vec::new()
    }

    fn passes(&self, column: &str) -> Option<String> {
        Some(column.to_owned())
    }

    fn carrying(self: Arc<Self>, _column: &str) -> Option<Arc<dyn Step>> {
        Some(self)
    }

    fn may_fail(&self) -> bool {
        false
    }

    fn times(&self) -> Times {
        Times::Kept
    }

    fn bind(&self, scope: &mut Scope, _port: usize) -> Result<Bound, PlanError> {
        Ok(Bound::of(scope))
    }

    fn make(&self, _bounds: &[Bound], _resources: &Resources) -> Result<Made, PlanError> {
        Ok(Made::Nothing)
    }
}

pub(super) fn read(_name: &str, text: Value, from: &StepReader<'_>) -> Result<Plan, PlanError> {
    fields::<NoFields>(text)?;
    Plan::union(from.inputs)
}

#[cfg(test)]
mod tests {
    use penstock_expr::Expr;

    use super::*;
    use crate::steps::samples::{bind_last, check_json, events};

    #[test]
    fn a_column_is_null_where_one_stream_may_have_nulls() {
        let nulls = events("b").with_columns(vec![Expr::column("v").alias("k").unwrap()]).unwrap();
        let plan = Plan::union(&[events("a"), nulls]).unwrap();
        let nullable: Vec<bool> = plan.schema().fields().iter().map(|field| field.is_nullable()).collect();
        assert_eq!((nullable, plan.time()), (vec![false, true, true], Some("t")));
        assert_eq!(plan.root().step().describe(Tick::Plain), "all rows");
        check_json(&plan);
    }

    #[test]
    fn streams_that_differ_are_refused() {
        let refused = |plans: &[Plan]| Plan::union(plans).unwrap_err().to_string();
        assert!(refused(&[]).contains("needs at least one stream"));
        let narrow = events("b").select(vec![Expr::column("t")]).unwrap();
        assert!(refused(&[events("a"), narrow]).contains("the same columns in the same order"));
        let untimed = events("b").select(vec![
            Expr::column("k").alias("t").unwrap(),
            Expr::column("t").alias("k").unwrap(),
            Expr::column("v"),
        ]);
        assert!(refused(&[events("a"), untimed.unwrap()]).contains("a union needs one event time"));
        let unnamed = || Plan::stream(events("a").schema(), None, penstock_types::Span::Ticks(0)).unwrap();
        assert!(refused(&[unnamed(), unnamed()]).contains("two streams without a name"));
    }

    #[test]
    fn nothing_runs_for_it() {
        let plan = Plan::union(&[events("a"), events("b")]).unwrap();
        let (bound, scope) = bind_last(&plan, 0);
        assert!(bound.reads().is_empty() && scope.is_as_begun());
        assert!(matches!(plan.root().step().make(&[bound], &Resources::default()), Ok(Made::Nothing)));
        assert_eq!(plan.root().step().passes("k").as_deref(), Some("k"));
    }
}
