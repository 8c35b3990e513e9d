//! The values of each YSB column. One column at a time: each is a short loop without branches over consecutive rows.

use std::ops::Range;
use std::sync::Arc;

use super::{ADS, YsbOptions};
use crate::Buffers;
use crate::random::RandomLane;
use crate::rates::Rates;
use crate::shapes::{SHARE_BITS, draws_of};
use crate::times::RowTimes;
use crate::zipf::Zipf;

/// Users and pages, as many of each as in the original benchmark.
pub(super) const USERS: u64 = 100;
pub(super) const PAGES: u64 = 100;
const AD_TYPES: u64 = 5;

// One random lane for each drawn quantity. The numbers are part of the data set (WORKLOAD-3): never reuse or renumber
// them.
const LANE_USER: u64 = 1;
const LANE_PAGE: u64 = 2;
const LANE_AD: u64 = 3;
const LANE_AD_TYPE: u64 = 4;
const LANE_EVENT_TYPE: u64 = 5;
const LANE_IP: u64 = 6;
/// And the two after it.
const LANE_TIMES: u64 = 7;
pub(super) const LANE_CAMPAIGNS: u64 = 10;

/// The options, in the form that the loops need.
#[derive(Debug, Clone)]
pub(super) struct EventColumns {
    seed: u64,
    pub(super) times: RowTimes,
    events: Events,
    /// The event types of every second period, and the length of a period in seconds.
    switched: Option<(Events, u64)>,
    rates: Rates,
    zipf: Option<Arc<Zipf>>,
}

/// The distribution of event types.
#[derive(Debug, Clone, Copy)]
struct Events {
    /// Draws from here on are no views, and from `first_purchase` on no clicks either.
    first_click: u64,
    first_purchase: u64,
}

impl Events {
    fn new(view_share: f64) -> Self {
        let first_click = draws_of(view_share);
        Self { first_click, first_purchase: first_click + ((1 << SHARE_BITS) - first_click) / 2 }
    }
}

impl EventColumns {
    /// Creates the columns from checked options.
    pub(super) fn new(options: &YsbOptions) -> Self {
        let doubled = Events::new((options.view_share * 2.0).min(1.0));
        Self {
            seed: options.seed,
            times: RowTimes::new(options.seed, LANE_TIMES, 0, options.pace()),
            events: Events::new(options.view_share),
            switched: (options.switch_every_s > 0).then_some((doubled, options.switch_every_s)),
            rates: options.pace().rates,
            zipf: (options.zipf > 0.0).then(|| Arc::new(Zipf::new(ADS, options.zipf))),
        }
    }

    pub(super) fn user_id(&self, rows: Range<u64>, buffers: &mut Buffers) -> Vec<i64> {
        let lane = self.lane(LANE_USER);
        buffers.filled(rows.map(|row| lane.below(row, USERS) as i64))
    }

    pub(super) fn page_id(&self, rows: Range<u64>, buffers: &mut Buffers) -> Vec<i64> {
        let lane = self.lane(LANE_PAGE);
        buffers.filled(rows.map(|row| lane.below(row, PAGES) as i64))
    }

    pub(super) fn ad_id(&self, rows: Range<u64>, buffers: &mut Buffers) -> Vec<i64> {
        let lane = self.lane(LANE_AD);
        match &self.zipf {
            None => buffers.filled(rows.map(|row| lane.below(row, u64::from(ADS)) as i64)),
            Some(zipf) => buffers.filled(rows.map(|row| zipf.pick(lane.bits(row)) as i64)),
        }
    }

    pub(super) fn ad_type(&self, rows: Range<u64>, buffers: &mut Buffers) -> Vec<i64> {
        let lane = self.lane(LANE_AD_TYPE);
        buffers.filled(rows.map(|row| lane.below(row, AD_TYPES) as i64))
    }

    pub(super) fn event_type(&self, mut rows: Range<u64>, buffers: &mut Buffers) -> Vec<i64> {
        let lane = self.lane(LANE_EVENT_TYPE);
        let mut types = buffers.take(rows.end.saturating_sub(rows.start) as usize);
        while !rows.is_empty() {
            let (events, end) = self.events_from(rows.start);
            let end = end.min(rows.end);
            types.extend((rows.start..end).map(|row| {
                let draw = lane.bits(row) >> (64 - SHARE_BITS);
                i64::from(draw >= events.first_click) + i64::from(draw >= events.first_purchase)
            }));
            rows.start = end;
        }
        types
    }

    /// Returns the distribution of event types from this row on, and the row at which it may change.
    fn events_from(&self, row: u64) -> (Events, u64) {
        let Some((doubled, period_s)) = self.switched else { return (self.events, u64::MAX) };
        let period = self.rates.since_ms(row.into()) / 1_000 / u128::from(period_s);
        let end = self.rates.rows_before_second((period + 1) * u128::from(period_s));
        // Where row ids run out, there is no next period.
        let end = u64::try_from(end).unwrap_or(u64::MAX);
        (if period.is_multiple_of(2) { self.events } else { doubled }, end)
    }

    pub(super) fn ip(&self, rows: Range<u64>, buffers: &mut Buffers) -> Vec<i64> {
        let lane = self.lane(LANE_IP);
        buffers.filled(rows.map(|row| (lane.bits(row) >> 32) as i64))
    }

    fn lane(&self, lane: u64) -> RandomLane {
        RandomLane::new(self.seed, lane)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_cut_the_draws_where_they_should() {
        let cuts = |view_share| {
            let events = Events::new(view_share);
            (events.first_click, events.first_purchase)
        };
        let all = 1 << SHARE_BITS;
        assert_eq!(cuts(0.0), (0, all / 2));
        assert_eq!(cuts(1.0), (all, all));
        let (click, purchase) = cuts(1.0 / 3.0);
        assert!((all / 3).abs_diff(click) <= 1 && (all / 3 * 2).abs_diff(purchase) <= 1);
    }
}
