//! YSB written by hand: filter, lookup, window and count in one loop over the columns, on one thread.
//!
//! This is the yardstick for the engine: about what the machine can do for this query in plain safe Rust. It
//! knows everything that the engine has to find out at run time: the types, the 10 s window, the ids of ads
//! and campaigns.
//!
//! Rows are taken a run at a time. If a whole run lies in the window of the run before, which a check without
//! branches over its times decides, its rows need no window of their own; and since a row that is no view
//! adds 0 instead of being skipped, nothing is left that could be mispredicted. Other runs go row by row.
//! Rows may come in any order, and none is ever late.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, TimestampMillisecondType};
use penstock_workloads::ysb::VIEW;

/// The window of the query.
pub const WINDOW_MS: i64 = 10_000;

/// Rows that are looked at together: their three columns, 96 kB, stay in the second-level cache between the
/// check of the times and the count. From 1024 to 4096 rows the difference is within the noise.
const RUN_ROWS: usize = 4_096;

/// Ads that the table has room for. A power of two, and an array, so that no bounds are checked in the loop.
const AD_SLOTS: usize = 1_024;
/// Counters of a window: one for each value of a `u8`, for the same reason.
const CAMPAIGN_SLOTS: usize = 256;
/// Where rows are counted whose ad has no campaign. Not part of the result.
const NO_CAMPAIGN: u8 = u8::MAX;

/// One row of the result: window start, campaign, number of views.
pub type WindowCount = (i64, i64, i64);

/// The query under way.
#[derive(Debug, Clone)]
pub struct FusedYsb {
    campaign_of_ad: Box<[u8; AD_SLOTS]>,
    windows: Vec<Window>,
    /// Index in `windows` by window number.
    by_number: BTreeMap<i64, usize>,
    /// The window of the last row, as an index in `windows`.
    current: usize,
}

/// A window that has rows.
#[derive(Debug, Clone)]
struct Window {
    /// Times from `first` to `first + span` belong here. At the ends of the range of times a window is cut
    /// short.
    first: i64,
    span: i64,
    views: Box<[i64; CAMPAIGN_SLOTS]>,
}

impl FusedYsb {
    /// The query with the campaign of each ad, by ad id.
    ///
    /// # Panics
    /// When there are more than 1023 ads or a campaign id outside `0..255`: YSB has 1000 and 100.
    pub fn new(campaign_of_ad: &[i64]) -> Self {
        assert!(campaign_of_ad.len() < AD_SLOTS, "the last slot is for ads without a campaign");
        let mut table = Box::new([NO_CAMPAIGN; AD_SLOTS]);
        for (slot, &campaign) in table.iter_mut().zip(campaign_of_ad) {
            let campaign = u8::try_from(campaign).expect("campaign ids of YSB are small");
            assert_ne!(campaign, NO_CAMPAIGN, "campaign ids of YSB are small");
            *slot = campaign;
        }
        let mut query =
            Self { campaign_of_ad: table, windows: Vec::new(), by_number: BTreeMap::new(), current: 0 };
        query.current = query.window_of(0);
        query
    }

    /// Counts the rows of one batch of the YSB schema.
    ///
    /// # Panics
    /// When the batch has another schema.
    pub fn push_batch(&mut self, batch: &RecordBatch) {
        let column = |name: &str| batch.column_by_name(name).expect("a batch of YSB has all its columns");
        self.push(
            column("event_time").as_primitive::<TimestampMillisecondType>().values(),
            column("ad_id").as_primitive::<Int64Type>().values(),
            column("event_type").as_primitive::<Int64Type>().values(),
        );
    }

    /// Counts rows given by their columns.
    ///
    /// # Panics
    /// When the columns differ in length.
    pub fn push(&mut self, event_time: &[i64], ad_id: &[i64], event_type: &[i64]) {
        assert!(event_time.len() == ad_id.len() && ad_id.len() == event_type.len(), "columns of one table");
        let runs = event_time.chunks(RUN_ROWS).zip(ad_id.chunks(RUN_ROWS)).zip(event_type.chunks(RUN_ROWS));
        for ((times, ads), events) in runs {
            let Window { first, span, views } = &mut self.windows[self.current];
            if all_within(times, *first, *span) {
                count(&self.campaign_of_ad, ads, events, views);
            } else {
                self.push_rows(times, ads, events);
            }
        }
    }

    /// The result, ordered by window and campaign.
    pub fn finish(self) -> Vec<WindowCount> {
        let mut result = Vec::new();
        for &index in self.by_number.values() {
            let Window { first, views, .. } = &self.windows[index];
            let campaigns = (0..).zip(&views[..usize::from(NO_CAMPAIGN)]);
            result.extend(campaigns.filter(|&(_, &n)| n > 0).map(|(campaign, &n)| (*first, campaign, n)));
        }
        result
    }

    /// The way of a run with several windows, or with another one than before.
    #[inline(never)]
    fn push_rows(&mut self, times: &[i64], ads: &[i64], events: &[i64]) {
        for ((&time, &ad), &event) in times.iter().zip(ads).zip(events) {
            let Window { first, span, .. } = self.windows[self.current];
            if !all_within(&[time], first, span) {
                self.current = self.window_of(time);
            }
            count(&self.campaign_of_ad, &[ad], &[event], &mut self.windows[self.current].views);
        }
    }

    /// The window of a time, made if it is new.
    fn window_of(&mut self, time: i64) -> usize {
        let number = time.div_euclid(WINDOW_MS);
        *self.by_number.entry(number).or_insert_with(|| {
            let first = number.saturating_mul(WINDOW_MS);
            let last = (i128::from(number) + 1) * i128::from(WINDOW_MS) - 1;
            let span = (last.min(i64::MAX.into()) - i128::from(first)) as i64;
            self.windows.push(Window { first, span, views: Box::new([0; CAMPAIGN_SLOTS]) });
            self.windows.len() - 1
        })
    }
}

/// The whole query over prepared batches.
pub fn count_views(batches: &[RecordBatch], campaign_of_ad: &[i64]) -> Vec<WindowCount> {
    let mut query = FusedYsb::new(campaign_of_ad);
    for batch in batches {
        query.push_batch(batch);
    }
    query.finish()
}

/// The same on several threads, each with an equal part of the batches.
///
/// # Panics
/// When a thread cannot be started.
pub fn count_views_on(threads: usize, batches: &[RecordBatch], campaign_of_ad: &[i64]) -> Vec<WindowCount> {
    let parts = batches.chunks(batches.len().div_ceil(threads).max(1));
    let mut counts = BTreeMap::new();
    std::thread::scope(|scope| {
        let threads: Vec<_> = parts.map(|part| scope.spawn(|| count_views(part, campaign_of_ad))).collect();
        for thread in threads {
            for (start, campaign, views) in thread.join().expect("counting does not fail") {
                *counts.entry((start, campaign)).or_insert(0) += views;
            }
        }
    });
    counts.into_iter().map(|((start, campaign), views)| (start, campaign, views)).collect()
}

/// Whether every time is within `first..=first + span`, where that sum does not overflow.
///
/// A distance outside is negative, or leaves less than nothing of the span: the sign bits say so for all rows
/// together, with operations that every processor has for vectors of i64. A distance that wraps around cannot
/// come out within.
#[inline(always)]
fn all_within(times: &[i64], first: i64, span: i64) -> bool {
    let mut signs = 0;
    for &time in times {
        let distance = time.wrapping_sub(first);
        signs |= distance | span.wrapping_sub(distance);
    }
    signs >= 0
}

#[inline(always)]
fn count(campaign_of_ad: &[u8; AD_SLOTS], ads: &[i64], events: &[i64], views: &mut [i64; CAMPAIGN_SLOTS]) {
    for (&ad, &event) in ads.iter().zip(events) {
        // A negative id becomes a large one: both are out of the table and end in its last slot.
        let campaign = campaign_of_ad[(ad as usize).min(AD_SLOTS - 1)];
        views[usize::from(campaign)] += i64::from(event == VIEW);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use penstock_workloads::Generator;
    use penstock_workloads::ysb::{Ysb, YsbOptions, campaign_of_ads};

    use super::*;

    /// The query as its definition reads.
    fn reference(rows: &[(i64, i64, i64)], campaign_of_ad: &[i64]) -> Vec<WindowCount> {
        let mut counts = HashMap::new();
        for &(time, ad, event) in rows {
            let campaign = usize::try_from(ad).ok().and_then(|ad| campaign_of_ad.get(ad));
            if let (VIEW, Some(&campaign)) = (event, campaign) {
                let start = time.div_euclid(WINDOW_MS).saturating_mul(WINDOW_MS);
                *counts.entry((start, campaign)).or_insert(0) += 1;
            }
        }
        let mut result: Vec<WindowCount> =
            counts.into_iter().map(|((start, campaign), n)| (start, campaign, n)).collect();
        result.sort_unstable();
        result
    }

    fn fused(rows: &[(i64, i64, i64)], campaign_of_ad: &[i64]) -> Vec<WindowCount> {
        let times: Vec<i64> = rows.iter().map(|row| row.0).collect();
        let ads: Vec<i64> = rows.iter().map(|row| row.1).collect();
        let events: Vec<i64> = rows.iter().map(|row| row.2).collect();
        let mut query = FusedYsb::new(campaign_of_ad);
        query.push(&times, &ads, &events);
        query.finish()
    }

    #[test]
    fn agrees_with_the_reference_on_ysb() {
        let cases = [
            YsbOptions { rate: 5_000, ..YsbOptions::default() },
            YsbOptions { rate: 2_000, out_of_order_ms: 3_000, late_every: 100, ..YsbOptions::default() },
            YsbOptions { rate: 1_000_000, late_every: 5_000, zipf: 1.2, ..YsbOptions::default() },
            YsbOptions { rate: 3, view_share: 0.9, ..YsbOptions::default() },
        ];
        let campaigns = campaign_of_ads(7);
        for options in cases {
            let ysb = Ysb::new(options).unwrap();
            let batches: Vec<RecordBatch> = ysb.batches(0..100_000, 9_999).unwrap().collect();
            let rows: Vec<(i64, i64, i64)> = batches
                .iter()
                .flat_map(|batch| {
                    let times = batch.column(0).as_primitive::<TimestampMillisecondType>().values();
                    let ads = batch.column(3).as_primitive::<Int64Type>().values();
                    let events = batch.column(5).as_primitive::<Int64Type>().values();
                    times.iter().zip(ads).zip(events).map(|((&time, &ad), &event)| (time, ad, event))
                })
                .collect();
            let expected = reference(&rows, &campaigns);
            assert!(!expected.is_empty());
            assert_eq!(count_views(&batches, &campaigns), expected, "{:?}", ysb.options());
        }
    }

    #[test]
    fn windows_are_exact_at_their_edges_and_at_the_ends_of_time() {
        let edges = [0, 1, -1, 9_999, 10_000, -10_000, -10_001, i64::MAX, i64::MIN, i64::MAX - 9_999];
        let neighbours =
            edges.iter().flat_map(|&time: &i64| [time.saturating_sub(1), time, time.saturating_add(1)]);
        let times: Vec<i64> = neighbours.collect();
        // Every pair in succession, so that each window is left for each other one.
        let rows: Vec<(i64, i64, i64)> = times
            .iter()
            .flat_map(|&a| times.iter().flat_map(move |&b| [(a, 0, VIEW), (b, 1, VIEW)]))
            .collect();
        assert_eq!(fused(&rows, &[3, 4]), reference(&rows, &[3, 4]));
        for &time in &times {
            let rows = [(i64::MAX, 0, VIEW), (time, 0, VIEW), (i64::MIN, 0, VIEW)];
            assert_eq!(fused(&rows, &[3]), reference(&rows, &[3]), "{time}");
        }
    }

    #[test]
    fn a_run_is_within_only_if_every_row_is() {
        for odd_one in [-1, 10_000, i64::MAX, i64::MIN] {
            let mut times = vec![9_999; RUN_ROWS];
            assert!(all_within(&times, 0, 9_999));
            times[RUN_ROWS / 2] = odd_one;
            assert!(!all_within(&times, 0, 9_999), "{odd_one}");
        }
        // A window that ends with time itself: distances that wrap around do not slip in.
        assert!(!all_within(&[i64::MIN], i64::MAX - 5, 5));
        assert!(!all_within(&[i64::MAX], i64::MIN, 5));
    }

    #[test]
    fn other_events_and_unknown_ads_are_not_counted() {
        let rows = [
            (5, 0, VIEW),
            (5, 0, 1),
            (5, 0, 2),
            (5, 1, VIEW),
            (5, -1, VIEW),
            (5, i64::MAX, VIEW),
            (5, 2_000, VIEW),
        ];
        assert_eq!(fused(&rows, &[8]), [(0, 8, 1)]);
        assert_eq!(fused(&[(5, 0, 1)], &[8]), []);
        assert_eq!(fused(&[], &[]), []);
    }
}
