//! Distributed state: parallel operators whose parts are merged, key groups that move, and hostile snapshots.

use crate::stream;

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, UInt8Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use penstock_memory::ColumnBuf;
use penstock_operators::keys::groups::groups;
use penstock_operators::{SnapshotError, StateSnapshot};
use penstock_progress::{Aligned, Windows};
use penstock_types::{KeyGroup, KeyGroups};
use proptest::prelude::*;
use stream::columns::{Value, stored};
use stream::reference::expect;
use stream::{Event, Harness, Plan, any_events, any_keys, assert_same, inputs, physical, progress};

fn any_windows() -> impl Strategy<Value = (Windows, i64)> {
    let aligned = (1_i64..30, 1_i64..30, -20_i64..20, prop_oneof![Just(0_i64), 1_i64..30]).prop_map(
        |(size, slide, offset, lateness)| {
            (Aligned::new(size.max(slide), size.min(slide), offset).unwrap().into(), lateness)
        },
    );
    prop_oneof![2 => aligned, 1 => (1_i64..30).prop_map(|gap| (Windows::session(gap).unwrap(), 0))]
}

fn any_case() -> impl Strategy<Value = (Plan, Vec<Event>)> {
    (any_windows(), any_keys(), 1_usize..3).prop_flat_map(|((windows, allowed_lateness), keys, ports)| {
        let plan = Plan { allowed_lateness, ports, ..Plan::new(windows, &keys) };
        (Just(plan), any_events(keys, ports, (-40_i64..160).boxed()))
    })
}

fn group_of(plan: &Plan, event: &Event) -> KeyGroup {
    let columns: Vec<ColumnBuf> = plan
        .keys
        .iter()
        .zip(&event.key)
        .map(|(key, cell)| stored(physical(key), std::slice::from_ref(cell)))
        .collect();
    let columns: Vec<_> = columns.iter().map(ColumnBuf::as_column).collect();
    let mut out = Vec::new();
    groups(&columns, &plan.keys, 1, &mut out);
    out[0]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Workers aggregate their own rows; at each watermark one operator merges their parts and emits results.
    #[test]
    fn parts_of_several_workers(
        (plan, events) in any_case(),
        workers in prop::collection::vec(0_usize..3, 60),
        run_rows in 1_usize..12,
        behind in prop::collection::vec(prop::option::weighted(0.7, 0_i64..20), 1..8),
    ) {
        let (expected, late) = expect(&plan, &events);
        let mut of_workers: Vec<Harness> = (0..3).map(|_| Harness::new(&plan)).collect();
        let mut merger = Harness::new(&plan);
        let mut told = i64::MIN;
        for (number, run) in events.chunks(run_rows).enumerate() {
            for (row, event) in run.iter().enumerate() {
                of_workers[workers[number * run_rows + row]].consume(std::slice::from_ref(event), true);
            }
            if let Some(behind) = behind[number % behind.len()] {
                let reached = progress(&events, (number * run_rows + run_rows).min(events.len()));
                told = told.max(reached.saturating_sub(behind));
                for worker in &mut of_workers {
                    merger.operator.merge(worker.operator.split_off(told));
                    prop_assert!(!worker.operator.has_output());
                }
                prop_assert!(!merger.operator.has_output(), "no window is over before all parts are merged");
                merger.operator.advance(told);
                merger.drain(7);
            }
        }
        for worker in of_workers {
            merger.operator.merge(worker.operator);
        }
        merger.drain(7);
        merger.finish(7);
        assert_same(&plan, &merger.results, &expected);
        prop_assert_eq!(merger.operator.late().rows, late.len() as u64);
    }

    /// Two operators by key group; groups move from one to the other.
    #[test]
    fn key_groups_that_move(
        (plan, events) in any_case(),
        moves in prop::collection::vec(any::<(u8, bool)>(), 1..8),
        run_rows in 1_usize..12,
    ) {
        let (expected, late) = expect(&plan, &events);
        let mut places = [Harness::new(&plan), Harness::new(&plan)];
        let mut owner = [0_usize; 256];
        for (number, run) in events.chunks(run_rows).enumerate() {
            for event in run {
                places[owner[usize::from(group_of(&plan, event))]].consume(std::slice::from_ref(event), true);
            }
            let told = progress(&events, (number * run_rows + run_rows).min(events.len()));
            for place in &mut places {
                place.operator.advance(told);
                place.drain(3);
            }
            let (pivot, to) = moves[number % moves.len()];
            let to = usize::from(to);
            let mut wanted = KeyGroups::NONE;
            for group in (0..=255_u8).filter(|group| group / 32 != pivot / 32) {
                wanted.insert(group);
                owner[usize::from(group)] = to;
            }
            let taken = places[1 - to].operator.extract(wanted);
            places[to].operator.merge(taken);
            prop_assert!(!places[to].operator.has_output());
        }
        let [mut left, mut right] = places;
        left.finish(5);
        right.finish(5);
        let late_rows = left.operator.late().rows + right.operator.late().rows;
        left.results.extend(right.results);
        assert_same(&plan, &left.results, &expected);
        prop_assert_eq!(late_rows, late.len() as u64);
    }

    /// Whatever the numbers of a snapshot are, it is refused or read; nothing panics then or later.
    #[test]
    fn snapshots_are_not_believed(
        (plan, events) in any_case(),
        column in 0_usize..200,
        row in 0_usize..60,
        number in prop_oneof![any::<i64>(), Just(i64::MAX), Just(i64::MIN), Just(-1), Just(1 << 47)],
        note in prop::option::of((0_usize..8, prop_oneof![
            Just(String::new()), Just("x".to_owned()), any::<i128>().prop_map(|number| number.to_string())])),
    ) {
        let mut harness = Harness::new(&plan);
        for event in &events {
            harness.consume(std::slice::from_ref(event), true);
        }
        let table = harness.operator.snapshot().tables.remove(0);
        let mut columns = table.columns().to_vec();
        let column = column % columns.len();
        if table.num_rows() > 0 {
            let row = row % table.num_rows();
            columns[column] = with_number(&columns[column], row, number);
        }
        let mut metadata = table.schema().metadata.clone();
        if let Some((place, text)) = note {
            let mut names: Vec<String> = metadata.keys().cloned().collect();
            names.sort();
            metadata.insert(names[place % names.len()].clone(), text);
        }
        let schema = Schema::new_with_metadata(table.schema().fields().clone(), metadata);
        let table = RecordBatch::try_new(Arc::new(schema), columns).unwrap();
        let mut fresh = plan.operator();
        if fresh.restore(&StateSnapshot { tables: vec![table] }).is_ok() {
            harness.operator = fresh;
            while harness.operator.has_output() && harness.emit_any().is_ok() {}
            if !harness.operator.has_output() {
                for event in &events {
                    let mut run = plan.run(std::slice::from_ref(event), true);
                    harness.operator.consume(event.port, &mut run).unwrap();
                }
                harness.operator.snapshot();
                harness.operator.finish();
                while harness.operator.has_output() && harness.emit_any().is_ok() {}
            }
        }
    }
}

/// Returns the array with another number in that row, if it is an array of numbers.
fn with_number(array: &ArrayRef, row: usize, number: i64) -> ArrayRef {
    macro_rules! replaced {
        ($type:ty, $native:ty) => {{
            let old = array.as_any().downcast_ref::<$type>().unwrap();
            let value = |at: usize| if at == row { number as $native } else { old.value(at) };
            Arc::new(<$type>::from_iter_values((0..array.len()).map(value)))
        }};
    }
    match array.data_type() {
        DataType::Int64 => replaced!(Int64Array, i64),
        DataType::UInt64 => replaced!(UInt64Array, u64),
        DataType::UInt8 => replaced!(UInt8Array, u8),
        _ => Arc::clone(array),
    }
}

fn with_state() -> (Plan, StateSnapshot) {
    let plan = Plan::new(Aligned::new(20, 10, 0).unwrap().into(), &[DataType::Int64]);
    let mut harness = Harness::new(&plan);
    let inputs = vec![None; inputs().len()];
    let event = Event { port: 0, time: 5, mark: 0, key: vec![Some(Value::Int(1))], inputs };
    harness.consume(&[event], false);
    (plan, harness.operator.snapshot())
}

fn refused(plan: &Plan, tables: Vec<RecordBatch>) -> SnapshotError {
    plan.operator().restore(&StateSnapshot { tables }).unwrap_err()
}

#[test]
fn another_shape_is_refused() {
    let (plan, snapshot) = with_state();
    let table = &snapshot.tables[0];
    let columns = table.num_columns();
    assert!(matches!(refused(&plan, vec![]), SnapshotError::Broken { .. }));
    assert!(matches!(refused(&plan, vec![table.clone(), table.clone()]), SnapshotError::Broken { .. }));
    let fewer: Vec<usize> = (0..columns - 1).collect();
    assert!(matches!(refused(&plan, vec![table.project(&fewer).unwrap()]), SnapshotError::Broken { .. }));
    let mut swapped: Vec<usize> = (0..columns).collect();
    swapped.swap(1, 2);
    let error = refused(&plan, vec![table.project(&swapped).unwrap()]).to_string();
    assert!(error.contains("column pane") && error.contains("window"), "{error}");

    let sessions = Plan::new(Windows::session(5).unwrap(), &[DataType::Int64]);
    let error = refused(&sessions, vec![table.clone()]);
    let kind = |operator: &str| format!("{operator} version 1");
    assert_eq!(error, SnapshotError::Kind { found: kind("windows"), wanted: kind("sessions") });
    let schema = Schema::new_with_metadata(table.schema().fields().clone(), HashMap::new());
    let bare = RecordBatch::try_new(Arc::new(schema), table.columns().to_vec()).unwrap();
    assert!(matches!(refused(&plan, vec![bare]), SnapshotError::Kind { .. }));
    let other_key = Plan::new(plan.windows, &[DataType::Utf8]);
    assert!(matches!(refused(&other_key, snapshot.tables.clone()), SnapshotError::Broken { .. }));
}

#[test]
fn nulls_where_none_can_be_are_refused() {
    let (plan, snapshot) = with_state();
    let table = &snapshot.tables[0];
    for (number, field) in table.schema().fields().iter().enumerate() {
        if *field.data_type() != DataType::Int64 || field.is_nullable() {
            continue;
        }
        let mut fields: Vec<Field> = table.schema().fields().iter().map(|field| (**field).clone()).collect();
        fields[number].set_nullable(true);
        let mut columns = table.columns().to_vec();
        columns[number] = Arc::new(Int64Array::from(vec![None; table.num_rows()]));
        let schema = Schema::new_with_metadata(fields, table.schema().metadata.clone());
        let table = RecordBatch::try_new(Arc::new(schema), columns).unwrap();
        assert!(matches!(refused(&plan, vec![table]), SnapshotError::Broken { .. }), "{}", field.name());
    }
}

#[test]
#[should_panic(expected = "one specification")]
fn operators_of_different_kinds_are_not_merged() {
    let (plan, _) = with_state();
    plan.operator().merge(Plan::new(Windows::session(5).unwrap(), &[DataType::Int64]).operator());
}
