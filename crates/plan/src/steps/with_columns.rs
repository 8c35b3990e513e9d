//! Adds columns, or replaces those of the same name.

use std::sync::Arc;

use arrow_schema::Schema;
use penstock_expr::Expr;
use penstock_types::{PlanError, Tick};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::single;
use crate::bound::{Bound, Projection};
use crate::check::{check_expr, check_unique, expr_field, fields as fields_of};
use crate::expression::{columns_of, may_fail};
use crate::function::Function;
use crate::made::Made;
use crate::plan::Plan;
use crate::resources::Resources;
use crate::scope::Scope;
use crate::step::{Form, Node, Step, StepOutput, Times, comparable};
use crate::text::{StepReader, fields, list, written};

/// Adds or replaces columns.
#[derive(Clone, Debug, PartialEq)]
pub struct WithColumnsStep {
    columns: Vec<Expr>,
}

impl Plan {
    /// Adds columns, or replaces those of the same name.
    pub fn with_columns(&self, columns: Vec<Expr>) -> Result<Self, PlanError> {
        self.then(WithColumnsStep { columns })
    }
}

impl Step for WithColumnsStep {
    comparable!();

    fn name(&self) -> &'static str {
        "with_columns"
    }

    fn form(&self) -> Form {
        Form::Stage
    }

    fn output(&self, inputs: &[Arc<Node>]) -> Result<StepOutput, PlanError> {
        let input = single(inputs);
        let mut fields = fields_of(input.schema());
        let names: Vec<String> = self.columns.iter().map(Expr::output_name).collect();
        check_unique(names.iter().map(String::as_str), "rename one of them with .alias(\"...\")")?;
        for (expr, name) in self.columns.iter().zip(&names) {
            let field = expr_field(name.clone(), &check_expr(input.schema(), expr)?);
            let is_time = input.time().is_some_and(|time| &time.column == name);
            if is_time && expr.as_column() != Some(name) {
                return Err(PlanError::Invalid(format!(
                    "\"{name}\" is the time column and cannot be replaced: lateness was decided by it; give the new column another name"
                )));
            }
            match fields.iter_mut().find(|existing| existing.name() == name) {
                Some(existing) => *existing = field,
                None => fields.push(field),
            }
        }
        Ok(StepOutput { schema: Arc::new(Schema::new(fields)), time: input.time().cloned() })
    }

    fn describe(&self, _tick: Tick) -> String {
        list(&self.columns)
    }

    fn write(&self, _functions: &mut Vec<Function>) -> Result<String, PlanError> {
        written(self.name(), WithColumnsText { columns: self.columns.clone() })
    }

    fn reads(&self, _port: usize, _input: &Node) -> Vec<String> {
        columns_of(&self.columns)
    }

    fn passes(&self, column: &str) -> Option<String> {
        let replaces = |expr: &Expr| expr.output_name() == column && expr.as_column() != Some(column);
        (!self.columns.iter().any(replaces)).then(|| column.to_owned())
    }

    fn carrying(self: Arc<Self>, _column: &str) -> Option<Arc<dyn Step>> {
        Some(self)
    }

    fn may_fail(&self) -> bool {
        self.columns.iter().any(may_fail)
    }

    fn times(&self) -> Times {
        Times::Kept
    }

    fn bind(&self, scope: &mut Scope, _port: usize) -> Result<Bound, PlanError> {
        let mut bound = Bound::of(scope);
        let (projection, places) = Projection::bind(scope, &self.columns)?;
        bound.is_free = projection.computed.is_empty();
        bound.projection = projection;
        let mut slots = scope.slots().to_vec();
        for (expr, place) in self.columns.iter().zip(places) {
            match bound.columns.schema.fields().find(&expr.output_name()) {
                Some((column, _)) => slots[column] = place.slot,
                None => slots.push(place.slot),
            }
        }
        scope.set_slots(slots);
        Ok(bound)
    }

    fn make(&self, bounds: &[Bound], _resources: &Resources) -> Result<Made, PlanError> {
        Ok(Made::Stage(Box::new(bounds[0].projection.make(&bounds[0].columns)?)))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WithColumnsText {
    columns: Vec<Expr>,
}

pub(super) fn read(_name: &str, text: Value, from: &StepReader<'_>) -> Result<Plan, PlanError> {
    let text: WithColumnsText = fields(text)?;
    let [plan] = from.inputs()?;
    plan.with_columns(text.columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::samples::{add, bind_last, check_json, events, is_stage};

    fn widened() -> Plan {
        events("a").with_columns(vec![add("k", "v").alias("v").unwrap(), add("k", "k").alias("kk").unwrap()]).unwrap()
    }

    #[test]
    fn columns_are_replaced_in_place_and_added_at_the_end() {
        let plan = widened();
        let names: Vec<&str> = plan.schema().fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!((names, plan.time()), (vec!["t", "k", "v", "kk"], Some("t")));
        let words = "v = col(\"k\") + col(\"v\"), kk = col(\"k\") + col(\"k\")";
        assert_eq!(plan.root().step().describe(Tick::Plain), words);
        check_json(&plan);
    }

    #[test]
    fn the_time_column_stays() {
        let error = events("a").with_columns(vec![add("k", "v").alias("t").unwrap()]).unwrap_err().to_string();
        assert!(error.contains("\"t\" is the time column and cannot be replaced"), "{error}");
    }

    #[test]
    fn a_replaced_column_takes_a_new_slot() {
        let (bound, scope) = bind_last(&widened(), 0);
        assert_eq!(bound.all_fills(), [4, 5]);
        assert_eq!(scope.slots(), [0, 1, 4, 5]);
        assert!(is_stage(&widened(), &[bound]));
        let copied = events("a").with_columns(vec![Expr::column("k").alias("v").unwrap()]).unwrap();
        let (bound, scope) = bind_last(&copied, 0);
        assert!(bound.is_free);
        assert_eq!(scope.slots(), [0, 1, 1]);
    }

    #[test]
    fn a_column_passes_unless_it_is_replaced() {
        let plan = widened();
        let step = plan.root().step();
        assert_eq!((step.passes("k").as_deref(), step.passes("v")), (Some("k"), None));
    }
}
