//! Aggregates per key in windows of event time.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use penstock_expr::Expr;
use penstock_operators::windowed;
use penstock_types::{PlanError, Span, Tick};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{aggregation, single};
use crate::aggregate::{Aggregate, aggregate_fields, inputs};
use crate::bound::Bound;
use crate::check::{check_unique, clock_ns, expr_fields, names};
use crate::event_time::{check_order, event_time, time_behind, time_type};
use crate::expression::{columns_of, may_fail};
use crate::function::Function;
use crate::made::Made;
use crate::plan::Plan;
use crate::resources::Resources;
use crate::scope::Scope;
use crate::step::{Form, Node, Partitioning, Step, StepOutput, Times, comparable};
use crate::text::{
    AggregateText, StepReader, WindowText, aggregate_lines, by, by_clock, fields, read_aggregates, read_window,
    write_aggregates, write_window, written,
};
use crate::window::{CORRECTION, RENAME_KEYS, WindowKind, WindowSpan, bounds, describe};

/// Aggregates per window and key.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowStep {
    window: WindowKind,
    by: Vec<Expr>,
    aggregates: Vec<Aggregate>,
    /// For how long after its end a window still takes rows in, in ticks.
    allowed_lateness: i64,
    /// Windows close by the clock after so long without a row.
    close_after_ns: Option<u64>,
}

impl Plan {
    /// Checks the window part of a step: the windows, and the keys. Returns the windows in ticks, and the key columns.
    pub fn check_window(
        &self,
        window: WindowSpan,
        by: &[Expr],
    ) -> Result<(WindowKind, Vec<Field>), PlanError> {
        let time = event_time(self.root())?;
        Ok((window.in_ticks(time.tick)?, expr_fields(self.schema(), by)?))
    }

    /// Aggregates per key and window. For `allowed_lateness` after its end, a window still takes rows in, and corrects
    /// its result.
    pub fn window(
        &self,
        window: WindowSpan,
        by: Vec<Expr>,
        aggregates: Vec<Aggregate>,
        allowed_lateness: Span,
        close_after: Option<Span>,
    ) -> Result<Self, PlanError> {
        let (window, _) = self.check_window(window, &by)?;
        let time = event_time(self.root())?;
        if aggregates.is_empty() && by.is_empty() {
            return Err(PlanError::Invalid(
                "agg() needs at least one aggregate, such as count(), or the window a key".to_owned(),
            ));
        }
        let allowed_lateness = allowed_lateness.ticks(time.tick)?;
        if allowed_lateness < 0 {
            return Err(PlanError::Duration {
                text: allowed_lateness.to_string(),
                reason: "the allowed lateness cannot be negative".to_owned(),
            });
        }
        if allowed_lateness > 0 && matches!(window, WindowKind::Session { .. }) {
            return Err(PlanError::Invalid(
                "a session takes no allowed_lateness: a late row could join sessions that were given out; use a larger delay".to_owned(),
            ));
        }
        let step = WindowStep { window, by, aggregates, allowed_lateness, close_after_ns: None };
        // The columns first: their errors are more telling.
        step.output(&[Arc::clone(self.root())])?;
        let close_after_ns = close_after.map(|span| clock_ns(span, "close_after")).transpose()?;
        self.then(WindowStep { close_after_ns, ..step })
    }

    /// Aggregates per key in tumbling windows.
    pub fn tumbling(&self, size: Span, by: Vec<Expr>, aggregates: Vec<Aggregate>) -> Result<Self, PlanError> {
        let window = WindowSpan::Tumbling { size, offset: Span::Ticks(0) };
        self.window(window, by, aggregates, Span::Ticks(0), None)
    }
}

impl Step for WindowStep {
    comparable!();

    fn name(&self) -> &'static str {
        "window"
    }

    fn form(&self) -> Form {
        Form::Operator
    }

    fn output(&self, inputs: &[Arc<Node>]) -> Result<StepOutput, PlanError> {
        let input = single(inputs);
        let time = event_time(input)?;
        check_order(input, self.window, &self.aggregates)?;
        let mut fields = bounds(time_type(input, time));
        fields.extend(expr_fields(input.schema(), &self.by)?);
        fields.extend(aggregate_fields(input.schema(), &self.aggregates, true)?);
        if self.allowed_lateness > 0 {
            fields.push(Field::new(CORRECTION, DataType::Boolean, false));
        }
        check_unique(names(&fields), RENAME_KEYS)?;
        // A correction arrives when later windows over it have long closed: it would count twice there, or not at all.
        let behind = if self.allowed_lateness > 0 { None } else { time_behind(time) };
        Ok(StepOutput { schema: Arc::new(Schema::new(fields)), time: behind })
    }

    fn describe(&self, tick: Tick) -> String {
        let lateness = match self.allowed_lateness {
            0 => String::new(),
            ticks => format!(", corrected for {}", tick.describe(i128::from(ticks))),
        };
        let closes = by_clock(", closed after", self.close_after_ns);
        let windows = describe(self.window, tick);
        format!("{windows}{}{lateness}{closes}{}", by(&self.by), aggregate_lines(&self.aggregates))
    }

    fn write(&self, _functions: &mut Vec<Function>) -> Result<String, PlanError> {
        let text = WindowStepText {
            window: write_window(self.window),
            by: self.by.clone(),
            aggregates: write_aggregates(&self.aggregates),
            allowed_lateness: self.allowed_lateness,
            close_after_ns: self.close_after_ns,
        };
        written(self.name(), text)
    }

    fn reads(&self, _port: usize, input: &Node) -> Vec<String> {
        let mut columns = columns_of(self.by.iter().chain(inputs(&self.aggregates)));
        super::add_time(&mut columns, input);
        columns
    }

    fn carrying(self: Arc<Self>, _column: &str) -> Option<Arc<dyn Step>> {
        None
    }

    fn may_fail(&self) -> bool {
        self.by.iter().any(may_fail) || inputs(&self.aggregates).any(may_fail)
    }

    fn is_pure(&self) -> bool {
        self.close_after_ns.is_none()
    }

    fn partitioning(&self) -> Partitioning {
        Partitioning::ByKey(vec![self.by.clone()])
    }

    fn why_one_worker(&self) -> Option<&'static str> {
        self.close_after_ns.map(|_| "it closes by the clock, when none of its rows has come")
    }

    fn why_not_merged(&self) -> Option<&'static str> {
        if self.allowed_lateness > 0 {
            Some("it corrects its results")
        } else if self.window.aligned().is_none() {
            Some("sessions of several workers could be one")
        } else {
            None
        }
    }

    fn why_one_machine(&self) -> Option<&'static str> {
        self.close_after_ns.map(|_| "windows close by the clock")
    }

    fn why_no_pause(&self) -> Option<&'static str> {
        self.close_after_ns.map(|_| "windows close after a while (close_after=)")
    }

    fn times(&self) -> Times {
        Times::WindowEnds(self.window)
    }

    fn windows(&self) -> Option<(WindowKind, i64)> {
        Some((self.window, self.allowed_lateness))
    }

    fn closes_after_ns(&self) -> Option<u64> {
        self.close_after_ns
    }

    fn bind(&self, scope: &mut Scope, _port: usize) -> Result<Bound, PlanError> {
        aggregation::bind(scope, &self.by, &self.aggregates)
    }

    fn make(&self, bounds: &[Bound], _resources: &Resources) -> Result<Made, PlanError> {
        let windows = self.window.windows();
        let spec = aggregation::spec(windows, self.allowed_lateness, bounds, &[&self.aggregates])?;
        Ok(Made::Operator(windowed(spec)))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WindowStepText {
    window: WindowText,
    by: Vec<Expr>,
    aggregates: Vec<AggregateText>,
    allowed_lateness: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    close_after_ns: Option<u64>,
}

/// A window of the first version.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TumblingText {
    size: i64,
    by: Vec<Expr>,
    aggregates: Vec<AggregateText>,
}

pub(super) fn read(name: &str, text: Value, from: &StepReader<'_>) -> Result<Plan, PlanError> {
    if name == "tumbling" {
        let text: TumblingText = fields(text)?;
        let [plan] = from.inputs()?;
        return plan.tumbling(Span::Ticks(text.size), text.by, read_aggregates(text.aggregates)?);
    }
    let text: WindowStepText = fields(text)?;
    let [plan] = from.inputs()?;
    let lateness = Span::Ticks(text.allowed_lateness);
    let close_after = text.close_after_ns.map(|ns| Span::Nanos(i128::from(ns)));
    plan.window(read_window(&text.window), text.by, read_aggregates(text.aggregates)?, lateness, close_after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::samples::{add, bind_last, check_json, count, events, is_operator, sum, tumbling};

    fn windowed_by(span: WindowSpan, lateness: i64, close_after: Option<Span>) -> Plan {
        let by = vec![Expr::column("k"), add("k", "v").alias("kv").unwrap()];
        events("a").window(span, by, vec![count(), sum("v")], Span::Ticks(lateness), close_after).unwrap()
    }

    #[test]
    fn results_have_bounds_keys_and_aggregates_and_end_with_their_window() {
        let plan = windowed_by(tumbling(10), 0, None);
        let names: Vec<&str> = plan.schema().fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(names, ["window_start", "window_end", "k", "kv", "count", "v_sum"]);
        let time = plan.root().time().unwrap();
        assert_eq!((time.column.as_str(), time.is_end), ("window_end", true));
        let words = "tumbling 10 units, by col(\"k\"), kv = col(\"k\") + col(\"v\")\ncount = count()\nv_sum = sum(col(\"v\"))";
        assert_eq!(plan.root().step().describe(Tick::Plain), words);
        check_json(&plan);
    }

    #[test]
    fn corrections_have_no_time() {
        let plan = windowed_by(tumbling(10), 5, None);
        assert_eq!((plan.time(), plan.schema().field(6).name().as_str()), (None, CORRECTION));
        assert!(plan.root().step().corrects());
        let error = plan.tumbling(Span::Ticks(10), vec![], vec![count()]).unwrap_err().to_string();
        assert!(error.contains("they could still be corrected"), "{error}");
        check_json(&plan);
    }

    #[test]
    fn it_is_spread_by_its_key_and_merges_unless_it_corrects_or_has_sessions() {
        let session = WindowSpan::Session { gap: Span::Ticks(5) };
        let close_after = Some(Span::Nanos(1_000));
        let of = |plan: &Plan| {
            let step = plan.root().step();
            (step.why_one_worker().is_some(), step.why_not_merged())
        };
        assert_eq!(of(&windowed_by(tumbling(10), 0, None)), (false, None));
        assert_eq!(of(&windowed_by(tumbling(10), 5, None)), (false, Some("it corrects its results")));
        let sessions = (false, Some("sessions of several workers could be one"));
        assert_eq!(of(&windowed_by(session, 0, None)), sessions);
        let closing = windowed_by(session, 0, close_after);
        assert_eq!(of(&closing), (true, sessions.1));
        assert!(closing.root().step().why_no_pause().is_some());
        assert_eq!(closing.root().step().keys().unwrap()[0].len(), 2);
        check_json(&closing);
    }

    #[test]
    fn computed_keys_are_prepared_and_columns_are_read_as_they_are() {
        let plan = windowed_by(tumbling(10), 0, None);
        let (bound, _) = bind_last(&plan, 0);
        let names: Vec<&str> = bound.preparations.iter().map(|preparation| preparation.name).collect();
        assert_eq!((names, bound.preparations[0].fills()), (vec!["window keys"], vec![4]));
        assert_eq!(bound.reads(), [1, 4, 2, 0]);
        let bounds = [bound];
        assert!(is_operator(&plan, &bounds) && is_operator(&plan, &bounds), "once per instance");
        let step = plan.root().step();
        assert_eq!(step.reads(0, &plan.root().inputs()[0]), ["k", "v", "t"]);
        assert_eq!((step.passes("k"), step.may_fail()), (None, true));
    }
}
