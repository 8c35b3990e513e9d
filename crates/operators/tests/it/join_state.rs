//! The state of a join: its memory, its lifetime, and restoring from hostile snapshots.

use crate::columns;

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, Decimal128Array, Int64Array, LargeStringArray, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use columns::{Cell, Value, read, rows, stored, text};
use penstock_memory::{Physical, Run, SlotId};
use penstock_operators::{JoinKind, JoinPort, JoinSpec, SnapshotError, StateSnapshot, Stateful, WindowJoin};
use penstock_progress::Aligned;
use penstock_types::KeyGroups;
use proptest::prelude::*;

/// Slots on both sides: time, watermark, an integer as the key, a string.
fn spec(size: i64, kind: JoinKind, bounds: Physical) -> JoinSpec {
    let port = || JoinPort { time: 0, watermark: 1, keys: vec![2], columns: vec![(3, Physical::View)] };
    JoinSpec {
        windows: Aligned::tumbling(size, 0).unwrap(),
        kind,
        ports: [port(), port()],
        keys: vec![Physical::I64],
        key_types: vec![DataType::Int64],
        column_types: [vec![DataType::Utf8], vec![DataType::Utf8]],
        bounds,
        emits_time: false,
    }
}

fn int(value: i64) -> Cell {
    Some(Value::Int(value.into()))
}

fn feed(join: &mut dyn Stateful, port: usize, events: &[(i64, Cell, Cell)]) {
    let mut run = Run::new();
    for kind in [Physical::I64, Physical::I64, Physical::I64, Physical::View] {
        run.add_slot(kind);
    }
    run.begin_owned(events.len());
    let cells = |cell: &dyn Fn(&(i64, Cell, Cell)) -> Cell| events.iter().map(cell).collect::<Vec<Cell>>();
    run.put(0, stored(Physical::I64, &cells(&|event| int(event.0))));
    run.put(2, stored(Physical::I64, &cells(&|event| event.1.clone())));
    run.put(3, stored(Physical::View, &cells(&|event| event.2.clone())));
    join.consume(port, &mut run).unwrap();
}

fn drain(join: &mut dyn Stateful, bounds: Physical) -> Vec<Vec<Cell>> {
    let mut out = Run::new();
    for kind in [bounds, bounds, Physical::I64, Physical::View, Physical::View] {
        out.add_slot(kind);
    }
    let (slots, mut results): (Vec<SlotId>, _) = ((0..5).collect(), Vec::new());
    while join.has_output() {
        assert!(join.emit(&mut out, 100).unwrap() > 0);
        out.ready(&slots);
        let cells: Vec<Vec<Cell>> = slots.iter().map(|&slot| read(out.column(slot))).collect();
        results.extend(rows(&cells));
    }
    results
}

#[test]
fn bytes_cover_what_is_kept_and_return_when_windows_close() {
    for kind in [JoinKind::Inner, JoinKind::Full] {
        let mut join = WindowJoin::new(spec(10, kind, Physical::I64));
        let long = |row: i64| text(&format!("row {row:05}, {}", "x".repeat(100)));
        for window in 0..3 {
            let events: Vec<_> = (0..1000).map(|row| (window * 10 + row % 10, int(row), long(row))).collect();
            feed(&mut join, (window % 2) as usize, &events);
        }
        let full = join.bytes();
        // A row has 110 bytes of text, a view, a key, an id and a link.
        assert!((3_000 * 140..3_000 * 500).contains(&full), "{full}");
        join.advance(20);
        assert_eq!(drain(&mut join, Physical::I64).len(), if kind == JoinKind::Full { 2000 } else { 0 });
        assert!(join.bytes() < full * 2 / 5, "{} of {full}", join.bytes());
        join.finish();
        drain(&mut join, Physical::I64);
        assert_eq!(join.bytes(), 0);
    }
}

#[test]
fn rows_without_a_possible_match_are_not_kept() {
    let mut join = WindowJoin::new(spec(10, JoinKind::Left, Physical::I64));
    feed(&mut join, 1, &[(1, None, text("of the side that goes nowhere alone"))]);
    assert_eq!((join.bytes(), join.close_open()), (0, None));
    feed(&mut join, 0, &[(1, None, text("of the side that does"))]);
    assert!(join.bytes() > 0);
    assert_eq!(join.close_open(), Some(10));
    assert_eq!(drain(&mut join, Physical::I64).len(), 1);
}

#[test]
fn strings_of_results_outlive_the_window() {
    let mut join = WindowJoin::new(spec(10, JoinKind::Left, Physical::I64));
    let long = text("longer than a view can hold");
    feed(&mut join, 0, &[(1, int(1), long.clone()), (2, None, long.clone())]);
    join.advance(10);
    let mut out = Run::new();
    for kind in [Physical::I64, Physical::I64, Physical::I64, Physical::View, Physical::View] {
        out.add_slot(kind);
    }
    assert_eq!(join.emit(&mut out, 10), Ok(2));
    drop(join);
    out.ready(&[2, 3, 4]);
    assert_eq!(read(out.column(2)), [int(1), None]);
    assert_eq!(read(out.column(3)), [long.clone(), long]);
    assert_eq!(read(out.column(4)), [None, None]);
}

#[test]
fn days_beyond_32_bits_are_given_as_the_last_day() {
    let mut join = WindowJoin::new(spec(10, JoinKind::Left, Physical::I32));
    feed(&mut join, 0, &[(i32::MAX.into(), int(1), None), (i32::MIN.into(), int(2), None)]);
    join.finish();
    let bounds: Vec<Vec<Cell>> =
        drain(&mut join, Physical::I32).iter().map(|row| row[..2].to_vec()).collect();
    let day = |day: i32| int(day.into());
    assert_eq!(bounds, [[day(i32::MIN), day(i32::MIN + 8)], [day(i32::MAX - 7), day(i32::MAX)]]);
}

#[test]
fn kinds_have_names() {
    for name in JoinKind::names() {
        assert_eq!(JoinKind::from_name(name).unwrap().name(), name);
    }
    assert_eq!(JoinKind::from_name("outer"), None);
}

#[test]
fn groups_that_are_taken_out_leave_the_others() {
    let mut join = WindowJoin::new(spec(10, JoinKind::Full, Physical::I64));
    feed(&mut join, 0, &(0..100).map(|key| (1, int(key), None)).collect::<Vec<_>>());
    let mut some = KeyGroups::NONE;
    (0..128).for_each(|group| some.insert(group));
    let mut part = join.extract(some);
    feed(&mut join, 1, &(0..100).map(|key| (1, int(key), None)).collect::<Vec<_>>());
    let left = drain(&mut join, Physical::I64).len();
    part.finish();
    let taken = drain(&mut *part, Physical::I64).len();
    assert_eq!(left + taken, 100);
    assert!((20..80).contains(&taken), "{taken} of 100 keys are in half of the groups");
}

#[test]
#[should_panic(expected = "output is taken before")]
fn state_is_not_taken_apart_while_there_is_output() {
    let mut join = WindowJoin::new(spec(10, JoinKind::Full, Physical::I64));
    feed(&mut join, 0, &[(1, int(1), None)]);
    join.advance(10);
    join.extract(KeyGroups::ALL);
}

fn two_rows(join: &mut WindowJoin) -> StateSnapshot {
    feed(join, 0, &[(1, int(1), text("left")), (12, None, None)]);
    feed(join, 1, &[(25, int(1), text("right")), (3, int(3), text("right too"))]);
    join.snapshot()
}

#[test]
fn a_snapshot_says_whose_it_is() {
    let mut join = WindowJoin::new(spec(10, JoinKind::Full, Physical::I64));
    let snapshot = two_rows(&mut join);
    let said = |table: &RecordBatch, key: &str| table.schema().metadata()[key].clone();
    let tables: Vec<String> = snapshot.tables.iter().map(|table| said(table, "penstock.table")).collect();
    assert_eq!(tables, ["left", "right"]);
    for table in &snapshot.tables {
        assert_eq!(said(table, "penstock.operator"), "window_join");
        assert_eq!(said(table, "penstock.version"), "1");
    }
    let mut other = WindowJoin::new(spec(10, JoinKind::Full, Physical::I64));
    other.restore(&snapshot).unwrap();
    other.finish();
    assert_eq!(drain(&mut other, Physical::I64).len(), 4);
}

/// One fault of a table, or a harmless change.
#[derive(Clone, Debug)]
enum Fault {
    Metadata(String, String),
    /// A column is missing.
    Missing(usize),
    /// A column has another type.
    Retyped(usize),
    /// Rows are in other windows.
    Windows(Vec<i128>),
    /// A table occurs twice.
    Twice,
    /// A table is missing.
    Gone,
}

fn with_fault(snapshot: &StateSnapshot, table: usize, fault: &Fault) -> StateSnapshot {
    let mut tables = snapshot.tables.clone();
    let batch = tables[table].clone();
    let (mut fields, mut columns): (Vec<Field>, Vec<ArrayRef>) = (
        batch.schema().fields().iter().map(|field| field.as_ref().clone()).collect(),
        batch.columns().to_vec(),
    );
    let mut metadata: HashMap<String, String> = batch.schema().metadata().clone();
    match fault {
        Fault::Metadata(key, value) => {
            metadata.insert(format!("penstock.{key}"), value.clone());
        }
        Fault::Missing(column) => {
            fields.remove(column % fields.len());
            columns.remove(column % columns.len());
        }
        Fault::Retyped(column) => {
            let column = column % columns.len();
            let ints = || Arc::new(Int64Array::from_iter_values(0..batch.num_rows() as i64)) as ArrayRef;
            let texts = || Arc::new(StringArray::from_iter_values(vec!["a"; batch.num_rows()])) as ArrayRef;
            columns[column] =
                if columns[column].as_any().is::<LargeStringArray>() { ints() } else { texts() };
            fields[column] = Field::new(fields[column].name(), columns[column].data_type().clone(), true);
        }
        Fault::Windows(windows) => {
            let windows = windows.iter().cycle().copied().take(batch.num_rows());
            let windows = Decimal128Array::from_iter_values(windows).with_precision_and_scale(38, 0).unwrap();
            columns[0] = Arc::new(windows);
        }
        Fault::Twice => tables.push(batch.clone()),
        Fault::Gone => {
            tables.remove(table);
            return StateSnapshot { tables };
        }
    }
    let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
    tables[table] = RecordBatch::try_new(schema, columns).unwrap();
    StateSnapshot { tables }
}

fn any_fault() -> impl Strategy<Value = Fault> {
    let keys = vec!["operator", "version", "table", "closed_below", "closed_by", "late_rows", "late_by"];
    let values = vec!["", "x", "99", "right", "-1e5", "170141183460469231731687303715884105728", "-3"];
    let number = prop_oneof![-3_i128..3, Just(i128::MAX), Just(i128::MIN), any::<i64>().prop_map(i128::from)];
    prop_oneof![
        (prop::sample::select(keys), prop::sample::select(values))
            .prop_map(|(key, value)| Fault::Metadata(key.to_owned(), value.to_owned())),
        (0_usize..3).prop_map(Fault::Missing),
        (0_usize..3).prop_map(Fault::Retyped),
        prop::collection::vec(number, 1..3).prop_map(Fault::Windows),
        Just(Fault::Twice),
        Just(Fault::Gone),
    ]
}

proptest! {
    #[test]
    fn no_snapshot_makes_a_join_panic(fault in any_fault(), table in 0_usize..2) {
        let mut join = WindowJoin::new(spec(10, JoinKind::Full, Physical::I64));
        let snapshot = with_fault(&two_rows(&mut join), table, &fault);
        let before = join.snapshot();
        match join.restore(&snapshot) {
            Ok(()) => {
                prop_assert!(!matches!(fault, Fault::Missing(_) | Fault::Retyped(_) | Fault::Gone), "{:?}", fault);
                drain(&mut join, Physical::I64);
                join.finish();
                drain(&mut join, Physical::I64);
                prop_assert_eq!(join.bytes(), 0);
            }
            Err(error) => {
                let other = matches!(&fault, Fault::Metadata(key, _) if key == "operator" || key == "version");
                prop_assert_eq!(matches!(error, SnapshotError::Kind { .. }), other);
                prop_assert_eq!(join.snapshot(), before, "the state is unchanged");
            }
        }
    }
}
