//! Key indexes against a hash map of rows.

use crate::columns;

use std::collections::HashMap;

use columns::{Cell, Value, any_key, columns, limits, read, rows, stored, text};
use penstock_memory::{Column, ColumnBuf, Physical};
use penstock_operators::KeyIndex;
use penstock_operators::keys::MISSING;
use penstock_operators::keys::shared::Directory;
use proptest::prelude::*;

const INTEGERS: [Physical; 8] = [
    Physical::I8,
    Physical::I16,
    Physical::I32,
    Physical::I64,
    Physical::U8,
    Physical::U16,
    Physical::U32,
    Physical::U64,
];
const ALL: [Physical; 12] = [
    Physical::I8,
    Physical::I16,
    Physical::I32,
    Physical::I64,
    Physical::U8,
    Physical::U16,
    Physical::U32,
    Physical::U64,
    Physical::F32,
    Physical::F64,
    Physical::I128,
    Physical::View,
];

type Row = Vec<Cell>;

/// An index and the map that it should behave like.
struct Pair {
    kinds: Vec<Physical>,
    index: KeyIndex,
    model: HashMap<Row, u32>,
}

impl Pair {
    fn new(kinds: Vec<Physical>) -> Self {
        Self { index: KeyIndex::new(&kinds), kinds, model: HashMap::new() }
    }

    /// Creates one whose keys are looked up in a directory.
    fn beside(directory: &Directory, kinds: Vec<Physical>) -> Self {
        Self { index: directory.index(), ..Self::new(kinds) }
    }

    /// Inserts the keys of another index, like rows.
    fn insert_keys(&mut self, other: &Self) {
        let mut ids = vec![12345];
        self.index.insert_keys(&other.index, &self.kinds, &mut ids);
        assert_eq!(ids.len(), other.model.len());
        for (row, &id) in &other.model {
            let own = ids[id as usize];
            assert_eq!(*self.model.entry(row.clone()).or_insert(own), own, "{row:?}");
        }
        self.insert(&[]);
    }

    fn stored(&self, rows: &[Row]) -> Vec<ColumnBuf> {
        let columns = columns(rows, self.kinds.len());
        self.kinds.iter().zip(columns).map(|(kind, cells)| stored(*kind, &cells)).collect()
    }

    fn insert(&mut self, rows: &[Row]) {
        let stored = self.stored(rows);
        let columns: Vec<Column<'_>> = stored.iter().map(ColumnBuf::as_column).collect();
        let mut ids = vec![12345];
        self.index.insert(&columns, rows.len(), &mut ids);
        assert_eq!(ids.len(), rows.len());
        for (row, &id) in rows.iter().zip(&ids) {
            let known = *self.model.entry(row.clone()).or_insert(id);
            assert_eq!(known, id, "{row:?} had another id before");
        }
        // As many ids as keys, each below their number: none is shared, none is left out.
        let mut seen: Vec<u32> = self.model.values().copied().collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..self.model.len() as u32).collect::<Vec<_>>());
        assert_eq!(self.index.len(), self.model.len());
        assert_eq!(self.index.is_empty(), self.model.is_empty());
    }

    fn find(&self, rows: &[Row]) {
        let stored = self.stored(rows);
        let columns: Vec<Column<'_>> = stored.iter().map(ColumnBuf::as_column).collect();
        let mut ids = vec![12345];
        self.index.find(&columns, rows.len(), &mut ids);
        let expected: Vec<u32> =
            rows.iter().map(|row| self.model.get(row).copied().unwrap_or(MISSING)).collect();
        assert_eq!(ids, expected, "{rows:?}");
    }

    /// Writes the keys a few at a time.
    fn write(&self, step: usize) {
        let mut written: Vec<Row> = Vec::new();
        // The same scratch again and again, with a mask left from an earlier use.
        let mut scratch: Vec<ColumnBuf> = self.kinds.iter().map(|kind| stored(*kind, &[None])).collect();
        for from in (0..self.index.len()).step_by(step) {
            scratch.iter_mut().for_each(ColumnBuf::clear_mask);
            self.index.write(from, self.index.len().min(from + step), &mut scratch);
            written.extend(rows(&scratch.iter().map(|column| read(column.as_column())).collect::<Vec<_>>()));
        }
        assert_eq!(written.len(), self.model.len());
        for (id, row) in written.iter().enumerate() {
            assert_eq!(self.model.get(row), Some(&(id as u32)), "{row:?}");
        }
    }
}

/// Draws integers of that width out of a range: a few, some thousands, or all.
fn any_integers(kind: Physical) -> impl Strategy<Value = Vec<Row>> {
    let (low, high) = limits(kind);
    let anchor = prop_oneof![3 => Just(0.max(low)), 1 => Just(low), 1 => Just(high), 1 => low..=high,
        1 => Just((1_i128 << 63).clamp(low, high))];
    let span =
        prop_oneof![3 => 1_i128..50, 2 => 500_i128..5000, 1 => 60_000_i128..70_000, 1 => Just(1_i128 << 64)];
    (anchor, span, prop::sample::select(vec![0.0, 0.2])).prop_flat_map(move |(anchor, span, nulls)| {
        let from = (anchor - span / 2).clamp(low, high);
        let to = (from + span).clamp(low, high);
        let number = (from..=to).prop_map(|value| Some(Value::Int(value)));
        let cell =
            if nulls > 0.0 { prop_oneof![4 => number, 1 => Just(None)].boxed() } else { number.boxed() };
        prop::collection::vec(cell.prop_map(|cell| vec![cell]), 0..60)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn integers_of_every_width((kind, runs) in prop::sample::select(INTEGERS.to_vec()).prop_flat_map(|kind| {
        (Just(kind), prop::collection::vec(any_integers(kind), 1..6))
    }), step in 1_usize..20) {
        let mut pair = Pair::new(vec![kind]);
        prop_assert!(matches!(pair.index, KeyIndex::Integers(_)));
        for (number, run) in runs.iter().enumerate() {
            pair.find(run);
            pair.insert(run);
            for run in &runs[..=number] {
                pair.find(run);
            }
        }
        pair.write(step);
    }

    #[test]
    fn any_columns((kinds, runs) in prop::collection::vec(prop::sample::select(ALL.to_vec()), 1..4).prop_flat_map(|kinds| {
        let row: Vec<_> = kinds.iter().map(|kind| prop::option::weighted(0.85, any_key(*kind))).collect();
        (Just(kinds), prop::collection::vec(prop::collection::vec(row, 0..40), 1..4))
    }), step in 1_usize..20) {
        let mut pair = Pair::new(kinds);
        for run in &runs {
            pair.find(run);
            pair.insert(run);
            pair.find(run);
        }
        pair.find(&runs.concat());
        pair.write(step);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Three indexes: two with one directory, the third with one of its own or with none.
    #[test]
    fn indexes_that_share_a_directory_have_keys_of_their_own(
        (kinds, steps) in prop::collection::vec(prop::sample::select(ALL.to_vec()), 1..3).prop_flat_map(|kinds| {
            let row: Vec<_> = kinds.iter().map(|kind| prop::option::weighted(0.85, any_key(*kind))).collect();
            let run = prop::collection::vec(row, 0..40);
            (Just(kinds), prop::collection::vec((0..3_usize, prop::option::of(0..3_usize), run), 1..12))
        }),
        third_shares in any::<bool>(),
        step in 1_usize..20,
    ) {
        let directory = Directory::new(&kinds);
        let third =
            if third_shares { Pair::beside(&Directory::new(&kinds), kinds.clone()) } else { Pair::new(kinds.clone()) };
        let mut pairs = [Pair::beside(&directory, kinds.clone()), Pair::beside(&directory, kinds), third];
        for (at, from, run) in &steps {
            match from.filter(|from| from != at) {
                None => pairs[*at].insert(run),
                Some(from) => {
                    let [into, other] = pairs.get_disjoint_mut([*at, from]).unwrap();
                    into.insert_keys(other);
                }
            }
            pairs.iter().for_each(|pair| pair.find(run));
        }
        pairs.iter().for_each(|pair| pair.write(step));
        let copy = pairs[0].index.clone();
        drop(pairs);
        prop_assert!(directory.is_shared());
        drop(copy);
        prop_assert!(!directory.is_shared());
    }
}

fn ids_of(kind: Physical, runs: &[&[Cell]]) -> Vec<u32> {
    let mut index = KeyIndex::new(&[kind]);
    let mut all = Vec::new();
    for run in runs {
        let column = stored(kind, run);
        let mut ids = Vec::new();
        index.insert(&[column.as_column()], run.len(), &mut ids);
        all.extend(ids);
    }
    all
}

#[test]
fn ids_are_given_in_the_order_in_which_keys_are_first_seen() {
    let int = |value: i128| Some(Value::Int(value));
    assert_eq!(ids_of(Physical::I64, &[&[int(7), int(3), int(7)], &[int(9), int(3)]]), [0, 1, 0, 2, 1]);
    assert_eq!(ids_of(Physical::View, &[&[text("b"), None, text("a")], &[None, text("b")]]), [0, 1, 2, 1, 0]);
    assert_eq!(ids_of(Physical::I64, &[&[None, int(3), None], &[int(9)]]), [0, 1, 0, 2]);
}

#[test]
fn a_table_turns_into_hashing_without_losing_a_key() {
    // The first keys are close together, the later ones far away; 0 is a key beside the null.
    let runs: [Vec<Row>; 4] = [
        (0..300).map(|key| vec![Some(Value::Int(key))]).chain([vec![None]]).collect(),
        (0..300).map(|key| vec![Some(Value::Int(key * 7_919))]).collect(),
        (0..300).map(|key| vec![Some(Value::Int(i128::from(i64::MIN) + key))]).collect(),
        (0..300).map(|key| vec![Some(Value::Int(i128::from(i64::MAX) - key))]).chain([vec![None]]).collect(),
    ];
    let mut pair = Pair::new(vec![Physical::I64]);
    for run in &runs {
        pair.insert(run);
        runs.iter().for_each(|run| pair.find(run));
    }
    pair.write(100);
}

#[test]
fn unsigned_keys_above_the_signed_range_keep_their_value() {
    let half = 1_i128 << 63;
    let keys: Vec<Row> =
        [half - 1, half, half + 1, u64::MAX.into(), 0].map(|key| vec![Some(Value::Int(key))]).to_vec();
    let mut pair = Pair::new(vec![Physical::U64]);
    pair.insert(&keys[..3]);
    pair.insert(&keys);
    pair.find(&keys);
    pair.write(2);
}

#[test]
fn bools_are_two_keys() {
    let run = |flags: &[Option<bool>]| -> Vec<Row> {
        flags.iter().map(|flag| vec![flag.map(|flag| Value::Int(flag.into()))]).collect()
    };
    let mut pair = Pair::new(vec![Physical::U8]);
    pair.insert(&run(&[Some(true), Some(true)]));
    pair.find(&run(&[Some(false), None]));
    pair.insert(&run(&[Some(false), None, Some(true)]));
    assert_eq!(pair.index.len(), 3);
    pair.write(1);
}

#[test]
fn without_columns_all_rows_have_one_key() {
    let mut index = KeyIndex::new(&[]);
    let mut ids = Vec::new();
    index.find(&[], 2, &mut ids);
    assert_eq!((ids.as_slice(), index.len()), ([MISSING, MISSING].as_slice(), 0));
    index.insert(&[], 0, &mut ids);
    assert!(ids.is_empty() && index.is_empty());
    index.insert(&[], 3, &mut ids);
    assert_eq!((ids.as_slice(), index.len()), ([0, 0, 0].as_slice(), 1));
    index.find(&[], 1, &mut ids);
    assert_eq!(ids, [0]);
}

#[test]
fn many_keys_grow_the_tables() {
    let numbers: Vec<Row> =
        (0..40_000_i128).map(|key| vec![Some(Value::Int(key * 1_000_003 % 100_000_007))]).collect();
    let texts: Vec<Row> = (0..20_000).map(|key| vec![text(&format!("key number {key}"))]).collect();
    for (kind, rows) in [(Physical::I32, numbers), (Physical::View, texts)] {
        let mut pair = Pair::new(vec![kind]);
        pair.insert(&rows[..rows.len() / 2]);
        pair.insert(&rows);
        pair.find(&rows);
        pair.write(8192);
    }
}
