//! Variance and standard deviation of a sample.
//!
//! Count, mean and the sum of squared distances from the mean, updated row by row as by Welford and merged as by Chan:
//! neither subtracts large numbers from each other.

use arrow_array::ArrayRef;
use arrow_array::types::{Float64Type, UInt64Type};
use penstock_expr::conversion::decimal_to_f64;
use penstock_memory::{Column, ColumnBuf, Native};
use penstock_types::ComputeError;

use super::cells::CellKind;
use super::state::{believable, numbers, read};
use super::{each_valid, mask_unseen};
use crate::pick::Pick;

/// A number that converts to a float; decimals have `scale` digits after the point.
pub(super) trait ToFloat: Native {
    fn to_float(self, scale: i8) -> f64;
}

macro_rules! to_float {
    ($($type:ty),*) => {$(
        impl ToFloat for $type {
            #[inline(always)]
            fn to_float(self, _scale: i8) -> f64 { self as f64 }
        }
    )*};
}
to_float!(i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);

impl ToFloat for i128 {
    fn to_float(self, scale: i8) -> f64 {
        decimal_to_f64(self, scale)
    }
}

#[derive(Clone)]
pub(super) struct Deviation<T> {
    pub(super) scale: i8,
    /// True for the standard deviation, false for the variance.
    pub(super) root: bool,
    pub(super) of: std::marker::PhantomData<fn(T)>,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Moments {
    count: u64,
    mean: f64,
    squares: f64,
}

impl Moments {
    #[inline]
    fn take(&mut self, value: f64) {
        self.count = self.count.wrapping_add(1);
        let distance = value - self.mean;
        self.mean += distance / self.count as f64;
        self.squares += distance * (value - self.mean);
    }

    fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = *other;
            return;
        }
        let (own, others) = (self.count as f64, other.count as f64);
        let distance = other.mean - self.mean;
        self.count = self.count.wrapping_add(other.count);
        self.mean += distance * (others / (own + others));
        self.squares += other.squares + distance * distance * (own * (others / (own + others)));
    }
}

impl<T: ToFloat> CellKind for Deviation<T> {
    type Cell = Moments;

    fn take(
        &self,
        cells: &mut [Moments],
        ids: &[u32],
        input: Option<Column<'_>>,
        _times: Option<&[i64]>,
    ) -> isize {
        let column = input.expect("a variance has an input");
        let scale = self.scale;
        each_valid(ids, column.fixed::<T>(), column.valid, |id, value| cells[id].take(value.to_float(scale)));
        0
    }

    fn merge(&self, into: &mut Moments, from: &Moments) {
        into.merge(from);
    }

    fn write(&self, cells: &[Moments], pick: Pick<'_>, out: &mut ColumnBuf) -> Result<(), ComputeError> {
        let root = self.root;
        pick.extend(out.refill::<f64>(), |id| {
            let variance = cells[id].squares / cells[id].count.saturating_sub(1) as f64;
            if root { variance.sqrt() } else { variance }
        });
        mask_unseen(|id| cells[id].count > 1, pick, out);
        Ok(())
    }

    fn save(&self, cells: &[Moments]) -> Vec<ArrayRef> {
        vec![
            numbers::<UInt64Type>(cells.iter().map(|cell| cell.count)),
            numbers::<Float64Type>(cells.iter().map(|cell| cell.mean)),
            numbers::<Float64Type>(cells.iter().map(|cell| cell.squares)),
        ]
    }

    fn load(&self, columns: &[ArrayRef]) -> Result<Vec<Moments>, String> {
        let (means, squares) = (read::<Float64Type>(&columns[1]), read::<Float64Type>(&columns[2]));
        let counts = read::<UInt64Type>(&columns[0]).iter().enumerate();
        counts
            .map(|(row, &count)| {
                Ok(Moments { count: believable(count)?, mean: means[row], squares: squares[row] })
            })
            .collect()
    }
}
