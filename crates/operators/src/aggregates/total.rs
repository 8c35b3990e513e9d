//! Running totals that do not lose anything on the way.

use penstock_memory::Native;

/// An exact total of values of up to 128 bits: `low + carry * 2^128`, and how many were added.
#[derive(Clone, Copy, Default)]
pub(super) struct Exact {
    low: i128,
    carry: i64,
    pub(super) count: u64,
}

impl Exact {
    #[inline]
    pub(super) fn add(&mut self, value: i128) {
        let (low, overflow) = self.low.overflowing_add(value);
        self.low = low;
        // Adding overflows upwards only for positive values, downwards only for negative ones.
        self.carry += if overflow { if value > 0 { 1 } else { -1 } } else { 0 };
        self.count += 1;
    }

    /// The total, when 128 bits hold it.
    pub(super) fn get(&self) -> Option<i128> {
        (self.carry == 0).then_some(self.low)
    }

    /// The total as a float.
    pub(super) fn to_f64(self) -> f64 {
        self.low as f64 + self.carry as f64 * 2_f64.powi(128)
    }
}

/// A total of integers of up to 64 bits, which 128 bits always hold, and how many were added.
#[derive(Clone, Copy, Default)]
pub(super) struct Whole {
    pub(super) total: i128,
    pub(super) count: u64,
}

/// A total of floats, and how many were added.
#[derive(Clone, Copy, Default)]
pub(super) struct Float {
    pub(super) total: f64,
    pub(super) count: u64,
}

/// A running total.
pub(super) trait Total: Copy + Default + Send + 'static {
    /// What is added.
    type Value;
    fn add(&mut self, value: Self::Value);
    fn count(&self) -> u64;
}

impl Total for Exact {
    type Value = i128;
    #[inline]
    fn add(&mut self, value: i128) {
        Self::add(self, value);
    }
    fn count(&self) -> u64 {
        self.count
    }
}

impl Total for Whole {
    type Value = i128;
    #[inline]
    fn add(&mut self, value: i128) {
        self.total += value;
        self.count += 1;
    }
    fn count(&self) -> u64 {
        self.count
    }
}

impl Total for Float {
    type Value = f64;
    #[inline]
    fn add(&mut self, value: f64) {
        self.total += value;
        self.count += 1;
    }
    fn count(&self) -> u64 {
        self.count
    }
}

/// A column type that adds up into a total of kind `A`.
pub(super) trait AddsTo<A: Total>: Native {
    fn widen(self) -> A::Value;
}

macro_rules! adds {
    ($total:ty: $($type:ty),*) => {$(
        impl AddsTo<$total> for $type {
            #[inline]
            fn widen(self) -> <$total as Total>::Value { self as <$total as Total>::Value }
        }
    )*};
}
adds!(Whole: i8, i16, i32, i64, u8, u16, u32, u64);
adds!(Float: f32, f64);
adds!(Exact: i128);

/// Runs `$body` with `$total` and `$type` bound to what adds up columns of that storage.
macro_rules! with_total {
    ($physical:expr, $total:ident, $type:ident => $body:expr) => {
        match $physical {
            Physical::I8 => {
                type $total = Whole;
                type $type = i8;
                $body
            }
            Physical::I16 => {
                type $total = Whole;
                type $type = i16;
                $body
            }
            Physical::I32 => {
                type $total = Whole;
                type $type = i32;
                $body
            }
            Physical::I64 => {
                type $total = Whole;
                type $type = i64;
                $body
            }
            Physical::U8 => {
                type $total = Whole;
                type $type = u8;
                $body
            }
            Physical::U16 => {
                type $total = Whole;
                type $type = u16;
                $body
            }
            Physical::U32 => {
                type $total = Whole;
                type $type = u32;
                $body
            }
            Physical::U64 => {
                type $total = Whole;
                type $type = u64;
                $body
            }
            Physical::F32 => {
                type $total = Float;
                type $type = f32;
                $body
            }
            Physical::F64 => {
                type $total = Float;
                type $type = f64;
                $body
            }
            Physical::I128 => {
                type $total = Exact;
                type $type = i128;
                $body
            }
            Physical::View => unreachable!("the plan sums numbers only"),
        }
    };
}
pub(super) use with_total;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_may_leave_128_bits_and_come_back() {
        let mut total = Exact::default();
        for value in [i128::MAX, i128::MAX, 5, -i128::MAX, -i128::MAX] {
            total.add(value);
        }
        assert_eq!(total.get(), Some(5));
        total.add(i128::MIN);
        total.add(i128::MIN);
        assert_eq!(total.get(), None);
        assert!(total.to_f64() < -3.0e38);
    }
}
