//! Runs against a naive model: whatever is selected, read and replaced in whatever order, every column equals that of
//! a plain list of rows, and is exported as Arrow.

use crate::arbitrary;

use std::sync::Arc;

use arbitrary::{Cells, Seed, any_type, array, cells, column, read, seeds, sliced};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use penstock_memory::batch::decoded;
use penstock_memory::{Column, Exporter, Physical, Run, SlotId, SourceColumns};
use proptest::prelude::*;

/// The events between two operators of a run.
#[derive(Clone, Debug)]
enum Step {
    /// An operator reads a slot (modulo the number of slots).
    Ready(usize),
    /// An operator fills a slot with these rows, repeated.
    Put(usize, Vec<Seed>),
    /// A filter keeps the rows whose flag is set; the flags repeat.
    Select(Vec<bool>),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => any::<usize>().prop_map(Step::Ready),
        2 => (any::<usize>(), seeds(1..20)).prop_map(|(slot, rows)| Step::Put(slot, rows)),
        3 => prop::collection::vec(prop::bool::weighted(0.7), 1..20).prop_map(Step::Select),
    ]
}

/// One batch: its rows, how it is sliced out of larger arrays, the lengths of its runs, and the events of each run.
#[derive(Clone, Debug)]
struct Input {
    rows: Vec<Vec<Seed>>,
    before: usize,
    after: usize,
    run_rows: usize,
    steps: Vec<Step>,
}

fn any_input(columns: usize) -> impl Strategy<Value = Input> {
    let rows = (0_usize..60).prop_flat_map(move |rows| prop::collection::vec(seeds(rows), columns));
    (rows, 0_usize..70, 0_usize..5, 1_usize..40, prop::collection::vec(any_step(), 0..12))
        .prop_map(|(rows, before, after, run_rows, steps)| Input { rows, before, after, run_rows, steps })
}

/// A slot in the model: its type and, when it holds a column, the values of the present rows.
struct Slot {
    data_type: DataType,
    held: Option<Cells>,
}

fn repeat<T: Clone>(pattern: &[T], rows: usize) -> Vec<T> {
    pattern.iter().cycle().take(rows).cloned().collect()
}

/// Puts fresh values into a slot, in the run and in the model.
fn put(run: &mut Run, slots: &mut [Slot], slot: SlotId, pattern: &[Seed]) {
    let model = &mut slots[slot];
    let values = cells(&model.data_type, &repeat(pattern, run.len()));
    run.put(slot, column(&model.data_type, &values));
    model.held = Some(values);
}

fn apply(run: &mut Run, slots: &mut [Slot], step: &Step) {
    match step {
        Step::Ready(slot) => {
            let slot = slot % slots.len();
            if let Some(held) = &slots[slot].held {
                run.ready(&[slot]);
                assert_eq!(&read(run.column(slot)), held, "slot {slot}, {:?}", slots[slot].data_type);
            }
        }
        Step::Put(slot, pattern) => put(run, slots, slot % slots.len(), pattern),
        Step::Select(pattern) => {
            let kept = repeat(pattern, run.len());
            let mut rows = run.selection();
            rows.extend((0..kept.len() as u32).filter(|&row| kept[row as usize]));
            run.select(rows);
            for held in slots.iter_mut().filter_map(|slot| slot.held.as_mut()) {
                let mut kept = kept.iter();
                held.retain(|_| *kept.next().unwrap());
            }
            assert_eq!(run.len(), kept.iter().filter(|kept| **kept).count());
            assert_eq!(run.is_empty(), !kept.contains(&true));
        }
    }
}

fn schema_of(types: &[DataType]) -> SchemaRef {
    let fields = types.iter().enumerate();
    Arc::new(Schema::new(
        fields.map(|(n, data_type)| Field::new(n.to_string(), data_type.clone(), true)).collect::<Vec<_>>(),
    ))
}

/// Checks the exported columns against the model: one array each, dictionaries decoded.
fn check_exported(batches: &[RecordBatch], types: &[DataType], expected: &[Cells]) {
    for (number, (data_type, cells)) in types.iter().zip(expected).enumerate() {
        let whole = array(decoded(data_type), cells);
        let mut from = 0;
        for batch in batches {
            let part: ArrayRef = Arc::clone(batch.column(number));
            assert_eq!(&part, &whole.slice(from, batch.num_rows()), "{data_type:?} from row {from}");
            part.to_data().validate_full().unwrap();
            from += batch.num_rows();
        }
        assert_eq!(from, cells.len(), "rows of {data_type:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn runs_behave_as_lists_of_rows(
        (types, read_flags, inputs) in prop::collection::vec(any_type(), 1..5).prop_flat_map(|types| {
            let columns = types.len();
            let flags = prop::collection::vec(prop::bool::weighted(0.85), columns);
            (Just(types), flags, prop::collection::vec(any_input(columns), 1..4))
        }),
        owned in prop::collection::vec(any_type(), 1..4),
        fill in seeds(1..9),
    ) {
        let schema = schema_of(&types);
        let source = SourceColumns::new(Arc::clone(&schema), read_flags.clone());
        let mut run = Run::new();
        let all: Vec<DataType> = types.iter().chain(&owned).map(|data_type| decoded(data_type).clone()).collect();
        for data_type in &all {
            run.add_slot(Physical::of(data_type).unwrap());
        }
        let mut exporter = Exporter::new(schema_of(&all));
        let mut exported: Vec<Cells> = vec![Cells::new(); all.len()];
        for input in &inputs {
            let arrays = types.iter().zip(&input.rows);
            let arrays = arrays.map(|(data_type, rows)| sliced(data_type, rows, input.before, input.after));
            let batch = RecordBatch::try_new(Arc::clone(&schema), arrays.collect()).unwrap();
            run.open(&source, &batch).unwrap();
            prop_assert_eq!(run.batch().rows(), batch.num_rows());
            let mut start = 0;
            while start < batch.num_rows() {
                let len = input.run_rows.min(batch.num_rows() - start);
                run.begin(&source, start, len);
                let mut slots: Vec<Slot> = all.iter().map(|data_type| Slot { data_type: data_type.clone(), held: None }).collect();
                for (column, rows) in input.rows.iter().enumerate().filter(|(column, _)| read_flags[*column]) {
                    slots[column].held = Some(cells(&types[column], &rows[start..start + len]));
                }
                for (slot, model) in slots.iter().enumerate() {
                    prop_assert_eq!(run.holds(slot), model.held.is_some());
                }
                for step in &input.steps {
                    apply(&mut run, &mut slots, step);
                }
                for slot in 0..slots.len() {
                    if slots[slot].held.is_none() {
                        put(&mut run, &mut slots, slot, &fill);
                    }
                }
                let every: Vec<SlotId> = (0..slots.len()).collect();
                run.ready(&every);
                let columns: Vec<Column<'_>> = every.iter().map(|&slot| run.column(slot)).collect();
                exporter.append(&columns, run.len()).unwrap();
                for (exported, slot) in exported.iter_mut().zip(slots) {
                    exported.extend(slot.held.unwrap());
                }
                start += len;
            }
            run.close();
        }
        check_exported(&exporter.finish().unwrap(), &all, &exported);
    }

    #[test]
    fn runs_without_a_batch_hold_what_is_put(
        types in prop::collection::vec(any_type(), 1..4),
        runs in prop::collection::vec((1_usize..50, seeds(1..9), prop::collection::vec(any_step(), 0..8)), 1..4),
    ) {
        let types: Vec<DataType> = types.iter().map(|data_type| decoded(data_type).clone()).collect();
        let mut run = Run::new();
        for data_type in &types {
            run.add_slot(Physical::of(data_type).unwrap());
        }
        for (rows, fill, steps) in &runs {
            run.begin_owned(*rows);
            prop_assert!(!run.holds(0), "no column is left from the run before");
            let mut slots: Vec<Slot> = types.iter().map(|data_type| Slot { data_type: data_type.clone(), held: None }).collect();
            for slot in 0..slots.len() {
                put(&mut run, &mut slots, slot, fill);
            }
            for step in steps {
                apply(&mut run, &mut slots, step);
            }
            for slot in 0..slots.len() {
                apply(&mut run, &mut slots, &Step::Ready(slot));
            }
        }
    }
}

#[test]
fn results_leave_in_batches_of_64_ki_rows() {
    const ROWS: usize = 150_000;
    let schema = Arc::new(Schema::new(vec![
        Field::new("number", DataType::Int64, true),
        Field::new("text", DataType::Utf8, true),
        Field::new("flag", DataType::Boolean, true),
    ]));
    let number = |row: usize| (!row.is_multiple_of(7)).then_some(row as i64);
    let text = |row: usize| (!row.is_multiple_of(5)).then(|| "x".repeat(row % 30));
    let flag = |row: usize| (!row.is_multiple_of(3)).then_some(row.is_multiple_of(2));
    let columns: Vec<ArrayRef> = vec![
        Arc::new((0..ROWS).map(number).collect::<Int64Array>()),
        Arc::new((0..ROWS).map(text).collect::<StringArray>()),
        Arc::new((0..ROWS).map(flag).collect::<BooleanArray>()),
    ];
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
    let source = SourceColumns::new(Arc::clone(&schema), vec![true; 3]);
    let mut run = Run::new();
    for field in schema.fields() {
        run.add_slot(Physical::of(field.data_type()).unwrap());
    }
    let mut exporter = Exporter::new(schema);
    let mut full = Vec::new();
    run.open(&source, &batch).unwrap();
    for start in (0..ROWS).step_by(10_000) {
        run.begin(&source, start, 10_000);
        let mut rows = run.selection();
        rows.extend((0..10_000).filter(|row| row % 10 != 3));
        run.select(rows);
        run.ready(&[0, 1, 2]);
        exporter.append(&[run.column(0), run.column(1), run.column(2)], run.len()).unwrap();
        full.extend(exporter.take_finished());
    }
    assert_eq!(full.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [65_536, 65_536]);
    full.extend(exporter.finish().unwrap());
    assert_eq!(full.last().unwrap().num_rows(), ROWS / 10 * 9 - 2 * 65_536);

    let mut kept = (0..ROWS).filter(|row| row % 10 != 3);
    for batch in &full {
        let (numbers, texts, flags) = (
            batch.column(0).as_primitive::<Int64Type>(),
            batch.column(1).as_string::<i32>(),
            batch.column(2).as_boolean(),
        );
        for ((got_number, got_text), got_flag) in numbers.iter().zip(texts).zip(flags) {
            let row = kept.next().unwrap();
            assert_eq!(
                (got_number, got_text, got_flag),
                (number(row), text(row).as_deref(), flag(row)),
                "row {row}"
            );
        }
    }
    assert_eq!(kept.next(), None);
}

#[test]
fn an_exporter_without_columns_still_counts_rows() {
    let mut exporter = Exporter::new(Arc::new(Schema::empty()));
    exporter.append(&[], 70_000).unwrap();
    let batches = exporter.finish().unwrap();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [65_536, 70_000 - 65_536]);
}

#[test]
fn an_exporter_without_rows_gives_no_batch() {
    let mut exporter = Exporter::new(schema_of(&[DataType::Utf8View]));
    let empty = column(&DataType::Utf8View, &Cells::new());
    exporter.append(&[empty.as_column()], 0).unwrap();
    assert!(exporter.take_finished().is_empty());
    assert!(exporter.finish().unwrap().is_empty());
}

#[test]
fn a_noted_range_belongs_to_one_slot_of_one_run() {
    let mut run = Run::new();
    let (time, other) = (run.add_slot(Physical::I64), run.add_slot(Physical::I64));
    run.begin_owned(2);
    assert_eq!(run.range_of(time), None);
    run.note_range(time, (-3, 9));
    run.select(vec![1]);
    assert_eq!((run.range_of(time), run.range_of(other)), (Some((-3, 9)), None));
    run.begin_owned(2);
    assert_eq!(run.range_of(time), None);
}
