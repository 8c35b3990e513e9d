//! First and last of fixed-width values, by event time.
//!
//! Among values of equal time the smallest is the first and the largest the last, whatever their order of arrival.

use arrow_array::ArrayRef;
use arrow_array::types::Int64Type;
use arrow_schema::DataType;
use penstock_expr::comparison::Ordered;
use penstock_memory::{Column, ColumnBuf};
use penstock_types::ComputeError;

use super::cells::CellKind;
use super::mask_unseen;
use super::state::{from_array, numbers, read, to_array};
use crate::pick::Pick;

#[derive(Clone)]
pub(super) struct FirstLast<T> {
    pub(super) data_type: DataType,
    pub(super) last: bool,
    pub(super) of: std::marker::PhantomData<fn(T)>,
}

/// The value at the outermost time so far, if any.
#[derive(Clone, Copy, Default)]
pub(super) struct Outermost<T> {
    time: i64,
    value: T,
    seen: bool,
}

impl<T: Ordered> Outermost<T> {
    #[inline(always)]
    fn take<const LAST: bool>(&mut self, time: i64, value: T) {
        let better = if LAST {
            time > self.time || (time == self.time && T::before(self.value, value))
        } else {
            time < self.time || (time == self.time && T::before(value, self.value))
        };
        if better || !self.seen {
            *self = Self { time, value, seen: true };
        }
    }
}

impl<T: Ordered> CellKind for FirstLast<T> {
    type Cell = Outermost<T>;

    fn take(
        &self,
        cells: &mut [Outermost<T>],
        ids: &[u32],
        input: Option<Column<'_>>,
        times: Option<&[i64]>,
    ) -> isize {
        let column = input.expect("a first or last value has an input");
        let (values, times) =
            (column.fixed::<T>(), times.expect("times are passed to aggregates that need them"));
        for (row, (&id, &value)) in ids.iter().zip(values).enumerate() {
            if column.is_valid(row) {
                let cell = &mut cells[id as usize];
                if self.last {
                    cell.take::<true>(times[row], value);
                } else {
                    cell.take::<false>(times[row], value);
                }
            }
        }
        0
    }

    fn merge(&self, into: &mut Outermost<T>, from: &Outermost<T>) {
        match (from.seen, self.last) {
            (false, _) => {}
            (true, true) => into.take::<true>(from.time, from.value),
            (true, false) => into.take::<false>(from.time, from.value),
        }
    }

    fn write(&self, cells: &[Outermost<T>], pick: Pick<'_>, out: &mut ColumnBuf) -> Result<(), ComputeError> {
        pick.extend(out.refill::<T>(), |id| cells[id].value);
        mask_unseen(|id| cells[id].seen, pick, out);
        Ok(())
    }

    fn save(&self, cells: &[Outermost<T>]) -> Vec<ArrayRef> {
        let mut column = ColumnBuf::new(T::PHYSICAL);
        self.write(cells, Pick::Range(0, cells.len()), &mut column).expect("copying values cannot fail");
        let times = numbers::<Int64Type>(cells.iter().map(|cell| cell.time));
        vec![times, to_array(&self.data_type, column.as_column())]
    }

    fn load(&self, columns: &[ArrayRef]) -> Result<Vec<Outermost<T>>, String> {
        let times = read::<Int64Type>(&columns[0]);
        let column = from_array(&columns[1], &self.data_type)?;
        let column = column.as_column();
        let values = column.fixed::<T>().iter().zip(times).enumerate();
        Ok(values
            .map(|(row, (&value, &time))| Outermost { time, value, seen: column.is_valid(row) })
            .collect())
    }
}
