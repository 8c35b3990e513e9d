//! Keeps only some columns, or computes others of them.

use std::sync::Arc;

use arrow_schema::Schema;
use penstock_expr::Expr;
use penstock_types::{PlanError, Tick};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::single;
use crate::bound::{Bound, Projection};
use crate::check::{check_unique, expr_fields, names};
use crate::expression::{columns_of, may_fail, passed};
use crate::function::Function;
use crate::made::Made;
use crate::plan::Plan;
use crate::resources::Resources;
use crate::scope::Scope;
use crate::step::{Form, Node, Step, StepOutput, Times, comparable};
use crate::text::{StepReader, fields, list, written};
use crate::time::EventTime;

/// Keeps columns.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectStep {
    columns: Vec<Expr>,
}

impl SelectStep {
    /// Keeps these columns.
    pub(crate) fn new(columns: Vec<Expr>) -> Self {
        Self { columns }
    }
}

impl Plan {
    /// Keeps only these columns.
    pub fn select(&self, columns: Vec<Expr>) -> Result<Self, PlanError> {
        if columns.is_empty() {
            return Err(PlanError::Invalid("select() needs at least one column".to_owned()));
        }
        self.then(SelectStep { columns })
    }
}

impl Step for SelectStep {
    comparable!();

    fn name(&self) -> &'static str {
        "select"
    }

    fn form(&self) -> Form {
        Form::Stage
    }

    fn output(&self, inputs: &[Arc<Node>]) -> Result<StepOutput, PlanError> {
        let input = single(inputs);
        let fields = expr_fields(input.schema(), &self.columns)?;
        check_unique(names(&fields), "rename one of them with .alias(\"...\")")?;
        let time = input.time().and_then(|time| {
            let column = passed(&self.columns, &time.column)?;
            Some(EventTime { column, ..time.clone() })
        });
        Ok(StepOutput { schema: Arc::new(Schema::new(fields)), time })
    }

    fn describe(&self, _tick: Tick) -> String {
        list(&self.columns)
    }

    fn write(&self, _functions: &mut Vec<Function>) -> Result<String, PlanError> {
        written(self.name(), SelectText { columns: self.columns.clone() })
    }

    fn reads(&self, _port: usize, _input: &Node) -> Vec<String> {
        columns_of(&self.columns)
    }

    fn passes(&self, column: &str) -> Option<String> {
        passed(&self.columns, column)
    }

    fn carrying(self: Arc<Self>, column: &str) -> Option<Arc<dyn Step>> {
        let mut columns = vec![Expr::column(column)];
        columns.extend(self.columns.iter().cloned());
        Some(Arc::new(Self { columns }))
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
        scope.set_slots(places.into_iter().map(|place| place.slot).collect());
        Ok(bound)
    }

    fn make(&self, bounds: &[Bound], _resources: &Resources) -> Result<Made, PlanError> {
        Ok(Made::Stage(Box::new(bounds[0].projection.make(&bounds[0].columns)?)))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SelectText {
    columns: Vec<Expr>,
}

pub(super) fn read(_name: &str, text: Value, from: &StepReader<'_>) -> Result<Plan, PlanError> {
    let text: SelectText = fields(text)?;
    let [plan] = from.inputs()?;
    plan.select(text.columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::samples::{add, bind_last, check_json, events, is_stage};

    fn selected() -> Plan {
        events("a").select(vec![Expr::column("t").alias("at").unwrap(), add("k", "v")]).unwrap()
    }

    #[test]
    fn columns_are_renamed_and_computed_and_time_follows() {
        let plan = selected();
        let names: Vec<&str> = plan.schema().fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!((names, plan.time()), (vec!["at", "col(\"k\") + col(\"v\")"], Some("at")));
        assert_eq!(plan.root().step().describe(Tick::Plain), "at = col(\"t\"), col(\"k\") + col(\"v\")");
        check_json(&plan);
    }

    #[test]
    fn time_is_lost_with_its_column() {
        assert_eq!(events("a").select(vec![Expr::column("v")]).unwrap().time(), None);
        assert!(events("a").select(vec![]).is_err());
        assert!(events("a").select(vec![Expr::column("v"), Expr::column("v")]).is_err());
    }

    #[test]
    fn computed_columns_take_slots_and_renamed_ones_cost_nothing() {
        let (bound, scope) = bind_last(&selected(), 0);
        assert_eq!((bound.reads(), bound.all_fills()), (vec![1, 2], vec![4]));
        assert_eq!(scope.slots(), [0, 4]);
        assert!(!bound.is_free && is_stage(&selected(), &[bound]));
        let (bound, scope) = bind_last(&events("a").select(vec![Expr::column("v")]).unwrap(), 0);
        assert!(bound.is_free && bound.reads().is_empty());
        assert_eq!(scope.slots(), [2]);
    }

    #[test]
    fn a_column_passes_under_its_new_name_and_can_be_carried() {
        let plan = selected();
        let step = plan.root().shared_step();
        assert_eq!((step.passes("t").as_deref(), step.passes("v")), (Some("at"), None));
        let carrying = Arc::clone(step).carrying("v").unwrap();
        let node = Node::new(carrying, plan.root().inputs().to_vec()).unwrap();
        assert_eq!(node.schema().field(0).name(), "v");
        assert!(step.may_fail(), "a sum may overflow");
    }
}
