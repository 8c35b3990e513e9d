//! Streams of rows with watermarks, an operator that consumes them, and its expected results.

#![allow(dead_code, reason = "each test binary uses a part of this module")]

pub mod reference;

pub(crate) use crate::columns;

use std::collections::BTreeMap;

use arrow_schema::DataType;
use columns::{Cell, Value, any_key, read, rows, stored};
use penstock_memory::{Physical, Run, SlotId};
use penstock_operators::aggregates::{AccumulatorFactory, AggregateKind};
use penstock_operators::{Stateful, WindowPort, WindowSpec, windowed};
use penstock_progress::Windows;
use proptest::prelude::*;

pub type Row = Vec<Cell>;

/// An input row.
#[derive(Clone, Debug)]
pub struct Event {
    pub port: usize,
    pub time: i64,
    /// The watermark of its source just before it.
    pub mark: i64,
    pub key: Row,
    pub inputs: Row,
}

/// The columns that are aggregated.
pub fn inputs() -> Vec<DataType> {
    use DataType::{Boolean, Decimal128, Float64, Int8, Int64, UInt64, Utf8};
    vec![Int64, Float64, Utf8, Decimal128(20, 2), UInt64, Boolean, Int8]
}

pub fn physical(data_type: &DataType) -> Physical {
    Physical::of(data_type).unwrap()
}

/// Every aggregate over every supported column, with the number of the column.
pub fn aggregates() -> Vec<(AggregateKind, Option<usize>)> {
    let mut aggregates = vec![(AggregateKind::Count, None)];
    for (column, data_type) in inputs().iter().enumerate() {
        for kind in AggregateKind::names().map(|name| AggregateKind::from_name(name).unwrap()) {
            if kind.output(Some(data_type), "").is_ok() {
                aggregates.push((kind, Some(column)));
            }
        }
    }
    aggregates
}

/// The specification of an operator.
#[derive(Clone, Debug)]
pub struct Plan {
    pub windows: Windows,
    pub allowed_lateness: i64,
    pub keys: Vec<DataType>,
    pub ports: usize,
    pub aggregates: Vec<(AggregateKind, Option<usize>)>,
}

impl Plan {
    pub fn new(windows: Windows, keys: &[DataType]) -> Self {
        Self { windows, allowed_lateness: 0, keys: keys.to_vec(), ports: 1, aggregates: aggregates() }
    }

    /// Returns the port of an aggregate.
    pub fn port_of(&self, aggregate: usize) -> usize {
        aggregate % self.ports
    }

    pub fn factories(&self) -> Vec<AccumulatorFactory> {
        let types = inputs();
        let factory = |(kind, column): &(AggregateKind, Option<usize>)| {
            let data_type = column.map(|column| types[column].clone());
            AccumulatorFactory::new(*kind, data_type, format!("{kind:?}")).unwrap()
        };
        self.aggregates.iter().map(factory).collect()
    }

    /// Slots: watermark, time, keys, inputs; the same on all ports.
    pub fn spec(&self) -> WindowSpec {
        let first_input = 2 + self.keys.len();
        let port = |port: usize| WindowPort {
            time: 1,
            watermark: 0,
            keys: (2..first_input).collect(),
            inputs: (0..self.aggregates.len())
                .filter(|&aggregate| self.port_of(aggregate) == port)
                .map(|aggregate| (aggregate, self.aggregates[aggregate].1.map(|column| first_input + column)))
                .collect(),
        };
        WindowSpec {
            windows: self.windows,
            allowed_lateness: self.allowed_lateness,
            ports: (0..self.ports).map(port).collect(),
            keys: self.keys.iter().map(physical).collect(),
            key_types: self.keys.clone(),
            factories: self.factories(),
            bounds: Physical::I64,
            emits_time: true,
        }
    }

    pub fn operator(&self) -> Box<dyn Stateful> {
        windowed(self.spec())
    }

    fn out(&self) -> Run {
        let mut out = Run::new();
        let spec = self.spec();
        let mut kinds = vec![Physical::I64; 2];
        kinds.extend(spec.keys);
        kinds.extend(spec.factories.iter().map(|factory| physical(factory.output())));
        kinds.extend((self.allowed_lateness > 0).then_some(Physical::U8));
        kinds.push(Physical::I64);
        kinds.into_iter().for_each(|kind| {
            out.add_slot(kind);
        });
        out
    }

    /// Makes a run of these events, all of one port. The watermarks are a column, or one value of the run where they
    /// are equal, or absent where no row lies below its own. Some rows occur twice; a filter has dropped one of them.
    pub fn run(&self, events: &[Event], marks_everywhere: bool) -> Run {
        let mut run = Run::new();
        let twice = |row: usize| if row % 3 == 1 { 2 } else { 1 };
        let padded = events.iter().enumerate();
        let events: Vec<Event> =
            padded.flat_map(|(row, event)| std::iter::repeat_n(event.clone(), twice(row))).collect();
        let ints = |values: Vec<i64>| -> Vec<Cell> {
            values.into_iter().map(|value| Some(Value::Int(value.into()))).collect()
        };
        let kinds = self.keys.iter().chain(&inputs()).map(physical).collect::<Vec<_>>();
        let watermark = run.add_slot(Physical::I64);
        let time = run.add_slot(Physical::I64);
        let slots: Vec<SlotId> = kinds.iter().map(|kind| run.add_slot(*kind)).collect();
        run.begin_owned(events.len());
        run.put(time, stored(Physical::I64, &ints(events.iter().map(|event| event.time).collect())));
        let behind = events.iter().any(|event| event.time < event.mark);
        if marks_everywhere || behind {
            let same = events.iter().all(|event| event.mark == events[0].mark);
            if same && !events.is_empty() {
                run.note_watermark(events[0].mark);
            } else {
                run.put(
                    watermark,
                    stored(Physical::I64, &ints(events.iter().map(|event| event.mark).collect())),
                );
            }
        }
        for (number, (slot, kind)) in slots.iter().zip(&kinds).enumerate() {
            let cell = |event: &Event| match number.checked_sub(self.keys.len()) {
                None => event.key[number].clone(),
                Some(input) => event.inputs[input].clone(),
            };
            run.put(*slot, stored(*kind, &events.iter().map(cell).collect::<Vec<_>>()));
        }
        let mut kept = run.selection();
        // Of each three rows, the second occurs twice.
        kept.extend((0..events.len() as u32).filter(|row| row % 4 != 2));
        run.select(kept);
        run
    }
}

/// The identity of a result row: start, end, key, and whether it is a correction.
pub type Place = (i64, i64, Row, bool);

/// Result rows by their identity: aggregates, and the time of the row.
pub type Results = BTreeMap<String, (Place, Row, i64)>;

pub fn add(results: &mut Results, place: Place, values: Row, time: i64) {
    let normal = |cell: &Cell| match cell {
        Some(Value::Float(value)) => Some(Value::Float(if value.is_nan() { f64::NAN } else { value + 0.0 })),
        other => other.clone(),
    };
    let key = format!("{:?}", (place.0, place.1, place.2.iter().map(normal).collect::<Row>(), place.3));
    assert!(results.insert(key, (place.clone(), values, time)).is_none(), "{place:?} was emitted twice");
}

fn int(cell: &Cell) -> i64 {
    if let Some(Value::Int(value)) = cell { *value as i64 } else { panic!("{cell:?} is no number") }
}

/// An operator and its emitted results.
pub struct Harness {
    pub plan: Plan,
    pub operator: Box<dyn Stateful>,
    pub results: Results,
    /// The ends of result rows, in order: of first results, then of corrections.
    pub ends: [Vec<i64>; 2],
    pub late: Vec<Event>,
}

impl Harness {
    pub fn new(plan: &Plan) -> Self {
        Self {
            plan: plan.clone(),
            operator: plan.operator(),
            results: Results::new(),
            ends: Default::default(),
            late: Vec::new(),
        }
    }

    pub fn consume(&mut self, events: &[Event], marks_everywhere: bool) {
        for events in events.chunk_by(|left, right| left.port == right.port) {
            let port = events.first().map_or(0, |event| event.port);
            let mut run = self.plan.run(events, marks_everywhere);
            let mut late = Vec::new();
            self.operator.late_rows(port, &mut run, &mut late);
            self.late.extend(late.iter().map(|&row| events[row as usize].clone()));
            let before = self.operator.late().rows;
            let mut run = self.plan.run(events, marks_everywhere);
            self.operator.consume(port, &mut run).unwrap();
            assert_eq!(self.operator.late().rows - before, late.len() as u64, "the listed rows");
        }
    }

    /// Emits all results, `room` rows at a time.
    pub fn drain(&mut self, room: usize) {
        let mut out = self.plan.out();
        while self.operator.has_output() {
            let given = self.operator.emit(&mut out, room).unwrap();
            assert!((1..=room).contains(&given), "{given} rows in the room of {room}");
            assert_eq!(out.len(), given);
            let width = self.plan.out_width();
            let slots: Vec<SlotId> = (0..width).collect();
            out.ready(&slots);
            let cells: Vec<Vec<Cell>> = slots.iter().map(|&slot| read(out.column(slot))).collect();
            for row in rows(&cells) {
                let keys = 2 + self.plan.keys.len();
                let values = keys + self.plan.aggregates.len();
                let corrects = self.plan.allowed_lateness > 0 && int(&row[values]) == 1;
                let place = (int(&row[0]), int(&row[1]), row[2..keys].to_vec(), corrects);
                self.ends[usize::from(corrects)].push(place.1);
                add(&mut self.results, place, row[keys..values].to_vec(), int(&row[width - 1]));
            }
        }
        assert_eq!(self.operator.emit(&mut out, 5).unwrap(), 0, "no row is emitted twice");
    }

    pub fn finish(&mut self, room: usize) {
        self.operator.finish();
        self.drain(room);
    }
}

impl Plan {
    fn out_width(&self) -> usize {
        2 + self.keys.len() + self.aggregates.len() + usize::from(self.allowed_lateness > 0) + 1
    }
}

/// Compares two results, up to the rounding of floats.
pub fn assert_same(plan: &Plan, found: &Results, expected: &Results) {
    for (key, (place, ..)) in found {
        assert!(expected.contains_key(key), "{place:?} is not expected");
    }
    for (key, (place, values, time)) in expected {
        let Some((_, found, found_time)) = found.get(key) else { panic!("{place:?} is missing: {values:?}") };
        assert_eq!(found_time, time, "the time of {place:?}");
        for (number, (found, expected)) in found.iter().zip(values).enumerate() {
            let same = match (found, expected) {
                (Some(Value::Float(found)), Some(Value::Float(expected))) if expected.is_finite() => {
                    (found - expected).abs() <= 1e-6 * (1.0 + expected.abs())
                }
                _ => found == expected,
            };
            assert!(same, "{:?} of {place:?}: {found:?} instead of {expected:?}", plan.aggregates[number]);
        }
    }
}

/// Draws a value to be aggregated. Totals of the few rows of a test stay within 64 bits and are exact in a float.
pub fn any_input(data_type: &DataType) -> BoxedStrategy<Cell> {
    let value = match data_type {
        DataType::Boolean => (0_i128..2).prop_map(Value::Int).boxed(),
        DataType::Int64 => prop_oneof![-9_i128..9, Just(1 << 40)].prop_map(Value::Int).boxed(),
        DataType::UInt64 => (0_i128..9).prop_map(Value::Int).boxed(),
        DataType::Int8 => (-3_i128..3).prop_map(Value::Int).boxed(),
        DataType::Decimal128(..) => (-900_i128..900).prop_map(Value::Int).boxed(),
        DataType::Float64 => prop_oneof![
            6 => (-20_i32..20).prop_map(|value| Value::Float(f64::from(value) / 4.0)),
            1 => any_key(Physical::F64),
        ]
        .boxed(),
        other => any_key(physical(other)),
    };
    prop::option::weighted(0.75, value).boxed()
}

/// Columns of keys: none, one of each kind of index, several.
pub fn any_keys() -> impl Strategy<Value = Vec<DataType>> {
    use DataType::{Binary, Decimal128, Float32, Float64, Int8, Int32, Int64, Utf8};
    prop::sample::select(vec![
        vec![],
        vec![Int64],
        vec![Utf8],
        vec![Float64],
        vec![Int32, Int8],
        vec![Float32, Int64],
        vec![Int64, Int64],
        vec![Decimal128(10, 2)],
        vec![Binary, Int8],
    ])
}

/// Draws events of up to three sources, each with a watermark that never falls.
pub fn any_events(keys: Vec<DataType>, ports: usize, time: BoxedStrategy<i64>) -> BoxedStrategy<Vec<Event>> {
    let key: Vec<_> = keys.iter().map(|key| prop::option::weighted(0.85, any_key(physical(key)))).collect();
    let inputs: Vec<_> = inputs().iter().map(any_input).collect();
    let row = (0_usize..3, 0..ports, time, prop::option::weighted(0.3, -40_i64..40), key, inputs);
    prop::collection::vec(row, 0..60)
        .prop_map(|rows| {
            let mut marks = [i64::MIN; 3];
            let events = rows.into_iter().map(|(source, port, time, ahead, key, inputs)| {
                let event = Event { port, time, mark: marks[source], key, inputs };
                if let Some(ahead) = ahead {
                    marks[source] = marks[source].max(time.saturating_add(ahead));
                }
                event
            });
            events.collect()
        })
        .boxed()
}

/// Returns the lowest watermark that any row from `from` on can have: the combined watermark before it.
pub fn progress(events: &[Event], from: usize) -> i64 {
    events[from..].iter().map(|event| event.mark).min().unwrap_or(i64::MAX)
}

impl Harness {
    /// Emits a few results and drops them.
    pub fn emit_any(&mut self) -> Result<usize, penstock_types::ComputeError> {
        self.operator.emit(&mut self.plan.out(), 5)
    }
}
