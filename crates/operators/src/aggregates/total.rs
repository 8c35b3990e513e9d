//! Totals of floats and decimals, and their results: a sum or a mean.

use std::marker::PhantomData;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use penstock_expr::conversion::decimal_to_f64;
use penstock_memory::{Column, ColumnBuf, Native};
use penstock_types::ComputeError;

use super::cells::CellKind;
use super::state::{believable, numbers, read};
use super::{each_valid, mask_unseen};
use crate::pick::Pick;

/// Largest magnitude of a decimal of 38 digits, plus one.
const DECIMAL_LIMIT: u128 = 10_u128.pow(38);

/// The result of a total.
#[derive(Clone)]
pub(super) enum TotalResult {
    Sum {
        unsigned: bool,
        /// The aggregate and the type of its result, as they print, for errors.
        names: Arc<(String, String)>,
    },
    Mean {
        /// Digits after the point, for decimals.
        scale: i8,
    },
}

impl TotalResult {
    pub(super) fn overflow(&self, total: &str) -> ComputeError {
        let names = if let Self::Sum { names, .. } = self { (**names).clone() } else { Default::default() };
        ComputeError::Overflow {
            expression: names.0,
            type_name: names.1,
            values: format!("the total is {total}"),
        }
    }
}

/// The total of one key, with the number of its values.
pub(super) trait Total: Copy + Default + Send + 'static {
    type Value: Native;
    fn add(&mut self, value: Self::Value);
    fn merge(&mut self, other: &Self);
    fn count(&self) -> u64;
    /// Returns the total as a sum, for a column of its type; `Err` when it does not fit.
    fn sum(&self) -> Result<Self::Value, String>;
    /// Returns the total divided by the count.
    fn mean(&self, scale: i8) -> f64;
    fn save(totals: &[Self]) -> Vec<ArrayRef>;
    fn load(columns: &[ArrayRef]) -> Result<Vec<Self>, String>;
}

/// An exact total of values of up to 128 bits: `low + carry * 2^128`.
#[derive(Clone, Copy, Default)]
pub(super) struct Exact {
    low: i128,
    carry: i64,
    count: u64,
}

impl Exact {
    /// Returns the total, if it fits 128 bits.
    fn get(&self) -> Option<i128> {
        (self.carry == 0).then_some(self.low)
    }

    fn to_f64(self) -> f64 {
        self.low as f64 + self.carry as f64 * 2_f64.powi(128)
    }

    #[inline]
    fn add_low(&mut self, value: i128) {
        let (low, overflow) = self.low.overflowing_add(value);
        self.low = low;
        // Adding overflows upwards only for positive values, downwards only for negative ones.
        let carry = if overflow { if value > 0 { 1 } else { -1 } } else { 0 };
        self.carry = self.carry.wrapping_add(carry);
    }
}

impl Total for Exact {
    type Value = i128;

    #[inline]
    fn add(&mut self, value: i128) {
        self.add_low(value);
        self.count = self.count.wrapping_add(1);
    }

    fn merge(&mut self, other: &Self) {
        self.add_low(other.low);
        self.carry = self.carry.wrapping_add(other.carry);
        self.count = self.count.wrapping_add(other.count);
    }

    fn count(&self) -> u64 {
        self.count
    }

    fn sum(&self) -> Result<i128, String> {
        self.get()
            .filter(|value| value.unsigned_abs() < DECIMAL_LIMIT)
            .ok_or_else(|| format!("about {:e} units of the last digit", self.to_f64()))
    }

    fn mean(&self, scale: i8) -> f64 {
        let total = match self.get() {
            Some(total) => decimal_to_f64(total, scale),
            None => self.to_f64() / 10_f64.powi(i32::from(scale)),
        };
        total / self.count as f64
    }

    fn save(totals: &[Self]) -> Vec<ArrayRef> {
        vec![
            numbers::<UInt64Type>(totals.iter().map(|total| total.count)),
            numbers::<UInt64Type>(totals.iter().map(|total| total.low as u64)),
            numbers::<Int64Type>(totals.iter().map(|total| (total.low >> 64) as i64)),
            numbers::<Int64Type>(totals.iter().map(|total| total.carry)),
        ]
    }

    fn load(columns: &[ArrayRef]) -> Result<Vec<Self>, String> {
        let lows = read::<UInt64Type>(&columns[1]);
        let (highs, carries) = (read::<Int64Type>(&columns[2]), read::<Int64Type>(&columns[3]));
        let counts = read::<UInt64Type>(&columns[0]).iter().enumerate();
        counts
            .map(|(row, &count)| {
                let low = (i128::from(highs[row]) << 64) | i128::from(lows[row]);
                Ok(Self { low, carry: carries[row], count: believable(count)? })
            })
            .collect()
    }
}

/// A total of floats.
#[derive(Clone, Copy, Default)]
pub(super) struct Float {
    total: f64,
    count: u64,
}

impl Total for Float {
    type Value = f64;

    #[inline]
    fn add(&mut self, value: f64) {
        self.total += value;
        self.count = self.count.wrapping_add(1);
    }

    fn merge(&mut self, other: &Self) {
        self.total += other.total;
        self.count = self.count.wrapping_add(other.count);
    }

    fn count(&self) -> u64 {
        self.count
    }

    fn sum(&self) -> Result<f64, String> {
        Ok(self.total)
    }

    fn mean(&self, _scale: i8) -> f64 {
        self.total / self.count as f64
    }

    fn save(totals: &[Self]) -> Vec<ArrayRef> {
        vec![
            numbers::<UInt64Type>(totals.iter().map(|total| total.count)),
            numbers::<Float64Type>(totals.iter().map(|total| total.total)),
        ]
    }

    fn load(columns: &[ArrayRef]) -> Result<Vec<Self>, String> {
        let totals = read::<Float64Type>(&columns[1]);
        let counts = read::<UInt64Type>(&columns[0]).iter().zip(totals);
        counts.map(|(&count, &total)| Ok(Self { total, count: believable(count)? })).collect()
    }
}

/// Totals of columns of `T`.
#[derive(Clone)]
pub(super) struct Totals<A, T> {
    pub(super) outcome: TotalResult,
    pub(super) of: PhantomData<fn(A, T)>,
}

impl<A: Total, T: Native + Into<A::Value>> CellKind for Totals<A, T> {
    type Cell = A;

    fn take(&self, cells: &mut [A], ids: &[u32], input: Option<Column<'_>>, _times: Option<&[i64]>) -> isize {
        let column = input.expect("a total has an input");
        each_valid(ids, column.fixed::<T>(), column.valid, |id, value| cells[id].add(value.into()));
        0
    }

    fn merge(&self, into: &mut A, from: &A) {
        into.merge(from);
    }

    fn write(&self, cells: &[A], pick: Pick<'_>, out: &mut ColumnBuf) -> Result<(), ComputeError> {
        match self.outcome {
            TotalResult::Mean { scale } => pick.extend(out.refill::<f64>(), |id| cells[id].mean(scale)),
            TotalResult::Sum { .. } => {
                let sums = out.refill::<A::Value>();
                let mut wrong = None;
                pick.all(|id| match cells[id].sum() {
                    Ok(sum) => {
                        sums.push(sum);
                        true
                    }
                    Err(total) => {
                        wrong = Some(total);
                        false
                    }
                });
                if let Some(total) = wrong {
                    return Err(self.outcome.overflow(&total));
                }
            }
        }
        mask_unseen(|id| cells[id].count() > 0, pick, out);
        Ok(())
    }

    fn save(&self, cells: &[A]) -> Vec<ArrayRef> {
        A::save(cells)
    }

    fn load(&self, columns: &[ArrayRef]) -> Result<Vec<A>, String> {
        A::load(columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_may_exceed_128_bits_and_return() {
        let mut total = Exact::default();
        let mut half = Exact::default();
        for value in [i128::MAX, i128::MAX, 5] {
            total.add(value);
        }
        [-i128::MAX, -i128::MAX].into_iter().for_each(|value| half.add(value));
        total.merge(&half);
        assert_eq!(total.get(), Some(5));
        total.add(i128::MIN);
        total.add(i128::MIN);
        assert_eq!(total.get(), None);
        assert!(total.to_f64() < -3.0e38);
    }
}
