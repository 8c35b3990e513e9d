//! Lookups against a hash map: matches, filled columns, and refused tables.

use crate::columns;

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use columns::{Cell, Value, any_key, columns, read, rows, stored, text};
use penstock_memory::{Physical, Run, SlotId};
use penstock_operators::indexed_table::DuplicateKey;
use penstock_operators::{IndexedTable, Lookup, LookupKind, Stateless, TablePlace};
use proptest::prelude::*;

type Row = Vec<Cell>;

/// Key columns, then columns to be filled in.
const KEYS: [(Physical, DataType); 3] =
    [(Physical::I64, DataType::Int64), (Physical::F64, DataType::Float64), (Physical::View, DataType::Utf8)];

fn array(data_type: &DataType, cells: &[Cell]) -> ArrayRef {
    match data_type {
        DataType::Int64 => Arc::new(Int64Array::from_iter(cells.iter().map(|cell| match cell {
            Some(Value::Int(value)) => Some(*value as i64),
            _ => None,
        }))),
        DataType::Float64 => Arc::new(Float64Array::from_iter(cells.iter().map(|cell| match cell {
            Some(Value::Float(value)) => Some(*value),
            _ => None,
        }))),
        _ => {
            let mut builder = StringBuilder::new();
            for cell in cells {
                match cell {
                    Some(Value::Bytes(bytes)) => builder.append_value(std::str::from_utf8(bytes).unwrap()),
                    _ => builder.append_null(),
                }
            }
            Arc::new(builder.finish())
        }
    }
}

fn batch(types: &[DataType], rows: &[Row]) -> RecordBatch {
    let fields: Vec<Field> = types
        .iter()
        .enumerate()
        .map(|(n, data_type)| Field::new(n.to_string(), data_type.clone(), true))
        .collect();
    let arrays =
        types.iter().zip(columns(rows, types.len())).map(|(data_type, cells)| array(data_type, &cells));
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays.collect()).unwrap()
}

fn has_key(row: &[Cell], keys: usize) -> bool {
    row[..keys].iter().all(Option::is_some)
}

/// Removes rows with a key that occurs before.
fn without_duplicates(rows: Vec<Row>, keys: usize) -> Vec<Row> {
    let mut seen = std::collections::HashSet::new();
    rows.into_iter().filter(|row| !has_key(row, keys) || seen.insert(row[..keys].to_vec())).collect()
}

/// Passes stream rows through a lookup, each with its number; returns the results by number.
fn look_up(
    table: &Arc<IndexedTable>,
    kind: LookupKind,
    kinds: &[Physical],
    probe: &[Row],
    kept: &[u32],
    fill: &[Physical],
) -> Vec<(i128, Row)> {
    let mut run = Run::new();
    let number = run.add_slot(Physical::I64);
    let keys: Vec<SlotId> = kinds.iter().map(|kind| run.add_slot(*kind)).collect();
    let filled: Vec<SlotId> = fill.iter().map(|kind| run.add_slot(*kind)).collect();
    let mut lookup = Lookup::new(
        TablePlace::new(Arc::clone(table)),
        kind,
        keys.clone(),
        filled.iter().copied().enumerate().collect(),
    );
    // Twice: the second time with used scratch.
    let mut out = Vec::new();
    for _ in 0..2 {
        run.begin_owned(probe.len());
        let numbers: Vec<Cell> = (0..probe.len() as i128).map(|row| Some(Value::Int(row))).collect();
        run.put(number, stored(Physical::I64, &numbers));
        for ((slot, kind), cells) in keys.iter().zip(kinds).zip(columns(probe, kinds.len())) {
            run.put(*slot, stored(*kind, &cells));
        }
        let mut rows_left = run.selection();
        rows_left.extend_from_slice(kept);
        run.select(rows_left);
        lookup.apply(&mut run).unwrap();
        let mut slots = vec![number];
        slots.extend(&filled);
        run.ready(&slots);
        let cells: Vec<Vec<Cell>> = slots.iter().map(|&slot| read(run.column(slot))).collect();
        out = rows(&cells)
            .into_iter()
            .map(|row| match &row[0] {
                Some(Value::Int(number)) => (*number, row[1..].to_vec()),
                other => panic!("{other:?} is not a row number"),
            })
            .collect();
        assert_eq!(out.len(), run.len());
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_lookup_finds_what_a_map_finds(
        (keys, table, probe) in prop::collection::vec(0_usize..KEYS.len(), 1..3).prop_flat_map(|keys| {
            let key: Vec<_> = keys.iter().map(|&key| prop::option::weighted(0.85, any_key(KEYS[key].0))).collect();
            let mut row: Vec<_> = key.iter().map(|cell| cell.clone().boxed()).collect();
            row.push(prop::option::of(any_key(Physical::I64)).boxed());
            row.push(prop::option::of(any_key(Physical::View)).boxed());
            (Just(keys), prop::collection::vec(row, 0..30), prop::collection::vec(key, 1..40))
        }),
        picks in prop::collection::vec(prop::bool::weighted(0.8), 40),
        left in any::<bool>(),
    ) {
        let kinds: Vec<Physical> = keys.iter().map(|&key| KEYS[key].0).collect();
        let mut types: Vec<DataType> = keys.iter().map(|&key| KEYS[key].1.clone()).collect();
        types.extend([DataType::Int64, DataType::Utf8]);
        let table = without_duplicates(table, keys.len());
        let on: Vec<usize> = (0..keys.len()).collect();
        let indexed = Arc::new(IndexedTable::new(&batch(&types, &table), &on).unwrap().ok().unwrap());
        let model: HashMap<Row, Row> = table.iter().filter(|row| has_key(row, keys.len()))
            .map(|row| (row[..keys.len()].to_vec(), row[keys.len()..].to_vec())).collect();
        prop_assert_eq!(indexed.len(), model.len());
        prop_assert_eq!(indexed.is_empty(), model.is_empty());

        let kept: Vec<u32> = (0..probe.len() as u32).filter(|&row| picks[row as usize]).collect();
        let kind = if left { LookupKind::Left } else { LookupKind::Inner };
        let given = look_up(&indexed, kind, &kinds, &probe, &kept, &[Physical::I64, Physical::View]);
        let expected: Vec<(i128, Row)> = kept.iter().filter_map(|&row| {
            let key = &probe[row as usize];
            let found = if has_key(key, keys.len()) { model.get(key).cloned() } else { None };
            let found = if left { Some(found.unwrap_or_else(|| vec![None, None])) } else { found };
            found.map(|found| (row.into(), found))
        }).collect();
        prop_assert_eq!(given, expected);
    }

    #[test]
    fn a_duplicate_key_is_refused_with_both_rows(
        keys in prop::collection::vec(prop::option::weighted(0.9, 0_i64..12), 0..16),
    ) {
        let table = RecordBatch::try_from_iter([("k", Arc::new(Int64Array::from(keys.clone())) as ArrayRef)]).unwrap();
        let mut seen = HashMap::new();
        let expected = keys.iter().enumerate().find_map(|(second, key)| {
            let first = seen.insert((*key)?, second)?;
            Some(DuplicateKey { first, second })
        });
        prop_assert_eq!(IndexedTable::new(&table, &[0]).unwrap().err(), expected);
    }
}

fn int(value: i128) -> Cell {
    Some(Value::Int(value))
}

#[test]
fn an_empty_table_matches_nothing() {
    let types = [DataType::Int64, DataType::Utf8];
    let all_null = batch(&types, &[vec![None, text("nobody sees this")]]);
    for table in [batch(&types, &[]), all_null.slice(0, 0), all_null] {
        let indexed = Arc::new(IndexedTable::new(&table, &[0]).unwrap().ok().unwrap());
        assert!(indexed.is_empty());
        let probe = [vec![int(1)], vec![None]];
        let look = |kind| look_up(&indexed, kind, &[Physical::I64], &probe, &[0, 1], &[Physical::View]);
        assert_eq!(look(LookupKind::Inner), []);
        assert_eq!(look(LookupKind::Left), [(0, vec![None]), (1, vec![None])]);
    }
}

#[test]
fn a_table_of_keys_alone_keeps_the_rows_that_are_in_it() {
    let table = batch(&[DataType::Int64], &[vec![int(2)], vec![int(4)]]);
    let indexed = Arc::new(IndexedTable::new(&table, &[0]).unwrap().ok().unwrap());
    let probe: Vec<Row> = (0..6).map(|key| vec![int(key)]).collect();
    let look = |kind| look_up(&indexed, kind, &[Physical::I64], &probe, &[0, 2, 3, 4], &[]);
    assert_eq!(look(LookupKind::Inner), [(2, vec![]), (4, vec![])]);
    assert_eq!(look(LookupKind::Left).len(), 4);
}

#[test]
fn the_columns_of_a_key_may_stand_anywhere_in_the_table() {
    let table = batch(
        &[DataType::Utf8, DataType::Int64, DataType::Float64],
        &[
            vec![text("x"), int(7), Some(Value::Float(-0.0))],
            vec![text("y"), int(8), Some(Value::Float(f64::NAN))],
        ],
    );
    // The key is (third, first); the remaining column is the second.
    let indexed = Arc::new(IndexedTable::new(&table, &[2, 0]).unwrap().ok().unwrap());
    let probe = [
        vec![Some(Value::Float(0.0)), text("x")],
        vec![Some(Value::Float(-f64::NAN)), text("y")],
        vec![Some(Value::Float(0.0)), text("y")],
    ];
    let kinds = [Physical::F64, Physical::View];
    let given = look_up(&indexed, LookupKind::Inner, &kinds, &probe, &[0, 1, 2], &[Physical::I64]);
    assert_eq!(given, [(0, vec![int(7)]), (1, vec![int(8)])]);
}
