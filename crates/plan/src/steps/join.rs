//! Pairs each row with the rows of another stream that have the same key in the same window.

use std::sync::Arc;

use arrow_schema::{Field, Schema};
use penstock_expr::Expr;
use penstock_operators::join::{JoinKind, JoinPort, JoinSpec, WindowJoin};
use penstock_types::{PlanError, Tick, choose};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{aggregation, pair};
use crate::bound::Bound;
use crate::check::{check_unique, names};
use crate::event_time::{check_pair, event_time, time_behind, time_type};
use crate::function::Function;
use crate::made::Made;
use crate::plan::Plan;
use crate::resources::Resources;
use crate::scope::Scope;
use crate::step::{Form, Node, Partitioning, Step, StepOutput, Times, comparable};
use crate::text::{StepReader, WindowText, fields, read_window, write_window, written};
use crate::window::{WindowKind, WindowSpan, bounds, describe, kept_columns};

/// Pairs of rows of two streams with the same key in the same window.
#[derive(Clone, Debug, PartialEq)]
pub struct JoinStep {
    window: WindowKind,
    /// Which rows without a partner are kept.
    kind: JoinKind,
    /// The keys of either stream.
    on: [Vec<String>; 2],
    /// What is appended to the names of columns of the second stream that the first has, too.
    suffix: String,
}

/// Reads the name of a kind of join.
pub fn join_kind(how: &str) -> Result<JoinKind, PlanError> {
    let kinds: Vec<(&'static str, JoinKind)> =
        JoinKind::names().filter_map(|name| JoinKind::from_name(name).map(|kind| (name, kind))).collect();
    choose("how", how, &kinds)
}

/// Returns the columns of these names, or which one is not there.
fn named_fields(schema: &Schema, names: &[String]) -> Result<Vec<Field>, PlanError> {
    let field = |name: &String| {
        let fields = schema.fields();
        let found = fields.find(name).map(|(_, field)| field.as_ref().clone());
        found.ok_or_else(|| {
            PlanError::unknown_column(name, fields.iter().map(|field| field.name().as_str()))
        })
    };
    names.iter().map(field).collect()
}

impl Plan {
    /// Pairs each row with the rows of another stream that have the same key in the same window.
    pub fn join(
        &self,
        other: &Self,
        window: WindowSpan,
        on: [Vec<String>; 2],
        kind: JoinKind,
        suffix: &str,
    ) -> Result<Self, PlanError> {
        event_time(self.root())?;
        let (window, _) = self.check_window(window, &[])?;
        if window.aligned().is_none() {
            return Err(PlanError::Invalid(
                "a join takes tumbling or sliding windows, not sessions".to_owned(),
            ));
        }
        if on[0].is_empty() {
            return Err(PlanError::Invalid("a join needs at least one key column: on=\"...\"".to_owned()));
        }
        let inputs = vec![Arc::clone(self.root()), Arc::clone(other.root())];
        Self::of(JoinStep { window, kind, on, suffix: suffix.to_owned() }, inputs)
    }
}

impl Step for JoinStep {
    comparable!();

    fn name(&self) -> &'static str {
        "join"
    }

    fn form(&self) -> Form {
        Form::Operator
    }

    fn output(&self, inputs: &[Arc<Node>]) -> Result<StepOutput, PlanError> {
        let [left, right] = pair(inputs);
        let keys = [named_fields(left.schema(), &self.on[0])?, named_fields(right.schema(), &self.on[1])?];
        let time = check_pair(inputs, self.name(), [&keys[0], &keys[1]])?;
        let mut fields = bounds(time_type(left, time));
        let keeps_right = matches!(self.kind, JoinKind::Full | JoinKind::Right);
        let keeps_left = matches!(self.kind, JoinKind::Full | JoinKind::Left);
        fields.extend(keys[0].iter().zip(&keys[1]).map(|(left, right)| {
            let nullable = left.is_nullable() || (keeps_right && right.is_nullable());
            left.clone().with_nullable(nullable)
        }));
        for (_, field) in kept_columns(left.schema(), &self.on[0]) {
            fields.push(field.clone().with_nullable(field.is_nullable() || keeps_right));
        }
        for (_, field) in kept_columns(right.schema(), &self.on[1]) {
            let taken = fields.iter().any(|other| other.name() == field.name());
            let name =
                if taken { format!("{}{}", field.name(), self.suffix) } else { field.name().clone() };
            fields.push(Field::new(name, field.data_type().clone(), field.is_nullable() || keeps_left));
        }
        check_unique(names(&fields), "choose another suffix=, or rename a column before the join")?;
        Ok(StepOutput { schema: Arc::new(Schema::new(fields)), time: time_behind(time) })
    }

    fn describe(&self, tick: Tick) -> String {
        let pair = |(left, right): (&String, &String)| {
            if left == right { left.clone() } else { format!("{left} = {right}") }
        };
        let on: Vec<String> = self.on[0].iter().zip(&self.on[1]).map(pair).collect();
        format!("{}, {}, on {}", self.kind.name(), describe(self.window, tick), on.join(", "))
    }

    fn write(&self, _functions: &mut Vec<Function>) -> Result<String, PlanError> {
        let text = JoinText {
            window: write_window(self.window),
            on: self.on.clone(),
            how: self.kind.name().to_owned(),
            suffix: self.suffix.clone(),
        };
        written(self.name(), text)
    }

    fn reads(&self, port: usize, input: &Node) -> Vec<String> {
        let kept = kept_columns(input.schema(), &self.on[port]);
        let mut columns = self.on[port].clone();
        columns.extend(kept.iter().map(|(_, field)| field.name().clone()));
        super::add_time(&mut columns, input);
        columns
    }

    fn carrying(self: Arc<Self>, _column: &str) -> Option<Arc<dyn Step>> {
        None
    }

    fn may_fail(&self) -> bool {
        false
    }

    fn partitioning(&self) -> Partitioning {
        let columns = |names: &Vec<String>| names.iter().map(|name| Expr::column(name.clone())).collect();
        Partitioning::ByKey(self.on.iter().map(columns).collect())
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
        let mut bound = Bound::of(scope);
        bound.clock = scope.clock();
        bound.keys = bound.columns.named(&self.on[port]);
        let kept = kept_columns(&bound.columns.schema, &self.on[port]);
        bound.inputs = kept.iter().map(|(column, _)| Some(bound.columns.place(*column))).collect();
        Ok(bound)
    }

    fn make(&self, bounds: &[Bound], _resources: &Resources) -> Result<Made, PlanError> {
        let port = |bound: &Bound| JoinPort {
            time: aggregation::clock(bound).time,
            watermark: aggregation::clock(bound).watermark,
            keys: aggregation::key_slots(bound),
            columns: aggregation::stored_columns(bound, 0),
        };
        let spec = JoinSpec {
            windows: self.window.aligned().expect("PLAN-1: windows are checked"),
            kind: self.kind,
            ports: [port(&bounds[0]), port(&bounds[1])],
            keys: aggregation::stored_keys(&bounds[0]),
            key_types: aggregation::key_types(&bounds[0]),
            column_types: [aggregation::column_types(&bounds[0], 0), aggregation::column_types(&bounds[1], 0)],
            bounds: aggregation::stored_bounds(&bounds[0]),
            emits_time: bounds[0].results.time_slot.is_some(),
        };
        Ok(Made::Operator(Box::new(WindowJoin::new(spec))))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JoinText {
    window: WindowText,
    on: [Vec<String>; 2],
    how: String,
    suffix: String,
}

pub(super) fn read(_name: &str, text: Value, from: &StepReader<'_>) -> Result<Plan, PlanError> {
    let text: JoinText = fields(text)?;
    let [plan, other] = from.inputs()?;
    plan.join(other, read_window(&text.window), text.on, join_kind(&text.how)?, &text.suffix)
}

#[cfg(test)]
mod tests {
    use penstock_types::Span;

    use super::*;
    use crate::steps::samples::{bind_last, check_json, events, is_operator, tumbling};

    fn joined(kind: &str) -> Plan {
        let on = [vec!["k".to_owned()], vec!["v".to_owned()]];
        events("a").join(&events("b"), tumbling(10), on, join_kind(kind).unwrap(), "_right").unwrap()
    }

    #[test]
    fn results_have_the_keys_and_the_other_columns_of_both_sides() {
        let plan = joined("left");
        let fields: Vec<(&str, bool)> =
            plan.schema().fields().iter().map(|field| (field.name().as_str(), field.is_nullable())).collect();
        let others = [("t", false), ("v", true), ("t_right", true), ("k_right", true)];
        assert_eq!(fields[..3], [("window_start", false), ("window_end", false), ("k", false)]);
        assert_eq!(fields[3..], others);
        assert_eq!(plan.root().step().describe(Tick::Plain), "left, tumbling 10 units, on k = v");
        check_json(&plan);
        check_json(&joined("full"));
    }

    #[test]
    fn sessions_and_unknown_names_are_refused() {
        let join = |window, on: [&str; 2]| {
            let on = on.map(|name| vec![name.to_owned()]);
            let kind = join_kind("inner").unwrap();
            events("a").join(&events("b"), window, on, kind, "_right").unwrap_err().to_string()
        };
        let session = WindowSpan::Session { gap: Span::Ticks(5) };
        assert!(join(session, ["k", "k"]).contains("tumbling or sliding windows, not sessions"));
        assert!(join(tumbling(10), ["k", "kk"]).contains("unknown column \"kk\""));
        assert!(join_kind("outer").is_err());
    }

    #[test]
    fn each_port_reads_its_keys_and_what_it_keeps() {
        let plan = joined("inner");
        let bounds = [bind_last(&plan, 0).0, bind_last(&plan, 1).0];
        assert_eq!((bounds[0].reads(), bounds[1].reads()), (vec![1, 0, 2, 0], vec![2, 0, 1, 0]));
        assert!(is_operator(&plan, &bounds));
        let step = plan.root().step();
        assert_eq!(step.keys().unwrap()[1], [Expr::column("v")]);
        assert_eq!(step.why_not_merged(), Some("it reads two streams"));
        assert!(!step.may_fail() && step.is_pure());
    }
}
