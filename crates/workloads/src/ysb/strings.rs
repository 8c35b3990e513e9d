//! The variant `ysb-strings`: the rows of [`Ysb`] in text, as in the original benchmark.
//!
//! Users, pages, ads and campaigns are UUIDs, types are words and addresses are dotted. Each text corresponds to one
//! number, the same one in every data set, and no two numbers of a column have the same text.

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use arrow_array::{ArrayRef, RecordBatch, TimestampMillisecondArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};

use super::columns::{PAGES, USERS};
use super::{ADS, CAMPAIGNS, Ysb, YsbOptions, campaign_of_ads};
use crate::random::RandomLane;
use crate::texts::{Hex, TextColumn, Words};
use crate::{Buffers, Generator, WorkloadError};

/// The words of `ad_type`, by number.
const AD_TYPES: [&str; 5] = ["banner", "modal", "sponsored-search", "mail", "mobile"];
/// The words of `event_type`, by number.
const EVENT_TYPES: [&str; 3] = ["view", "click", "purchase"];

/// Texts do not depend on the seed: all UUIDs come from this one, with a lane for each kind of entity.
const UUID_SEED: u64 = 0x7973_625F_7575_6964;
const USER: u64 = 1;
const PAGE: u64 = 2;
const AD: u64 = 3;
const CAMPAIGN: u64 = 4;
/// Added to the lane for the bits that identify nothing.
const FILLING: u64 = 16;

/// Characters of a UUID.
const UUID_LENGTH: usize = 36;

/// Returns the columns of the variant: those of [`schema`](super::schema), with text for all but the time.
pub fn schema_strings() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
        let text = |name: &str| Field::new(name, DataType::Utf8, false);
        Arc::new(Schema::new(vec![
            Field::new("event_time", DataType::Timestamp(TimeUnit::Millisecond, None), false),
            text("user_id"),
            text("page_id"),
            text("ad_id"),
            text("ad_type"),
            text("event_type"),
            text("ip"),
        ]))
    });
    SCHEMA.clone()
}

/// The YSB data set of one set of options, in text. Cheap to clone; each clone makes the same rows.
#[derive(Debug, Clone)]
pub struct YsbStrings {
    numbers: Ysb,
    texts: Arc<Tables>,
}

/// The texts of the numbers.
#[derive(Debug)]
struct Tables {
    users: Words<UUID_LENGTH>,
    pages: Words<UUID_LENGTH>,
    ads: Words<UUID_LENGTH>,
    ad_types: Words<16>,
    event_types: Words<8>,
    /// The text of each byte of an address, with the dot after it.
    bytes: [([u8; 4], usize); 256],
}

impl YsbStrings {
    /// Creates the data set that `options` describe.
    ///
    /// # Errors
    /// Any option outside its bounds, by name.
    pub fn new(options: YsbOptions) -> Result<Self, WorkloadError> {
        let texts = Tables {
            users: uuids(USER, USERS),
            pages: uuids(PAGE, PAGES),
            ads: uuids(AD, ADS.into()),
            ad_types: Words::new(AD_TYPES),
            event_types: Words::new(EVENT_TYPES),
            bytes: std::array::from_fn(byte_and_dot),
        };
        Ok(Self { numbers: Ysb::new(options)?, texts: Arc::new(texts) })
    }

    /// Returns the options of this data set.
    pub fn options(&self) -> &YsbOptions {
        self.numbers.options()
    }
}

impl Generator for YsbStrings {
    fn schema(&self) -> SchemaRef {
        schema_strings()
    }

    fn check_rows(&self, rows: &Range<u64>) -> Result<(), WorkloadError> {
        self.numbers.check_rows(rows)
    }

    fn fill(&self, rows: Range<u64>, buffers: &mut Buffers) -> RecordBatch {
        let (columns, texts) = (&self.numbers.columns, &self.texts);
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(TimestampMillisecondArray::from(columns.times.column(rows.clone(), buffers))),
            of(&texts.users, columns.user_id(rows.clone(), buffers), buffers),
            of(&texts.pages, columns.page_id(rows.clone(), buffers), buffers),
            of(&texts.ads, columns.ad_id(rows.clone(), buffers), buffers),
            of(&texts.ad_types, columns.ad_type(rows.clone(), buffers), buffers),
            of(&texts.event_types, columns.event_type(rows.clone(), buffers), buffers),
            texts.addresses(columns.ip(rows, buffers), buffers),
        ];
        RecordBatch::try_new(schema_strings(), arrays)
            .expect("the columns have the types of the schema and one length")
    }
}

/// Returns the campaign table of a seed, in text: `ad_id` and `campaign_id`, 1000 rows, in the order of the ads'
/// numbers.
pub fn campaigns_strings(seed: u64) -> RecordBatch {
    let text = |name: &str| Field::new(name, DataType::Utf8, false);
    let schema = Schema::new(vec![text("ad_id"), text("campaign_id")]);
    let buffers = &mut Buffers::default();
    let ads = of(&uuids(AD, ADS.into()), (0..i64::from(ADS)).collect(), buffers);
    let campaigns = of(&uuids(CAMPAIGN, CAMPAIGNS.into()), campaign_of_ads(seed), buffers);
    RecordBatch::try_new(Arc::new(schema), vec![ads, campaigns]).expect("two columns of text, one row per ad")
}

/// Returns the words with these numbers.
fn of<const WIDTH: usize>(words: &Words<WIDTH>, numbers: Vec<i64>, buffers: &mut Buffers) -> ArrayRef {
    let column = words.column(numbers.iter().map(|&number| number as usize), buffers);
    buffers.give_back(numbers);
    Arc::new(column)
}

impl Tables {
    fn addresses(&self, ips: Vec<i64>, buffers: &mut Buffers) -> ArrayRef {
        let mut texts = TextColumn::with_room(ips.len(), 16, buffers);
        for ip in &ips {
            let [_, _, _, _, a, b, c, d] = ip.to_be_bytes();
            for byte in [a, b, c] {
                let (field, length) = &self.bytes[usize::from(byte)];
                texts.append(field, *length);
            }
            let (field, length) = &self.bytes[usize::from(d)];
            texts.push(field, *length - 1);
        }
        buffers.give_back(ips);
        Arc::new(texts.finish())
    }
}

fn byte_and_dot(byte: usize) -> ([u8; 4], usize) {
    let text = format!("{byte}.");
    let mut field = [b' '; 4];
    field[..text.len()].copy_from_slice(text.as_bytes());
    (field, text.len())
}

/// Makes the UUIDs of the entities `0..n` of one kind.
fn uuids(kind: u64, n: u64) -> Words<UUID_LENGTH> {
    let texts: Vec<String> = (0..n).map(|number| uuid(kind, number)).collect();
    Words::new(texts.iter().map(String::as_str))
}

/// Makes a UUID of version 4. It contains all 64 bits of the lane's number, and a lane never repeats a number: two
/// entities of a kind never share one.
fn uuid(kind: u64, number: u64) -> String {
    let bits = RandomLane::new(UUID_SEED, kind).bits(number);
    let filling = RandomLane::new(UUID_SEED, kind + FILLING).bits(number);
    // Four bits make room for the version, and follow the two bits of the variant.
    let high = (bits & !0xF000) | 0x4000;
    let low = (0b10 << 62) | ((bits >> 12 & 0xF) << 58) | (filling >> 6);
    let digits = Hex::Lower.digits(high, low);
    let text = |range: Range<usize>| digits[range].iter().copied().map(char::from).collect::<String>();
    [text(0..8), text(8..12), text(12..16), text(16..20), text(20..32)].join("-")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_uuid_gives_back_the_bits_it_was_made_from(number: u64, kind in USER..=CAMPAIGN) {
            let digits: String = uuid(kind, number).split('-').collect();
            let high = u64::from_str_radix(&digits[..16], 16).unwrap();
            let low = u64::from_str_radix(&digits[16..], 16).unwrap();
            let bits = (high & !0xF000) | ((low >> 58 & 0xF) << 12);
            prop_assert_eq!(bits, RandomLane::new(UUID_SEED, kind).bits(number));
            prop_assert_eq!((high >> 12 & 0xF, low >> 62), (4, 0b10));
        }
    }
}
