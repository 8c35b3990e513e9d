//! Division by a number that is the same for all rows, as a multiplication.
//!
//! For `d` with `2^(l-1) < d <= 2^l` and `m = ceil(2^(63+l) / d)` the product `n * m` is above `n / d * 2^(63+l)` by
//! less than `n * d <= 2^(63+l)`, for every `n` below `2^63`: its upper bits are the quotient, rounded down.

/// A positive divisor.
#[derive(Clone, Copy)]
pub(crate) struct Reciprocal {
    divisor: i64,
    factor: u64,
    shift: u32,
}

impl Reciprocal {
    /// Prepares a positive divisor; `None` for others.
    pub(crate) fn new(divisor: i64) -> Option<Self> {
        if divisor <= 0 {
            return None;
        }
        let bits = u64::BITS - (divisor as u64 - 1).leading_zeros();
        let shift = 63 + bits;
        let factor = (1_u128 << shift).div_ceil(divisor as u128);
        // `m` is below 2^64, since 2^(l-1) < d.
        Some(Self { divisor, factor: factor as u64, shift })
    }

    /// Computes `value // divisor`, rounded down.
    #[inline(always)]
    pub(crate) fn floor_divide(self, value: i64) -> i64 {
        // Below zero: -1 - n is not negative, and the quotient of n is -1 minus that of -1 - n.
        let sign = value >> 63;
        let size = (value ^ sign) as u64;
        ((u128::from(size) * u128::from(self.factor)) >> self.shift) as i64 ^ sign
    }

    /// Computes `value % divisor`, between 0 and the divisor.
    #[inline(always)]
    pub(crate) fn rest(self, value: i64) -> i64 {
        value.wrapping_sub(self.floor_divide(value).wrapping_mul(self.divisor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(value: i64, divisor: i64) {
        let reciprocal = Reciprocal::new(divisor).unwrap();
        assert_eq!(reciprocal.floor_divide(value), value.div_euclid(divisor), "{value} // {divisor}");
        assert_eq!(reciprocal.rest(value), value.rem_euclid(divisor), "{value} % {divisor}");
    }

    #[test]
    fn divides_at_the_limits() {
        assert!(Reciprocal::new(0).is_none() && Reciprocal::new(-1).is_none());
        let near = |value: i64| [value.saturating_sub(1), value, value.saturating_add(1)];
        let divisors =
            (0..63).flat_map(|bit| near(1 << bit)).chain(near(i64::MAX)).chain([7, 86_400_000, 3_600_000]);
        for divisor in divisors.filter(|&divisor| divisor > 0) {
            for value in [0, i64::MIN, i64::MAX, divisor, -divisor].into_iter().flat_map(near) {
                check(value, divisor);
            }
        }
    }

    proptest! {
        #[test]
        fn divides_as_the_processor_does(value: i64, bits: i64, shift in 1_u32..63) {
            check(value, ((bits as u64) >> shift) as i64 | 1);
            check(value >> shift, ((bits as u64) >> shift) as i64 | 1);
        }
    }
}
