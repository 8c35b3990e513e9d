//! The auctions.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, TimestampMillisecondArray};
use arrow_schema::SchemaRef;

use super::prices::prices;
use super::references::{self, Draw};
use super::stream::NexmarkStream;
use super::text::{AsciiColumn, extra, longest_extra, sequence};
use super::{CATEGORIES, EventSources, FIRST_AUCTION_ID, FIRST_CATEGORY, lanes, max_batch_rows};
use crate::{Buffers, Generator, WorkloadError};

/// The shortest item name and the shortest description.
const SHORTEST: u64 = 3;
const LONGEST_NAME: u64 = 19;
const LONGEST_DESCRIPTION: u64 = 99;
/// Bytes of a row's numbers, for its size: six of the seven, like the published generator.
const NUMBERS: u64 = 6 * 8;

/// The stream "auction" of a NEXMark data set.
#[derive(Debug, Clone)]
pub struct Auctions {
    pub(super) parts: Arc<EventSources>,
}

impl Auctions {
    /// Writes [`SHORTEST`] to `longest` letters and blanks per event.
    fn words(
        &self,
        length: u64,
        words: u64,
        longest: u64,
        events: &[u64],
        buffers: &mut Buffers,
    ) -> AsciiColumn {
        let (length, words) = (self.parts.lane(length), self.parts.lane(words));
        let mut text = AsciiColumn::new(events.len(), longest as usize, buffers);
        for &event in events {
            let words = sequence(words, event);
            let length = SHORTEST + length.below(event, longest - SHORTEST + 1);
            text.push_words(sequence(words, 0), sequence(words, 1), length);
            text.end_row();
        }
        text
    }

    fn seller(&self, events: &[u64], buffers: &mut Buffers) -> Vec<i64> {
        let options = &self.parts.options;
        let draw = Draw {
            is_hot: self.parts.lane(lanes::SELLER_IS_HOT),
            other: self.parts.lane(lanes::SELLER),
            hot_ratio: options.hot_seller_ratio,
        };
        references::sellers(draw, options, events, buffers)
    }

    fn category(&self, events: &[u64], buffers: &mut Buffers) -> Vec<i64> {
        let lane = self.parts.lane(lanes::CATEGORY);
        buffers.filled(events.iter().map(|&event| FIRST_CATEGORY + lane.below(event, CATEGORIES) as i64))
    }
}

impl Generator for Auctions {
    fn schema(&self) -> SchemaRef {
        NexmarkStream::Auction.schema()
    }

    fn max_batch_rows(&self) -> u64 {
        max_batch_rows(longest_extra(self.parts.options.auction_bytes).max(LONGEST_DESCRIPTION))
    }

    fn check_rows(&self, rows: &Range<u64>) -> Result<(), WorkloadError> {
        self.parts.check_rows(NexmarkStream::Auction, rows, self.parts.clock.longest_open_ms())
    }

    fn fill(&self, rows: Range<u64>, buffers: &mut Buffers) -> RecordBatch {
        let (options, clock) = (&self.parts.options, &self.parts.clock);
        let events = NexmarkStream::Auction.events(rows.clone(), buffers);
        let numbers = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as ArrayRef;
        let times = |values: Vec<i64>| Arc::new(TimestampMillisecondArray::from(values)) as ArrayRef;

        let ids = buffers.filled(rows.map(|row| row as i64 + FIRST_AUCTION_ID));
        let item_name = self.words(lanes::ITEM_NAME_LENGTH, lanes::ITEM_NAME, LONGEST_NAME, &events, buffers);
        let description =
            self.words(lanes::DESCRIPTION_LENGTH, lanes::DESCRIPTION, LONGEST_DESCRIPTION, &events, buffers);
        let used = |row| NUMBERS + item_name.row_bytes(row) + description.row_bytes(row);
        let extra = extra(options.seed, &events, options.auction_bytes, used, buffers);
        let initial_bid = prices(self.parts.lane(lanes::INITIAL_BID), &events, buffers);
        let above = prices(self.parts.lane(lanes::RESERVE), &events, buffers);
        let reserve = buffers.filled(initial_bid.iter().zip(&above).map(|(bid, above)| bid + above));
        buffers.give_back(above);
        let date_time = clock.date_time(&events, buffers);
        let open_for = clock.open_for(&events);
        let expires = buffers.filled(date_time.iter().zip(open_for).map(|(time, open)| time + open));
        let arrays = vec![
            numbers(ids),
            item_name.finish(),
            description.finish(),
            numbers(initial_bid),
            numbers(reserve),
            times(date_time),
            times(expires),
            numbers(self.seller(&events, buffers)),
            numbers(self.category(&events, buffers)),
            extra,
        ];
        buffers.give_back(events);
        RecordBatch::try_new(self.schema(), arrays)
            .expect("the columns have the types of the schema and one length")
    }
}
