//! Counts rows, or rows that have a value.

use arrow_array::ArrayRef;
use arrow_array::types::Int64Type;
use penstock_memory::{Column, ColumnBuf};
use penstock_types::ComputeError;

use super::cells::CellKind;
use super::state::{believable, numbers, read};
use crate::pick::Pick;

/// Counts rows that are not null; without an input, all rows.
#[derive(Clone, Copy)]
pub(super) struct Count;

impl CellKind for Count {
    type Cell = i64;

    fn take(
        &self,
        cells: &mut [i64],
        ids: &[u32],
        input: Option<Column<'_>>,
        _times: Option<&[i64]>,
    ) -> isize {
        match input.and_then(|column| column.valid) {
            None => {
                ids.iter().for_each(|&id| cells[id as usize] = cells[id as usize].wrapping_add(1));
            }
            Some(mask) => {
                for (&id, &valid) in ids.iter().zip(mask) {
                    cells[id as usize] = cells[id as usize].wrapping_add(i64::from(valid));
                }
            }
        }
        0
    }

    fn merge(&self, into: &mut i64, from: &i64) {
        *into = into.wrapping_add(*from);
    }

    fn write(&self, cells: &[i64], pick: Pick<'_>, out: &mut ColumnBuf) -> Result<(), ComputeError> {
        match pick {
            Pick::Range(from, to) => out.refill::<i64>().extend_from_slice(&cells[from..to]),
            Pick::List(_) => pick.extend(out.refill::<i64>(), |id| cells[id]),
        }
        Ok(())
    }

    fn save(&self, cells: &[i64]) -> Vec<ArrayRef> {
        vec![numbers::<Int64Type>(cells.iter().copied())]
    }

    fn load(&self, columns: &[ArrayRef]) -> Result<Vec<i64>, String> {
        let counts = read::<Int64Type>(&columns[0]);
        counts.iter().map(|&count| believable(count.cast_unsigned()).map(|_| count)).collect()
    }
}
