//! The bids on auctions.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, TimestampMillisecondArray};
use arrow_schema::SchemaRef;

use super::prices::prices;
use super::references::{self, Draw};
use super::stream::NexmarkStream;
use super::text::{extra, longest_extra};
use super::{EventSources, lanes, max_batch_rows};
use crate::{Buffers, Generator, WorkloadError};

/// The longest string except `extra`: a URL.
const LONGEST: u64 = 80;
/// Bytes of a row's numbers, for its size: those of auction, bidder, price and time. Channel and URL were added later
/// and are not counted, so that older figures keep their sizes.
const NUMBERS: u64 = 4 * 8;

/// The stream "bid" of a NEXMark data set.
#[derive(Debug, Clone)]
pub struct Bids {
    pub(super) parts: Arc<EventSources>,
}

impl Bids {
    fn auction(&self, events: &[u64], buffers: &mut Buffers) -> Vec<i64> {
        let options = &self.parts.options;
        let draw = Draw {
            is_hot: self.parts.lane(lanes::AUCTION_IS_HOT),
            other: self.parts.lane(lanes::AUCTION),
            hot_ratio: options.hot_auction_ratio,
        };
        references::auctions(draw, options, events, buffers)
    }

    fn bidder(&self, events: &[u64], buffers: &mut Buffers) -> Vec<i64> {
        let options = &self.parts.options;
        let draw = Draw {
            is_hot: self.parts.lane(lanes::BIDDER_IS_HOT),
            other: self.parts.lane(lanes::BIDDER),
            hot_ratio: options.hot_bidder_ratio,
        };
        references::bidders(draw, options, events, buffers)
    }
}

impl Generator for Bids {
    fn schema(&self) -> SchemaRef {
        NexmarkStream::Bid.schema()
    }

    fn max_batch_rows(&self) -> u64 {
        max_batch_rows(longest_extra(self.parts.options.bid_bytes).max(LONGEST))
    }

    fn check_rows(&self, rows: &Range<u64>) -> Result<(), WorkloadError> {
        self.parts.check_rows(NexmarkStream::Bid, rows, 0)
    }

    fn fill(&self, rows: Range<u64>, buffers: &mut Buffers) -> RecordBatch {
        let options = &self.parts.options;
        let events = NexmarkStream::Bid.events(rows, buffers);
        let numbers = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as ArrayRef;
        let [channel, url] = self.parts.channels.columns(&events, buffers);
        let date_time = self.parts.clock.date_time(&events, buffers);
        let arrays = vec![
            numbers(self.auction(&events, buffers)),
            numbers(self.bidder(&events, buffers)),
            numbers(prices(self.parts.lane(lanes::PRICE), &events, buffers)),
            channel,
            url,
            Arc::new(TimestampMillisecondArray::from(date_time)),
            extra(options.seed, &events, options.bid_bytes, |_| NUMBERS, buffers),
        ];
        buffers.give_back(events);
        RecordBatch::try_new(self.schema(), arrays)
            .expect("the columns have the types of the schema and one length")
    }
}
