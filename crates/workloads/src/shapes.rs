//! The shapes of distributions: functions from random bits to a number.
//!
//! They use only additions, multiplications, divisions and casts, which give the same bits on every platform. The
//! library's `exp2`, `ln` and the like may differ in the last bit, and the data set with them (WORKLOAD-3).

use std::f64::consts::{LN_2, SQRT_2};

/// Shares are compared with this many bits: the precision of a probability in an `f64`.
pub(crate) const SHARE_BITS: u32 = 53;

/// Returns how many of the `2^SHARE_BITS` draws make up this share.
pub(crate) fn draws_of(share: f64) -> u64 {
    (share * (1u64 << SHARE_BITS) as f64).round() as u64
}

/// Returns true if these bits are among the first `draws`; see [`draws_of`].
#[inline(always)]
pub(crate) fn is_among(bits: u64, draws: u64) -> bool {
    bits >> (64 - SHARE_BITS) < draws
}

/// Returns a number uniform over `-1.0..1.0`.
#[inline(always)]
pub(crate) fn either_side(bits: u64) -> f64 {
    (bits as i64 >> 11) as f64 * (1.0 / (1u64 << 52) as f64)
}

/// Returns a bell-shaped number, with mean 0 and standard deviation 1: the sum of four uniform numbers. It is never
/// more than 3.47 from 0.
#[inline(always)]
pub(crate) fn normal(bits: u64) -> f64 {
    let quarter = |n: u32| (bits >> (16 * n)) & 0xFFFF;
    let sum = (quarter(0) + quarter(1) + quarter(2) + quarter(3)) as f64;
    (sum - 131_070.0) * (1.0 / 37_837.227_5)
}

/// Returns `median * 2^(octaves * z)` for a bell-shaped z: half of the draws lie below the median, two thirds within
/// that many octaves of it.
#[inline(always)]
pub(crate) fn log_normal(bits: u64, median: f64, octaves: f64) -> f64 {
    median * exp2(octaves * normal(bits))
}

/// Returns a number by Pareto's law from 1 on: one draw in `x^shape` is above x.
pub(crate) fn pareto(bits: u64, shape: f64) -> f64 {
    exp2(halvings(bits) / shape)
}

/// Returns the nearest whole number, halves away from 0.
#[inline(always)]
pub(crate) fn round(x: f64) -> i64 {
    (x + 0.5f64.copysign(x)) as i64
}

/// Computes `2^x` for x within 1000 of 0, to 8 digits.
#[inline(always)]
fn exp2(x: f64) -> f64 {
    let whole = round(x);
    let y = (x - whole as f64) * LN_2;
    // The series of e^y, for y within 0.35 of 0.
    let tail = 1.0 / 24.0 + y * (1.0 / 120.0 + y * (1.0 / 720.0 + y * (1.0 / 5_040.0)));
    let series = 1.0 + y * (1.0 + y * (0.5 + y * (1.0 / 6.0 + y * tail)));
    series * f64::from_bits(((1_023 + whole) as u64) << 52)
}

/// Computes `-log2(u)` for the u in `0..1` given by these bits, to 8 digits.
fn halvings(bits: u64) -> f64 {
    let draw = bits | 1;
    let zeros = draw.leading_zeros();
    let m = (draw << zeros) as f64 / (1u64 << 63) as f64;
    // The series of the logarithm around the middle of 1..2.
    let s = (m - SQRT_2) / (m + SQRT_2);
    let square = s * s;
    let series = s * (1.0 + square * (1.0 / 3.0 + square * (0.2 + square * (1.0 / 7.0 + square / 9.0))));
    f64::from(zeros) + 0.5 - 2.0 / LN_2 * series
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::random::RandomLane;

    proptest! {
        #[test]
        fn powers_and_logarithms_are_close(x in -900.0..900.0, bits: u64) {
            prop_assert!((exp2(x) / x.exp2() - 1.0).abs() < 2e-8, "2^{x} is {}", exp2(x));
            let exact = 64.0 - (bits as f64).log2();
            prop_assert!((halvings(bits) - exact).abs() < 1e-8 || bits < 1 << 20);
        }

        #[test]
        fn rounding_is_to_the_nearest(x in -1e9..1e9) {
            prop_assert_eq!(round(x) as f64, x.round());
        }
    }

    #[test]
    fn shares_are_met_at_both_ends() {
        for bits in [0, 1 << 63, u64::MAX] {
            assert!(!is_among(bits, draws_of(0.0)) && is_among(bits, draws_of(1.0)));
        }
    }

    #[test]
    fn either_side_covers_its_range() {
        assert_eq!(either_side(1 << 63), -1.0);
        assert_eq!(either_side(0), 0.0);
        assert!((0.999..1.0).contains(&either_side((1 << 63) - 1)));
    }

    #[test]
    fn shapes_have_their_quantiles() {
        let lane = RandomLane::new(3, 0);
        let of = |shape: &dyn Fn(u64) -> f64| {
            let mut values: Vec<f64> = (0..100_000).map(|row| shape(lane.bits(row))).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let bell = of(&normal);
        let deviation = (bell.iter().map(|z| z * z).sum::<f64>() / 1e5).sqrt();
        assert!((deviation - 1.0).abs() < 0.01 && bell[50_000].abs() < 0.02, "{deviation}");
        assert!((bell[84_134] - 1.0).abs() < 0.03, "{}", bell[84_134]);
        assert!(normal(0) > -3.47 && normal(u64::MAX) < 3.47);

        let volumes = of(&|bits| pareto(bits, 1.5));
        for (nth, expected) in [(0, 1.0), (50_000, 1.587), (90_000, 4.642), (99_000, 21.54)] {
            assert!((volumes[nth] / expected - 1.0).abs() < 0.06, "{nth}: {}", volumes[nth]);
        }
        assert!(pareto(0, 1.5).is_finite());
    }
}
