//! What windows and co-groups share: aggregates bound to slots, and the operator that computes them.

use arrow_schema::DataType;
use penstock_expr::Expr;
use penstock_memory::{Physical, SlotId};
use penstock_operators::{WindowPort, WindowSpec};
use penstock_progress::Windows;
use penstock_types::PlanError;

use crate::aggregate::{Aggregate, inputs};
use crate::bound::Bound;
use crate::scope::{ClockSlots, Place, Scope, physical};

/// Binds keys and aggregates at a port of an operator.
pub(super) fn bind(scope: &mut Scope, by: &[Expr], aggregates: &[Aggregate]) -> Result<Bound, PlanError> {
    let mut bound = Bound::of(scope);
    bound.clock = scope.clock();
    bound.keys = bound.prepare(scope, "window keys", by)?;
    let exprs: Vec<Expr> = inputs(aggregates).cloned().collect();
    let mut computed = bound.prepare(scope, "window inputs", &exprs)?.into_iter();
    let input = |aggregate: &Aggregate| aggregate.input.as_ref().and_then(|_| computed.next());
    bound.inputs = aggregates.iter().map(input).collect();
    Ok(bound)
}

/// The slots of event time.
pub(super) fn clock(bound: &Bound) -> ClockSlots {
    bound.clock.expect("PLAN-1: windows are refused without event time")
}

pub(super) fn key_slots(bound: &Bound) -> Vec<SlotId> {
    bound.keys.iter().map(|key| key.slot).collect()
}

pub(super) fn key_types(bound: &Bound) -> Vec<DataType> {
    bound.keys.iter().map(|key| key.data_type.clone()).collect()
}

/// How the keys are stored.
pub(super) fn stored_keys(bound: &Bound) -> Vec<Physical> {
    bound.keys.iter().map(Place::physical).collect()
}

/// How the bounds of a window are stored in the results.
pub(super) fn stored_bounds(bound: &Bound) -> Physical {
    physical(bound.results.schema.field(0).data_type())
}

/// The columns that an operator keeps, from that one on, and how they are stored.
pub(super) fn stored_columns(bound: &Bound, from: usize) -> Vec<(SlotId, Physical)> {
    bound.inputs[from..].iter().flatten().map(|place| (place.slot, place.physical())).collect()
}

pub(super) fn column_types(bound: &Bound, from: usize) -> Vec<DataType> {
    bound.inputs[from..].iter().flatten().map(|place| place.data_type.clone()).collect()
}

/// Specifies an aggregation over these ports.
pub(super) fn spec(
    windows: Option<Windows>,
    allowed_lateness: i64,
    bounds: &[Bound],
    aggregates: &[&[Aggregate]],
) -> Result<WindowSpec, PlanError> {
    let (mut factories, mut ports) = (Vec::new(), Vec::new());
    for (bound, aggregates) in bounds.iter().zip(aggregates) {
        let first = factories.len();
        let input = |(number, place): (usize, &Option<Place>)| {
            (first + number, place.as_ref().map(|place| place.slot))
        };
        ports.push(WindowPort {
            time: clock(bound).time,
            watermark: clock(bound).watermark,
            keys: key_slots(bound),
            inputs: bound.inputs.iter().enumerate().map(input).collect(),
        });
        for (aggregate, place) in aggregates.iter().zip(&bound.inputs) {
            factories.push(aggregate.factory(place.as_ref().map(|place| place.data_type.clone()))?);
        }
    }
    Ok(WindowSpec {
        windows: windows.expect("PLAN-1: windows are checked"),
        allowed_lateness,
        ports,
        keys: stored_keys(&bounds[0]),
        key_types: key_types(&bounds[0]),
        factories,
        bounds: stored_bounds(&bounds[0]),
        emits_time: bounds[0].results.time_slot.is_some(),
    })
}
