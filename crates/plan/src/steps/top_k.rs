//! The first rows by some column, per key in windows of event time.

use std::slice::from_ref;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use penstock_expr::Expr;
use penstock_operators::top_k::{TopK, TopKPort, TopKSpec};
use penstock_types::{PlanError, Tick};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{aggregation, single};
use crate::bound::Bound;
use crate::check::{check_expr, check_unique, expr_fields, names};
use crate::event_time::{event_time, time_behind, time_type};
use crate::expression::{columns_of, may_fail};
use crate::function::Function;
use crate::made::Made;
use crate::plan::Plan;
use crate::resources::Resources;
use crate::scope::Scope;
use crate::step::{Form, Node, Partitioning, Step, StepOutput, Times, comparable};
use crate::text::{StepReader, WindowText, by, fields, read_window, write_window, written};
use crate::window::{RANK, WindowKind, WindowSpan, bounds, describe, kept_columns};

/// The first rows by some column, per window and key.
#[derive(Clone, Debug, PartialEq)]
pub struct TopKStep {
    window: WindowKind,
    by: Vec<Expr>,
    /// How many rows.
    k: usize,
    /// What they are ordered by.
    order: Expr,
    /// Whether the largest come first.
    largest: bool,
}

impl TopKStep {
    fn key_names(&self) -> Vec<String> {
        self.by.iter().map(Expr::output_name).collect()
    }
}

impl Plan {
    /// The first `k` rows by some column, per key and window.
    pub fn top_k(
        &self,
        window: WindowSpan,
        by: Vec<Expr>,
        k: usize,
        order: Expr,
        largest: bool,
    ) -> Result<Self, PlanError> {
        let (window, _) = self.check_window(window, &by)?;
        if window.aligned().is_none() {
            return Err(PlanError::Invalid(
                "top_k() takes tumbling or sliding windows, not sessions".to_owned(),
            ));
        }
        if k == 0 {
            return Err(PlanError::Invalid(
                "top_k() needs at least one place to fill: k=1 or more".to_owned(),
            ));
        }
        self.then(TopKStep { window, by, k, order, largest })
    }
}

impl Step for TopKStep {
    comparable!();

    fn name(&self) -> &'static str {
        "top_k"
    }

    fn form(&self) -> Form {
        Form::Operator
    }

    fn output(&self, inputs: &[Arc<Node>]) -> Result<StepOutput, PlanError> {
        let input = single(inputs);
        let (time, keys) = (event_time(input)?, expr_fields(input.schema(), &self.by)?);
        check_expr(input.schema(), &self.order)?;
        let mut fields = bounds(time_type(input, time));
        fields.extend(keys);
        fields.push(Field::new(RANK, DataType::Int64, false));
        let kept = kept_columns(input.schema(), &self.key_names());
        fields.extend(kept.into_iter().map(|(_, field)| field.clone()));
        check_unique(names(&fields), "rename a column before top_k()")?;
        Ok(StepOutput { schema: Arc::new(Schema::new(fields)), time: time_behind(time) })
    }

    fn describe(&self, tick: Tick) -> String {
        let order = if self.largest { "largest" } else { "smallest" };
        format!("{}{}, {} {order} {}", describe(self.window, tick), by(&self.by), self.k, self.order)
    }

    fn write(&self, _functions: &mut Vec<Function>) -> Result<String, PlanError> {
        let text = TopKText {
            window: write_window(self.window),
            by: self.by.clone(),
            k: self.k,
            order: self.order.clone(),
            largest: self.largest,
        };
        written(self.name(), text)
    }

    fn reads(&self, _port: usize, input: &Node) -> Vec<String> {
        let mut columns = columns_of(self.by.iter().chain([&self.order]));
        for (_, field) in kept_columns(input.schema(), &self.key_names()) {
            if !columns.contains(field.name()) {
                columns.push(field.name().clone());
            }
        }
        super::add_time(&mut columns, input);
        columns
    }

    fn carrying(self: Arc<Self>, _column: &str) -> Option<Arc<dyn Step>> {
        None
    }

    fn may_fail(&self) -> bool {
        self.by.iter().chain([&self.order]).any(may_fail)
    }

    fn partitioning(&self) -> Partitioning {
        Partitioning::ByKey(vec![self.by.clone()])
    }

    fn times(&self) -> Times {
        Times::WindowEnds(self.window)
    }

    fn windows(&self) -> Option<(WindowKind, i64)> {
        Some((self.window, 0))
    }

    fn bind(&self, scope: &mut Scope, _port: usize) -> Result<Bound, PlanError> {
        let mut bound = Bound::of(scope);
        bound.clock = scope.clock();
        bound.keys = bound.prepare(scope, "window keys", &self.by)?;
        let order = bound.prepare(scope, "window inputs", from_ref(&self.order))?;
        let kept = kept_columns(&bound.columns.schema, &self.key_names());
        let kept = kept.iter().map(|(column, _)| bound.columns.place(*column));
        bound.inputs = order.into_iter().chain(kept).map(Some).collect();
        Ok(bound)
    }

    fn make(&self, bounds: &[Bound], _resources: &Resources) -> Result<Made, PlanError> {
        let bound = &bounds[0];
        let order = bound.inputs[0].as_ref().expect("it is ordered by an expression");
        let spec = TopKSpec {
            windows: self.window.aligned().expect("PLAN-1: windows are checked"),
            k: self.k,
            largest: self.largest,
            port: TopKPort {
                time: aggregation::clock(bound).time,
                watermark: aggregation::clock(bound).watermark,
                keys: aggregation::key_slots(bound),
                by: order.slot,
                columns: aggregation::stored_columns(bound, 1),
            },
            keys: aggregation::stored_keys(bound),
            key_types: aggregation::key_types(bound),
            column_types: aggregation::column_types(bound, 1),
            bounds: aggregation::stored_bounds(bound),
            emits_time: bound.results.time_slot.is_some(),
        };
        Ok(Made::Operator(Box::new(TopK::new(spec))))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TopKText {
    window: WindowText,
    by: Vec<Expr>,
    k: usize,
    order: Expr,
    largest: bool,
}

pub(super) fn read(_name: &str, text: Value, from: &StepReader<'_>) -> Result<Plan, PlanError> {
    let text: TopKText = fields(text)?;
    let [plan] = from.inputs()?;
    plan.top_k(read_window(&text.window), text.by, text.k, text.order, text.largest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::samples::{add, bind_last, check_json, events, is_operator, tumbling};

    fn first(k: usize) -> Result<Plan, PlanError> {
        events("a").top_k(tumbling(10), vec![Expr::column("k")], k, add("k", "v"), true)
    }

    #[test]
    fn results_have_the_key_the_rank_and_the_other_columns() {
        let plan = first(3).unwrap();
        let names: Vec<&str> = plan.schema().fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!((names, plan.time()), (
            vec!["window_start", "window_end", "k", "rank", "t", "v"],
            Some("window_end")
        ));
        let words = "tumbling 10 units, by col(\"k\"), 3 largest col(\"k\") + col(\"v\")";
        assert_eq!(plan.root().step().describe(Tick::Plain), words);
        check_json(&plan);
        assert!(first(0).unwrap_err().to_string().contains("k=1 or more"));
    }

    #[test]
    fn the_order_is_prepared_and_stands_before_the_columns_that_are_kept() {
        let plan = first(1).unwrap();
        let (bound, _) = bind_last(&plan, 0);
        assert_eq!(bound.preparations[0].name, "window inputs");
        assert_eq!(bound.reads(), [1, 4, 0, 2, 0]);
        assert!(is_operator(&plan, &[bound]));
    }

    #[test]
    fn it_is_spread_by_its_key_and_merges() {
        let plan = first(1).unwrap();
        let step = plan.root().step();
        assert_eq!(step.keys().unwrap(), [vec![Expr::column("k")]]);
        assert_eq!((step.why_one_worker(), step.why_not_merged()), (None, None));
        assert_eq!(step.reads(0, &plan.root().inputs()[0]), ["k", "v", "t"]);
    }
}
