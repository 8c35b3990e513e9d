//! Laws of every workload, and access to its columns.

#![allow(dead_code, reason = "each test file takes what it needs")]

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int32Type, Int64Type, TimestampMillisecondType};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use penstock_workloads::{Generator, WorkloadError};

/// Returns a column of whole numbers or times.
pub fn whole(batch: &RecordBatch, name: &str) -> Vec<i64> {
    let array = batch.column_by_name(name).expect("a column of the schema");
    match array.data_type() {
        DataType::Int64 => array.as_primitive::<Int64Type>().values().to_vec(),
        DataType::Int32 => array.as_primitive::<Int32Type>().values().iter().map(|&n| n.into()).collect(),
        _ => array.as_primitive::<TimestampMillisecondType>().values().to_vec(),
    }
}

/// Returns a column of numbers with a fraction.
pub fn real(batch: &RecordBatch, name: &str) -> Vec<f64> {
    let array = batch.column_by_name(name).expect("a column of the schema");
    match array.data_type() {
        DataType::Float32 => array.as_primitive::<Float32Type>().values().iter().map(|&x| x.into()).collect(),
        _ => array.as_primitive::<Float64Type>().values().to_vec(),
    }
}

/// Returns a column of text.
pub fn text<'a>(batch: &'a RecordBatch, name: &str) -> Vec<&'a str> {
    batch.column_by_name(name).expect("a column of the schema").as_string::<i32>().iter().flatten().collect()
}

/// Computes Fowler-Noll-Vo over the values, column by column.
pub fn checksum(batch: &RecordBatch) -> u64 {
    let mut sum = 0xCBF2_9CE4_8422_2325u64;
    let mut add = |bytes: &[u8]| {
        for byte in bytes {
            sum = (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
    };
    for field in batch.schema().fields() {
        let name = field.name();
        match field.data_type() {
            DataType::Utf8 => text(batch, name).into_iter().for_each(|text| {
                add(text.as_bytes());
                add(&[0]);
            }),
            DataType::Float32 | DataType::Float64 => {
                real(batch, name).into_iter().for_each(|x| add(&x.to_bits().to_le_bytes()));
            }
            _ => whole(batch, name).into_iter().for_each(|n| add(&n.to_le_bytes())),
        }
    }
    sum
}

/// Returns name and type of each column.
pub fn described(schema: &SchemaRef) -> Vec<String> {
    assert!(schema.fields().iter().all(|field| !field.is_nullable()));
    schema.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type())).collect()
}

/// Returns the rows with these ids, as one batch.
pub fn rows<R: Generator>(table: &R, rows: Range<u64>) -> RecordBatch {
    table.generate(rows).expect("rows that there are")
}

/// Checks WORKLOAD-1: the rows are the same in one batch, in two, and in batches of `batch_rows`.
pub fn any_split_is_the_same<R: Generator + Clone>(
    table: &R,
    start: u64,
    count: u64,
    batch_rows: u64,
    cut: f64,
) {
    let end = start + count;
    let all = rows(table, start..end);
    assert_eq!((all.num_rows() as u64, all.schema()), (count, table.schema()));
    let middle = start + (count as f64 * cut) as u64;
    let (left, right) = (rows(table, start..middle), rows(table, middle..end));
    assert_eq!(all.slice(0, left.num_rows()), left);
    assert_eq!(all.slice(left.num_rows(), right.num_rows()), right);
    let mut offset = 0;
    for batch in table.batches(start..end, batch_rows).expect("rows that there are") {
        assert_eq!(all.slice(offset, batch.num_rows()), batch);
        offset += batch.num_rows();
    }
    assert_eq!(offset as u64, count);
}

/// Checks WORKLOAD-2: all columns but these are the same in both.
pub fn only_these_differ(left: &RecordBatch, right: &RecordBatch, names: &[&str]) {
    for field in left.schema().fields() {
        let name = field.name();
        let same = left.column_by_name(name) == right.column_by_name(name);
        assert_eq!(same, !names.contains(&name.as_str()), "{name}");
    }
}

/// Checks WORKLOAD-4: rows at one per second, and those so late that they have no time.
pub fn times_that_do_not_fit_are_refused<R: Generator + Clone>(one_per_second: &R) {
    let far = u64::MAX - 10..u64::MAX;
    let overflow = WorkloadError::TimeOverflow { row: u64::MAX - 1, rate: 1 };
    assert_eq!(one_per_second.generate(far.clone()).err(), Some(overflow.clone()));
    assert_eq!(one_per_second.batches(far, 5).err(), Some(overflow));
    assert_eq!(rows(one_per_second, u64::MAX..u64::MAX).num_rows(), 0);
    assert_eq!(rows(one_per_second, 1 << 50..(1 << 50) + 10).num_rows(), 10);
}

/// Counts each of `0..n`.
pub fn tally(values: impl IntoIterator<Item = i64>, n: usize) -> Vec<u64> {
    let mut counts = vec![0; n];
    for value in values {
        counts[value as usize] += 1;
    }
    counts
}

/// Returns the share of values for which the condition holds.
pub fn share<T>(values: &[T], holds: impl Fn(&T) -> bool) -> f64 {
    values.iter().filter(|value| holds(value)).count() as f64 / values.len() as f64
}

/// Returns the quantile of the values.
pub fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * part) as usize]
}

/// Asserts a value that is known up to chance.
pub fn close(what: &str, value: f64, expected: f64, slack: f64) {
    assert!((value - expected).abs() <= slack, "{what}: {value}, expected {expected} within {slack}");
}
