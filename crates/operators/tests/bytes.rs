//! The sizes that operators report, against the allocator's count.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

#[path = "it/columns/mod.rs"]
mod columns;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell as Counter;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, StringViewArray};
use arrow_schema::{DataType, Field, Schema};
use columns::{Cell, Value, stored, text};
use penstock_memory::{ColumnBuf, Physical, Run};
use penstock_operators::aggregates::{AccumulatorFactory, AggregateKind};
use penstock_operators::windows::{WindowPort, WindowSpec, windowed};
use penstock_operators::{IndexedTable, KeyIndex, Stateful};
use penstock_progress::{Aligned, Windows};
use proptest::prelude::*;

use AggregateKind::Count;

thread_local! {
    /// Bytes allocated by this thread. Tests run in parallel, each on a thread of its own.
    static LIVE: Counter<usize> = const { Counter::new(0) };
}

struct Counting;

// SAFETY: every call is passed to the system's allocator unchanged. Counting allocates nothing: the counter is
// initialised without code and has nothing to drop.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.set(LIVE.get().wrapping_add(layout.size()));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.set(LIVE.get().wrapping_sub(layout.size()));
        // SAFETY: the caller keeps the contract of `dealloc`, and `block` came from the system's allocator.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the bytes that this thread holds beyond `start`.
fn grown(start: usize) -> usize {
    let grown = LIVE.get().wrapping_sub(start).cast_signed();
    usize::try_from(grown).unwrap_or_else(|_| panic!("{grown} bytes: more were given back than taken"))
}

/// Asserts that both numbers are close; `slack` is what may be left out on purpose.
fn assert_near(said: usize, counted: usize, slack: usize, what: &str) {
    assert!(
        said.abs_diff(counted) <= counted / 20 + slack,
        "{what}: {said} bytes said, {counted} bytes counted"
    );
}

/// Returns numbers without a pattern.
fn mix(number: usize) -> u64 {
    let mut bits = (number as u64).wrapping_add(0x9E37_79B9_7F4A_7C15).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits ^= bits >> 27;
    bits.wrapping_mul(0x94D0_49BB_1331_11EB)
}

fn int(value: i128) -> Cell {
    Some(Value::Int(value))
}

/// Key columns, and key number `n` in them. Different numbers give different keys.
type Keys = (&'static str, Vec<Physical>, fn(usize) -> Vec<Cell>);

fn kinds_of_keys() -> Vec<Keys> {
    vec![
        ("no key", vec![], |_| vec![]),
        ("integers in a row", vec![Physical::I64], |n| vec![int(n as i128 - 100)]),
        ("integers far apart", vec![Physical::I64], |n| vec![int((mix(n) as i64).into())]),
        ("32 bits", vec![Physical::I32], |n| vec![int(n as i128 * 1_000)]),
        ("floats", vec![Physical::F64], |n| vec![Some(Value::Float(n as f64))]),
        ("short strings", vec![Physical::View], |n| vec![text(&n.to_string())]),
        ("long strings", vec![Physical::View], |n| vec![text(&format!("{n:>0width$}", width = 20 + n % 60))]),
        ("two columns", vec![Physical::View, Physical::I64], |n| {
            vec![text(&format!("group {}", n % 7)), int(n as i128)]
        }),
    ]
}

fn key_columns(keys: &Keys, numbers: &[usize]) -> Vec<ColumnBuf> {
    let rows: Vec<Vec<Cell>> = numbers.iter().map(|&number| (keys.2)(number)).collect();
    let columns = columns::columns(&rows, keys.1.len());
    keys.1.iter().zip(columns).map(|(kind, cells)| stored(*kind, &cells)).collect()
}

fn input_types() -> Vec<DataType> {
    use DataType::{Boolean, Decimal128, Float32, Float64, Int8, Int64, UInt16, UInt64, Utf8};
    vec![Int8, Int64, UInt16, UInt64, Float32, Float64, Decimal128(20, 3), Boolean, Utf8]
}

/// Returns an input without a pattern; null now and then.
fn input_cell(data_type: &DataType, number: usize) -> Cell {
    let bits = mix(number);
    if bits.is_multiple_of(11) {
        return None;
    }
    match data_type {
        DataType::Float32 | DataType::Float64 => Some(Value::Float((bits % 1_000) as f64)),
        DataType::Boolean => int((bits & 1).into()),
        // Later values are often longer, and begin anywhere.
        DataType::Utf8 => {
            let letter = char::from(b'a' + (bits >> 8) as u8 % 26);
            text(&letter.to_string().repeat((bits >> 16) as usize % (20 + number % 200)))
        }
        _ => int((bits % 100).into()),
    }
}

/// Lists every aggregate over every supported column, with the number of that column.
fn all_aggregates() -> Vec<(AggregateKind, Option<usize>)> {
    let mut aggregates = vec![(Count, None)];
    for (column, data_type) in input_types().iter().enumerate() {
        let all = AggregateKind::names().map(|name| AggregateKind::from_name(name).unwrap());
        let defined = all.filter(|kind| kind.output(Some(data_type), "").is_ok());
        aggregates.extend(defined.map(|kind| (kind, Some(column))));
    }
    aggregates
}

/// Lists the aggregates that the operator of tumbling windows supports here.
fn aggregates() -> Vec<(AggregateKind, Option<usize>)> {
    let timed = |kind: &AggregateKind| matches!(kind, AggregateKind::First | AggregateKind::Last);
    all_aggregates().into_iter().filter(|(kind, _)| !timed(kind)).collect()
}

fn factory(kind: AggregateKind, data_type: Option<DataType>) -> AccumulatorFactory {
    let text = format!("{}({data_type:?})", kind.name());
    AccumulatorFactory::new(kind, data_type, text).unwrap()
}

/// Inserts keys in runs; returns the size that the index reports, and the counted one.
fn index_bytes(keys: &Keys, count: usize, run_rows: usize) -> (usize, usize) {
    let mut ids = Vec::with_capacity(run_rows);
    let numbers: Vec<usize> = (0..count).collect();
    let start = LIVE.get();
    let mut index = KeyIndex::new(&keys.1);
    let mut before = index.bytes();
    for run in numbers.chunks(run_rows) {
        let columns = key_columns(keys, run);
        let columns: Vec<_> = columns.iter().map(ColumnBuf::as_column).collect();
        index.insert(&columns, run.len(), &mut ids);
        // A dense table may be replaced by a smaller hash table; strings have none.
        assert!(index.bytes() >= before || !keys.1.contains(&Physical::View));
        before = index.bytes();
    }
    (index.bytes(), grown(start))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn an_index_knows_its_size(count in 0_usize..4_000, run_rows in 1_usize..700) {
        for keys in kinds_of_keys() {
            let (said, counted) = index_bytes(&keys, count, run_rows);
            assert_near(said, counted, 0, keys.0);
            if !keys.1.is_empty() {
                prop_assert!(said >= count * 8, "{}: {said} bytes for {count} keys", keys.0);
            }
        }
    }

    #[test]
    fn every_aggregate_knows_its_size(count in 0_usize..2_000, run_rows in 1_usize..700, seed in 0_usize..1_000_000) {
        let types = input_types();
        for (kind, column) in all_aggregates() {
            let data_type = column.map(|column| types[column].clone());
            let what = format!("{} of {data_type:?}", kind.name());
            let factory = factory(kind, data_type.clone());
            let start = LIVE.get();
            let mut state = factory.make();
            // Earlier and later rows of a key, in no order.
            for from in (0..count * 3).step_by(run_rows) {
                let rows = from..(from + run_rows).min(count * 3);
                let ids: Vec<u32> = rows.clone().map(|row| (mix(row + seed) as usize % count) as u32).collect();
                let cells = data_type.as_ref().map(|data_type| {
                    let cells: Vec<Cell> = rows.map(|row| input_cell(data_type, row + seed)).collect();
                    stored(Physical::of(data_type).unwrap(), &cells)
                });
                let before = state.bytes();
                let times: Vec<i64> = ids.iter().map(|&id| id.into()).collect();
                state.update(&ids, count, cells.as_ref().map(ColumnBuf::as_column), Some(&times));
                prop_assert!(state.bytes() >= before);
            }
            assert_near(state.bytes() + size_of_val(&*state), grown(start), 0, &what);
        }
    }
}

/// A window operator over those keys with every aggregate.
struct Harness {
    operator: Box<dyn Stateful>,
    keys: Keys,
    outputs: Vec<Physical>,
}

const SIZE: i64 = 10;

fn tumbling(port: WindowPort, keys: &[Physical], factories: Vec<AccumulatorFactory>) -> Box<dyn Stateful> {
    windowed(WindowSpec {
        windows: Windows::Aligned(Aligned::tumbling(SIZE, 0).unwrap()),
        allowed_lateness: 0,
        ports: vec![port],
        keys: keys.to_vec(),
        // Irrelevant here: state is neither stored nor split by key group.
        key_types: vec![DataType::Int64; keys.len()],
        factories,
        bounds: Physical::I64,
        emits_time: false,
    })
}

impl Harness {
    fn new(keys: Keys) -> Self {
        let types = input_types();
        let first_input = 2 + keys.1.len();
        let factories: Vec<AccumulatorFactory> = aggregates()
            .into_iter()
            .map(|(kind, column)| factory(kind, column.map(|column| types[column].clone())))
            .collect();
        let mut outputs = vec![Physical::I64; 2];
        outputs.extend(&keys.1);
        outputs.extend(factories.iter().map(|factory| Physical::of(factory.output()).unwrap()));
        let inputs = aggregates().into_iter().enumerate();
        let port = WindowPort {
            time: 0,
            watermark: 1,
            keys: (2..first_input).collect(),
            inputs: inputs
                .map(|(number, (_, column))| (number, column.map(|column| first_input + column)))
                .collect(),
        };
        let operator = tumbling(port, &keys.1, factories);
        Self { operator, keys, outputs }
    }

    /// Feeds one run of rows, given as (window, number of the key).
    fn consume(&mut self, rows: &[(usize, usize)]) {
        let mut run = Run::new();
        let times: Vec<Cell> =
            rows.iter().map(|(window, _)| int(*window as i128 * i128::from(SIZE))).collect();
        let numbers: Vec<usize> = rows.iter().map(|(_, number)| *number).collect();
        let time = run.add_slot(Physical::I64);
        run.add_slot(Physical::I64);
        run.begin_owned(rows.len());
        let keys = key_columns(&self.keys, &numbers);
        let inputs = input_types().into_iter().map(|data_type| {
            let cells: Vec<Cell> = numbers.iter().map(|&number| input_cell(&data_type, number)).collect();
            stored(Physical::of(&data_type).unwrap(), &cells)
        });
        for column in keys.into_iter().chain(inputs) {
            let slot = run.add_slot(column.physical());
            run.put(slot, column);
        }
        run.put(time, stored(Physical::I64, &times));
        self.operator.consume(0, &mut run).unwrap();
    }

    /// Emits results once and drops them; returns their number.
    fn emit(&mut self, room: usize) -> usize {
        let mut out = Run::new();
        self.outputs.iter().for_each(|kind| {
            out.add_slot(*kind);
        });
        if !self.operator.has_output() {
            return 0;
        }
        self.operator.emit(&mut out, room).unwrap()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn windows_know_their_size(
        windows in 1_usize..6, count in 1_usize..600, run_rows in 1_usize..300, room in 50_usize..400,
    ) {
        for keys in kinds_of_keys() {
            let what = keys.0;
            let mut harness = Harness::new(keys);
            prop_assert_eq!(harness.operator.bytes(), 0);
            // Scratch, and the nodes of the map of windows.
            let slack = run_rows * (size_of::<u32>() + size_of::<i64>()) * 2 + 8 * 1024;
            let rows: Vec<(usize, usize)> =
                (0..windows * count).map(|row| (mix(row) as usize % windows, row)).collect();
            let start = LIVE.get();
            let mut before = 0;
            for run in rows.chunks(run_rows) {
                harness.consume(run);
                assert_near(harness.operator.bytes(), grown(start), slack, what);
                // Each window may replace a small dense table by a hash table.
                prop_assert!(harness.operator.bytes() + windows * 4 * 1024 >= before, "{what}: rows freed memory");
                before = harness.operator.bytes();
            }
            let full = harness.operator.bytes();
            prop_assert!(what == "no key" || full >= windows * count * 100, "{what}: {full} bytes");

            harness.operator.advance(SIZE * (windows as i64 / 2));
            harness.operator.finish();
            prop_assert!(harness.operator.bytes().abs_diff(full) <= 8 * 1024, "{what}: closing changed the size");
            while harness.emit(room) > 0 {
                assert_near(harness.operator.bytes(), grown(start), slack, what);
                prop_assert!(harness.operator.bytes() <= before + 8 * 1024, "{what}: emitting took memory");
                before = harness.operator.bytes();
            }
            prop_assert_eq!(harness.operator.bytes(), 0, "{}", what);
            prop_assert!(grown(start) <= slack, "{what}: memory was left over");
        }
    }
}

#[test]
fn twice_the_keys_hold_about_twice_the_memory() {
    for keys in kinds_of_keys().into_iter().filter(|keys| !keys.1.is_empty()) {
        let size = |count: usize| {
            let mut harness = Harness::new(keys.clone());
            let rows: Vec<(usize, usize)> = (0..count).map(|number| (0, number)).collect();
            rows.chunks(256).for_each(|run| harness.consume(run));
            harness.operator.bytes()
        };
        // Capacities double, so powers of two compare.
        let ratio = size(4_096) as f64 / size(2_048) as f64;
        assert!((1.7..2.3).contains(&ratio), "{}: {ratio}", keys.0);
    }
}

#[test]
fn known_keys_take_no_more_memory_beside_a_small_table_that_makes_room() {
    for (count, spare) in [(500, 128 * 1024), (5_000, 0)] {
        for keys in kinds_of_keys() {
            let what = keys.0;
            let mut harness = Harness::new(keys);
            let rows: Vec<(usize, usize)> = (0..count).map(|number| (0, number)).collect();
            harness.consume(&rows);
            let once = harness.operator.bytes();
            (0..5).for_each(|_| harness.consume(&rows));
            let settled = harness.operator.bytes();
            assert!((once..=once + spare).contains(&settled), "{what}: {once} bytes grew to {settled}");
            (0..5).for_each(|_| harness.consume(&rows));
            assert_eq!(harness.operator.bytes(), settled, "{what}");
        }
    }
}

#[test]
fn many_small_windows_count_too() {
    let port = WindowPort { time: 0, watermark: 2, keys: vec![1], inputs: vec![(0, None)] };
    let mut operator = tumbling(port, &[Physical::I64], vec![factory(Count, None)]);
    let start = LIVE.get();
    for window in 0..5_000_i128 {
        let mut run = Run::new();
        (0..3).for_each(|_| {
            run.add_slot(Physical::I64);
        });
        run.begin_owned(1);
        run.put(0, stored(Physical::I64, &[int(window * i128::from(SIZE))]));
        run.put(1, stored(Physical::I64, &[int(window)]));
        operator.consume(0, &mut run).unwrap();
    }
    // Map nodes are assumed to be half full.
    assert_near(operator.bytes(), grown(start), 5_000 * 32, "open windows");
    operator.finish();
    assert_near(operator.bytes(), grown(start), 5_000 * 32, "closed windows");
    let mut out = Run::new();
    (0..4).for_each(|_| {
        out.add_slot(Physical::I64);
    });
    while operator.has_output() {
        operator.emit(&mut out, 100).unwrap();
    }
    assert_eq!(operator.bytes(), 0);
    drop(out);
    // A map keeps its last node.
    assert!(grown(start) <= 3 * 1024, "{} bytes were left over", grown(start));
}

fn table(arrays: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let fields: Vec<Field> =
        arrays.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true)).collect();
    let arrays = arrays.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

fn long(number: usize) -> String {
    format!("a name that stands outside of its view, number {number}")
}

#[test]
fn a_lookup_table_knows_its_size() {
    let ids =
        |rows: usize| Arc::new(Int64Array::from_iter_values((0..rows as i64).map(|id| id * 7))) as ArrayRef;
    let strings = |rows: usize| Arc::new(StringArray::from_iter_values((0..rows).map(long))) as ArrayRef;
    let views = |rows: usize| Arc::new(StringViewArray::from_iter_values((0..rows).map(long))) as ArrayRef;
    let gaps = |rows: usize| {
        Arc::new(Int64Array::from_iter((0..rows as i64).map(|id| (id % 3 > 0).then_some(id)))) as ArrayRef
    };
    for rows in [0, 1, 100, 5_000] {
        let start = LIVE.get();
        let batch = table(vec![
            ("id", ids(rows)),
            ("name", strings(rows)),
            ("alias", views(rows)),
            ("gaps", gaps(rows)),
        ]);
        let made = IndexedTable::new(&batch, &[0]).unwrap().unwrap();
        drop(batch);
        assert_near(made.bytes(), grown(start), 2 * 1024, &format!("{rows} rows"));

        let start = LIVE.get();
        let batch = table(vec![("name", strings(rows)), ("id", ids(rows))]);
        let made = IndexedTable::new(&batch, &[0]).unwrap().unwrap();
        drop(batch);
        assert_near(made.bytes(), grown(start), 2 * 1024, &format!("{rows} rows by name"));
    }
}

#[test]
fn strings_that_two_columns_share_count_once() {
    let rows = 2_000;
    let ids = Arc::new(Int64Array::from_iter_values(0..rows as i64)) as ArrayRef;
    let names = Arc::new(StringArray::from_iter_values((0..rows).map(long))) as ArrayRef;
    let one = table(vec![("id", Arc::clone(&ids)), ("name", Arc::clone(&names))]);
    let two = table(vec![("id", ids), ("name", Arc::clone(&names)), ("alias", names)]);
    let bytes = |batch: &RecordBatch| IndexedTable::new(batch, &[0]).unwrap().unwrap().bytes();
    let more = bytes(&two) - bytes(&one);
    assert!((rows * 16..rows * 16 + 1024).contains(&more), "{more} bytes for {rows} views");
}
