//! Event times: a fixed number of rows per second, then as much disorder as is asked for.

use std::ops::Range;

use crate::random::Lane;
use crate::{WorkloadError, bounds};

/// The largest `out_of_order_ms` of any workload: a year. Far beyond use, and far from overflow.
pub const MAX_OUT_OF_ORDER_MS: u64 = 365 * 24 * 60 * 60 * 1_000;
/// How far back a late row is moved at most.
pub const MAX_LATE_MS: u64 = 60_000;

/// The largest `rate`: half the range of u64, so that a remainder below it can be added to without overflow.
const MAX_RATE: u64 = i64::MAX as u64;

/// What a caller may choose about event times.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Rows per second of event time.
    pub(crate) rate: u64,
    pub(crate) out_of_order_ms: u64,
    pub(crate) late_every: u64,
}

/// The event times of a table, row by row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pace: Pace,
    /// The time of row 0; not before 1970.
    start_ms: u64,
    jitter: Lane,
    is_late: Lane,
    late_by: Lane,
}

impl Times {
    /// From a pace that was checked. Takes three lanes, from `first_lane` on.
    pub(crate) fn new(seed: u64, first_lane: u64, start_ms: u64, pace: Pace) -> Self {
        Self {
            pace,
            start_ms,
            jitter: Lane::new(seed, first_lane),
            is_late: Lane::new(seed, first_lane + 1),
            late_by: Lane::new(seed, first_lane + 2),
        }
    }

    /// Refuses rows whose event time could go past the last timestamp. Times grow with the row id, so the
    /// last row decides; backwards there is no limit to reach, since the first row is not before 1970.
    pub(crate) fn check_rows(&self, rows: &Range<u64>) -> Result<(), WorkloadError> {
        if rows.is_empty() {
            return Ok(());
        }
        let row = rows.end - 1;
        self.check_last(row, u128::from(row) * 1_000 / u128::from(self.pace.rate), self.pace.rate)
    }

    /// Refuses a last row so many milliseconds after the start that a timestamp cannot hold it.
    pub(crate) fn check_last(&self, row: u64, after_ms: u128, rate: u64) -> Result<(), WorkloadError> {
        let latest_ms = after_ms + u128::from(self.start_ms) + u128::from(self.pace.out_of_order_ms);
        if latest_ms > i64::MAX as u128 {
            return Err(WorkloadError::TimeOverflow { row, rate });
        }
        Ok(())
    }

    /// The event time of each row, in milliseconds since 1970.
    pub(crate) fn column(&self, rows: Range<u64>) -> Vec<i64> {
        let mut times = self.in_order(rows.clone());
        self.disorder(rows, &mut times);
        times
    }

    /// `start + floor(row * 1000 / rate)` for each row. Only the first is divided: each next one adds 1000 to
    /// the dividend, so the quotient grows by a fixed step, and by one more when the remainder passes `rate`.
    fn in_order(&self, rows: Range<u64>) -> Vec<i64> {
        let rate = self.pace.rate;
        let first = u128::from(rows.start) * 1_000;
        // The range was checked: its times fit. An empty range far out may not fit, and is not looked at.
        let mut time = (u128::from(self.start_ms) + first / u128::from(rate)) as i64;
        let mut remainder = (first % u128::from(rate)) as u64;
        let (step, remainder_step) = ((1_000 / rate) as i64, 1_000 % rate);
        rows.map(|_| {
            let now = time;
            remainder += remainder_step;
            let carry = remainder >= rate;
            remainder -= if carry { rate } else { 0 };
            time = time.wrapping_add(step + i64::from(carry));
            now
        })
        .collect()
    }

    /// Moves times that are in order as the pace asks for.
    pub(crate) fn disorder(&self, rows: impl Iterator<Item = u64> + Clone, times: &mut [i64]) {
        if self.pace.out_of_order_ms > 0 {
            let reach = self.pace.out_of_order_ms;
            let (reach, distances) = (reach as i64, reach * 2 + 1);
            for (time, row) in times.iter_mut().zip(rows.clone()) {
                *time += self.jitter.below(row, distances) as i64 - reach;
            }
        }
        // 0 is no rows: there is then no last draw that makes a row late.
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
        bounds::within("rate", self.rate, 1, MAX_RATE)?;
        bounds::within("out_of_order_ms", self.out_of_order_ms, 0, MAX_OUT_OF_ORDER_MS)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
                let pace = Pace { rate, out_of_order_ms: 0, late_every: 0 };
                let times = Times::new(7, 0, start_ms, pace).in_order(start..start + 300);
                for (row, time) in (start..start + 300).zip(times) {
                    let after = i128::from(row) * 1_000 / i128::from(rate);
                    prop_assert_eq!(i128::from(time), i128::from(start_ms) + after);
                }
            }
        }
    }
}
