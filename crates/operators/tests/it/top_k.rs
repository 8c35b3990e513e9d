//! The first rows of each key against a sort of all of them: any order of arrival, any moment of closing, any room for
//! the results; split, merged and restored in between.

use crate::columns;

use std::cmp::Ordering;
use std::collections::HashMap;

use arrow_schema::DataType;
use columns::{Cell, Value, any_key, read, rows, stored};
use penstock_memory::{Physical, Run, SlotId};
use penstock_operators::{Late, SnapshotError, Stateful, TopK, TopKPort, TopKSpec};
use penstock_progress::Aligned;
use penstock_types::KeyGroups;
use proptest::prelude::*;
use proptest::sample::select;

type Row = Vec<Cell>;

fn physical(data_type: &DataType) -> Physical {
    Physical::of(data_type).unwrap()
}

fn int(value: impl Into<i128>) -> Cell {
    Some(Value::Int(value.into()))
}

/// The specification under test.
#[derive(Clone, Debug)]
struct Query {
    size: i64,
    slide: i64,
    offset: i64,
    k: usize,
    largest: bool,
    keys: Vec<DataType>,
    columns: Vec<DataType>,
    by: DataType,
    /// The ordering column of the result, unless it is a separate one.
    among: Option<usize>,
    emits_time: bool,
}

/// An input row.
#[derive(Clone, Debug)]
struct Event {
    time: i64,
    mark: Option<i64>,
    key: Row,
    columns: Row,
    by: Cell,
    passes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Marks {
    Nothing,
    /// One watermark for all rows: that of the first.
    Noted,
    Beside,
}

#[derive(Clone, Debug)]
enum Step {
    Feed(Vec<Event>, Marks),
    Advance(i64),
    CloseOpen,
    /// Splits off the state of these groups, and merges one half back into the other.
    Regroup(Vec<u8>, bool),
    Restore,
}

/// The operator, its run, and the run of its results.
struct Harness {
    operator: Box<dyn Stateful>,
    spec: TopKSpec,
    by: Physical,
    run: Run,
    out: Run,
    width: usize,
    results: Vec<Row>,
}

impl Harness {
    fn new(query: &Query) -> Self {
        let mut run = Run::new();
        let (watermark, time) = (run.add_slot(Physical::I64), run.add_slot(Physical::I64));
        let columns: Vec<(SlotId, Physical)> =
            query.columns.iter().map(|kind| (run.add_slot(physical(kind)), physical(kind))).collect();
        let keys: Vec<Physical> = query.keys.iter().map(physical).collect();
        let by = match query.among {
            Some(column) => columns[column].0,
            None => run.add_slot(physical(&query.by)),
        };
        let key_slots = keys.iter().map(|key| run.add_slot(*key)).collect();
        let mut out = Run::new();
        let mut kinds = vec![Physical::I64; 2];
        kinds.extend(&keys);
        kinds.push(Physical::I64);
        kinds.extend(columns.iter().map(|(_, kind)| *kind));
        kinds.extend(query.emits_time.then_some(Physical::I64));
        let width = kinds.into_iter().map(|kind| out.add_slot(kind)).count();
        let spec = TopKSpec {
            windows: Aligned::new(query.size, query.slide, query.offset).unwrap(),
            k: query.k,
            largest: query.largest,
            port: TopKPort { time, watermark, keys: key_slots, by, columns },
            keys,
            key_types: query.keys.clone(),
            column_types: query.columns.clone(),
            bounds: Physical::I64,
            emits_time: query.emits_time,
        };
        let operator = Box::new(TopK::new(spec.clone()));
        let by = physical(&query.by);
        Self { operator, spec, by, run, out, width, results: Vec::new() }
    }

    /// Feeds a run; returns its late rows.
    fn consume(&mut self, events: &[Event], marks: Marks) -> Vec<u32> {
        let (run, slots) = (&mut self.run, &self.spec.port);
        let cells = |cell: &dyn Fn(&Event) -> Cell| events.iter().map(cell).collect::<Row>();
        run.begin_owned(events.len());
        run.put(slots.time, stored(Physical::I64, &cells(&|event| int(event.time))));
        match marks {
            Marks::Nothing => {}
            Marks::Noted => run.note_watermark(events[0].mark.unwrap()),
            Marks::Beside => {
                run.put(slots.watermark, stored(Physical::I64, &cells(&|event| int(event.mark.unwrap()))));
            }
        }
        for (number, &slot) in slots.keys.iter().enumerate() {
            run.put(slot, stored(self.spec.keys[number], &cells(&|event| event.key[number].clone())));
        }
        run.put(slots.by, stored(self.by, &cells(&|event| event.by.clone())));
        for (number, &(slot, kind)) in slots.columns.iter().enumerate() {
            run.put(slot, stored(kind, &cells(&|event| event.columns[number].clone())));
        }
        let mut kept = run.selection();
        kept.extend((0..events.len() as u32).filter(|&row| events[row as usize].passes));
        run.select(kept);
        let mut late = Vec::new();
        self.operator.late_rows(0, run, &mut late);
        self.operator.consume(0, run).unwrap();
        run.begin_owned(0); // state holds nothing of the run
        late
    }

    fn drain(&mut self, rooms: &mut impl Iterator<Item = usize>) {
        let slots: Vec<SlotId> = (0..self.width).collect();
        while self.operator.has_output() {
            let room = rooms.next().unwrap();
            let count = self.operator.emit(&mut self.out, room).unwrap();
            assert!((1..=room).contains(&count), "CONTRACT-2: {count} rows in the room of {room}");
            self.out.ready(&slots);
            let cells: Vec<Vec<Cell>> = slots.iter().map(|&slot| read(self.out.column(slot))).collect();
            self.results.extend(rows(&cells));
        }
        assert_eq!(self.operator.emit(&mut self.out, 5).unwrap(), 0, "no row is emitted twice");
    }

    fn restore(&mut self) {
        let snapshot = self.operator.snapshot();
        let mut restored = TopK::new(self.spec.clone());
        restored.restore(&snapshot).unwrap();
        self.operator = Box::new(restored);
    }
}

/// The engine's order of two values.
fn order(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => left.cmp(right),
        (Value::Float(left), Value::Float(right)) => {
            left.partial_cmp(right).unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()))
        }
        (Value::Bytes(left), Value::Bytes(right)) => left.cmp(right),
        _ => panic!("{left:?} and {right:?} are of different kinds"),
    }
}

fn order_cells(left: &Cell, right: &Cell) -> Ordering {
    match (left, right) {
        (Some(left), Some(right)) => order(left, right),
        (left, right) => left.is_some().cmp(&right.is_some()),
    }
}

/// All rows, sorted on demand.
struct Reference {
    query: Query,
    rows: Vec<(i128, Event)>,
    closed_below: i128,
    closed_by: i64,
    late: Late,
}

impl Reference {
    fn end(&self, window: i128) -> i128 {
        i128::from(self.query.offset) + window * i128::from(self.query.slide) + i128::from(self.query.size)
    }

    fn last_window(&self, time: i64) -> i128 {
        (i128::from(time) - i128::from(self.query.offset)).div_euclid(self.query.slide.into())
    }

    /// Consumes a row; returns true if it is late.
    fn take(&mut self, event: &Event) -> bool {
        let last = self.last_window(event.time);
        let windows: Vec<i128> = (0..)
            .map(|back| last - back)
            .take_while(|&window| self.end(window) > event.time.into())
            .collect();
        let over = |window: &i128| event.mark.is_some_and(|mark| self.end(*window) <= i128::from(mark));
        let open: Vec<i128> =
            windows.iter().copied().filter(|window| !over(window) && *window >= self.closed_below).collect();
        if open.is_empty() {
            let judge = event.mark.map_or(self.closed_by, |mark| mark.max(self.closed_by));
            self.late.rows += 1;
            self.late.by = self.late.by.max(Some(judge.abs_diff(event.time)));
        }
        if event.by.is_some() {
            self.rows.extend(open.iter().map(|&window| (window, event.clone())));
        }
        open.is_empty()
    }

    fn advance(&mut self, watermark: i64) {
        let mut below = self.last_window(watermark) + 2;
        while self.end(below - 1) > i128::from(watermark) {
            below -= 1;
        }
        self.closed_below = self.closed_below.max(below);
        self.closed_by = self.closed_by.max(watermark);
    }

    /// Returns the results expected by now.
    fn results(&self) -> Vec<Row> {
        let mut groups: HashMap<(i128, &Row), Vec<&Event>> = HashMap::new();
        for (window, event) in self.rows.iter().filter(|(window, _)| *window < self.closed_below) {
            groups.entry((*window, &event.key)).or_default().push(event);
        }
        let clamped = |time: i128| int(time.clamp(i64::MIN.into(), i64::MAX.into()));
        let mut results = Vec::new();
        for ((window, key), mut events) in groups {
            events.sort_by(|left, right| {
                let by = order_cells(&left.by, &right.by);
                let by = if self.query.largest { by.reverse() } else { by };
                let cells = left.columns.iter().zip(&right.columns);
                cells.fold(by, |order, (left, right)| order.then_with(|| order_cells(left, right)))
            });
            for (event, rank) in events.into_iter().take(self.query.k).zip(1_i64..) {
                let end = self.end(window);
                let mut row = vec![clamped(end - i128::from(self.query.size)), clamped(end)];
                row.extend(key.iter().cloned());
                row.push(int(rank));
                row.extend(event.columns.iter().cloned());
                row.extend(self.query.emits_time.then(|| clamped(end - 1)));
                results.push(row);
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

fn any_cell(data_type: &DataType, weight: f64) -> BoxedStrategy<Cell> {
    let value = match data_type {
        DataType::Boolean => (0_i128..2).prop_map(Value::Int).boxed(),
        DataType::Decimal128(..) => {
            // Some of them differ beyond 64 bits only.
            let far = (-3_i128..3).prop_map(|more| 10_i128.pow(30) + more);
            prop_oneof![-3_i128..3, far.clone(), far.prop_map(|value| -value)].prop_map(Value::Int).boxed()
        }
        DataType::Utf8 => {
            // Some of them differ beyond eight bytes only.
            prop_oneof![
                any_key(Physical::View),
                "longer than eight [abc]{1,3}".prop_map(|text| Value::Bytes(text.into()))
            ]
            .boxed()
        }
        other => any_key(physical(other)),
    };
    prop::option::weighted(weight, value).boxed()
}

fn any_query() -> impl Strategy<Value = Query> {
    use DataType::{Binary, Boolean, Decimal128, Float32, Float64, Int8, Int64, UInt16, UInt64, Utf8};
    let keys = vec![vec![], vec![Int64], vec![Int64], vec![Utf8], vec![Float64, Utf8]];
    let columns = vec![vec![], vec![Int64], vec![Utf8, Boolean], vec![Float64, Binary, Decimal128(38, 2)]];
    let by = vec![Int64, Int64, Int8, UInt16, UInt64, Float32, Float64, Decimal128(38, 0), Utf8, Boolean];
    let tumbling = (prop_oneof![Just(1_i64), 2_i64..60, Just(i64::MAX)], -20_i64..20)
        .prop_map(|(size, offset)| (size, size, offset));
    let sliding = (1_i64..20, 1_i64..5, 0_i64..20, -20_i64..20)
        .prop_map(|(slide, times, more, offset)| (slide * times + more % slide, slide, offset));
    let shape = (select(keys), select(columns), select(by), prop::option::of(0_usize..3));
    let k = prop_oneof![10 => 1_usize..5, 1 => Just(0), 1 => Just(usize::MAX)];
    (prop_oneof![tumbling, sliding], shape, k, any::<bool>(), any::<bool>()).prop_map(
        |((size, slide, offset), (keys, columns, by, among), k, largest, emits_time)| {
            let among = among.filter(|among| *among < columns.len());
            let by = among.map_or(by, |among| columns[among].clone());
            Query { size, slide, offset, k, largest, keys, columns, by, among, emits_time }
        },
    )
}

fn any_feed(query: &Query) -> impl Strategy<Value = (Vec<Event>, Marks)> + use<> {
    let key: Vec<_> = query.keys.iter().map(|kind| any_cell(kind, 0.9)).collect();
    let columns: Vec<_> = query.columns.iter().map(|kind| any_cell(kind, 0.8)).collect();
    let among = query.among;
    let event = (any_time(), any_time(), key, columns, any_cell(&query.by, 0.9), prop::bool::weighted(0.95))
        .prop_map(move |(time, mark, key, columns, by, passes)| {
            let by = among.map_or(by, |among| columns[among].clone());
            Event { time, mark: Some(mark), key, columns, by, passes }
        });
    let marks = select(vec![Marks::Nothing, Marks::Noted, Marks::Beside]);
    (prop::collection::vec(event, 1..20), marks, 0_i64..40).prop_map(|(mut events, marks, delay)| {
        let first = events[0].mark;
        for event in &mut events {
            event.mark = match marks {
                Marks::Nothing => None,
                Marks::Noted => first.map(|mark| mark.saturating_sub(2 * delay)),
                Marks::Beside => event.mark.map(|mark| mark.min(event.time.saturating_add(delay))),
            };
        }
        (events, marks)
    })
}

fn any_step(query: &Query) -> impl Strategy<Value = Step> + use<> {
    let groups = prop::collection::vec(any::<u8>(), 0..200);
    prop_oneof![
        10 => any_feed(query).prop_map(|(events, marks)| Step::Feed(events, marks)),
        2 => any_time().prop_map(Step::Advance),
        1 => Just(Step::CloseOpen),
        2 => (groups, any::<bool>()).prop_map(|(groups, back)| Step::Regroup(groups, back)),
        1 => Just(Step::Restore),
    ]
}

fn any_rooms() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![3 => 1_usize..4, 1 => Just(1000_usize)], 1..20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_first_rows_are_those_of_a_sort(
        (query, steps) in any_query().prop_flat_map(|query| {
            (Just(query.clone()), prop::collection::vec(any_step(&query), 1..14))
        }),
        rooms in any_rooms(),
    ) {
        let mut harness = Harness::new(&query);
        let mut reference =
            Reference { query, rows: vec![], closed_below: i128::MIN, closed_by: i64::MIN, late: Late::default() };
        let mut rooms = rooms.into_iter().cycle();
        for step in steps {
            match step {
                Step::Feed(events, marks) => {
                    let passing: Vec<&Event> = events.iter().filter(|event| event.passes).collect();
                    let late: Vec<u32> = (0_u32..).zip(passing)
                        .filter_map(|(row, event)| reference.take(event).then_some(row))
                        .collect();
                    prop_assert_eq!(harness.consume(&events, marks), late);
                    prop_assert_eq!(harness.operator.late(), reference.late);
                }
                Step::Advance(watermark) => {
                    let watermark = watermark.max(reference.closed_by);
                    harness.operator.advance(watermark);
                    reference.advance(watermark);
                }
                Step::CloseOpen => {
                    let last = reference.rows.iter().map(|(window, _)| *window).max();
                    let last = last.filter(|last| *last >= reference.closed_below && reference.query.k > 0);
                    let amounts_to = last.map(|last| reference.end(last).min(i64::MAX.into()) as i64);
                    prop_assert_eq!(harness.operator.close_open(), amounts_to);
                    if let Some((last, by)) = last.zip(amounts_to) {
                        reference.closed_below = last + 1;
                        reference.closed_by = reference.closed_by.max(by);
                    }
                }
                Step::Regroup(numbers, back) => {
                    let mut groups = KeyGroups::NONE;
                    numbers.iter().for_each(|&number| groups.insert(number));
                    let mut part = harness.operator.extract(groups);
                    if back {
                        harness.operator.merge(part);
                    } else {
                        let nothing = Box::new(TopK::new(harness.spec.clone()));
                        part.merge(std::mem::replace(&mut harness.operator, nothing));
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
    fn two_operators_keep_together_what_one_would(
        (query, feeds) in any_query().prop_flat_map(|query| {
            (Just(query.clone()), prop::collection::vec((any_feed(&query), any::<bool>()), 1..8))
        }),
        watermark in any_time(),
        rooms in any_rooms(),
    ) {
        let (mut one, mut halves) = (Harness::new(&query), [Harness::new(&query), Harness::new(&query)]);
        let mut rooms = rooms.into_iter().cycle();
        for ((events, marks), second) in feeds {
            one.consume(&events, marks);
            halves[usize::from(second)].consume(&events, marks);
        }
        let [mut first, mut second] = halves;
        let mut closing = Harness::new(&query);
        closing.operator = first.operator.split_off(watermark);
        closing.operator.merge(second.operator.split_off(watermark));
        closing.operator.advance(watermark);
        closing.drain(&mut rooms);
        prop_assert_eq!(closing.operator.bytes(), 0, "all that was split off is over");
        one.operator.advance(watermark);
        one.drain(&mut rooms);
        prop_assert_eq!(tally(&closing.results), tally(&one.results));
        first.operator.merge(second.operator);
        first.operator.finish();
        first.drain(&mut rooms);
        first.results.append(&mut closing.results);
        one.operator.finish();
        one.drain(&mut rooms);
        prop_assert_eq!(tally(&first.results), tally(&one.results));
        prop_assert_eq!(first.operator.late(), one.operator.late());
    }
}

fn plain(k: usize, by: DataType, columns: Vec<DataType>) -> Query {
    let keys = vec![DataType::Int64];
    Query {
        size: 10,
        slide: 10,
        offset: 0,
        k,
        largest: true,
        keys,
        columns,
        by,
        among: None,
        emits_time: false,
    }
}

fn event(time: i64, key: i64, by: Cell, columns: Row) -> Event {
    Event { time, mark: None, key: vec![int(key)], columns, by, passes: true }
}

#[test]
fn state_is_bounded_however_many_rows_come() {
    let mut harness = Harness::new(&plain(3, DataType::Int64, vec![DataType::Utf8]));
    let long = |number: usize| Some(Value::Bytes(format!("row {number:08} with a long text").into_bytes()));
    let mut after_some = 0;
    for round in 0..200 {
        // Each row ranks before all earlier ones.
        let events: Vec<Event> = (0..100)
            .map(|row| event(1, row % 5, int(round * 100 + row), vec![long((round * 100 + row) as usize)]))
            .collect();
        harness.consume(&events, Marks::Nothing);
        if round == 20 {
            after_some = harness.operator.bytes();
        }
    }
    assert!(
        harness.operator.bytes() < after_some + 60_000,
        "{after_some}, then {}",
        harness.operator.bytes()
    );
    harness.operator.finish();
    harness.drain(&mut [2].into_iter().cycle());
    assert_eq!(harness.results.len(), 15);
    assert_eq!(harness.results[0][4], long(19_995));
}

#[test]
fn what_is_no_snapshot_of_it_is_refused() {
    use arrow_array::RecordBatch;
    use std::sync::Arc;

    let mut harness = Harness::new(&plain(3, DataType::Utf8, vec![DataType::Int64]));
    let by = |text: &str| columns::text(text);
    harness.consume(&[event(1, 7, by("a"), vec![int(4)]), event(2, 7, by("b"), vec![None])], Marks::Nothing);
    let good = harness.operator.snapshot();
    let batch = good.tables[0].clone();
    let schema = batch.schema();
    let restored = |batches: Vec<RecordBatch>| {
        let snapshot = penstock_operators::StateSnapshot { tables: batches };
        let mut operator = TopK::new(harness.spec.clone());
        let result = operator.restore(&snapshot);
        assert!(result.is_ok() || operator.bytes() == 0, "a refused snapshot leaves no state");
        result
    };
    assert_eq!(restored(vec![batch.clone()]), Ok(()));
    let broken = |result: Result<(), SnapshotError>| matches!(result, Err(SnapshotError::Broken { .. }));
    assert!(broken(restored(vec![])));
    for column in 0..schema.fields().len() {
        let mut columns = batch.columns().to_vec();
        let mut fields: Vec<_> = schema.fields().iter().cloned().collect();
        columns.remove(column);
        fields.remove(column);
        let schema = arrow_schema::Schema::new_with_metadata(fields, schema.metadata().clone());
        assert!(broken(restored(vec![RecordBatch::try_new(Arc::new(schema), columns).unwrap()])), "{column}");
    }
    for (key, value) in
        [("penstock.closed_below", "x"), ("penstock.closed_by", ""), ("penstock.table", "left")]
    {
        let mut metadata = schema.metadata().clone();
        metadata.insert(key.to_owned(), value.to_owned());
        let schema = Arc::new(schema.as_ref().clone().with_metadata(metadata));
        assert!(
            broken(restored(vec![RecordBatch::try_new(schema, batch.columns().to_vec()).unwrap()])),
            "{key}"
        );
    }
    for key in ["penstock.operator", "penstock.version"] {
        let mut metadata = schema.metadata().clone();
        metadata.insert(key.to_owned(), "99".to_owned());
        let schema = Arc::new(schema.as_ref().clone().with_metadata(metadata));
        let result = restored(vec![RecordBatch::try_new(schema, batch.columns().to_vec()).unwrap()]);
        assert!(matches!(result, Err(SnapshotError::Kind { .. })), "{key}: {result:?}");
    }
}
