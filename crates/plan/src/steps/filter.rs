//! Keeps the rows for which a predicate holds.

use std::sync::Arc;

use arrow_schema::DataType;
use penstock_expr::Expr;
use penstock_operators::Filter;
use penstock_types::{PlanError, Tick, TypeName};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::single;
use crate::bound::Bound;
use crate::check::check_expr;
use crate::expression::{columns_of, may_fail};
use crate::function::Function;
use crate::made::Made;
use crate::plan::Plan;
use crate::resources::Resources;
use crate::scope::Scope;
use crate::step::{Form, Node, Step, StepOutput, Times, comparable};
use crate::text::{StepReader, fields, written};

/// Keeps rows.
#[derive(Clone, Debug, PartialEq)]
pub struct FilterStep {
    predicate: Expr,
}

impl Plan {
    /// Keeps the rows for which `predicate` holds.
    pub fn filter(&self, predicate: Expr) -> Result<Self, PlanError> {
        self.then(FilterStep { predicate })
    }
}

impl Step for FilterStep {
    comparable!();

    fn name(&self) -> &'static str {
        "filter"
    }

    fn form(&self) -> Form {
        Form::Stage
    }

    fn output(&self, inputs: &[Arc<Node>]) -> Result<StepOutput, PlanError> {
        let input = single(inputs);
        let checked = check_expr(input.schema(), &self.predicate)?;
        if checked.data_type != DataType::Boolean {
            return Err(PlanError::mismatch(
                &self.predicate,
                format!(
                    "a filter needs a bool, and this is {}; compare it with something",
                    TypeName(&checked.data_type)
                ),
            ));
        }
        Ok(StepOutput { schema: Arc::clone(input.schema()), time: input.time().cloned() })
    }

    fn describe(&self, _tick: Tick) -> String {
        self.predicate.to_string()
    }

    fn write(&self, _functions: &mut Vec<Function>) -> Result<String, PlanError> {
        written(self.name(), FilterText { predicate: self.predicate.clone() })
    }

    fn reads(&self, _port: usize, _input: &Node) -> Vec<String> {
        columns_of([&self.predicate])
    }

    fn passes(&self, column: &str) -> Option<String> {
        Some(column.to_owned())
    }

    fn carrying(self: Arc<Self>, _column: &str) -> Option<Arc<dyn Step>> {
        Some(self)
    }

    fn may_fail(&self) -> bool {
        may_fail(&self.predicate)
    }

    fn times(&self) -> Times {
        Times::Kept
    }

    fn bind(&self, scope: &mut Scope, _port: usize) -> Result<Bound, PlanError> {
        let mut bound = Bound::of(scope);
        bound.projection.reads = scope.compile(&self.predicate)?.slots().to_vec();
        Ok(bound)
    }

    fn make(&self, bounds: &[Bound], _resources: &Resources) -> Result<Made, PlanError> {
        Ok(Made::Stage(Box::new(Filter::new(bounds[0].columns.compile(&self.predicate)?))))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FilterText {
    predicate: Expr,
}

pub(super) fn read(_name: &str, text: Value, from: &StepReader<'_>) -> Result<Plan, PlanError> {
    let text: FilterText = fields(text)?;
    let [plan] = from.inputs()?;
    plan.filter(text.predicate)
}

#[cfg(test)]
mod tests {
    use penstock_expr::{BinaryOp, Literal};

    use super::*;
    use crate::steps::samples::{bind_last, check_json, events, is_stage};

    fn positive() -> Plan {
        let predicate = Expr::column("v").binary(BinaryOp::Greater, Expr::literal(Literal::Int(0)));
        events("a").filter(predicate.unwrap()).unwrap()
    }

    #[test]
    fn rows_keep_their_columns_and_their_time() {
        let plan = positive();
        assert_eq!((plan.schema(), plan.time()), (events("a").schema(), Some("t")));
        assert_eq!(plan.root().step().describe(Tick::Plain), "col(\"v\") > 0");
        check_json(&plan);
    }

    #[test]
    fn a_predicate_is_a_bool() {
        let error = events("a").filter(Expr::column("v")).unwrap_err().to_string();
        assert!(error.contains("a filter needs a bool, and this is int64"), "{error}");
    }

    #[test]
    fn it_reads_what_the_predicate_reads_and_fills_nothing() {
        let plan = positive();
        let (bound, scope) = bind_last(&plan, 0);
        assert_eq!((bound.reads(), bound.all_fills()), (vec![2], vec![]));
        assert!(scope.is_as_begun() && is_stage(&plan, &[bound]));
        let step = plan.root().step();
        assert_eq!(step.reads(0, plan.root()), ["v"]);
        assert_eq!((step.passes("k").as_deref(), step.keys(), step.may_fail()), (Some("k"), None, false));
    }
}
