//! References of rows to persons and auctions: mostly a hot one, else one of the newest.
//!
//! Ids are counted from 0 here. All choices are relative to the newest id at the time of the event, which depends only
//! on the event's number.

use super::stream::{EPOCH, NexmarkStream};
use super::{FIRST_AUCTION_ID, FIRST_PERSON_ID, NexmarkOptions};
use crate::Buffers;
use crate::random::RandomLane;

/// One person, and one auction, in this many is hot for a while.
const HOT_EVERY: u64 = 100;

/// Draws one reference per event: whether to the hot one, and to which other one if not.
#[derive(Debug, Clone, Copy)]
pub(super) struct Draw {
    pub(super) is_hot: RandomLane,
    pub(super) other: RandomLane,
    /// Of this many draws all but one are hot.
    pub(super) hot_ratio: u64,
}

impl Draw {
    #[inline(always)]
    fn is_hot(&self, event: u64) -> bool {
        self.is_hot.below(event, self.hot_ratio) > 0
    }
}

/// Returns the newest person at the time of an event.
#[inline(always)]
fn newest_person(event: u64) -> u64 {
    event / EPOCH
}

/// Returns the newest auction at the time of a bid: the last of the bid's epoch.
#[inline(always)]
fn newest_auction(bid: u64) -> u64 {
    bid / EPOCH * NexmarkStream::Auction.per_epoch() + NexmarkStream::Auction.per_epoch() - 1
}

/// Draws the sellers of auctions. The hot one is the first of the newest hundred persons.
pub(super) fn sellers(
    draw: Draw,
    options: &NexmarkOptions,
    events: &[u64],
    buffers: &mut Buffers,
) -> Vec<i64> {
    people(draw, options, events, |newest| newest / HOT_EVERY * HOT_EVERY, buffers)
}

/// Draws the bidders of bids. The hot one is the second of the newest hundred persons, so that it is not the hot
/// seller; while the first is the newest, it bids.
pub(super) fn bidders(
    draw: Draw,
    options: &NexmarkOptions,
    events: &[u64],
    buffers: &mut Buffers,
) -> Vec<i64> {
    people(draw, options, events, |newest| (newest / HOT_EVERY * HOT_EVERY + 1).min(newest), buffers)
}

fn people(
    draw: Draw,
    options: &NexmarkOptions,
    events: &[u64],
    hot: impl Fn(u64) -> u64,
    buffers: &mut Buffers,
) -> Vec<i64> {
    let (most, lead) = (options.active_people, options.id_lead);
    let ids = events.iter().map(|&event| {
        let newest = newest_person(event);
        let active = (newest + 1).min(most);
        let other = newest + 1 - active + draw.other.below(event, active + lead);
        let id = if draw.is_hot(event) { hot(newest) } else { other };
        id as i64 + FIRST_PERSON_ID
    });
    buffers.filled(ids)
}

/// Draws the auctions of bids. The hot one is the first of the newest hundred.
pub(super) fn auctions(
    draw: Draw,
    options: &NexmarkOptions,
    events: &[u64],
    buffers: &mut Buffers,
) -> Vec<i64> {
    let (most, lead) = (options.auctions_in_flight, options.id_lead);
    let ids = events.iter().map(|&event| {
        let newest = newest_auction(event);
        let before = newest.min(most);
        let other = newest - before + draw.other.below(event, before + 1 + lead);
        let id = if draw.is_hot(event) { newest / HOT_EVERY * HOT_EVERY } else { other };
        id as i64 + FIRST_AUCTION_ID
    });
    buffers.filled(ids)
}
