//! The options of the NEXMark data, and their bounds.

use crate::rates::Rates;
use crate::times::Pace;
use crate::{WorkloadError, bounds};

/// The largest [`NexmarkOptions::first_event_time_ms`], forwards and backwards: half of what fits.
pub const MAX_FIRST_EVENT_TIME_MS: i64 = i64::MAX / 2;
/// The largest ratio, and the largest number of people or auctions, of any option.
pub const MAX_COUNT: u64 = 1_000_000_000;
/// The largest target size of rows.
pub const MAX_EVENT_BYTES: u64 = 16 * 1_024;

/// The options that define one NEXMark data set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NexmarkOptions {
    /// Two seeds give unrelated data sets.
    pub seed: u64,
    /// Events per second of event time, all streams together. Affects `date_time` and `expires`.
    pub rate: u64,
    /// Seconds after which the rate changes: it is 1, 2, 6 and 12 times `rate` in turn ([`STEPS`](crate::STEPS)), then
    /// from the start again. 0 for never. Affects `date_time` and `expires`.
    pub step_every_s: u64,
    /// The time of event 0, in milliseconds since 1970. Affects `date_time` and `expires`.
    pub first_event_time_ms: i64,
    /// Each event's time is moved by a uniform distance between minus and plus this many milliseconds. An auction's
    /// `expires` moves along.
    pub out_of_order_ms: u64,
    /// One event in this many, on average, is moved back by 1 to 60,000 milliseconds more. 0 for none. An auction's
    /// `expires` moves along.
    pub late_every: u64,
    /// Of this many bids all but one, on average, are on the hot auction: the first of the newest hundred. 1 for no
    /// hot auction. Affects a bid's `auction`.
    pub hot_auction_ratio: u64,
    /// Of this many auctions all but one are of the hot seller: the first of the newest hundred persons. Affects
    /// `seller`.
    pub hot_seller_ratio: u64,
    /// Of this many bids all but one are by the hot bidder: the second of the newest hundred persons, or the first
    /// while there is no second. Affects `bidder`.
    pub hot_bidder_ratio: u64,
    /// Number of the newest persons who sell and bid when the hot ones do not. Affects `seller` and `bidder`.
    pub active_people: u64,
    /// Number of auctions besides the newest that take bids when the hot one does not, and number of new ones for
    /// which an auction stays open, on average. Affects a bid's `auction` and `expires`.
    pub auctions_in_flight: u64,
    /// Number of ids past the newest one that a row may refer to when it does not refer to a hot one, as if events had
    /// been swapped. The published generator has 10; 0 keeps references sound. Affects `seller`, `bidder` and a bid's
    /// `auction`.
    pub id_lead: u64,
    /// Average bytes of a person, as far as padding can reach it. Affects `extra`.
    pub person_bytes: u64,
    /// Average bytes of an auction, as far as padding can reach it. Affects `extra`.
    pub auction_bytes: u64,
    /// Average bytes of a bid without channel and URL. Affects `extra`.
    pub bid_bytes: u64,
}

/// The options of the published generator, with the rate at which the Flink suite runs it and no lead.
impl Default for NexmarkOptions {
    fn default() -> Self {
        Self {
            seed: 7,
            rate: 10_000_000,
            step_every_s: 0,
            first_event_time_ms: 0,
            out_of_order_ms: 0,
            late_every: 0,
            hot_auction_ratio: 2,
            hot_seller_ratio: 4,
            hot_bidder_ratio: 4,
            active_people: 1_000,
            auctions_in_flight: 100,
            id_lead: 0,
            person_bytes: 200,
            auction_bytes: 500,
            bid_bytes: 100,
        }
    }
}

impl NexmarkOptions {
    pub(super) fn pace(&self) -> Pace {
        let rates = Rates { rate: self.rate, step_every_s: self.step_every_s };
        Pace { rates, out_of_order_ms: self.out_of_order_ms, late_every: self.late_every }
    }

    pub(super) fn check(&self) -> Result<(), WorkloadError> {
        self.pace().check()?;
        let bounds = [
            ("hot_auction_ratio", self.hot_auction_ratio, 1, MAX_COUNT),
            ("hot_seller_ratio", self.hot_seller_ratio, 1, MAX_COUNT),
            ("hot_bidder_ratio", self.hot_bidder_ratio, 1, MAX_COUNT),
            ("active_people", self.active_people, 1, MAX_COUNT),
            ("auctions_in_flight", self.auctions_in_flight, 0, MAX_COUNT),
            ("id_lead", self.id_lead, 0, MAX_COUNT),
            ("person_bytes", self.person_bytes, 0, MAX_EVENT_BYTES),
            ("auction_bytes", self.auction_bytes, 0, MAX_EVENT_BYTES),
            ("bid_bytes", self.bid_bytes, 0, MAX_EVENT_BYTES),
        ];
        for (option, value, least, most) in bounds {
            bounds::within(option, value, least, most)?;
        }
        let (least, most) = (-MAX_FIRST_EVENT_TIME_MS, MAX_FIRST_EVENT_TIME_MS);
        if !(least..=most).contains(&self.first_event_time_ms) {
            let (option, value) = ("first_event_time_ms", self.first_event_time_ms);
            return Err(WorkloadError::TimeOutOfBounds { option, value, least, most });
        }
        Ok(())
    }
}
