//! Minimum and maximum of fixed-width values, by the engine's one order.

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use penstock_expr::comparison::Ordered;
use penstock_memory::{Column, ColumnBuf};
use penstock_types::ComputeError;

use super::cells::CellKind;
use super::state::{from_array, to_array};
use super::{each_valid, mask_unseen};
use crate::pick::Pick;

#[derive(Clone)]
pub(super) struct Extreme<T> {
    pub(super) data_type: DataType,
    pub(super) largest: bool,
    pub(super) of: std::marker::PhantomData<fn(T)>,
}

/// The best value so far, if any.
#[derive(Clone, Copy, Default)]
pub(super) struct Best<T> {
    value: T,
    seen: bool,
}

impl<T: Ordered> Best<T> {
    #[inline(always)]
    fn take<const LARGEST: bool>(&mut self, value: T) {
        let better = if LARGEST { T::before(self.value, value) } else { T::before(value, self.value) };
        if better || !self.seen {
            *self = Self { value, seen: true };
        }
    }
}

impl<T: Ordered> CellKind for Extreme<T> {
    type Cell = Best<T>;

    fn take(
        &self,
        cells: &mut [Best<T>],
        ids: &[u32],
        input: Option<Column<'_>>,
        _times: Option<&[i64]>,
    ) -> isize {
        let column = input.expect("a minimum or maximum has an input");
        let values = column.fixed::<T>();
        if self.largest {
            each_valid(ids, values, column.valid, |id, value| cells[id].take::<true>(value));
        } else {
            each_valid(ids, values, column.valid, |id, value| cells[id].take::<false>(value));
        }
        0
    }

    fn merge(&self, into: &mut Best<T>, from: &Best<T>) {
        match (from.seen, self.largest) {
            (false, _) => {}
            (true, true) => into.take::<true>(from.value),
            (true, false) => into.take::<false>(from.value),
        }
    }

    fn write(&self, cells: &[Best<T>], pick: Pick<'_>, out: &mut ColumnBuf) -> Result<(), ComputeError> {
        pick.extend(out.refill::<T>(), |id| cells[id].value);
        mask_unseen(|id| cells[id].seen, pick, out);
        Ok(())
    }

    fn save(&self, cells: &[Best<T>]) -> Vec<ArrayRef> {
        let mut column = ColumnBuf::new(T::PHYSICAL);
        self.write(cells, Pick::Range(0, cells.len()), &mut column).expect("copying values cannot fail");
        vec![to_array(&self.data_type, column.as_column())]
    }

    fn load(&self, columns: &[ArrayRef]) -> Result<Vec<Best<T>>, String> {
        let column = from_array(&columns[0], &self.data_type)?;
        let column = column.as_column();
        let cell = |(row, &value): (usize, &T)| Best { value, seen: column.is_valid(row) };
        Ok(column.fixed::<T>().iter().enumerate().map(cell).collect())
    }
}
