//! Plans that the unit tests of steps are written over.

use std::any::Any;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema};
use penstock_expr::{BinaryOp, Expr};
use penstock_operators::aggregates::AggregateKind;
use penstock_types::{OutsideError, Span};

use crate::aggregate::Aggregate;
use crate::bound::Bound;
use crate::function::{BatchFunction, Function};
use crate::made::Made;
use crate::plan::Plan;
use crate::resources::Resources;
use crate::scope::Scope;
use crate::window::WindowSpan;

/// Events with a time `t`, a key `k`, and a value `v` that may be null.
pub(crate) fn events(name: &str) -> Plan {
    let field = |name, nullable| Field::new(name, DataType::Int64, nullable);
    let schema = Schema::new(vec![field("t", false), field("k", false), field("v", true)]);
    Plan::named_stream(Some(name), &schema, Some("t"), Span::Ticks(2)).unwrap()
}

pub(crate) fn tumbling(size: i64) -> WindowSpan {
    WindowSpan::Tumbling { size: Span::Ticks(size), offset: Span::Ticks(0) }
}

pub(crate) fn count() -> Aggregate {
    Aggregate { kind: AggregateKind::Count, input: None, name: None }
}

pub(crate) fn sum(column: &str) -> Aggregate {
    Aggregate { kind: AggregateKind::Sum, input: Some(Expr::column(column)), name: None }
}

pub(crate) fn named(aggregate: Aggregate, name: &str) -> Aggregate {
    Aggregate { name: Some(name.to_owned()), ..aggregate }
}

pub(crate) fn add(left: &str, right: &str) -> Expr {
    Expr::column(left).binary(BinaryOp::Add, Expr::column(right)).unwrap()
}

/// Rows per window of ten units.
pub(crate) fn counted(plan: &Plan) -> Plan {
    plan.tumbling(Span::Ticks(10), vec![], vec![count()]).unwrap()
}

/// Binds the last step of a plan to the scope of its input.
pub(crate) fn bind_last(plan: &Plan, port: usize) -> (Bound, Scope) {
    let input = &plan.root().inputs()[port];
    let mut scope = Scope::new(input.schema(), input.time());
    let bound = plan.root().bind(&mut scope, port).unwrap();
    (bound, scope)
}

fn made(plan: &Plan, bounds: &[Bound]) -> Made {
    plan.root().step().make(bounds, &Resources::default()).unwrap()
}

pub(crate) fn is_stage(plan: &Plan, bounds: &[Bound]) -> bool {
    matches!(made(plan, bounds), Made::Stage(_))
}

pub(crate) fn is_operator(plan: &Plan, bounds: &[Bound]) -> bool {
    matches!(made(plan, bounds), Made::Operator(_))
}

/// Checks that a plan reads back from its JSON, as the same words and the same columns.
pub(crate) fn check_json(plan: &Plan) {
    let json = plan.to_json().unwrap();
    let again = Plan::from_json(&json).unwrap();
    assert_eq!(&again, plan, "{json}");
    assert_eq!((again.schema(), again.explain()), (plan.schema(), plan.explain()));
    assert_eq!(again.to_json().unwrap(), json);
}

struct Identity;

impl BatchFunction for Identity {
    fn name(&self) -> &str {
        "identity"
    }

    fn call(&self, batch: RecordBatch) -> Result<RecordBatch, OutsideError> {
        Ok(batch)
    }

    fn blame(&self, error: OutsideError, _row: &RecordBatch) -> OutsideError {
        error
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A function that returns what it gets.
pub(crate) fn identity() -> Function {
    Function(Arc::new(Identity))
}
