//! Rows of every kind whose values follow from their number, so that a reader can check every row it finds.

#![allow(dead_code, reason = "each test binary uses a part of this module")]

pub mod exports;
pub mod model;

use std::time::{Duration, Instant};

use arrow_schema::DataType;
use penstock_memory::coordinator::{CoordinatorOptions, Counters};
use penstock_memory::{Column, ColumnBuf, ColumnKind, Coordinator, Layout, SelectedColumn};

use crate::arbitrary::{Cells, Value, column, read, value};

/// Far more than any wait here takes, even on a busy machine and under a sanitizer: only a hang lasts that long.
pub const HANG: Duration = Duration::from_secs(60);
/// The same, for waits on the allocator thread alone.
const SHORT_HANG: Duration = Duration::from_secs(10);

/// One type per kind of storage, and a bool.
pub fn kinds() -> Vec<DataType> {
    use DataType::{
        BinaryView, Boolean, Decimal128, Float32, Float64, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32,
        UInt64, Utf8,
    };
    vec![
        Int8,
        Int16,
        Int32,
        Int64,
        UInt8,
        UInt16,
        UInt32,
        UInt64,
        Float32,
        Float64,
        Decimal128(38, 4),
        Boolean,
        Utf8,
        BinaryView,
    ]
}

fn scramble(left: u64, right: u64) -> u64 {
    let mut word = left.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ right.wrapping_mul(0xD1B5_4A32_D192_ED03);
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word ^ (word >> 29)
}

/// The columns of a stream, and the values of each row.
#[derive(Clone, Debug)]
pub struct Rows {
    /// Type of each column, and whether it is nullable.
    pub types: Vec<(DataType, bool)>,
}

impl Rows {
    pub fn new(types: Vec<(DataType, bool)>) -> Self {
        Self { types }
    }

    pub fn layout(&self) -> Layout {
        let kinds = self.types.iter().map(|(data_type, nullable)| ColumnKind::of(data_type, *nullable));
        Layout::new(kinds.collect::<Option<_>>().unwrap())
    }

    /// Returns the value of column `column` in row `row`.
    pub fn cell(&self, column: usize, row: u64) -> Option<Value> {
        let seed = scramble(row, column as u64);
        let (data_type, nullable) = &self.types[column];
        if *nullable && seed.is_multiple_of(5) {
            return None;
        }
        if !matches!(data_type, DataType::Utf8 | DataType::BinaryView) {
            return Some(value(data_type, seed >> 8));
        }
        // 12 bytes is the longest value that fits in a view.
        let len = [0, 1, 5, 12, 13, 13, 40, 300][(seed >> 8) as usize % 8];
        Some(Value::Bytes((0..len).map(|place| b'a' + (scramble(seed, place) % 26) as u8).collect()))
    }

    pub fn cells(&self, column: usize, rows: &[u64]) -> Cells {
        rows.iter().map(|&row| self.cell(column, row)).collect()
    }

    /// Makes the rows as columns to be written. With `stride`, every other column (the odd ones when `odd`) has that
    /// many rows for each selected one, as after a filter.
    pub fn source(&self, rows: &[u64], stride: usize, odd: bool) -> Source {
        let columns = self.types.iter().enumerate().map(|(number, (data_type, _))| {
            if stride < 2 || (number % 2 == 1) != odd {
                return (column(data_type, &self.cells(number, rows)), None);
            }
            let spread =
                rows.iter().flat_map(|&row| (0..stride as u64).map(move |place| row + (place << 32)));
            let kept = (0..rows.len() * stride).step_by(stride).map(|row| row as u32).collect();
            (column(data_type, &self.cells(number, &spread.collect::<Vec<_>>())), Some(kept))
        });
        Source { columns: columns.collect() }
    }

    /// Fails unless the columns hold these rows.
    pub fn check<'a>(&self, rows: &[u64], column: impl Fn(usize) -> Column<'a>) {
        for number in 0..self.types.len() {
            let found = read(column(number));
            for (place, (found, row)) in found.iter().zip(rows).enumerate() {
                assert_eq!(*found, self.cell(number, *row), "column {number}, row {row}, at {place}");
            }
            assert_eq!(found.len(), rows.len(), "column {number}");
        }
    }
}

/// Columns to be written.
pub struct Source {
    columns: Vec<(ColumnBuf, Option<Vec<u32>>)>,
}

impl Source {
    pub fn pieces(&self) -> Vec<SelectedColumn<'_>> {
        let columns = self.columns.iter();
        columns
            .map(|(column, rows)| SelectedColumn { column: column.as_column(), rows: rows.as_deref() })
            .collect()
    }
}

pub fn coordinator(budget_bytes: usize, log_cap_bytes: usize) -> Coordinator {
    Coordinator::new(CoordinatorOptions { budget_bytes, log_cap_bytes, ..CoordinatorOptions::default() })
        .unwrap()
}

/// Returns a number from the environment, for runs that do more or less.
pub fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// Returns the resident bytes of this process.
#[cfg(target_os = "linux")]
pub fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// Returns true if the resident size is that of the code under test: a sanitizer keeps a shadow of all memory.
pub fn is_resident_size_our_own() -> bool {
    std::env::var_os("PENSTOCK_SANITIZER").is_none()
}

/// Polls until the condition holds; fails with the last state when it never does.
pub fn eventually<T: std::fmt::Debug>(what: &str, mut look: impl FnMut() -> (bool, T)) {
    let begin = Instant::now();
    loop {
        let (done, state) = look();
        if done {
            return;
        }
        assert!(begin.elapsed() < SHORT_HANG, "{what}: {state:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Asserts that everything charged is released, once the allocator thread has run.
pub fn assert_all_returned(coordinator: &Coordinator) {
    let idle = |now: &Counters| {
        let bytes = [now.used_bytes, now.pinned_bytes, now.exported_bytes, now.state_bytes];
        let chunks = [now.chunks_live, now.chunks_spare, now.chunks_exported];
        bytes == [0; 4] && chunks == [0; 3]
    };
    eventually("everything is given back", || {
        let now = coordinator.snapshot();
        (idle(&now), now)
    });
}
