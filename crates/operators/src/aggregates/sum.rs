//! Sums.

use std::marker::PhantomData;

use arrow_schema::DataType;
use penstock_memory::{Column, ColumnBuf, Physical};
use penstock_types::{ComputeError, TypeName};

use super::total::{AddsTo, Exact, Float, Total, Whole, with_total};
use super::{Accumulator, each_valid, mask_unseen};
use crate::heap_bytes;

/// Largest magnitude of a decimal of 38 digits, plus one.
const DECIMAL_LIMIT: u128 = 10_u128.pow(38);

struct Sum<A, T> {
    totals: Vec<A>,
    unsigned: bool,
    text: String,
    type_name: String,
    input: PhantomData<fn(T)>,
}

pub(super) fn make(input: &DataType, output: &DataType, text: &str) -> Box<dyn Accumulator> {
    let physical = Physical::of(input).expect("types are checked when the plan is built");
    let unsigned = *output == DataType::UInt64;
    let (text, type_name) = (text.to_owned(), TypeName(output).to_string());
    with_total!(physical, A, T => {
        Box::new(Sum::<A, T> { totals: Vec::new(), unsigned, text, type_name, input: PhantomData })
    })
}

/// How a total becomes a result.
trait Finish: Total {
    /// Writes the totals; `Err` is one that does not fit.
    fn finish(totals: &[Self], unsigned: bool, out: &mut ColumnBuf) -> Result<(), String>;
}

impl Finish for Whole {
    fn finish(totals: &[Self], unsigned: bool, out: &mut ColumnBuf) -> Result<(), String> {
        let fits = |total: &&Self| {
            if unsigned { u64::try_from(total.total).is_ok() } else { i64::try_from(total.total).is_ok() }
        };
        if let Some(large) = totals.iter().find(|total| !fits(total)) {
            return Err(large.total.to_string());
        }
        if unsigned {
            out.refill::<u64>().extend(totals.iter().map(|total| total.total as u64));
        } else {
            out.refill::<i64>().extend(totals.iter().map(|total| total.total as i64));
        }
        Ok(())
    }
}

impl Finish for Float {
    fn finish(totals: &[Self], _unsigned: bool, out: &mut ColumnBuf) -> Result<(), String> {
        out.refill::<f64>().extend(totals.iter().map(|total| total.total));
        Ok(())
    }
}

impl Finish for Exact {
    fn finish(totals: &[Self], _unsigned: bool, out: &mut ColumnBuf) -> Result<(), String> {
        let values = out.refill::<i128>();
        for total in totals {
            match total.get().filter(|value| value.unsigned_abs() < DECIMAL_LIMIT) {
                Some(value) => values.push(value),
                None => return Err(format!("about {:e} units of the last digit", total.to_f64())),
            }
        }
        Ok(())
    }
}

impl<A: Finish, T: AddsTo<A>> Accumulator for Sum<A, T> {
    fn update(&mut self, ids: &[u32], keys: usize, input: Option<Column<'_>>) {
        self.totals.resize(keys, A::default());
        let column = input.expect("a sum has an input");
        let totals = &mut self.totals;
        each_valid(ids, column.fixed::<T>(), column.valid, |id, value| totals[id].add(value.widen()));
    }

    fn write(&self, from: usize, to: usize, out: &mut ColumnBuf) -> Result<(), ComputeError> {
        A::finish(&self.totals[from..to], self.unsigned, out).map_err(|values| ComputeError::Overflow {
            expression: self.text.clone(),
            type_name: self.type_name.clone(),
            values: format!("the total is {values}"),
        })?;
        mask_unseen(|key| self.totals[key].count() > 0, from, to, out);
        Ok(())
    }

    fn bytes(&self) -> usize {
        heap_bytes(&self.totals) + self.text.capacity() + self.type_name.capacity()
    }
}
