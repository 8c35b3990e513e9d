//! The rows that a source sends in each second.
//!
//! A source has a rate, which the skew determines. Where volumes vary, each second has a weight by Pareto's law, and
//! the seconds of a period share the rows of the period by weight. A period always has `rate` rows for each of its
//! seconds, so that the period of any row is found by division: no sum over the earlier seconds is needed
//! (WORKLOAD-1).

use std::ops::Range;

use super::IpqOptions;
use crate::Buffers;
use crate::random::RandomLane;
use crate::shapes::pareto;

/// Seconds of a period.
pub const PERIOD_S: u64 = 256;
/// The shape of Pareto's law.
const SHAPE: f64 = 1.5;
/// The smallest weight. The largest is 2^20 times as much, which one second in 2^30 would exceed.
const MIN_WEIGHT: f64 = (1u64 << 16) as f64;
const MAX_WEIGHT: f64 = (1u64 << 36) as f64;

// Part of the data set, like all lanes (WORKLOAD-3).
const LANE_WEIGHTS: u64 = 510;

/// The volumes of one source.
#[derive(Debug, Clone, Copy)]
pub(super) struct Volumes {
    /// Rows per second on average.
    pub(super) rate: u64,
    /// The lane of the weights, where volumes vary.
    weights: Option<RandomLane>,
}

/// One period: the cumulative rows at the end of each of its seconds.
struct Period {
    first_row: u64,
    first_second: u64,
    sums: [u64; PERIOD_S as usize],
}

impl Volumes {
    /// Creates the volumes from checked options and source.
    pub(super) fn new(options: &IpqOptions, source: u16) -> Self {
        let lane = LANE_WEIGHTS | u64::from(source) << 16;
        let weights = options.is_variable.then(|| RandomLane::new(options.seed, lane));
        Self { rate: rate_of(options, source), weights }
    }

    /// Returns the rows of this second.
    pub(super) fn of_second(&self, second: u64) -> u64 {
        let Some(lane) = self.weights else { return self.rate };
        let (period, nth) = (self.period(lane, second / PERIOD_S), (second % PERIOD_S) as usize);
        period.sums[nth] - period.before(nth)
    }

    /// Returns the rows of all seconds before this one, or `u64::MAX` where row ids run out.
    pub(super) fn before_second(&self, second: u64) -> u64 {
        let Some(lane) = self.weights else { return second.saturating_mul(self.rate) };
        let (period, nth) = (self.period(lane, second / PERIOD_S), (second % PERIOD_S) as usize);
        period.first_row.saturating_add(period.before(nth))
    }

    /// Where volumes vary, returns the time of each row, in milliseconds. The rows of a second are spread over it
    /// evenly. The rows were checked: their times fit.
    pub(super) fn in_order(&self, mut rows: Range<u64>, buffers: &mut Buffers) -> Option<Vec<i64>> {
        let lane = self.weights?;
        let mut times = buffers.take(rows.end.saturating_sub(rows.start) as usize);
        while !rows.is_empty() {
            let period = self.period(lane, rows.start / self.rows_per_period());
            let into = rows.start - period.first_row;
            let first_nth = period.sums.partition_point(|&sum| sum <= into);
            for nth in first_nth..period.sums.len() {
                let second_ms = (period.first_second + nth as u64) as i64 * 1_000;
                let (before, after) = (period.before(nth), period.sums[nth]);
                let end = rows.end.min(period.first_row.saturating_add(after));
                let of_second = rows.start - period.first_row - before..end - period.first_row - before;
                times.extend(of_second.map(|n| second_ms + (n * 1_000 / (after - before)) as i64));
                rows.start = end;
                if rows.is_empty() {
                    break;
                }
            }
        }
        Some(times)
    }

    /// Returns an upper bound of the time of the row and of all rows before it, in milliseconds.
    pub(super) fn latest_ms(&self, row: u64) -> u128 {
        if self.weights.is_none() {
            return u128::from(row) * 1_000 / u128::from(self.rate);
        }
        let periods = u128::from(row / self.rows_per_period()) + 1;
        periods * u128::from(PERIOD_S) * 1_000
    }

    fn rows_per_period(&self) -> u64 {
        self.rate * PERIOD_S
    }

    fn period(&self, weights: RandomLane, number: u64) -> Period {
        let first_second = number * PERIOD_S;
        let mut total = 0;
        let mut sums = [0; PERIOD_S as usize];
        for (second, sum) in (first_second..=first_second + (PERIOD_S - 1)).zip(&mut sums) {
            let weight = MIN_WEIGHT * pareto(weights.bits(second), SHAPE);
            total += weight.min(MAX_WEIGHT) as u64;
            *sum = total;
        }
        let rows = u128::from(self.rows_per_period());
        for sum in &mut sums {
            // The last is exactly all rows.
            *sum = (rows * u128::from(*sum) / u128::from(total)) as u64;
        }
        Period { first_row: number.saturating_mul(self.rows_per_period()), first_second, sums }
    }
}

impl Period {
    /// Returns the number of its rows before this second of it.
    fn before(&self, nth: usize) -> u64 {
        if nth == 0 { 0 } else { self.sums[nth - 1] }
    }
}

/// Returns the rate of a source. The n-th of `sources` has a weight of `1 / (1 + n * (skew - 1) / (sources - 1))`,
/// from 1 for the first to `1 / skew` for the last.
fn rate_of(options: &IpqOptions, source: u16) -> u64 {
    let steps = u128::from(options.sources.max(2)) - 1;
    let weight = |n: u16| (steps << 64) / (steps + u128::from(n) * u128::from(options.skew - 1));
    let total: u128 = (0..options.sources).map(weight).sum();
    // Weights have 64 fractional bits; half of them are enough here, and cannot overflow.
    let all_rows = u128::from(options.rate) * u128::from(options.sources);
    let rate = all_rows * (weight(source) >> 32) / (total >> 32);
    rate.max(1) as u64
}
