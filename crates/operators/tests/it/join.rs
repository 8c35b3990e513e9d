//! Window joins against nested loops: every kind, any order of arrival on either side, any moment of closing, any room
//! for the results; split, merged and restored in between.

use crate::columns;

use std::collections::HashMap;

use arrow_schema::DataType;
use columns::{Cell, Value, any_key, read, rows, stored};
use penstock_memory::{Physical, Run, SlotId};
use penstock_operators::{JoinKind, JoinPort, JoinSpec, Late, Stateful, WindowJoin};
use penstock_progress::Aligned;
use penstock_types::KeyGroups;
use proptest::prelude::*;

type Row = Vec<Cell>;

const KINDS: [JoinKind; 4] = [JoinKind::Inner, JoinKind::Left, JoinKind::Right, JoinKind::Full];

fn physical(data_type: &DataType) -> Physical {
    Physical::of(data_type).unwrap()
}

fn int(value: impl Into<i128>) -> Cell {
    Some(Value::Int(value.into()))
}

fn clamped(time: i128) -> Cell {
    int(time.clamp(i64::MIN.into(), i64::MAX.into()))
}

/// The types of the keys and of the columns of both sides.
#[derive(Clone, Debug)]
struct Types {
    keys: Vec<DataType>,
    columns: [Vec<DataType>; 2],
}

/// An input row.
#[derive(Clone, Debug)]
struct Event {
    time: i64,
    /// The watermark just before it, if it carries one.
    mark: Option<i64>,
    key: Row,
    columns: Row,
    /// True if a filter before the join passes it.
    passes: bool,
}

/// How a run carries the watermarks of its rows.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Marks {
    Nothing,
    /// One watermark for all rows: that of the first.
    Noted,
    Beside,
}

/// A step of a join.
#[derive(Clone, Debug)]
enum Step {
    Feed {
        port: usize,
        events: Vec<Event>,
        marks: Marks,
        range: bool,
    },
    Advance(i64),
    CloseOpen,
    /// Splits off the state of these groups, and merges one half back into the other.
    Regroup(Vec<u8>, bool),
    Restore,
}

/// A join, its runs, and the run of its results.
struct Harness {
    operator: Box<dyn Stateful>,
    spec: JoinSpec,
    runs: [Run; 2],
    out: Run,
    width: usize,
    results: Vec<Row>,
}

impl Harness {
    fn new(windows: Aligned, kind: JoinKind, types: Types, bounds: Physical, emits_time: bool) -> Self {
        let keys: Vec<Physical> = types.keys.iter().map(physical).collect();
        let mut runs = [Run::new(), Run::new()];
        let mut port = |side: usize| {
            let run = &mut runs[side];
            let (watermark, time) = (run.add_slot(Physical::I64), run.add_slot(Physical::I64));
            let columns =
                types.columns[side].iter().map(|kind| (run.add_slot(physical(kind)), physical(kind)));
            let columns = columns.collect();
            let keys = keys.iter().map(|key| run.add_slot(*key)).collect();
            JoinPort { time, watermark, keys, columns }
        };
        let ports = [port(0), port(1)];
        let mut out = Run::new();
        let mut kinds = vec![bounds, bounds];
        kinds.extend(&keys);
        kinds.extend(types.columns.iter().flatten().map(physical));
        kinds.extend(emits_time.then_some(Physical::I64));
        let width = kinds.into_iter().map(|kind| out.add_slot(kind)).count();
        let (key_types, column_types) = (types.keys.clone(), types.columns.clone());
        let spec = JoinSpec { windows, kind, ports, keys, key_types, column_types, bounds, emits_time };
        let operator = Box::new(WindowJoin::new(spec.clone()));
        Self { operator, spec, runs, out, width, results: Vec::new() }
    }

    /// Feeds a run; returns the late ones of its present rows.
    fn consume(&mut self, port: usize, events: &[Event], marks: Marks, range: bool) -> Vec<u32> {
        let (run, slots) = (&mut self.runs[port], &self.spec.ports[port]);
        let ints =
            |value: &dyn Fn(&Event) -> i64| events.iter().map(|event| int(value(event))).collect::<Row>();
        run.begin_owned(events.len());
        run.put(slots.time, stored(Physical::I64, &ints(&|event| event.time)));
        match marks {
            Marks::Nothing => {}
            Marks::Noted => run.note_watermark(events[0].mark.unwrap()),
            Marks::Beside => {
                run.put(slots.watermark, stored(Physical::I64, &ints(&|event| event.mark.unwrap())));
            }
        }
        let times = events.iter().map(|event| event.time);
        if let Some(range) = times.clone().min().zip(times.max()).filter(|_| range) {
            run.note_range(slots.time, range);
        }
        for (number, &slot) in slots.keys.iter().enumerate() {
            let cells: Row = events.iter().map(|event| event.key[number].clone()).collect();
            run.put(slot, stored(self.spec.keys[number], &cells));
        }
        for (number, &(slot, kind)) in slots.columns.iter().enumerate() {
            let cells: Row = events.iter().map(|event| event.columns[number].clone()).collect();
            run.put(slot, stored(kind, &cells));
        }
        let mut kept = run.selection();
        kept.extend((0..events.len() as u32).filter(|&row| events[row as usize].passes));
        run.select(kept);
        let (before, mut late) = (self.operator.late(), Vec::new());
        self.operator.late_rows(port, run, &mut late);
        assert_eq!(self.operator.late(), before, "listing late rows changes nothing");
        self.operator.consume(port, run).unwrap();
        run.begin_owned(0); // state holds nothing of the run
        late
    }

    /// Emits results once.
    fn emit(&mut self, room: usize) {
        let count = self.operator.emit(&mut self.out, room).unwrap();
        assert!((1..=room).contains(&count), "CONTRACT-2: {count} rows in the room of {room}");
        assert_eq!(self.out.len(), count);
        let slots: Vec<SlotId> = (0..self.width).collect();
        self.out.ready(&slots);
        let cells: Vec<Vec<Cell>> = slots.iter().map(|&slot| read(self.out.column(slot))).collect();
        self.results.extend(rows(&cells));
    }

    fn drain(&mut self, rooms: &mut impl Iterator<Item = usize>) {
        while self.operator.has_output() {
            self.emit(rooms.next().unwrap());
        }
        assert_eq!(self.operator.emit(&mut self.out, 5).unwrap(), 0, "no row is emitted twice");
    }

    fn restore(&mut self) {
        let snapshot = self.operator.snapshot();
        let mut restored = WindowJoin::new(self.spec.clone());
        restored.restore(&snapshot).unwrap();
        assert_eq!(restored.snapshot(), snapshot, "the restored state equals the written one");
        self.operator = Box::new(restored);
    }
}

/// The join by nested loops.
struct Reference {
    size: i128,
    slide: i128,
    offset: i128,
    kind: JoinKind,
    emits_time: bool,
    /// Rows of each side, with the windows they belong to.
    sides: [Vec<(i128, Event)>; 2],
    closed_below: i128,
    closed_by: i64,
    late: Late,
    types: Types,
}

impl Reference {
    fn end(&self, window: i128) -> i128 {
        self.offset + window * self.slide + self.size
    }

    fn windows_of(&self, time: i64) -> Vec<i128> {
        let mut window = (i128::from(time) - self.offset).div_euclid(self.slide);
        let mut windows = Vec::new();
        while i128::from(time) < self.end(window) {
            windows.push(window);
            window -= 1;
        }
        windows
    }

    fn keeps(&self, side: usize) -> bool {
        self.kind == JoinKind::Full || self.kind == [JoinKind::Left, JoinKind::Right][side]
    }

    /// Consumes a row; returns true if it is late.
    fn take(&mut self, port: usize, event: &Event) -> bool {
        let windows = self.windows_of(event.time);
        let over = |window: &i128| event.mark.is_some_and(|mark| self.end(*window) <= i128::from(mark));
        let open: Vec<i128> =
            windows.iter().copied().filter(|window| !over(window) && *window >= self.closed_below).collect();
        if open.is_empty() {
            let judge = event.mark.map_or(self.closed_by, |mark| mark.max(self.closed_by));
            self.late.rows += 1;
            self.late.by = self.late.by.max(Some(judge.abs_diff(event.time)));
        }
        self.sides[port].extend(open.iter().map(|&window| (window, event.clone())));
        open.is_empty()
    }

    fn advance(&mut self, watermark: i64) {
        let mut below = (i128::from(watermark) - self.offset).div_euclid(self.slide) + 2;
        while self.end(below - 1) > i128::from(watermark) {
            below -= 1;
        }
        self.closed_below = self.closed_below.max(below);
        self.closed_by = self.closed_by.max(watermark);
    }

    /// Returns the last window with a row that may still be emitted.
    fn last_open(&self) -> Option<i128> {
        let rows = [0, 1].into_iter().flat_map(|side| {
            let counts = move |event: &Event| self.keeps(side) || !event.key.contains(&None);
            self.sides[side].iter().filter(move |(_, event)| counts(event)).map(|(window, _)| *window)
        });
        rows.max().filter(|window| *window >= self.closed_below)
    }

    fn result(&self, window: i128, key: &Row, left: Option<&Event>, right: Option<&Event>) -> Row {
        let end = self.end(window);
        let mut row = vec![clamped(end - self.size), clamped(end)];
        row.extend(key.iter().cloned());
        for (side, event) in [left, right].into_iter().enumerate() {
            let nulls = vec![None; self.types.columns[side].len()];
            row.extend(event.map_or(nulls, |event| event.columns.clone()));
        }
        row.extend(self.emits_time.then(|| clamped(end - 1)));
        row
    }

    /// Returns the results expected by now.
    fn results(&self) -> Vec<Row> {
        let mut results = Vec::new();
        let matches = |left: &(i128, Event), right: &(i128, Event)| {
            left.0 == right.0 && left.1.key == right.1.key && !left.1.key.contains(&None)
        };
        let [left, right] = &self.sides;
        for one in left {
            for other in right.iter().filter(|other| matches(one, other)) {
                results.push(self.result(one.0, &one.1.key, Some(&one.1), Some(&other.1)));
            }
            let alone = !right.iter().any(|other| matches(one, other));
            if self.keeps(0) && one.0 < self.closed_below && alone {
                results.push(self.result(one.0, &one.1.key, Some(&one.1), None));
            }
        }
        for one in right {
            let alone = !left.iter().any(|other| matches(other, one));
            if self.keeps(1) && one.0 < self.closed_below && alone {
                results.push(self.result(one.0, &one.1.key, None, Some(&one.1)));
            }
        }
        results
    }
}

fn tally(rows: &[Row]) -> HashMap<Row, usize> {
    let mut counts = HashMap::new();
    rows.iter().for_each(|row| *counts.entry(row.clone()).or_insert(0) += 1);
    counts
}

fn any_time() -> BoxedStrategy<i64> {
    let near = (-60_i64..150).boxed();
    let limits = prop_oneof![i64::MIN..i64::MIN + 30, i64::MAX - 30..=i64::MAX];
    prop_oneof![2 => near.clone(), 1 => prop_oneof![8 => near, 1 => any::<i64>(), 2 => limits]].boxed()
}

fn any_types() -> impl Strategy<Value = Types> {
    use DataType::{
        Binary, Boolean, Decimal128, Float64, Int8, Int32, Int64, LargeUtf8, UInt8, Utf8, Utf8View,
    };
    let keys = vec![
        vec![],
        vec![Int64],
        vec![Int64],
        vec![UInt8],
        vec![Utf8],
        vec![Float64, Utf8],
        vec![Int32, Decimal128(38, 2), LargeUtf8],
    ];
    let columns = vec![vec![], vec![Int64, Utf8], vec![Boolean, Binary], vec![Utf8View, Float64, Int8]];
    let columns = prop::sample::select(columns);
    (prop::sample::select(keys), columns.clone(), columns)
        .prop_map(|(keys, left, right)| Types { keys, columns: [left, right] })
}

fn any_cell(data_type: &DataType, weight: f64) -> BoxedStrategy<Cell> {
    let value = match data_type {
        DataType::Boolean => (0_i128..2).prop_map(Value::Int).boxed(),
        DataType::Decimal128(..) => (-3_i128..3).prop_map(Value::Int).boxed(),
        other => any_key(physical(other)),
    };
    prop::option::weighted(weight, value).boxed()
}

fn any_event(types: &Types, side: usize) -> impl Strategy<Value = Event> + use<> {
    let key: Vec<_> = types.keys.iter().map(|kind| any_cell(kind, 0.9)).collect();
    let columns: Vec<_> = types.columns[side].iter().map(|kind| any_cell(kind, 0.8)).collect();
    (any_time(), any_time(), key, columns, prop::bool::weighted(0.95))
        .prop_map(|(time, mark, key, columns, passes)| Event { time, mark: Some(mark), key, columns, passes })
}

fn any_feed(types: &Types) -> impl Strategy<Value = Step> + use<> {
    let types = types.clone();
    (0_usize..2).prop_flat_map(move |port| {
        let events = prop::collection::vec(any_event(&types, port), 1..14);
        let marks = prop::sample::select(vec![Marks::Nothing, Marks::Noted, Marks::Beside]);
        (events, marks, any::<bool>(), 0_i64..40).prop_map(move |(mut events, marks, range, delay)| {
            let first = events[0].mark;
            // Watermarks that usually leave something on time.
            for event in &mut events {
                event.mark = match marks {
                    Marks::Nothing => None,
                    Marks::Noted => first.map(|mark| mark.saturating_sub(2 * delay)),
                    Marks::Beside => event.mark.map(|mark| mark.min(event.time.saturating_add(delay))),
                };
            }
            Step::Feed { port, events, marks, range }
        })
    })
}

fn any_step(types: &Types) -> impl Strategy<Value = Step> + use<> {
    prop_oneof![
        10 => any_feed(types),
        2 => any_time().prop_map(Step::Advance),
        1 => Just(Step::CloseOpen),
        2 => (prop::collection::vec(any::<u8>(), 0..200), any::<bool>()).prop_map(|(groups, back)| Step::Regroup(groups, back)),
        1 => Just(Step::Restore),
    ]
}

fn any_windows() -> impl Strategy<Value = (i64, i64, i64)> {
    let tumbling = (prop_oneof![Just(1_i64), 2_i64..60, Just(i64::MAX)], -20_i64..20)
        .prop_map(|(size, offset)| (size, size, offset));
    let sliding = (1_i64..20, 1_i64..5, 0_i64..20, -20_i64..20)
        .prop_map(|(slide, times, more, offset)| (slide * times + more % slide, slide, offset));
    prop_oneof![tumbling, sliding]
}

fn any_rooms() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![3 => 1_usize..4, 1 => Just(1000_usize)], 1..20)
}

fn groups_of(numbers: &[u8]) -> KeyGroups {
    let mut groups = KeyGroups::NONE;
    numbers.iter().for_each(|&number| groups.insert(number));
    groups
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn joins_give_what_nested_loops_give(
        (types, steps) in any_types().prop_flat_map(|types| {
            (Just(types.clone()), prop::collection::vec(any_step(&types), 1..14))
        }),
        (size, slide, offset) in any_windows(),
        kind in prop::sample::select(KINDS.to_vec()),
        rooms in any_rooms(),
        emits_time in any::<bool>(),
        eager in any::<bool>(),
    ) {
        let windows = Aligned::new(size, slide, offset).unwrap();
        let mut harness = Harness::new(windows, kind, types.clone(), Physical::I64, emits_time);
        let mut reference = Reference {
            size: size.into(), slide: slide.into(), offset: offset.into(), kind, emits_time, types,
            sides: [Vec::new(), Vec::new()], closed_below: i128::MIN, closed_by: i64::MIN, late: Late::default(),
        };
        let mut rooms = rooms.into_iter().cycle();
        for step in steps {
            match step {
                Step::Feed { port, events, marks, range } => {
                    let passing: Vec<&Event> = events.iter().filter(|event| event.passes).collect();
                    let late: Vec<u32> = (0_u32..).zip(passing)
                        .filter_map(|(row, event)| reference.take(port, event).then_some(row))
                        .collect();
                    prop_assert_eq!(harness.consume(port, &events, marks, range), late);
                    prop_assert_eq!(harness.operator.late(), reference.late);
                    if eager {
                        // The watermark may advance before the output has left.
                        let watermark = events[0].time.max(reference.closed_by);
                        harness.operator.advance(watermark);
                        reference.advance(watermark);
                    }
                }
                Step::Advance(watermark) => {
                    let watermark = watermark.max(reference.closed_by);
                    harness.operator.advance(watermark);
                    reference.advance(watermark);
                }
                Step::CloseOpen => {
                    let last = reference.last_open();
                    let amounts_to = last.map(|last| reference.end(last).min(i64::MAX.into()) as i64);
                    prop_assert_eq!(harness.operator.close_open(), amounts_to);
                    if let Some((last, by)) = last.zip(amounts_to) {
                        reference.closed_below = last + 1;
                        reference.closed_by = reference.closed_by.max(by);
                    }
                }
                Step::Regroup(groups, back) => {
                    let mut part = harness.operator.extract(groups_of(&groups));
                    if back {
                        harness.operator.merge(part);
                    } else {
                        let rest = std::mem::replace(&mut harness.operator, Box::new(WindowJoin::new(harness.spec.clone())));
                        part.merge(rest);
                        harness.operator = part;
                    }
                }
                Step::Restore => harness.restore(),
            }
            harness.drain(&mut rooms);
            prop_assert_eq!(tally(&harness.results), tally(&reference.results()));
        }
        harness.operator.finish();
        reference.closed_below = i128::MAX;
        harness.drain(&mut rooms);
        prop_assert_eq!(tally(&harness.results), tally(&reference.results()));
        prop_assert_eq!(harness.operator.bytes(), 0, "memory returns");
        prop_assert_eq!(harness.operator.held(), Default::default(), "everything has left");
    }

    /// Rows of one stream, dealt to two operators without regard to their keys.
    #[test]
    fn two_operators_find_together_what_one_would(
        (types, feeds) in any_types().prop_flat_map(|types| {
            (Just(types.clone()), prop::collection::vec((any_feed(&types), any::<bool>()), 1..10))
        }),
        (size, slide, offset) in any_windows(),
        kind in prop::sample::select(KINDS.to_vec()),
        watermark in any_time(),
        rooms in any_rooms(),
        whole in any::<bool>(),
    ) {
        let windows = Aligned::new(size, slide, offset).unwrap();
        let make = || Harness::new(windows, kind, types.clone(), Physical::I64, false);
        let (mut one, mut halves) = (make(), [make(), make()]);
        let mut rooms = rooms.into_iter().cycle();
        for (feed, second) in feeds {
            let Step::Feed { port, events, marks, range } = feed else { unreachable!() };
            for harness in [&mut one, &mut halves[usize::from(second)]] {
                harness.consume(port, &events, marks, range);
                harness.drain(&mut rooms);
            }
        }
        let [mut first, mut second] = halves;
        if !whole {
            let mut closing = make();
            closing.operator = first.operator.split_off(watermark);
            closing.operator.merge(second.operator.split_off(watermark));
            closing.drain(&mut rooms);
            closing.operator.advance(watermark);
            closing.drain(&mut rooms);
            prop_assert_eq!(closing.operator.bytes(), 0, "all that was split off is over");
            first.results.append(&mut closing.results);
        }
        first.operator.merge(second.operator);
        first.results.append(&mut second.results);
        first.drain(&mut rooms);
        first.operator.finish();
        first.drain(&mut rooms);
        one.operator.finish();
        one.drain(&mut rooms);
        prop_assert_eq!(tally(&first.results), tally(&one.results));
        prop_assert_eq!(first.operator.late(), one.operator.late());
    }
}
