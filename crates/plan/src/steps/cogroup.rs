//! Aggregates of two streams side by side, per key in windows of event time.

use std::sync::Arc;

use arrow_schema::Schema;
use penstock_expr::Expr;
use penstock_operators::windowed;
use penstock_types::{PlanError, Tick};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{aggregation, pair};
use crate::aggregate::{Aggregate, aggregate_fields, inputs};
use crate::bound::Bound;
use crate::check::{check_unique, expr_fields, names};
use crate::event_time::{check_order, check_pair, event_time, time_behind, time_type};
use crate::expression::{columns_of, may_fail};
use crate::function::Function;
use crate::made::Made;
use crate::plan::Plan;
use crate::resources::Resources;
use crate::scope::Scope;
use crate::step::{Form, Node, Partitioning, Step, StepOutput, Times, comparable};
use crate::text::{
    AggregateText, StepReader, WindowText, aggregate_lines, by, fields, list, read_aggregates, read_window,
    write_aggregates, write_window, written,
};
use crate::window::{RENAME_KEYS, WindowKind, WindowSpan, bounds, describe};

/// Aggregates of two streams per window and key.
#[derive(Clone, Debug, PartialEq)]
pub struct CoGroupStep {
    window: WindowKind,
    /// The keys of either stream.
    by: [Vec<Expr>; 2],
    /// The aggregates of either stream.
    aggregates: [Vec<Aggregate>; 2],
}

impl Plan {
    /// Aggregates this stream and another one per key and window.
    pub fn cogroup(
        &self,
        other: &Self,
        window: WindowSpan,
        by: [Vec<Expr>; 2],
        aggregates: [Vec<Aggregate>; 2],
    ) -> Result<Self, PlanError> {
        event_time(self.root())?;
        if by[0].is_empty() && aggregates.iter().all(Vec::is_empty) {
            return Err(PlanError::Invalid(
                "cogroup() needs a key, or agg() at least one aggregate, such as count()".to_owned(),
            ));
        }
        let (window, _) = self.check_window(window, &by[0])?;
        let inputs = vec![Arc::clone(self.root()), Arc::clone(other.root())];
        Self::of(CoGroupStep { window, by, aggregates }, inputs)
    }
}

impl Step for CoGroupStep {
    comparable!();

    fn name(&self) -> &'static str {
        "cogroup"
    }

    fn form(&self) -> Form {
        Form::Operator
    }

    fn output(&self, inputs: &[Arc<Node>]) -> Result<StepOutput, PlanError> {
        let [left, right] = pair(inputs);
        let keys = [expr_fields(left.schema(), &self.by[0])?, expr_fields(right.schema(), &self.by[1])?];
        let time = check_pair(inputs, self.name(), [&keys[0], &keys[1]])?;
        check_order(left, self.window, &self.aggregates[0])?;
        check_order(right, self.window, &self.aggregates[1])?;
        let mut fields = bounds(time_type(left, time));
        let nullable = |(left, right): (&arrow_schema::Field, &arrow_schema::Field)| {
            left.clone().with_nullable(left.is_nullable() || right.is_nullable())
        };
        fields.extend(keys[0].iter().zip(&keys[1]).map(nullable));
        fields.extend(aggregate_fields(left.schema(), &self.aggregates[0], false)?);
        fields.extend(aggregate_fields(right.schema(), &self.aggregates[1], false)?);
        check_unique(names(&fields), RENAME_KEYS)?;
        Ok(StepOutput { schema: Arc::new(Schema::new(fields)), time: time_behind(time) })
    }

    fn describe(&self, tick: Tick) -> String {
        let other =
            if self.by[0] == self.by[1] { String::new() } else { format!(" and {}", list(&self.by[1])) };
        let [left, right] = [aggregate_lines(&self.aggregates[0]), aggregate_lines(&self.aggregates[1])];
        format!("{}{}{other}{left}{right}", describe(self.window, tick), by(&self.by[0]))
    }

    fn write(&self, _functions: &mut Vec<Function>) -> Result<String, PlanError> {
        let text = CoGroupText {
            window: write_window(self.window),
            by: self.by.clone(),
            aggregates: [write_aggregates(&self.aggregates[0]), write_aggregates(&self.aggregates[1])],
        };
        written(self.name(), text)
    }

    fn reads(&self, port: usize, input: &Node) -> Vec<String> {
        let mut columns = columns_of(self.by[port].iter().chain(inputs(&self.aggregates[port])));
        super::add_time(&mut columns, input);
        columns
    }

    fn carrying(self: Arc<Self>, _column: &str) -> Option<Arc<dyn Step>> {
        None
    }

    fn may_fail(&self) -> bool {
        let exprs = self.by.iter().flatten();
        exprs.chain(self.aggregates.iter().flat_map(|aggregates| inputs(aggregates))).any(may_fail)
    }

    fn partitioning(&self) -> Partitioning {
        Partitioning::ByKey(self.by.to_vec())
    }

    fn why_not_merged(&self) -> Option<&'static str> {
        Some(super::TWO_STREAMS)
    }

    fn times(&self) -> Times {
        Times::WindowEnds(self.window)
    }

    fn windows(&self) -> Option<(WindowKind, i64)> {
        Some((self.window, 0))
    }

    fn bind(&self, scope: &mut Scope, port: usize) -> Result<Bound, PlanError> {
        aggregation::bind(scope, &self.by[port], &self.aggregates[port])
    }

    fn make(&self, bounds: &[Bound], _resources: &Resources) -> Result<Made, PlanError> {
        let aggregates: [&[Aggregate]; 2] = [&self.aggregates[0], &self.aggregates[1]];
        Ok(Made::Operator(windowed(aggregation::spec(self.window.windows(), 0, bounds, &aggregates)?)))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CoGroupText {
    window: WindowText,
    by: [Vec<Expr>; 2],
    aggregates: [Vec<AggregateText>; 2],
}

pub(super) fn read(_name: &str, text: Value, from: &StepReader<'_>) -> Result<Plan, PlanError> {
    let CoGroupText { window, by, aggregates: [left, right] } = fields(text)?;
    let [plan, other] = from.inputs()?;
    plan.cogroup(other, read_window(&window), by, [read_aggregates(left)?, read_aggregates(right)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::samples::{bind_last, check_json, count, events, is_operator, named, sum, tumbling};

    fn grouped() -> Plan {
        let by = [vec![Expr::column("k")], vec![Expr::column("v").alias("k").unwrap()]];
        let aggregates = [vec![named(count(), "left")], vec![named(sum("v"), "right")]];
        events("a").cogroup(&events("b"), tumbling(10), by, aggregates).unwrap()
    }

    #[test]
    fn results_have_the_key_and_the_aggregates_of_both_sides() {
        let plan = grouped();
        let fields: Vec<(&str, bool)> =
            plan.schema().fields().iter().map(|field| (field.name().as_str(), field.is_nullable())).collect();
        let bounds = [("window_start", false), ("window_end", false)];
        assert_eq!(fields, [bounds[0], bounds[1], ("k", true), ("left", false), ("right", true)]);
        let words = "tumbling 10 units, by col(\"k\") and k = col(\"v\")\nleft = count()\nright = sum(col(\"v\"))";
        assert_eq!(plan.root().step().describe(Tick::Plain), words);
        check_json(&plan);
    }

    #[test]
    fn keys_are_compared_one_by_one() {
        let by = [vec![Expr::column("k")], vec![]];
        let error = events("a").cogroup(&events("b"), tumbling(10), by, [vec![count()], vec![]]).unwrap_err();
        assert!(error.to_string().contains("there are 1 on the left and 0 on the right"), "{error}");
        let none = || [Vec::new(), Vec::new()];
        let error = events("a").cogroup(&events("b"), tumbling(10), none(), [vec![], vec![]]).unwrap_err();
        assert!(error.to_string().contains("cogroup() needs a key"), "{error}");
    }

    #[test]
    fn each_port_reads_its_own_side_and_states_do_not_merge() {
        let plan = grouped();
        let bounds = [bind_last(&plan, 0).0, bind_last(&plan, 1).0];
        assert_eq!((bounds[0].reads(), bounds[1].reads()), (vec![1, 0], vec![2, 2, 0]));
        assert!(is_operator(&plan, &bounds));
        let step = plan.root().step();
        assert_eq!(step.reads(1, &plan.root().inputs()[1]), ["v", "t"]);
        assert_eq!((step.keys().unwrap().len(), step.why_not_merged()), (2, Some("it reads two streams")));
    }
}
