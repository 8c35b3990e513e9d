//! Minimum and maximum of strings and binary. State owns its bytes: a view would pin a whole batch.

use arrow_buffer::Buffer;
use penstock_memory::view::{make_view, with_bytes};
use penstock_memory::{Column, ColumnBuf};
use penstock_types::ComputeError;

use super::{Accumulator, each_valid, mask_unseen};
use crate::heap_bytes;

pub(super) struct ExtremeBytes {
    best: Vec<Option<Vec<u8>>>,
    /// Capacity of all values in `best` together, kept up to date so that nobody has to add them up.
    value_bytes: usize,
    largest: bool,
}

impl ExtremeBytes {
    pub(super) fn new(largest: bool) -> Self {
        Self { best: Vec::new(), value_bytes: 0, largest }
    }
}

impl Accumulator for ExtremeBytes {
    fn update(&mut self, ids: &[u32], keys: usize, input: Option<Column<'_>>) {
        self.best.resize(keys, None);
        let column = input.expect("a minimum or maximum has an input");
        let (views, buffers) = column.views();
        let (best, value_bytes, largest) = (&mut self.best, &mut self.value_bytes, self.largest);
        each_valid(ids, views, column.valid, |id, view| {
            with_bytes(view, buffers, |value| match &mut best[id] {
                None => {
                    let first = value.to_vec();
                    *value_bytes += first.capacity();
                    best[id] = Some(first);
                }
                Some(best) => {
                    if if largest { value > best.as_slice() } else { value < best.as_slice() } {
                        *value_bytes -= best.capacity();
                        best.clear();
                        best.extend_from_slice(value);
                        *value_bytes += best.capacity();
                    }
                }
            });
        });
    }

    fn write(&self, from: usize, to: usize, out: &mut ColumnBuf) -> Result<(), ComputeError> {
        let (views, buffers) = out.refill_views();
        let mut payload = Vec::new();
        for value in &self.best[from..to] {
            let value = value.as_deref().unwrap_or_default();
            // A buffer is closed before its offsets outgrow 32 bits.
            if payload.len() + value.len() > u32::MAX as usize {
                buffers.push(Buffer::from_vec(std::mem::take(&mut payload)).into());
            }
            views.push(make_view(value, buffers.len() as u32, payload.len() as u32));
            payload.extend_from_slice(value);
        }
        buffers.push(Buffer::from_vec(payload).into());
        mask_unseen(|key| self.best[key].is_some(), from, to, out);
        Ok(())
    }

    fn bytes(&self) -> usize {
        heap_bytes(&self.best) + self.value_bytes
    }
}
