//! Plans that the unit tests of passes are written over.

use arrow_schema::{DataType, Field, Schema};
use penstock_expr::{BinaryOp, Expr, Literal};
use penstock_operators::aggregates::AggregateKind;
use penstock_plan::{Aggregate, Outputs, Plan, WindowSpan, join_kind};
use penstock_types::Span;

/// Events with a time `t`, a key `k`, and a value `v`.
pub(crate) fn events(name: &str) -> Plan {
    let field = |name| Field::new(name, DataType::Int64, false);
    let schema = Schema::new(vec![field("t"), field("k"), field("v")]);
    Plan::named_stream(Some(name), &schema, Some("t"), Span::Ticks(0)).unwrap()
}

pub(crate) fn positive(plan: &Plan, column: &str) -> Plan {
    let zero = Expr::literal(Literal::Int(0));
    plan.filter(Expr::column(column).binary(BinaryOp::Greater, zero).unwrap()).unwrap()
}

pub(crate) fn tumbling(size: i64) -> WindowSpan {
    WindowSpan::Tumbling { size: Span::Ticks(size), offset: Span::Ticks(0) }
}

pub(crate) fn count() -> Vec<Aggregate> {
    vec![Aggregate { kind: AggregateKind::Count, input: None, name: None }]
}

/// Rows per key and window.
pub(crate) fn counted(plan: &Plan) -> Plan {
    plan.window(tumbling(10), vec![Expr::column("k")], count(), Span::Ticks(0), None).unwrap()
}

pub(crate) fn joined(left: &Plan, right: &Plan) -> Plan {
    let on = [vec!["k".to_owned()], vec!["k".to_owned()]];
    left.join(right, tumbling(10), on, join_kind("inner").unwrap(), "_right").unwrap()
}

pub(crate) fn outputs(plan: &Plan) -> Outputs {
    Outputs::from(plan)
}
