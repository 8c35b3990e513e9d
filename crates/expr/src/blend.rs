//! Combines several columns into one: a row takes its value from the column that was chosen for it.

use penstock_memory::view::{INLINE_BYTES, view_len};
use penstock_memory::{Column, ColumnBuf, Native, Physical, ValuesBuf};

use crate::operand::{Operand, with_number};

/// The values that rows take: those of a column, one value, or null.
pub(crate) enum BlendInput<'a> {
    Rows(Column<'a>),
    Same(Column<'a>),
    Null,
}

/// A column under construction from others of the same storage.
pub(crate) struct Blend {
    column: ColumnBuf,
    values: ValuesBuf,
    valid: Vec<u8>,
    is_empty: bool,
}

#[inline]
fn take<T: Copy>(to: &mut [T], chosen: &[u8], from: impl Iterator<Item = T>) {
    for ((to, &chosen), from) in to.iter_mut().zip(chosen).zip(from) {
        *to = if chosen != 0 { from } else { *to };
    }
}

/// Takes the values of the chosen rows; of all rows when the column is still empty.
fn fill<T: Copy + Default>(to: &mut Vec<T>, rows: usize, chosen: Option<&[u8]>, from: Operand<'_, T>) {
    let Some(chosen) = chosen else {
        to.clear();
        match from {
            Operand::Rows(values) => to.extend_from_slice(values),
            Operand::Same(value) => to.resize(rows, value),
        }
        return;
    };
    match from {
        Operand::Rows(values) => take(to, chosen, values.iter().copied()),
        Operand::Same(value) => take(to, chosen, std::iter::repeat(value)),
    }
}

/// Renumbers a view for payloads that follow `base` others. A view under a null may change in any way (COLUMN-2).
#[inline]
fn moved(view: u128, base: u128) -> u128 {
    if view_len(view) <= INLINE_BYTES { view } else { view.wrapping_add(base << 64) }
}

impl Blend {
    /// Starts a column of `rows` rows, in `column`.
    pub(crate) fn new(mut column: ColumnBuf, rows: usize) -> Self {
        let on = column.physical();
        let mut values = ValuesBuf::new(on);
        match &mut values {
            ValuesBuf::View(views, payloads) => {
                let (spare, spare_payloads) = column.refill_views();
                std::mem::swap(views, spare);
                std::mem::swap(payloads, spare_payloads);
            }
            _ => with_number!(on, T => {
                let values = T::vec(&mut values).expect("the storage was chosen above");
                std::mem::swap(values, column.refill::<T>());
            }),
        }
        let mut valid = std::mem::take(column.refill_mask());
        valid.resize(rows, 1);
        Self { column, values, valid, is_empty: true }
    }

    /// Sets the rows whose byte in `chosen` is not 0 to their values in `source`. The first call fills all rows.
    pub(crate) fn put(&mut self, source: &BlendInput<'_>, chosen: &[u8]) {
        let rows = self.valid.len();
        let chosen_or_all = (!std::mem::replace(&mut self.is_empty, false)).then_some(chosen);
        let (column, is_same) = match source {
            BlendInput::Rows(column) => (*column, false),
            BlendInput::Same(column) => (*column, true),
            BlendInput::Null => {
                match chosen_or_all {
                    Some(chosen) => take(&mut self.valid, chosen, std::iter::repeat(0)),
                    None => self.make_null(rows),
                }
                return;
            }
        };
        match &mut self.values {
            ValuesBuf::View(views, payloads) => {
                let (from, from_payloads) = column.views();
                let base = payloads.len() as u128;
                payloads.extend(from_payloads.iter().cloned());
                match (chosen_or_all, is_same) {
                    (None, true) => fill(views, rows, None, Operand::Same(from[0])),
                    (None, false) => fill(views, rows, None, Operand::Rows(from)),
                    (Some(chosen), true) => take(views, chosen, std::iter::repeat(moved(from[0], base))),
                    (Some(chosen), false) => {
                        take(views, chosen, from.iter().map(|&view| moved(view, base)));
                    }
                }
            }
            values => with_number!(column.values.physical(), T => {
                let to = T::vec(values).expect("all blended columns have one storage");
                let from = column.fixed::<T>();
                let from = if is_same { Operand::Same(from[0]) } else { Operand::Rows(from) };
                fill(to, rows, chosen_or_all, from);
            }),
        }
        let valid = if is_same { None } else { column.valid };
        match valid {
            Some(valid) => fill(&mut self.valid, rows, chosen_or_all, Operand::Rows(valid)),
            None => fill(&mut self.valid, rows, chosen_or_all, Operand::Same(1)),
        }
    }

    fn make_null(&mut self, rows: usize) {
        penstock_memory::for_each_kind!(ValuesBuf, &mut self.values,
            values => { values.clear(); values.resize(rows, Default::default()) },
            (views, _payloads) => { views.clear(); views.resize(rows, 0) });
        self.valid.fill(0);
    }

    /// Returns the column. Rows that were never set are null, if there was no call.
    pub(crate) fn finish(mut self) -> ColumnBuf {
        if self.is_empty {
            self.make_null(self.valid.len());
        }
        match &mut self.values {
            ValuesBuf::View(views, payloads) => {
                let (into, into_payloads) = self.column.refill_views();
                std::mem::swap(into, views);
                std::mem::swap(into_payloads, payloads);
            }
            values => with_number!(self.column.physical(), T => {
                let values = T::vec(values).expect("all blended columns have one storage");
                std::mem::swap(self.column.refill::<T>(), values);
            }),
        }
        std::mem::swap(self.column.refill_mask(), &mut self.valid);
        self.column.clear_mask_if_full();
        self.column
    }
}
