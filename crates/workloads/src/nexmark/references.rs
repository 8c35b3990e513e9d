//! Whom and what a row refers to: mostly a hot one, else one of the newest.
//!
//! Ids are counted from 0 here. All choices are relative to the newest id when the event happens, which
//! depends on nothing but the event's number.

use super::stream::{EPOCH, NexmarkStream};
use super::{FIRST_AUCTION_ID, FIRST_PERSON_ID, NexmarkOptions};
use crate::Buffers;
use crate::random::RandomStream;

/// One person, and one auction, in so many is hot for a while.
const HOT_EVERY: u64 = 100;

/// Draws one reference per event: whether to the hot one, and to whom if not.
#[derive(Debug, Clone, Copy)]
pub(super) struct Draw {
    pub(super) is_hot: RandomStream,
    pub(super) other: RandomStream,
    /// Of so many draws all but one are hot.
    pub(super) hot_ratio: u64,
}

impl Draw {
    #[inline(always)]
    fn is_hot(&self, event: u64) -> bool {
        self.is_hot.below(event, self.hot_ratio) > 0
    }
}

/// The newest person when an event happens.
#[inline(always)]
fn newest_person(event: u64) -> u64 {
    event / EPOCH
}

/// The newest auction when a bid happens: the last of the bid's epoch.
#[inline(always)]
fn newest_auction(bid: u64) -> u64 {
    bid / EPOCH * NexmarkStream::Auction.per_epoch() + NexmarkStream::Auction.per_epoch() - 1
}

/// The sellers of auctions. The hot one is the first of the newest hundred persons.
pub(super) fn sellers(
    draw: Draw,
    options: &NexmarkOptions,
    events: &[u64],
    buffers: &mut Buffers,
) -> Vec<i64> {
    people(draw, options, events, |newest| newest / HOT_EVERY * HOT_EVERY, buffers)
}

/// The bidders of bids. The hot one is the second of the newest hundred persons, so that it is not the hot
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

/// The auctions that are bid on. The hot one is the first of the newest hundred.
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
