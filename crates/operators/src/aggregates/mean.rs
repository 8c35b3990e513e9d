//! Means.

use std::marker::PhantomData;

use arrow_schema::DataType;
use penstock_expr::conversion::decimal_to_f64;
use penstock_memory::{Column, ColumnBuf, Physical};
use penstock_types::ComputeError;

use super::total::{AddsTo, Exact, Float, Total, Whole, with_total};
use super::{Accumulator, each_valid, mask_unseen};
use crate::heap_bytes;

struct Mean<A, T> {
    totals: Vec<A>,
    /// Digits after the point, for decimals.
    scale: i8,
    input: PhantomData<fn(T)>,
}

pub(super) fn make(input: &DataType) -> Box<dyn Accumulator> {
    let physical = Physical::of(input).expect("types are checked when the plan is built");
    let scale = if let DataType::Decimal128(_, scale) = input { *scale } else { 0 };
    with_total!(physical, A, T => Box::new(Mean::<A, T> { totals: Vec::new(), scale, input: PhantomData }))
}

trait Divide: Total {
    fn mean(&self, scale: i8) -> f64;
}

impl Divide for Whole {
    fn mean(&self, _scale: i8) -> f64 {
        self.total as f64 / self.count as f64
    }
}

impl Divide for Float {
    fn mean(&self, _scale: i8) -> f64 {
        self.total / self.count as f64
    }
}

impl Divide for Exact {
    fn mean(&self, scale: i8) -> f64 {
        let total = match self.get() {
            Some(total) => decimal_to_f64(total, scale),
            None => self.to_f64() / 10_f64.powi(i32::from(scale)),
        };
        total / self.count as f64
    }
}

impl<A: Divide, T: AddsTo<A>> Accumulator for Mean<A, T> {
    fn update(&mut self, ids: &[u32], keys: usize, input: Option<Column<'_>>) {
        self.totals.resize(keys, A::default());
        let column = input.expect("a mean has an input");
        let totals = &mut self.totals;
        each_valid(ids, column.fixed::<T>(), column.valid, |id, value| totals[id].add(value.widen()));
    }

    fn write(&self, from: usize, to: usize, out: &mut ColumnBuf) -> Result<(), ComputeError> {
        let totals = &self.totals[from..to];
        out.refill::<f64>().extend(totals.iter().map(|total| total.mean(self.scale)));
        mask_unseen(|key| self.totals[key].count() > 0, from, to, out);
        Ok(())
    }

    fn bytes(&self) -> usize {
        heap_bytes(&self.totals)
    }
}
