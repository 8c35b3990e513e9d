//! The values of each YSB column. One column at a time: each is a short loop without branches over
//! consecutive rows.

use std::ops::Range;
use std::sync::Arc;

use super::{ADS, MAX_LATE_MS, Options};
use crate::random::Lane;
use crate::zipf::Zipf;

/// Users and pages, as many of each as in the original benchmark.
const USERS: u64 = 100;
const PAGES: u64 = 100;
const AD_TYPES: u64 = 5;

// One lane for each thing that is drawn. The numbers are part of the data set (W3): never reuse or renumber
// them.
const LANE_USER: u64 = 1;
const LANE_PAGE: u64 = 2;
const LANE_AD: u64 = 3;
const LANE_AD_TYPE: u64 = 4;
const LANE_EVENT_TYPE: u64 = 5;
const LANE_IP: u64 = 6;
const LANE_JITTER: u64 = 7;
const LANE_IS_LATE: u64 = 8;
const LANE_LATE_BY: u64 = 9;
pub(super) const LANE_CAMPAIGNS: u64 = 10;

/// Event types are drawn from this many bits: as many as a probability in an `f64` can speak of.
const SHARE_BITS: u32 = 53;

/// The options in the form in which the loops need them.
#[derive(Debug, Clone)]
pub(super) struct Columns {
    seed: u64,
    rate: u64,
    out_of_order_ms: u64,
    late_every: u64,
    /// Draws of event types from here on are no views, and from `first_purchase` on no clicks either.
    first_click: u64,
    first_purchase: u64,
    zipf: Option<Arc<Zipf>>,
}

impl Columns {
    /// From options that were checked.
    pub(super) fn new(options: &Options) -> Self {
        let all = 1u64 << SHARE_BITS;
        let first_click = (options.view_share * all as f64).round() as u64;
        Self {
            seed: options.seed,
            rate: options.rate,
            out_of_order_ms: options.out_of_order_ms,
            late_every: options.late_every,
            first_click,
            first_purchase: first_click + (all - first_click) / 2,
            zipf: (options.zipf > 0.0).then(|| Arc::new(Zipf::new(ADS, options.zipf))),
        }
    }

    pub(super) fn event_time(&self, rows: Range<u64>) -> Vec<i64> {
        let mut times = self.times_in_order(rows.clone());
        if self.out_of_order_ms > 0 {
            let jitter = self.lane(LANE_JITTER);
            let (reach, distances) = (self.out_of_order_ms as i64, self.out_of_order_ms * 2 + 1);
            for (time, row) in times.iter_mut().zip(rows.clone()) {
                *time += jitter.below(row, distances) as i64 - reach;
            }
        }
        // 0 is no rows: there is then no last draw that makes a row late.
        if let Some(last_late) = u64::MAX.checked_div(self.late_every) {
            let (is_late, late_by) = (self.lane(LANE_IS_LATE), self.lane(LANE_LATE_BY));
            for (time, row) in times.iter_mut().zip(rows) {
                if is_late.bits(row) <= last_late {
                    *time -= 1 + late_by.below(row, MAX_LATE_MS) as i64;
                }
            }
        }
        times
    }

    /// `floor(row * 1000 / rate)` for each row. Only the first is divided: each next one adds 1000 to the
    /// dividend, so the quotient grows by a fixed step, and by one more when the remainder passes `rate`.
    fn times_in_order(&self, rows: Range<u64>) -> Vec<i64> {
        let rate = self.rate;
        let first = u128::from(rows.start) * 1_000;
        // The range was checked: its times fit. An empty range far out may not fit, and is not looked at.
        let mut time = (first / u128::from(rate)) as i64;
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

    pub(super) fn user_id(&self, rows: Range<u64>) -> Vec<i64> {
        let lane = self.lane(LANE_USER);
        rows.map(|row| lane.below(row, USERS) as i64).collect()
    }

    pub(super) fn page_id(&self, rows: Range<u64>) -> Vec<i64> {
        let lane = self.lane(LANE_PAGE);
        rows.map(|row| lane.below(row, PAGES) as i64).collect()
    }

    pub(super) fn ad_id(&self, rows: Range<u64>) -> Vec<i64> {
        let lane = self.lane(LANE_AD);
        match &self.zipf {
            None => rows.map(|row| lane.below(row, u64::from(ADS)) as i64).collect(),
            Some(zipf) => rows.map(|row| zipf.pick(lane.bits(row)) as i64).collect(),
        }
    }

    pub(super) fn ad_type(&self, rows: Range<u64>) -> Vec<i64> {
        let lane = self.lane(LANE_AD_TYPE);
        rows.map(|row| lane.below(row, AD_TYPES) as i64).collect()
    }

    pub(super) fn event_type(&self, rows: Range<u64>) -> Vec<i64> {
        let lane = self.lane(LANE_EVENT_TYPE);
        let (first_click, first_purchase) = (self.first_click, self.first_purchase);
        rows.map(|row| {
            let draw = lane.bits(row) >> (64 - SHARE_BITS);
            i64::from(draw >= first_click) + i64::from(draw >= first_purchase)
        })
        .collect()
    }

    pub(super) fn ip(&self, rows: Range<u64>) -> Vec<i64> {
        let lane = self.lane(LANE_IP);
        rows.map(|row| (lane.bits(row) >> 32) as i64).collect()
    }

    fn lane(&self, lane: u64) -> Lane {
        Lane::new(self.seed, lane)
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
        ) {
            for rate in [rate, small, small * 1_000] {
                // Keep clear of times that do not fit, which the options refuse.
                let start = start.min(rate.saturating_mul(1_000_000_000_000));
                let columns = Columns::new(&Options { rate, ..Options::default() });
                for (row, time) in (start..start + 300).zip(columns.times_in_order(start..start + 300)) {
                    prop_assert_eq!(i128::from(time), i128::from(row) * 1_000 / i128::from(rate));
                }
            }
        }
    }

    #[test]
    fn shares_cut_the_draws_where_they_should() {
        let cuts = |view_share| {
            let columns = Columns::new(&Options { view_share, ..Options::default() });
            (columns.first_click, columns.first_purchase)
        };
        let all = 1 << SHARE_BITS;
        assert_eq!(cuts(0.0), (0, all / 2));
        assert_eq!(cuts(1.0), (all, all));
        let (click, purchase) = cuts(1.0 / 3.0);
        assert!((all / 3).abs_diff(click) <= 1 && (all / 3 * 2).abs_diff(purchase) <= 1);
    }
}
