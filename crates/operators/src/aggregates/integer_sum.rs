//! Totals of integers of up to 64 bits, exact in 128.
//!
//! The lower 64 bits are stored with the count. Only a total that exceeds them has an entry for its carries, so that
//! small totals, nearly all of them, cost one addition.
//!
//! INTEGER_SUM-1. A total is `low + carries[id] * 2^64`, where `low` is signed if the column is.

use std::any::Any;
use std::collections::BTreeMap;
use std::marker::PhantomData;

use arrow_array::ArrayRef;
use arrow_array::types::{Int64Type, UInt64Type};
use penstock_memory::{Column, ColumnBuf, Native};
use penstock_types::ComputeError;

use super::state::{believable, numbers, read};
use super::total::TotalResult;
use super::{Accumulator, each_valid, mask_unseen};
use crate::heap_bytes;
use crate::keys::MISSING;
use crate::pick::Pick;

/// An integer that is summed.
pub(super) trait Addend: Native {
    /// Returns it as 64 bits.
    fn bits(self) -> i64;
    /// Adds the 64 bits of a value to those of a total; returns the sum and the carry.
    fn add(low: i64, value: i64) -> (i64, i64);
    /// Returns the number whose 64 bits these are.
    fn wide(low: i64) -> i128;
    /// Returns the nearest float to that number.
    fn float(low: i64) -> f64;
}

macro_rules! addend {
    ($($type:ty),*) => {$(
        impl Addend for $type {
            #[inline(always)]
            fn bits(self) -> i64 { i64::from(self) }
            #[inline(always)]
            fn add(low: i64, value: i64) -> (i64, i64) {
                let (total, overflow) = low.overflowing_add(value);
                // Adding overflows upwards only for positive values, downwards only for negative ones.
                (total, if overflow { if value > 0 { 1 } else { -1 } } else { 0 })
            }
            fn wide(low: i64) -> i128 { i128::from(low) }
            #[inline(always)]
            fn float(low: i64) -> f64 { low as f64 }
        }
    )*};
}
addend!(i8, i16, i32, i64, u8, u16, u32);

impl Addend for u64 {
    #[inline(always)]
    fn bits(self) -> i64 {
        self.cast_signed()
    }
    #[inline(always)]
    fn add(low: i64, value: i64) -> (i64, i64) {
        let (total, overflow) = low.cast_unsigned().overflowing_add(value.cast_unsigned());
        (total.cast_signed(), i64::from(overflow))
    }
    fn wide(low: i64) -> i128 {
        i128::from(low.cast_unsigned())
    }
    #[inline(always)]
    fn float(low: i64) -> f64 {
        low.cast_unsigned() as f64
    }
}

#[derive(Clone, Copy, Default)]
struct Cell {
    low: i64,
    count: u64,
}

#[derive(Clone)]
pub(super) struct IntegerTotals<T> {
    cells: Vec<Cell>,
    carries: BTreeMap<u32, i64>,
    outcome: TotalResult,
    of: PhantomData<fn(T)>,
}

#[cold]
fn carry_over(carries: &mut BTreeMap<u32, i64>, id: usize, carry: i64) {
    let entry = carries.entry(id as u32).or_default();
    *entry = entry.wrapping_add(carry);
}

impl<T: Addend> IntegerTotals<T> {
    pub(super) fn boxed(outcome: TotalResult) -> Box<dyn Accumulator> {
        Box::new(Self { cells: Vec::new(), carries: BTreeMap::new(), outcome, of: PhantomData })
    }

    fn total(&self, id: usize) -> i128 {
        let carry = if self.carries.is_empty() { None } else { self.carries.get(&(id as u32)) };
        // A damaged snapshot may hold any carry.
        T::wide(self.cells[id].low).wrapping_add(i128::from(carry.copied().unwrap_or(0)) << 64)
    }

    fn merge_one(&mut self, into: usize, from: Cell, carried: i64) {
        let cell = &mut self.cells[into];
        let (low, carry) = T::add(cell.low, from.low);
        *cell = Cell { low, count: cell.count.wrapping_add(from.count) };
        let carry = carry.wrapping_add(carried);
        if carry != 0 {
            carry_over(&mut self.carries, into, carry);
        }
    }

    fn write_sums(&self, unsigned: bool, pick: Pick<'_>, out: &mut ColumnBuf) -> Result<(), ComputeError> {
        let mut wrong = None;
        let fits = |id: usize| {
            let total = self.total(id);
            let fits = if unsigned { u64::try_from(total).is_ok() } else { i64::try_from(total).is_ok() };
            if !fits {
                wrong = Some(total);
            }
            fits
        };
        // Without carries, every total fits its column.
        if !self.carries.is_empty() && !pick.all(fits) {
            return Err(self.outcome.overflow(&wrong.unwrap_or_default().to_string()));
        }
        if unsigned {
            pick.extend(out.refill::<u64>(), |id| self.cells[id].low.cast_unsigned());
        } else {
            pick.extend(out.refill::<i64>(), |id| self.cells[id].low);
        }
        Ok(())
    }
}

impl<T: Addend> Accumulator for IntegerTotals<T> {
    fn update(&mut self, ids: &[u32], keys: usize, input: Option<Column<'_>>, _times: Option<&[i64]>) {
        self.grow(keys);
        let column = input.expect("a total has an input");
        let (cells, carries) = (self.cells.as_mut_slice(), &mut self.carries);
        each_valid(ids, column.fixed::<T>(), column.valid, |id, value| {
            let cell = &mut cells[id];
            let (low, carry) = T::add(cell.low, value.bits());
            *cell = Cell { low, count: cell.count.wrapping_add(1) };
            if carry != 0 {
                carry_over(carries, id, carry);
            }
        });
    }

    fn grow(&mut self, keys: usize) {
        if self.cells.len() < keys {
            self.cells.resize(keys, Cell::default());
        }
    }

    fn merge(&mut self, other: &dyn Accumulator, ids: &[u32], keys: usize) {
        self.grow(keys);
        let other = (other as &dyn Any).downcast_ref::<Self>().expect("state of one aggregate is merged");
        for (&from, &id) in other.cells.iter().zip(ids) {
            if id != MISSING {
                self.merge_one(id as usize, from, 0);
            }
        }
        for (&from, &carry) in &other.carries {
            if ids[from as usize] != MISSING {
                carry_over(&mut self.carries, ids[from as usize] as usize, carry);
            }
        }
    }

    fn absorb(&mut self, from: u32, into: u32) {
        let taken = std::mem::take(&mut self.cells[from as usize]);
        let carried = self.carries.remove(&from).unwrap_or(0);
        self.merge_one(into as usize, taken, carried);
    }

    fn reset(&mut self, id: u32) {
        self.cells[id as usize] = Cell::default();
        self.carries.remove(&id);
    }

    fn write(&self, pick: Pick<'_>, out: &mut ColumnBuf) -> Result<(), ComputeError> {
        match self.outcome {
            TotalResult::Sum { unsigned, .. } => self.write_sums(unsigned, pick, out)?,
            TotalResult::Mean { .. } => {
                let count = |id: usize| self.cells[id].count as f64;
                if self.carries.is_empty() {
                    pick.extend(out.refill::<f64>(), |id| T::float(self.cells[id].low) / count(id));
                } else {
                    pick.extend(out.refill::<f64>(), |id| self.total(id) as f64 / count(id));
                }
            }
        }
        mask_unseen(|id| self.cells[id].count > 0, pick, out);
        Ok(())
    }

    fn save(&self) -> Vec<ArrayRef> {
        vec![
            numbers::<UInt64Type>(self.cells.iter().map(|cell| cell.count)),
            numbers::<Int64Type>(self.cells.iter().map(|cell| cell.low)),
            numbers::<Int64Type>(
                (0..self.cells.len() as u32).map(|id| self.carries.get(&id).copied().unwrap_or(0)),
            ),
        ]
    }

    fn load(&mut self, columns: &[ArrayRef]) -> Result<(), String> {
        let lows = read::<Int64Type>(&columns[1]);
        let counts = read::<UInt64Type>(&columns[0]).iter().zip(lows);
        self.cells = counts
            .map(|(&count, &low)| Ok(Cell { low, count: believable(count)? }))
            .collect::<Result<_, String>>()?;
        let carries = read::<Int64Type>(&columns[2]).iter().enumerate();
        self.carries =
            carries.filter(|(_, carry)| **carry != 0).map(|(id, &carry)| (id as u32, carry)).collect();
        Ok(())
    }

    fn bytes(&self) -> usize {
        // The nodes of the map are at least half full.
        heap_bytes(&self.cells) + self.carries.len() * size_of::<(u32, i64)>() * 2
    }

    fn boxed_clone(&self) -> Box<dyn Accumulator> {
        Box::new(self.clone())
    }
}
