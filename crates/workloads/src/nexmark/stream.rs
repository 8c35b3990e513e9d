//! The three streams, and the mapping of events to their rows.

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};

use crate::Buffers;

/// Events after which the pattern of the streams repeats.
pub(super) const EPOCH: u64 = 50;

/// One of the streams of NEXMark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NexmarkStream {
    /// Event ids with remainder 0 modulo 50.
    Person,
    /// Event ids with remainder 1 to 3.
    Auction,
    /// Event ids with remainder 4 to 49.
    Bid,
}

/// Returns the number of rows of `stream` among the first `events` events.
pub fn rows_of(stream: NexmarkStream, events: u64) -> u64 {
    let begun = (events % EPOCH).saturating_sub(stream.first()).min(stream.per_epoch());
    events / EPOCH * stream.per_epoch() + begun
}

impl NexmarkStream {
    /// All three, in the order of the pattern.
    pub const ALL: [Self; 3] = [Self::Person, Self::Auction, Self::Bid];

    /// Returns its name: "person", "auction" or "bid".
    pub fn name(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Auction => "auction",
            Self::Bid => "bid",
        }
    }

    /// Returns the event of a row; `None` past the last event id.
    pub fn event(self, row: u64) -> Option<u64> {
        let epoch = (row / self.per_epoch()).checked_mul(EPOCH)?;
        epoch.checked_add(self.first() + row % self.per_epoch())
    }

    /// Returns its columns.
    pub fn schema(self) -> SchemaRef {
        static SCHEMAS: LazyLock<[SchemaRef; 3]> =
            LazyLock::new(|| NexmarkStream::ALL.map(|stream| Arc::new(Schema::new(stream.fields()))));
        SCHEMAS[self as usize].clone()
    }

    /// Returns the events of checked rows.
    pub(super) fn events(self, rows: Range<u64>, buffers: &mut Buffers) -> Vec<u64> {
        let (first, per_epoch) = (self.first(), self.per_epoch());
        // Wrapping: an empty range may be anywhere, and the epoch after the last row is never read.
        let mut epoch = (rows.start / per_epoch).wrapping_mul(EPOCH);
        let mut place = rows.start % per_epoch;
        buffers.filled(rows.map(|_| {
            let event = epoch + first + place;
            place += 1;
            if place == per_epoch {
                (epoch, place) = (epoch.wrapping_add(EPOCH), 0);
            }
            event
        }))
    }

    /// Returns its first event of each epoch.
    const fn first(self) -> u64 {
        match self {
            Self::Person => 0,
            Self::Auction => 1,
            Self::Bid => 4,
        }
    }

    /// Returns its number of events per epoch.
    pub(super) const fn per_epoch(self) -> u64 {
        match self {
            Self::Person => 1,
            Self::Auction => 3,
            Self::Bid => 46,
        }
    }

    fn fields(self) -> Vec<Field> {
        let number = |name: &str| Field::new(name, DataType::Int64, false);
        let string = |name: &str| Field::new(name, DataType::Utf8, false);
        let time = |name: &str| Field::new(name, DataType::Timestamp(TimeUnit::Millisecond, None), false);
        match self {
            Self::Person => vec![
                number("id"),
                string("name"),
                string("email_address"),
                string("credit_card"),
                string("city"),
                string("state"),
                time("date_time"),
                string("extra"),
            ],
            Self::Auction => vec![
                number("id"),
                string("item_name"),
                string("description"),
                number("initial_bid"),
                number("reserve"),
                time("date_time"),
                time("expires"),
                number("seller"),
                number("category"),
                string("extra"),
            ],
            Self::Bid => vec![
                number("auction"),
                number("bidder"),
                number("price"),
                string("channel"),
                string("url"),
                time("date_time"),
                string("extra"),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_one_row_of_one_stream() {
        let mut events: Vec<(u64, NexmarkStream)> = NexmarkStream::ALL
            .into_iter()
            .flat_map(|stream| {
                stream
                    .events(0..rows_of(stream, 1_234), &mut Buffers::default())
                    .into_iter()
                    .map(move |e| (e, stream))
            })
            .collect();
        events.sort_by_key(|&(event, _)| event);
        for (expected, (event, stream)) in (0..1_234).zip(&events) {
            assert_eq!(expected, *event);
            let turn = match event % 50 {
                0 => NexmarkStream::Person,
                1..=3 => NexmarkStream::Auction,
                _ => NexmarkStream::Bid,
            };
            assert_eq!(*stream, turn);
        }
        assert_eq!(events.len(), 1_234);
    }

    #[test]
    fn one_row_and_a_range_agree_up_to_the_last_event() {
        for stream in NexmarkStream::ALL {
            let end = rows_of(stream, u64::MAX);
            for start in [0, 1, 45, 46, 1 << 40, end - 100] {
                for (row, event) in
                    (start..).zip(stream.events(start..(start + 150).min(end), &mut Buffers::default()))
                {
                    assert_eq!(stream.event(row), Some(event));
                }
            }
            // The very last id, 2^64 - 1, has remainder 15: it is a bid.
            let last =
                stream.event(end - u64::from(stream != NexmarkStream::Bid)).expect("one of the last events");
            assert!(u64::MAX - last < EPOCH);
            assert_eq!(stream.event(end + 1), None);
            assert!(stream.events(u64::MAX..u64::MAX, &mut Buffers::default()).is_empty());
        }
    }
}
