//! Event times: as many rows per second as the rates say, then the requested disorder.

use std::ops::Range;

use crate::random::RandomLane;
use crate::rates::Rates;
use crate::{Buffers, WorkloadError, bounds};

/// The largest `out_of_order_ms` of any workload: a year. Far beyond use, and far from overflow.
pub const MAX_OUT_OF_ORDER_MS: u64 = 365 * 24 * 60 * 60 * 1_000;
/// Largest distance by which a late row is moved back.
pub const MAX_LATE_MS: u64 = 60_000;

/// The options of event times.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) rates: Rates,
    pub(crate) out_of_order_ms: u64,
    pub(crate) late_every: u64,
}

/// The event times of a table, row by row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowTimes {
    pace: Pace,
    /// The time of row 0; not before 1970.
    start_ms: u64,
    jitter: RandomLane,
    is_late: RandomLane,
    late_by: RandomLane,
}

impl RowTimes {
    /// Creates the times from a checked pace. Uses three lanes, from `first_lane` on.
    pub(crate) fn new(seed: u64, first_lane: u64, start_ms: u64, pace: Pace) -> Self {
        Self {
            pace,
            start_ms,
            jitter: RandomLane::new(seed, first_lane),
            is_late: RandomLane::new(seed, first_lane + 1),
            late_by: RandomLane::new(seed, first_lane + 2),
        }
    }

    /// Refuses rows whose event time could exceed the last timestamp. Times grow with the row id, so the last row
    /// decides; there is no lower limit to check, since the first row is not before 1970.
    pub(crate) fn check_rows(&self, rows: &Range<u64>) -> Result<(), WorkloadError> {
        if rows.is_empty() {
            return Ok(());
        }
        let row = rows.end - 1;
        self.check_last(row, self.pace.rates.since_ms(row.into()), self.pace.rates.rate)
    }

    /// Refuses a last row whose milliseconds after the start do not fit a timestamp.
    pub(crate) fn check_last(&self, row: u64, after_ms: u128, rate: u64) -> Result<(), WorkloadError> {
        let latest_ms = after_ms + u128::from(self.start_ms) + u128::from(self.pace.out_of_order_ms);
        if latest_ms > i64::MAX as u128 {
            return Err(WorkloadError::TimeOverflow { row, rate });
        }
        Ok(())
    }

    /// Computes the event time of each row, in milliseconds since 1970.
    pub(crate) fn column(&self, rows: Range<u64>, buffers: &mut Buffers) -> Vec<i64> {
        let mut times = self.in_order(rows.clone(), buffers);
        self.disorder(rows, &mut times);
        times
    }

    /// Computes the ordered time of each row, stretch by stretch. Only the first of a stretch is divided: each next
    /// one adds 1000 to the dividend, so the quotient grows by a fixed step, and by one more when the remainder passes
    /// the rate.
    fn in_order(&self, mut rows: Range<u64>, buffers: &mut Buffers) -> Vec<i64> {
        let mut times = buffers.take(rows.end.saturating_sub(rows.start) as usize);
        while !rows.is_empty() {
            let first = u128::from(rows.start);
            let stretch = self.pace.rates.stretch(first);
            let end = stretch.end_row.min(rows.end.into()) as u64;
            // The rows were checked: their times fit.
            let mut time = (u128::from(self.start_ms) + stretch.since_ms(first)) as i64;
            let (rate, mut remainder) = (stretch.rate, stretch.remainder(first));
            let (step, remainder_step) = ((1_000 / rate) as i64, 1_000 % rate);
            times.extend((rows.start..end).map(|_| {
                let now = time;
                remainder += remainder_step;
                let carry = remainder >= rate;
                remainder -= if carry { rate } else { 0 };
                time = time.wrapping_add(step + i64::from(carry));
                now
            }));
            rows.start = end;
        }
        times
    }

    /// Moves ordered times as the pace asks for.
    pub(crate) fn disorder(&self, rows: impl Iterator<Item = u64> + Clone, times: &mut [i64]) {
        if self.pace.out_of_order_ms > 0 {
            let reach = self.pace.out_of_order_ms;
            let (reach, distances) = (reach as i64, reach * 2 + 1);
            for (time, row) in times.iter_mut().zip(rows.clone()) {
                *time += self.jitter.below(row, distances) as i64 - reach;
            }
        }
        // 0 means no rows: then there is no last draw that makes a row late.
        if let Some(last_late) = u64::MAX.checked_div(self.pace.late_every) {
            for (time, row) in times.iter_mut().zip(rows) {
                if self.is_late.bits(row) <= last_late {
                    *time -= 1 + self.late_by.below(row, MAX_LATE_MS) as i64;
                }
            }
        }
    }
}

impl Pace {
    pub(crate) fn check(&self) -> Result<(), WorkloadError> {
        self.rates.check()?;
        bounds::within("out_of_order_ms", self.out_of_order_ms, 0, MAX_OUT_OF_ORDER_MS)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn in_order(rates: Rates, start_ms: u64, rows: Range<u64>) -> Vec<i64> {
        RowTimes::new(7, 0, start_ms, Pace { rates, out_of_order_ms: 0, late_every: 0 })
            .in_order(rows, &mut Buffers::default())
    }

    proptest! {
        #[test]
        fn times_are_the_quotient(
            start in 0..u64::MAX / 2,
            rate in 1..i64::MAX as u64,
            small in 1u64..5_000,
            start_ms in 0..1u64 << 50,
        ) {
            for rate in [rate, small, small * 1_000] {
                // Keep clear of times that do not fit, which are refused.
                let start = start.min(rate.saturating_mul(1_000_000_000_000));
                let times = in_order(Rates { rate, step_every_s: 0 }, start_ms, start..start + 300);
                for (row, time) in (start..start + 300).zip(times) {
                    let after = i128::from(row) * 1_000 / i128::from(rate);
                    prop_assert_eq!(i128::from(time), i128::from(start_ms) + after);
                }
            }
        }

        #[test]
        fn times_go_from_step_to_step(
            rate in 1..200u64,
            step_every_s in 1..5u64,
            start in prop_oneof![0..5_000u64, 0..1_000_000_000_000u64],
            start_ms in 0..1u64 << 50,
        ) {
            let rates = Rates { rate, step_every_s };
            let times = in_order(rates, start_ms, start..start + 5_000);
            prop_assert_eq!(times.len(), 5_000);
            prop_assert!(times.is_sorted());
            for (row, time) in (start..).zip(times) {
                prop_assert_eq!(time as u128, u128::from(start_ms) + rates.since_ms(row.into()), "row {}", row);
            }
        }
    }

    #[test]
    fn a_step_has_the_rows_of_its_rate() {
        // Steps of two seconds, and a fifth one, which is like the first.
        let times = in_order(Rates { rate: 10, step_every_s: 2 }, 0, 0..44 * 10);
        let rows_of = |second| times.iter().filter(|&&time| time / 1_000 == second).count();
        let counts: Vec<usize> = (0..10).map(rows_of).collect();
        assert_eq!(counts, [10, 10, 20, 20, 60, 60, 120, 120, 10, 10]);
        assert_eq!(times.len(), counts.into_iter().sum());
        // Evenly spread: 100 ms apart, then 50, without a gap between the steps.
        assert_eq!(times[18..24], [1_800, 1_900, 2_000, 2_050, 2_100, 2_150]);
    }
}
