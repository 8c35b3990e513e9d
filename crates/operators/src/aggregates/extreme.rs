//! Minimum and maximum of fixed-width values, by the engine's one order.

use penstock_expr::comparison::Ordered;
use penstock_memory::{Column, ColumnBuf, Physical};
use penstock_types::ComputeError;

use super::{Accumulator, each_valid, mask_unseen};
use crate::heap_bytes;

struct Extreme<T> {
    best: Vec<T>,
    seen: Vec<bool>,
    largest: bool,
}

pub(super) fn make(physical: Physical, largest: bool) -> Box<dyn Accumulator> {
    fn of<T: Ordered>(largest: bool) -> Box<dyn Accumulator> {
        Box::new(Extreme::<T> { best: Vec::new(), seen: Vec::new(), largest })
    }
    match physical {
        Physical::I8 => of::<i8>(largest),
        Physical::I16 => of::<i16>(largest),
        Physical::I32 => of::<i32>(largest),
        Physical::I64 => of::<i64>(largest),
        Physical::U8 => of::<u8>(largest),
        Physical::U16 => of::<u16>(largest),
        Physical::U32 => of::<u32>(largest),
        Physical::U64 => of::<u64>(largest),
        Physical::F32 => of::<f32>(largest),
        Physical::F64 => of::<f64>(largest),
        Physical::I128 => of::<i128>(largest),
        Physical::View => unreachable!("strings and binary have their own state"),
    }
}

impl<T: Ordered> Extreme<T> {
    fn take<const LARGEST: bool>(&mut self, ids: &[u32], column: Column<'_>) {
        let (best, seen) = (&mut self.best, &mut self.seen);
        each_valid(ids, column.fixed::<T>(), column.valid, |id, value| {
            let better = if LARGEST { T::before(best[id], value) } else { T::before(value, best[id]) };
            if better || !seen[id] {
                best[id] = value;
                seen[id] = true;
            }
        });
    }
}

impl<T: Ordered> Accumulator for Extreme<T> {
    fn update(&mut self, ids: &[u32], keys: usize, input: Option<Column<'_>>) {
        self.best.resize(keys, T::default());
        self.seen.resize(keys, false);
        let column = input.expect("a minimum or maximum has an input");
        if self.largest { self.take::<true>(ids, column) } else { self.take::<false>(ids, column) }
    }

    fn write(&self, from: usize, to: usize, out: &mut ColumnBuf) -> Result<(), ComputeError> {
        out.refill::<T>().extend_from_slice(&self.best[from..to]);
        mask_unseen(|key| self.seen[key], from, to, out);
        Ok(())
    }

    fn bytes(&self) -> usize {
        heap_bytes(&self.best) + heap_bytes(&self.seen)
    }
}
