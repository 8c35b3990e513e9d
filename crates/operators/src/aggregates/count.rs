//! Counts of rows, and of rows that have a value.

use penstock_memory::{Column, ColumnBuf};
use penstock_types::ComputeError;

use super::Accumulator;
use crate::heap_bytes;

/// Counts rows.
#[derive(Default)]
pub(super) struct CountRows {
    counts: Vec<i64>,
}

impl Accumulator for CountRows {
    fn update(&mut self, ids: &[u32], keys: usize, _input: Option<Column<'_>>) {
        self.counts.resize(keys, 0);
        for &id in ids {
            self.counts[id as usize] += 1;
        }
    }

    fn write(&self, from: usize, to: usize, out: &mut ColumnBuf) -> Result<(), ComputeError> {
        out.refill::<i64>().extend_from_slice(&self.counts[from..to]);
        Ok(())
    }

    fn bytes(&self) -> usize {
        heap_bytes(&self.counts)
    }
}

/// Counts rows that are not null.
#[derive(Default)]
pub(super) struct CountValues {
    rows: CountRows,
}

impl Accumulator for CountValues {
    fn update(&mut self, ids: &[u32], keys: usize, input: Option<Column<'_>>) {
        match input.and_then(|column| column.valid) {
            None => self.rows.update(ids, keys, None),
            Some(mask) => {
                self.rows.counts.resize(keys, 0);
                for (&id, &valid) in ids.iter().zip(mask) {
                    self.rows.counts[id as usize] += i64::from(valid);
                }
            }
        }
    }

    fn write(&self, from: usize, to: usize, out: &mut ColumnBuf) -> Result<(), ComputeError> {
        self.rows.write(from, to, out)
    }

    fn bytes(&self) -> usize {
        self.rows.bytes()
    }
}
