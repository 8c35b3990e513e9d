//! NEXMark: an auction house with three streams, the persons who join, the auctions they open and the bids on them.
//!
//! The events of the three streams are numbered together: of 50 consecutive ones the first is a person, the next three
//! are auctions and the other 46 are bids ([`NexmarkStream`]). Each stream is an endless table of its own with rows
//! numbered from 0, and each row is a pure function of its event id. The choices follow the published generator of the
//! Flink suite; the values are this crate's own. No column is ever null.
//!
//! | person          | values                                                                           |
//! |-----------------|----------------------------------------------------------------------------------|
//! | `id`            | 1000 + row                                                                       |
//! | `name`          | one of 11 first names and one of 9 last names                                    |
//! | `email_address` | 3 to 6 letters, `@`, 3 or 4 letters, `.com`                                      |
//! | `credit_card`   | four groups of four digits                                                       |
//! | `city`, `state` | one of 10 cities; AZ, CA, ID, OR, WA or WY, whatever the city                    |
//! | `date_time`     | event e is at `first_event_time_ms + floor(e * 1000 / rate)`, see [`NexmarkOptions`] for steps and disorder |
//! | `extra`         | letters that fill a row up to about `person_bytes`                               |
//!
//! | auction         | values                                                                           |
//! |-----------------|----------------------------------------------------------------------------------|
//! | `id`            | 1000 + row                                                                       |
//! | `item_name`, `description` | 3 to 19 and 3 to 99 letters and blanks                                |
//! | `initial_bid`   | a price; prices are `round(100 * 10^(6u))` for a uniform u in 0..1               |
//! | `reserve`       | `initial_bid` and another price on top                                           |
//! | `date_time`     | as for persons                                                                   |
//! | `expires`       | `date_time` and 1 ms or more; on average, the time of as many new auctions as are in flight |
//! | `seller`        | the hot seller, or one of the active people                                      |
//! | `category`      | 10 to 14, uniform                                                                |
//! | `extra`         | letters that fill a row up to about `auction_bytes`                              |
//!
//! | bid             | values                                                                           |
//! |-----------------|----------------------------------------------------------------------------------|
//! | `auction`       | the hot auction, or one of those in flight                                       |
//! | `bidder`        | the hot bidder, or one of the active people                                      |
//! | `price`         | a price                                                                          |
//! | `channel`       | every other time Google, Facebook, Baidu or Apple, else one of 10,000 `channel-`n |
//! | `url`           | that of the channel; of `channel-`n nine in ten name a `channel_id`              |
//! | `date_time`     | as for persons                                                                   |
//! | `extra`         | letters that fill a row, without channel and url, up to about `bid_bytes`        |
//!
//! References point to earlier events, unless `id_lead` asks for something else.
//!
//! ```
//! use penstock_workloads::Generator;
//! use penstock_workloads::nexmark::{Nexmark, NexmarkOptions, NexmarkStream, rows_of};
//!
//! let nexmark = Nexmark::new(NexmarkOptions { seed: 42, ..NexmarkOptions::default() })?;
//! let events = 1_000;
//! let bids = nexmark.bids().generate(0..rows_of(NexmarkStream::Bid, events))?;
//! let persons = nexmark.persons().generate(0..rows_of(NexmarkStream::Person, events))?;
//! assert_eq!((bids.num_rows(), persons.num_rows()), (920, 20));
//! # Ok::<(), penstock_workloads::WorkloadError>(())
//! ```

mod auctions;
mod bids;
mod channels;
mod event_times;
mod lanes;
mod options;
mod persons;
mod prices;
mod references;
mod stream;
mod text;

use std::ops::Range;
use std::sync::Arc;

pub use auctions::Auctions;
pub use bids::Bids;
pub use options::{MAX_COUNT, MAX_EVENT_BYTES, MAX_FIRST_EVENT_TIME_MS, NexmarkOptions};
pub use persons::Persons;
pub use stream::{NexmarkStream, rows_of};

use crate::random::RandomLane;
pub use crate::times::{MAX_LATE_MS, MAX_OUT_OF_ORDER_MS};
use crate::{MAX_BATCH_ROWS, WorkloadError};
use channels::Channels;
use event_times::EventTimes;

/// The id of the first person.
pub const FIRST_PERSON_ID: i64 = 1_000;
/// The id of the first auction.
pub const FIRST_AUCTION_ID: i64 = 1_000;
/// The first category.
pub const FIRST_CATEGORY: i64 = 10;
/// Categories, counted from [`FIRST_CATEGORY`].
pub const CATEGORIES: u64 = 5;

/// The NEXMark data set of one set of options. Cheap to clone, and so are its streams; each clone makes the same rows.
#[derive(Debug, Clone)]
pub struct Nexmark {
    parts: Arc<EventSources>,
}

/// The parts that the three streams share.
#[derive(Debug)]
struct EventSources {
    options: NexmarkOptions,
    clock: EventTimes,
    channels: Channels,
}

impl Nexmark {
    /// Creates the data set that `options` describe.
    ///
    /// # Errors
    /// Any option outside its bounds, by name.
    pub fn new(options: NexmarkOptions) -> Result<Self, WorkloadError> {
        options.check()?;
        let (clock, channels) = (EventTimes::new(&options), Channels::new(options.seed));
        Ok(Self { parts: Arc::new(EventSources { options, clock, channels }) })
    }

    /// Returns the options of this data set.
    pub fn options(&self) -> &NexmarkOptions {
        &self.parts.options
    }

    /// Returns the stream of the persons who join.
    pub fn persons(&self) -> Persons {
        Persons { parts: Arc::clone(&self.parts) }
    }

    /// Returns the stream of the auctions.
    pub fn auctions(&self) -> Auctions {
        Auctions { parts: Arc::clone(&self.parts) }
    }

    /// Returns the stream of the bids.
    pub fn bids(&self) -> Bids {
        Bids { parts: Arc::clone(&self.parts) }
    }
}

impl EventSources {
    fn lane(&self, lane: u64) -> RandomLane {
        RandomLane::new(self.options.seed, lane)
    }

    /// Refuses rows of a stream that have no event id, or for which an event time or a time up to `ahead_ms` later
    /// does not fit.
    fn check_rows(
        &self,
        stream: NexmarkStream,
        rows: &Range<u64>,
        ahead_ms: u64,
    ) -> Result<(), WorkloadError> {
        if rows.is_empty() {
            return Ok(());
        }
        // Events and their times grow with the row, so the last row decides.
        let row = rows.end - 1;
        let event = stream.event(row).ok_or(WorkloadError::EventsOverflow { stream: stream.name(), row })?;
        self.clock.check(event, ahead_ms)
    }
}

/// Returns the most rows of a batch whose longest strings have this many bytes: an Arrow string column numbers its
/// bytes with 31 bits.
fn max_batch_rows(longest: u64) -> u64 {
    (i32::MAX as u64 / longest).min(MAX_BATCH_ROWS)
}
