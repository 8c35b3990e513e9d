//! Tumbling windows against a map of rows: every aggregate, any order of arrival, any moment of
//! closing, any room for the results.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod columns;

use std::collections::{BTreeMap, HashMap};

use arrow_schema::{DataType, TimeUnit};
use columns::{Cell, Value, any_key, read, rows, stored};
use penstock_memory::{Physical, Run, SlotId};
use penstock_operators::aggregates::{AccumulatorFactory, AggregateKind};
use penstock_operators::{WindowAggregate, WindowColumns};
use penstock_progress::watermark::min_max;
use penstock_progress::{BoundedDelay, Tumbling};
use penstock_types::ComputeError;
use proptest::prelude::*;

use AggregateKind::{Count, Max, Mean, Min, Sum};

type Row = Vec<Cell>;

/// The columns that are aggregated.
fn inputs() -> Vec<DataType> {
    use DataType::{Boolean, Decimal128, Duration, Float32, Float64, Int8, Int32, UInt16, UInt64, Utf8};
    vec![
        Int8,
        Int32,
        UInt16,
        UInt64,
        Float32,
        Float64,
        Decimal128(20, 3),
        Duration(TimeUnit::Millisecond),
        Boolean,
        Utf8,
    ]
}

fn physical(data_type: &DataType) -> Physical {
    Physical::of(data_type).unwrap()
}

/// A value to be aggregated. Totals of the few rows of a test stay within 64 bits.
fn any_input(data_type: &DataType) -> BoxedStrategy<Cell> {
    let value = match data_type {
        DataType::Boolean => (0_i128..2).prop_map(Value::Int).boxed(),
        DataType::UInt64 | DataType::Duration(_) => {
            prop_oneof![0_i128..9, Just(1 << 55)].prop_map(Value::Int).boxed()
        }
        DataType::Decimal128(..) => {
            prop_oneof![-9_i128..9, Just(10_i128.pow(20) - 1), Just(1 - 10_i128.pow(20))]
                .prop_map(Value::Int)
                .boxed()
        }
        other => any_key(physical(other)),
    };
    prop::option::weighted(0.75, value).boxed()
}

/// Every aggregate over every column that has it, and the number of that column.
fn aggregates() -> Vec<(AggregateKind, Option<usize>)> {
    let mut aggregates = vec![(Count, None)];
    for (column, data_type) in inputs().iter().enumerate() {
        for kind in [Count, Sum, Min, Max, Mean] {
            if kind.output(Some(data_type), "").is_ok() {
                aggregates.push((kind, Some(column)));
            }
        }
    }
    aggregates
}

fn before(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => left < right,
        (Value::Float(left), Value::Float(right)) => left < right || (right.is_nan() && !left.is_nan()),
        (Value::Bytes(left), Value::Bytes(right)) => left < right,
        _ => panic!("{left:?} and {right:?} are of different kinds"),
    }
}

/// The aggregate of these cells, in order of arrival.
fn aggregate(kind: AggregateKind, data_type: Option<&DataType>, cells: &[&Cell]) -> Cell {
    let Some(data_type) = data_type else { return Some(Value::Int(cells.len() as i128)) };
    let values: Vec<&Value> = cells.iter().filter_map(|cell| cell.as_ref()).collect();
    if kind == Count {
        return Some(Value::Int(values.len() as i128));
    }
    let first = (*values.first()?).clone();
    let total = || {
        values
            .iter()
            .fold(0_i128, |total, value| total + if let Value::Int(value) = value { *value } else { 0 })
    };
    let float_total = || {
        values
            .iter()
            .fold(0.0, |total, value| total + if let Value::Float(value) = value { *value } else { 0.0 })
    };
    Some(match (kind, data_type) {
        (Min, _) => values
            .iter()
            .fold(first, |best, value| if before(value, &best) { (*value).clone() } else { best }),
        (Max, _) => values
            .iter()
            .fold(first, |best, value| if before(&best, value) { (*value).clone() } else { best }),
        (Sum, DataType::Float32 | DataType::Float64) => Value::Float(float_total()),
        (Sum, _) => Value::Int(total()),
        (Mean, DataType::Float32 | DataType::Float64) => Value::Float(float_total() / values.len() as f64),
        (Mean, DataType::Decimal128(_, scale)) => {
            let exact: f64 = format!("{}e-{scale}", total()).parse().unwrap();
            Value::Float(exact / values.len() as f64)
        }
        _ => Value::Float(total() as f64 / values.len() as f64),
    })
}

/// One row on its way in.
#[derive(Clone, Debug)]
struct Event {
    time: i64,
    key: Row,
    inputs: Row,
    /// Whether a filter before the window lets it through.
    passes: bool,
}

/// What happens between two runs.
#[derive(Clone, Debug)]
struct Pause {
    /// How far the window hears behind the source's watermark; nothing at all every now and then.
    lag: Option<i64>,
    /// Room of each call that takes results.
    rooms: Vec<usize>,
}

/// A window operator, its run, and the run its results go into.
struct Harness {
    operator: WindowAggregate,
    run: Run,
    time: SlotId,
    watermark: SlotId,
    keys: Vec<(SlotId, Physical)>,
    inputs: Vec<SlotId>,
    out: Run,
    width: usize,
    results: Vec<Row>,
}

impl Harness {
    fn new(size: i64, keys: &[Physical], bounds: Physical) -> Self {
        let mut run = Run::new();
        let watermark = run.add_slot(Physical::I64);
        let time = run.add_slot(Physical::I64);
        let keys: Vec<(SlotId, Physical)> = keys.iter().map(|key| (run.add_slot(*key), *key)).collect();
        let types = inputs();
        let inputs: Vec<SlotId> = types.iter().map(|data_type| run.add_slot(physical(data_type))).collect();
        let mut factories = Vec::new();
        let mut aggregated = Vec::new();
        for (kind, column) in aggregates() {
            let data_type = column.map(|column| types[column].clone());
            factories.push(AccumulatorFactory::new(kind, data_type, format!("{kind:?}")).unwrap());
            aggregated.push(column.map(|column| inputs[column]));
        }
        let mut out = Run::new();
        let outputs = factories.iter().map(|factory| physical(factory.output()));
        let kinds = [bounds, bounds].into_iter().chain(keys.iter().map(|(_, key)| *key)).chain(outputs);
        let width = kinds.map(|kind| out.add_slot(kind)).count();
        let columns = WindowColumns { time, watermark, keys: keys.clone(), inputs: aggregated, bounds };
        let operator = WindowAggregate::new(Tumbling::new(size).unwrap(), columns, factories);
        Self { operator, run, time, watermark, keys, inputs, out, width, results: Vec::new() }
    }

    /// Feeds a run; `marks` are the watermarks before its rows, where a row may be late, and `range`
    /// is what the source knows of its times.
    fn consume(&mut self, events: &[Event], marks: Option<&[i64]>, range: Option<(i64, i64)>) {
        let ints = |values: Vec<i64>| -> Vec<Cell> {
            values.into_iter().map(|value| Some(Value::Int(value.into()))).collect()
        };
        self.run.begin_owned(events.len());
        self.run
            .put(self.time, stored(Physical::I64, &ints(events.iter().map(|event| event.time).collect())));
        if let Some(marks) = marks {
            self.run.put(self.watermark, stored(Physical::I64, &ints(marks.to_vec())));
        }
        for (number, (slot, kind)) in self.keys.iter().enumerate() {
            let cells: Vec<Cell> = events.iter().map(|event| event.key[number].clone()).collect();
            self.run.put(*slot, stored(*kind, &cells));
        }
        for (number, data_type) in inputs().iter().enumerate() {
            let cells: Vec<Cell> = events.iter().map(|event| event.inputs[number].clone()).collect();
            self.run.put(self.inputs[number], stored(physical(data_type), &cells));
        }
        if let Some(range) = range {
            self.run.note_range(self.time, range);
        }
        let mut kept = self.run.selection();
        kept.extend((0..events.len() as u32).filter(|&row| events[row as usize].passes));
        self.run.select(kept);
        self.operator.consume(&mut self.run);
    }

    /// Takes results out once; whether there were any.
    fn emit(&mut self, room: usize) -> bool {
        let rows_out = self.operator.emit(&mut self.out, room).unwrap();
        assert!(rows_out <= room, "{rows_out} rows in the room of {room}");
        if rows_out == 0 {
            return false;
        }
        assert_eq!(self.out.len(), rows_out);
        let slots: Vec<SlotId> = (0..self.width).collect();
        self.out.ready(&slots);
        let cells: Vec<Vec<Cell>> = slots.iter().map(|&slot| read(self.out.column(slot))).collect();
        self.results.extend(rows(&cells));
        true
    }

    fn starts(&self) -> Vec<i128> {
        self.results
            .iter()
            .map(|row| {
                if let Some(Value::Int(start)) = row[0] { start } else { panic!("a window without a start") }
            })
            .collect()
    }
}

/// The results that the events should have, windows in order, and the late rows.
struct Expected {
    windows: BTreeMap<i64, Vec<Row>>,
    late: u64,
    late_by: Option<u64>,
}

fn expect(events: &[Event], size: i64, delay: i64) -> Expected {
    let mut largest: Option<i64> = None;
    let mut kept: BTreeMap<i64, Vec<(&Row, Vec<&Event>)>> = BTreeMap::new();
    let (mut late, mut late_by) = (0, None);
    for event in events {
        let index = event.time.div_euclid(size);
        let mark = largest.map(|largest| largest.saturating_sub(delay));
        largest = largest.max(Some(event.time));
        if !event.passes {
            continue;
        }
        if mark.is_some_and(|mark| index < mark.div_euclid(size)) {
            late += 1;
            late_by = late_by.max(mark.map(|mark| mark.abs_diff(event.time)));
            continue;
        }
        let keys = kept.entry(index).or_default();
        match keys.iter_mut().find(|(key, _)| **key == event.key) {
            Some((_, events)) => events.push(event),
            None => keys.push((&event.key, vec![event])),
        }
    }
    let types = inputs();
    let clamp = |time: i128| Some(Value::Int(time.clamp(i64::MIN.into(), i64::MAX.into())));
    let windows = kept.into_iter().map(|(index, keys)| {
        let rows = keys.into_iter().map(|(key, events)| {
            let start = i128::from(index) * i128::from(size);
            let mut row = vec![clamp(start), clamp(start + i128::from(size))];
            row.extend(key.iter().cloned());
            row.extend(aggregates().into_iter().map(|(kind, column)| {
                let nothing = None;
                let cells: Vec<&Cell> = events
                    .iter()
                    .map(|event| column.map_or(&nothing, |column| &event.inputs[column]))
                    .collect();
                aggregate(kind, column.map(|column| &types[column]), &cells)
            }));
            row
        });
        (index, rows.collect())
    });
    Expected { windows: windows.collect(), late, late_by }
}

fn tally(rows: impl IntoIterator<Item = Row>) -> HashMap<Row, usize> {
    let mut counts = HashMap::new();
    rows.into_iter().for_each(|row| *counts.entry(row).or_insert(0) += 1);
    counts
}

fn any_time() -> impl Strategy<Value = i64> {
    prop_oneof![8 => -60_i64..200, 1 => any::<i64>(), 1 => Just(i64::MIN), 1 => Just(i64::MAX)]
}

fn any_events(keys: Vec<Physical>, time: BoxedStrategy<i64>) -> impl Strategy<Value = Vec<Event>> {
    let key: Vec<_> = keys.iter().map(|key| prop::option::weighted(0.85, any_key(*key))).collect();
    let inputs: Vec<_> = inputs().iter().map(any_input).collect();
    let event = (time, key, inputs, prop::bool::weighted(0.9))
        .prop_map(|(time, key, inputs, passes)| Event { time, key, inputs, passes });
    prop::collection::vec(event, 0..50)
}

fn any_pause() -> impl Strategy<Value = Pause> {
    (prop::option::weighted(0.8, 0_i64..30), prop::collection::vec(1_usize..4, 0..5))
        .prop_map(|(lag, rooms)| Pause { lag, rooms })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn windows_hold_what_a_map_of_rows_holds(
        events in prop::sample::select(vec![
            vec![], vec![Physical::I64], vec![Physical::U8], vec![Physical::View], vec![Physical::F64, Physical::View],
        ]).prop_flat_map(|keys| {
            let small = prop_oneof![Just((0_i64..120).boxed()), Just(any_time().boxed())];
            (Just(keys.clone()), small.prop_flat_map(move |time| any_events(keys.clone(), time)))
        }),
        size in prop_oneof![Just(1_i64), 2_i64..40, Just(1_000), Just(i64::MAX)],
        delay in prop_oneof![Just(0_i64), 1_i64..60, Just(i64::MAX)],
        run_rows in 1_usize..12,
        pauses in prop::collection::vec(any_pause(), 50),
        marks_everywhere in any::<bool>(),
        range_noted in any::<bool>(),
    ) {
        let (keys, events) = events;
        let expected = expect(&events, size, delay);
        let mut harness = Harness::new(size, &keys, Physical::I64);
        let mut source = BoundedDelay::new(delay);
        let mut told = i64::MIN;
        for (run, pause) in events.chunks(run_rows).zip(&pauses) {
            let times: Vec<i64> = run.iter().map(|event| event.time).collect();
            let first = source.watermark();
            let mut marks = Vec::new();
            let may_be_late = min_max(&times).is_some_and(|range| source.observe(&times, range, &mut marks));
            if !may_be_late && marks_everywhere {
                // The watermark of every row, though none of them needs it.
                let mut source = BoundedDelay::new(delay);
                marks = times.iter().map(|&time| {
                    let mark = source.watermark().max(first);
                    source.observe(&[time], (time, time), &mut Vec::new());
                    mark
                }).collect();
            }
            let range = min_max(&times).filter(|_| range_noted);
            harness.consume(run, (may_be_late || marks_everywhere).then_some(&marks), range);
            if let Some(lag) = pause.lag {
                told = told.max(source.watermark().saturating_sub(lag));
                harness.operator.advance(told);
            }
            for &room in &pause.rooms {
                harness.emit(room);
            }
        }
        prop_assert_eq!(harness.operator.late().rows, expected.late);
        prop_assert_eq!(harness.operator.late().by, expected.late_by);

        // Everything that is over comes out, and nothing that is not.
        while harness.emit(2) {}
        let over = told.div_euclid(size);
        let closed = expected.windows.range(..over).flat_map(|(_, rows)| rows.clone());
        prop_assert_eq!(tally(harness.results.clone()), tally(closed));

        harness.operator.finish();
        while harness.emit(3) {}
        prop_assert_eq!(tally(harness.results.clone()), tally(expected.windows.into_values().flatten()));
        prop_assert!(harness.starts().is_sorted(), "W2: windows close in order of time");
        prop_assert!(!harness.emit(1), "nothing is given twice");
    }
}

fn event(time: i64, inputs: Row) -> Event {
    Event { time, key: vec![], inputs, passes: true }
}

/// A row of inputs that are all null except one.
fn only(column: usize, value: i128) -> Row {
    let mut row: Row = vec![None; inputs().len()];
    row[column] = Some(Value::Int(value));
    row
}

/// What the aggregate of these totals gives, over the column of that type.
fn sum_of(data_type: &DataType, values: &[i128]) -> Result<Cell, ComputeError> {
    let mut run = Run::new();
    let (time, watermark) = (run.add_slot(Physical::I64), run.add_slot(Physical::I64));
    let input = run.add_slot(physical(data_type));
    let factory =
        AccumulatorFactory::new(Sum, Some(data_type.clone()), "sum(col(\"x\"))".to_owned()).unwrap();
    let mut out = Run::new();
    for kind in [Physical::I64, Physical::I64, physical(factory.output())] {
        out.add_slot(kind);
    }
    let columns =
        WindowColumns { time, watermark, keys: vec![], inputs: vec![Some(input)], bounds: Physical::I64 };
    let mut operator = WindowAggregate::new(Tumbling::new(10).unwrap(), columns, vec![factory]);
    for value in values {
        run.begin_owned(1);
        run.put(time, stored(Physical::I64, &[Some(Value::Int(5))]));
        run.put(input, stored(physical(data_type), &[Some(Value::Int(*value))]));
        operator.consume(&mut run);
    }
    operator.finish();
    operator.emit(&mut out, 10)?;
    out.ready(&[2]);
    Ok(read(out.column(2)).remove(0))
}

#[test]
fn a_total_fails_only_if_it_does_not_fit_in_the_end() {
    let max = i128::from(i64::MAX);
    let int64 = DataType::Int64;
    assert_eq!(sum_of(&int64, &[max, max, -max, -1]), Ok(Some(Value::Int(max - 1))));
    assert_eq!(sum_of(&int64, &[-max, -1]), Ok(Some(Value::Int(i64::MIN.into()))));
    assert_eq!(
        sum_of(&int64, &[max, 1]),
        Err(ComputeError::Overflow {
            expression: "sum(col(\"x\"))".to_owned(),
            type_name: "int64".to_owned(),
            values: "the total is 9223372036854775808".to_owned(),
        })
    );
    assert_eq!(sum_of(&DataType::UInt64, &[u64::MAX.into()]), Ok(Some(Value::Int(u64::MAX.into()))));
    assert!(sum_of(&DataType::UInt64, &[u64::MAX.into(), 1]).is_err());
    let decimal = DataType::Decimal128(38, 2);
    let largest = 10_i128.pow(38) - 1;
    let there_and_back = [largest, largest, largest, 7 - largest, -largest, -largest];
    assert_eq!(sum_of(&decimal, &there_and_back), Ok(Some(Value::Int(7))));
    assert_eq!(sum_of(&decimal, &[largest]), Ok(Some(Value::Int(largest))));
    assert!(matches!(sum_of(&decimal, &[largest, 1]), Err(ComputeError::Overflow { .. })));
    assert!(sum_of(&DataType::Duration(TimeUnit::Second), &[max, 1]).is_err());
}

#[test]
fn days_beyond_32_bits_are_given_as_the_last_day() {
    let mut harness = Harness::new(10, &[], Physical::I32);
    harness.consume(
        &[event(i32::MAX.into(), only(0, 1)), event(i32::MIN.into(), only(0, 2)), event(3, only(0, 3))],
        None,
        None,
    );
    harness.operator.finish();
    while harness.emit(5) {}
    let bounds: Vec<Row> = harness.results.iter().map(|row| row[..2].to_vec()).collect();
    let int = |value: i32| Some(Value::Int(value.into()));
    assert_eq!(
        bounds,
        [
            vec![int(i32::MIN), int(i32::MIN + 8)],
            vec![int(0), int(10)],
            vec![int(i32::MAX - 7), int(i32::MAX)],
        ]
    );
}

#[test]
fn an_operator_without_rows_gives_nothing() {
    let mut harness = Harness::new(10, &[Physical::I64], Physical::I64);
    harness.consume(&[], None, None);
    let mut dropped = event(5, only(0, 1));
    dropped.key = vec![None];
    dropped.passes = false;
    harness.consume(&[dropped], None, None);
    harness.operator.advance(i64::MAX);
    harness.operator.finish();
    assert!(!harness.emit(1));
    assert_eq!(harness.operator.late().rows, 0);
}

#[test]
fn aggregates_are_refused_where_they_mean_nothing() {
    for (kind, data_type) in [
        (Sum, DataType::Utf8),
        (Sum, DataType::Boolean),
        (Sum, DataType::Date32),
        (Mean, DataType::Timestamp(TimeUnit::Second, None)),
        (Mean, DataType::Binary),
    ] {
        let error =
            AccumulatorFactory::new(kind, Some(data_type), "agg(x)".to_owned()).unwrap_err().to_string();
        assert!(error.starts_with("agg(x): ") && error.contains(kind.name()), "{error}");
    }
    for name in AggregateKind::names() {
        assert_eq!(AggregateKind::from_name(name).unwrap().name(), name);
    }
    assert_eq!(AggregateKind::from_name("median"), None);
}
