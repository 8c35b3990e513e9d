//! Operators with state: what they read of each of their inputs, and how they are made.

use arrow_schema::{DataType, Schema};
use penstock_expr::Expr;
use penstock_memory::{Physical, SlotId};
use penstock_operators::Stateful;
use penstock_operators::aggregates::AccumulatorFactory;
use penstock_operators::join::{JoinPort, JoinSpec, WindowJoin};
use penstock_operators::top_k::{TopK, TopKPort, TopKSpec};
use penstock_operators::windows::{WindowPort, WindowSpec, windowed};
use penstock_progress::{Aligned, Windows};
use penstock_types::PlanError;

use super::segment::{ClockSlots, Segment, physical};
use crate::plan::{Aggregate, Plan, Step, WindowKind};

/// A column: where it stands, and its type.
type Place = (SlotId, DataType);

/// What an operator reads of one of its inputs.
pub(super) struct PortSlots {
    /// Event time, if it goes by that.
    clock: Option<ClockSlots>,
    keys: Vec<Place>,
    /// The input of each aggregate, the columns of a join, or those of the first rows behind what they are ordered by.
    columns: Vec<Option<Place>>,
    factories: Vec<AccumulatorFactory>,
    /// The key group of each row, where rows are exchanged by key.
    group: Option<SlotId>,
}

impl PortSlots {
    /// All of the slots.
    pub(super) fn reads(&self) -> impl Iterator<Item = SlotId> {
        let keys = self.keys.iter().map(|(slot, _)| *slot);
        let columns = self.columns.iter().flatten().map(|(slot, _)| *slot);
        keys.chain(columns).chain(self.clock.map(|clock| clock.time)).chain(self.group)
    }

    /// Whether rows have a key.
    pub(super) fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Where the key group of each row stands, where rows are exchanged by key.
    pub(super) fn group(&self) -> Option<SlotId> {
        self.group
    }

    /// Lets the segment before this port write key groups down.
    pub(super) fn write_groups(&mut self, segment: &mut Segment) {
        self.group = Some(segment.write_groups(&self.keys));
    }

    fn clock(&self) -> ClockSlots {
        self.clock.expect("P1: windows are refused without event time")
    }

    /// The slots of its columns.
    pub(super) fn column_slots(&self) -> Vec<SlotId> {
        self.columns.iter().flatten().map(|(slot, _)| *slot).collect()
    }

    fn key_slots(&self) -> Vec<SlotId> {
        self.keys.iter().map(|(slot, _)| *slot).collect()
    }

    fn key_types(&self) -> Vec<DataType> {
        self.keys.iter().map(|(_, data_type)| data_type.clone()).collect()
    }

    fn stored_columns(&self, from: usize) -> Vec<(SlotId, Physical)> {
        let stored = |place: &Place| (place.0, physical(&place.1));
        self.columns[from..].iter().flatten().map(stored).collect()
    }

    fn column_types(&self, from: usize) -> Vec<DataType> {
        self.columns[from..].iter().flatten().map(|(_, data_type)| data_type.clone()).collect()
    }
}

fn place(segment: &Segment, column: usize) -> Option<Place> {
    Some((segment.slots[column], segment.schema.field(column).data_type().clone()))
}

fn named(segment: &Segment, names: &[String]) -> Vec<Place> {
    let find = |name: &String| {
        let (column, _) = segment.schema.fields().find(name).expect("P1: keys are checked");
        place(segment, column).expect("every column has a place")
    };
    names.iter().map(find).collect()
}

fn inputs(segment: &mut Segment, aggregates: &[Aggregate]) -> Result<PortParts, PlanError> {
    let exprs: Vec<Expr> = aggregates.iter().filter_map(|aggregate| aggregate.input.clone()).collect();
    let mut computed = segment.project("window inputs", &exprs)?.into_iter();
    let (mut columns, mut factories) = (Vec::new(), Vec::new());
    for aggregate in aggregates {
        let input = aggregate.input.as_ref().and_then(|_| computed.next());
        let data_type = input.as_ref().map(|(_, data_type)| data_type.clone());
        factories.push(AccumulatorFactory::new(aggregate.kind, data_type, aggregate.to_string())?);
        columns.push(input);
    }
    Ok((columns, factories))
}

type PortParts = (Vec<Option<Place>>, Vec<AccumulatorFactory>);

/// Ends a segment with an operator: computes what that reads at one of its ports.
pub(super) fn prepare(step: &Step, port: usize, segment: &mut Segment) -> Result<PortSlots, PlanError> {
    let prepared = segment.ops.len();
    if matches!(step, Step::Map(_)) {
        let columns = (0..segment.slots.len()).map(|column| place(segment, column)).collect();
        return Ok(PortSlots { clock: None, keys: Vec::new(), columns, factories: Vec::new(), group: None });
    }
    let clock = segment.clock;
    let (keys, (columns, factories)) = match step {
        Step::Window(step) => (segment.project("window keys", &step.by)?, inputs(segment, &step.aggregates)?),
        Step::CoGroup(step) => {
            (segment.project("window keys", &step.by[port])?, inputs(segment, &step.aggregates[port])?)
        }
        Step::Join(step) => {
            let columns = Plan::joined_columns(&segment.schema, &step.on[port]);
            let columns = columns.iter().map(|(column, _)| place(segment, *column)).collect();
            (named(segment, &step.on[port]), (columns, Vec::new()))
        }
        Step::TopK(step) => {
            let keys = segment.project("window keys", &step.by)?;
            let order = segment.project("window inputs", std::slice::from_ref(&step.order))?;
            let names: Vec<String> = step.by.iter().map(Expr::output_name).collect();
            let others = Plan::joined_columns(&segment.schema, &names);
            let others = others.iter().map(|(column, _)| place(segment, *column));
            let columns = order.into_iter().map(Some).chain(others).collect();
            (keys, (columns, Vec::new()))
        }
        _ => unreachable!("only operators with state have ports"),
    };
    segment.prepare_from(prepared);
    Ok(PortSlots { clock, keys, columns, factories, group: None })
}

fn aligned(window: WindowKind) -> Aligned {
    window.aligned().expect("P1: windows are checked")
}

/// Makes an operator with these ports, whose results have that schema.
pub(super) fn make(
    step: &Step,
    ports: &[PortSlots],
    results: &Schema,
    emits_time: bool,
) -> Result<Box<dyn Stateful>, PlanError> {
    let bounds = physical(results.field(0).data_type());
    let key_types = ports[0].key_types();
    let keys: Vec<Physical> = key_types.iter().map(physical).collect();
    let windows = |windows: Option<Windows>| windows.expect("P1: windows are checked");
    Ok(match step {
        Step::Window(step) => windowed(aggregate(
            windows(step.window.windows()),
            step.allowed_lateness,
            ports,
            bounds,
            emits_time,
        )),
        Step::CoGroup(step) => {
            windowed(aggregate(windows(step.window.windows()), 0, ports, bounds, emits_time))
        }
        Step::Join(step) => {
            let port = |slots: &PortSlots| JoinPort {
                time: slots.clock().time,
                watermark: slots.clock().watermark,
                keys: slots.key_slots(),
                columns: slots.stored_columns(0),
            };
            Box::new(WindowJoin::new(JoinSpec {
                windows: aligned(step.window),
                kind: step.kind,
                ports: [port(&ports[0]), port(&ports[1])],
                keys,
                key_types,
                column_types: [ports[0].column_types(0), ports[1].column_types(0)],
                bounds,
                emits_time,
            }))
        }
        Step::TopK(step) => {
            let slots = &ports[0];
            let (order, _) = slots.columns[0].as_ref().expect("it is ordered by something");
            Box::new(TopK::new(TopKSpec {
                windows: aligned(step.window),
                k: step.k,
                largest: step.largest,
                port: TopKPort {
                    time: slots.clock().time,
                    watermark: slots.clock().watermark,
                    keys: slots.key_slots(),
                    by: *order,
                    columns: slots.stored_columns(1),
                },
                keys,
                key_types,
                column_types: slots.column_types(1),
                bounds,
                emits_time,
            }))
        }
        _ => unreachable!("only operators with state are made here"),
    })
}

fn aggregate(
    windows: Windows,
    allowed_lateness: i64,
    ports: &[PortSlots],
    bounds: Physical,
    emits_time: bool,
) -> WindowSpec {
    let mut factories = Vec::new();
    let mut window_ports = Vec::new();
    for slots in ports {
        let first = factories.len();
        let input =
            |(number, place): (usize, &Option<Place>)| (first + number, place.as_ref().map(|place| place.0));
        window_ports.push(WindowPort {
            time: slots.clock().time,
            watermark: slots.clock().watermark,
            keys: slots.key_slots(),
            inputs: slots.columns.iter().enumerate().map(input).collect(),
        });
        factories.extend(slots.factories.iter().cloned());
    }
    let key_types = ports[0].key_types();
    WindowSpec {
        windows,
        allowed_lateness,
        ports: window_ports,
        keys: key_types.iter().map(physical).collect(),
        key_types,
        factories,
        bounds,
        emits_time,
    }
}
