//! The streams of NEXMark through one interface, and any options.

#![allow(dead_code, reason = "each test file takes what it needs")]

use arrow_array::RecordBatch;
use penstock_workloads::nexmark::{Nexmark, NexmarkOptions, NexmarkStream, rows_of};
use penstock_workloads::{Generator, WorkloadError};
use proptest::prelude::*;

/// Default number of events from which tables are made.
pub const EVENTS: u64 = 100_000;
/// The first id, of persons and of auctions.
pub const FIRST_ID: i64 = 1_000;

/// Returns the rows of one stream among the first events.
pub fn table(options: NexmarkOptions, of: NexmarkStream) -> RecordBatch {
    let nexmark = Nexmark::new(options).expect("good options");
    generate(&nexmark, of, 0, rows_of(of, EVENTS)).expect("a small range")
}

/// Returns the event ids of the rows of [`table`].
pub fn events(of: NexmarkStream) -> impl Iterator<Item = u64> {
    (0..rows_of(of, EVENTS)).map(move |row| of.event(row).expect("an early row"))
}

/// Returns some rows of one stream, as one batch.
pub fn generate(
    nexmark: &Nexmark,
    of: NexmarkStream,
    start: u64,
    end: u64,
) -> Result<RecordBatch, WorkloadError> {
    match of {
        NexmarkStream::Person => nexmark.persons().generate(start..end),
        NexmarkStream::Auction => nexmark.auctions().generate(start..end),
        NexmarkStream::Bid => nexmark.bids().generate(start..end),
    }
}

/// Returns some rows of one stream, in batches.
pub fn batches(
    nexmark: &Nexmark,
    of: NexmarkStream,
    start: u64,
    end: u64,
    batch_rows: u64,
) -> Result<Vec<RecordBatch>, WorkloadError> {
    Ok(match of {
        NexmarkStream::Person => nexmark.persons().batches(start..end, batch_rows)?.collect(),
        NexmarkStream::Auction => nexmark.auctions().batches(start..end, batch_rows)?.collect(),
        NexmarkStream::Bid => nexmark.bids().batches(start..end, batch_rows)?.collect(),
    })
}

/// Draws options within the bounds that matter.
pub fn any_options() -> impl Strategy<Value = NexmarkOptions> {
    let times = (
        prop_oneof![1..1_000u64, 1..20_000_000u64],
        -1_000_000_000..1_000_000_000i64,
        prop_oneof![Just(0), 1..100u64],
        prop_oneof![Just(0), 1..50u64],
        prop_oneof![Just(0), 1..5u64],
    );
    let ids = (1..6u64, 1..6u64, 1..6u64, 1..3_000u64, 0..300u64, 0..20u64);
    (any::<u64>(), times, ids, 0..400u64, 0..700u64, 0..200u64).prop_map(
        |(seed, times, ids, person_bytes, auction_bytes, bid_bytes)| NexmarkOptions {
            seed,
            rate: times.0,
            step_every_s: times.4,
            first_event_time_ms: times.1,
            out_of_order_ms: times.2,
            late_every: times.3,
            hot_auction_ratio: ids.0,
            hot_seller_ratio: ids.1,
            hot_bidder_ratio: ids.2,
            active_people: ids.3,
            auctions_in_flight: ids.4,
            id_lead: ids.5,
            person_bytes,
            auction_bytes,
            bid_bytes,
        },
    )
}

/// Draws any stream.
pub fn any_stream() -> impl Strategy<Value = NexmarkStream> {
    prop::sample::select(&NexmarkStream::ALL[..])
}
