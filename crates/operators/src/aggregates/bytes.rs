//! Minimum and maximum, first and last of strings and binary. State owns its bytes: a view would pin a whole batch.

use std::cmp::Ordering;

use arrow_array::ArrayRef;
use arrow_array::types::Int64Type;
use arrow_buffer::Buffer;
use arrow_schema::DataType;
use penstock_memory::view::{make_view, with_bytes};
use penstock_memory::{Column, ColumnBuf};
use penstock_types::ComputeError;

use super::cells::CellKind;
use super::state::{from_array, numbers, read, to_array};
use super::{Choice, mask_unseen};
use crate::pick::Pick;

#[derive(Clone)]
pub(super) struct ChosenBytes {
    pub(super) data_type: DataType,
    pub(super) choice: Choice,
}

/// The value chosen so far, and its time where times count.
#[derive(Clone, Default)]
pub(super) struct ChosenValue {
    time: i64,
    value: Option<Vec<u8>>,
}

impl ChosenBytes {
    fn take(&self, chosen: &mut ChosenValue, time: i64, value: &[u8]) {
        match &mut chosen.value {
            None => *chosen = ChosenValue { time, value: Some(value.to_vec()) },
            Some(best) => {
                let order = if self.choice.is_timed() { time.cmp(&chosen.time) } else { Ordering::Equal };
                let order = order.then_with(|| value.cmp(best.as_slice()));
                if order == if self.choice.is_largest() { Ordering::Greater } else { Ordering::Less } {
                    chosen.time = time;
                    best.clear();
                    best.extend_from_slice(value);
                }
            }
        }
    }
}

impl CellKind for ChosenBytes {
    type Cell = ChosenValue;

    fn take(
        &self,
        cells: &mut [ChosenValue],
        ids: &[u32],
        input: Option<Column<'_>>,
        times: Option<&[i64]>,
    ) -> isize {
        let column = input.expect("a choice among values has an input");
        let (views, payloads) = column.views();
        let mut grown = 0;
        for (row, (&id, &view)) in ids.iter().zip(views).enumerate() {
            if column.is_valid(row) {
                let cell = &mut cells[id as usize];
                grown -= Self::heap(cell).cast_signed();
                let time = times.map_or(0, |times| times[row]);
                with_bytes(view, payloads, |value| Self::take(self, cell, time, value));
                grown += Self::heap(cell).cast_signed();
            }
        }
        grown
    }

    fn merge(&self, into: &mut ChosenValue, from: &ChosenValue) {
        if let Some(value) = &from.value {
            Self::take(self, into, from.time, value);
        }
    }

    fn heap(cell: &ChosenValue) -> usize {
        cell.value.as_ref().map_or(0, Vec::capacity)
    }

    fn write(&self, cells: &[ChosenValue], pick: Pick<'_>, out: &mut ColumnBuf) -> Result<(), ComputeError> {
        let (views, buffers) = out.refill_views();
        let mut payload = Vec::new();
        pick.all(|id| {
            let value = cells[id].value.as_deref().unwrap_or_default();
            // A payload ends before its offsets outgrow 32 bits.
            if payload.len() + value.len() > u32::MAX as usize {
                buffers.push(Buffer::from_vec(std::mem::take(&mut payload)).into());
            }
            views.push(make_view(value, buffers.len() as u32, payload.len() as u32));
            payload.extend_from_slice(value);
            true
        });
        buffers.push(Buffer::from_vec(payload).into());
        mask_unseen(|id| cells[id].value.is_some(), pick, out);
        Ok(())
    }

    fn save(&self, cells: &[ChosenValue]) -> Vec<ArrayRef> {
        let mut column = ColumnBuf::new(penstock_memory::Physical::View);
        self.write(cells, Pick::Range(0, cells.len()), &mut column).expect("copying values cannot fail");
        let values = to_array(&self.data_type, column.as_column());
        if self.choice.is_timed() {
            vec![numbers::<Int64Type>(cells.iter().map(|cell| cell.time)), values]
        } else {
            vec![values]
        }
    }

    fn load(&self, columns: &[ArrayRef]) -> Result<Vec<ChosenValue>, String> {
        let times = self.choice.is_timed().then(|| read::<Int64Type>(&columns[0]));
        let column = from_array(&columns[columns.len() - 1], &self.data_type)?;
        let column = column.as_column();
        let (views, payloads) = column.views();
        let cell = |(row, &view): (usize, &u128)| ChosenValue {
            time: times.map_or(0, |times| times[row]),
            value: column.is_valid(row).then(|| with_bytes(view, payloads, <[u8]>::to_vec)),
        };
        Ok(views.iter().enumerate().map(cell).collect())
    }
}
