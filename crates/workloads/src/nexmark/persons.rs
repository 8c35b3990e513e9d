//! The persons who join.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, TimestampMillisecondArray};
use arrow_schema::SchemaRef;

use super::stream::NexmarkStream;
use super::text::{AsciiColumn, extra, longest_extra, sequence};
use super::{EventSources, FIRST_PERSON_ID, lanes, max_batch_rows};
use crate::{Buffers, Generator, WorkloadError};

const FIRST_NAMES: [&str; 11] =
    ["Ada", "Bruno", "Clara", "Diego", "Emma", "Felix", "Greta", "Hugo", "Ines", "Jonas", "Kira"];
const LAST_NAMES: [&str; 9] =
    ["Adler", "Becker", "Costa", "Duval", "Evans", "Fischer", "Garcia", "Hansen", "Ito"];
const CITIES: [&str; 10] =
    ["Boise", "Casper", "Eugene", "Fresno", "Laramie", "Oakland", "Salem", "San Diego", "Spokane", "Tucson"];
/// Few, so that half of all persons live in one of the three that a query asks for.
const STATES: [&str; 6] = ["AZ", "CA", "ID", "OR", "WA", "WY"];

/// The longest string except `extra`: a name, an address, a credit card and a city are all shorter.
const LONGEST: u64 = 32;
/// Bytes of a row's numbers, for its size: the id.
const NUMBERS: u64 = 8;

/// The stream "person" of a NEXMark data set.
#[derive(Debug, Clone)]
pub struct Persons {
    pub(super) parts: Arc<EventSources>,
}

impl Persons {
    /// Writes one of these words per event.
    fn word(&self, lane: u64, words: &[&str], events: &[u64], buffers: &mut Buffers) -> AsciiColumn {
        let lane = self.parts.lane(lane);
        let mut text = AsciiColumn::new(events.len(), 10, buffers);
        for &event in events {
            text.push(words[lane.below(event, words.len() as u64) as usize].as_bytes());
            text.end_row();
        }
        text
    }

    fn name(&self, events: &[u64], buffers: &mut Buffers) -> AsciiColumn {
        let (first, last) = (self.parts.lane(lanes::FIRST_NAME), self.parts.lane(lanes::LAST_NAME));
        let mut text = AsciiColumn::new(events.len(), 16, buffers);
        for &event in events {
            text.push(FIRST_NAMES[first.below(event, FIRST_NAMES.len() as u64) as usize].as_bytes());
            text.push(b" ");
            text.push(LAST_NAMES[last.below(event, LAST_NAMES.len() as u64) as usize].as_bytes());
            text.end_row();
        }
        text
    }

    fn email_address(&self, events: &[u64], buffers: &mut Buffers) -> AsciiColumn {
        let lane = |lane| self.parts.lane(lane);
        let (mailbox, mailbox_length) = (lane(lanes::MAILBOX), lane(lanes::MAILBOX_LENGTH));
        let (domain, domain_length) = (lane(lanes::DOMAIN), lane(lanes::DOMAIN_LENGTH));
        let mut text = AsciiColumn::new(events.len(), 24, buffers);
        for &event in events {
            text.push_letters(sequence(mailbox, event), 3 + mailbox_length.below(event, 4));
            text.push(b"@");
            text.push_letters(sequence(domain, event), 3 + domain_length.below(event, 2));
            text.push(b".com");
            text.end_row();
        }
        text
    }

    fn credit_card(&self, events: &[u64], buffers: &mut Buffers) -> AsciiColumn {
        let lane = self.parts.lane(lanes::CREDIT_CARD);
        let mut text = AsciiColumn::new(events.len(), 19, buffers);
        for &event in events {
            let mut number = lane.below(event, 10_000_000_000_000_000);
            for group in 0..4 {
                if group > 0 {
                    text.push(b" ");
                }
                text.push_four_digits(number);
                number /= 10_000;
            }
            text.end_row();
        }
        text
    }
}

impl Generator for Persons {
    fn schema(&self) -> SchemaRef {
        NexmarkStream::Person.schema()
    }

    fn max_batch_rows(&self) -> u64 {
        max_batch_rows(longest_extra(self.parts.options.person_bytes).max(LONGEST))
    }

    fn check_rows(&self, rows: &Range<u64>) -> Result<(), WorkloadError> {
        self.parts.check_rows(NexmarkStream::Person, rows, 0)
    }

    fn fill(&self, rows: Range<u64>, buffers: &mut Buffers) -> RecordBatch {
        let options = &self.parts.options;
        let events = NexmarkStream::Person.events(rows.clone(), buffers);
        let ids = Int64Array::from(buffers.filled(rows.map(|row| row as i64 + FIRST_PERSON_ID)));
        let date_time = self.parts.clock.date_time(&events, buffers);
        let strings = [
            self.name(&events, buffers),
            self.email_address(&events, buffers),
            self.credit_card(&events, buffers),
            self.word(lanes::CITY, &CITIES, &events, buffers),
            self.word(lanes::STATE, &STATES, &events, buffers),
        ];
        let used = |row| NUMBERS + strings.iter().map(|text| text.row_bytes(row)).sum::<u64>();
        let extra = extra(options.seed, &events, options.person_bytes, used, buffers);
        let mut arrays: Vec<ArrayRef> = vec![Arc::new(ids)];
        arrays.extend(strings.map(AsciiColumn::finish));
        arrays.push(Arc::new(TimestampMillisecondArray::from(date_time)));
        arrays.push(extra);
        buffers.give_back(events);
        RecordBatch::try_new(self.schema(), arrays)
            .expect("the columns have the types of the schema and one length")
    }
}
