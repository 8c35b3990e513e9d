//! YSB, the Yahoo! streaming benchmark: advertising events, counted per campaign.
//!
//! [`Ysb`] is the variant with numbers: every id is an `i64`. [`YsbStrings`] has the same rows with text for ids,
//! types and addresses. There are 1000 ads in 100 campaigns of 10; the seed determines the campaign of each ad
//! ([`campaigns`]). The columns, none of them ever null:
//!
//! | column       | values                                                                     |
//! |--------------|----------------------------------------------------------------------------|
//! | `event_time` | milliseconds; row r is at `floor(r * 1000 / rate)`, see [`YsbOptions`] for steps and disorder |
//! | `user_id`    | 0..100, uniform                                                            |
//! | `page_id`    | 0..100, uniform                                                            |
//! | `ad_id`      | 0..1000, uniform or by Zipf's law with ad 0 in front                       |
//! | `ad_type`    | 0..5, uniform                                                              |
//! | `event_type` | 0 view, 1 click, 2 purchase                                                |
//! | `ip`         | 0..2^32, uniform                                                           |
//!
//! ```
//! use penstock_workloads::Generator;
//! use penstock_workloads::ysb::{YsbOptions, Ysb};
//!
//! let ysb = Ysb::new(YsbOptions { seed: 42, out_of_order_ms: 50, ..YsbOptions::default() })?;
//! let whole = ysb.generate(0..1_000)?;
//! let tail = ysb.generate(600..1_000)?;
//! assert_eq!(whole.slice(600, 400), tail);
//! # Ok::<(), penstock_workloads::WorkloadError>(())
//! ```

mod campaigns;
mod columns;
mod options;
mod strings;

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, TimestampMillisecondArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};

pub use campaigns::{campaign_of_ads, campaigns};
pub use options::YsbOptions;
pub use strings::{YsbStrings, campaigns_strings, schema_strings};

pub use crate::times::{MAX_LATE_MS, MAX_OUT_OF_ORDER_MS};
use crate::{Buffers, Generator, WorkloadError};
use columns::EventColumns;

/// Ads, with ids `0..ADS`.
pub const ADS: u16 = 1_000;
/// Campaigns, with ids `0..CAMPAIGNS`.
pub const CAMPAIGNS: u16 = 100;
/// Ads of each campaign.
pub const ADS_PER_CAMPAIGN: u16 = ADS / CAMPAIGNS;
/// The `event_type` that the query keeps.
pub const VIEW: i64 = 0;

/// Returns the columns of YSB.
pub fn schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
        let number = |name: &str| Field::new(name, DataType::Int64, false);
        Arc::new(Schema::new(vec![
            Field::new("event_time", DataType::Timestamp(TimeUnit::Millisecond, None), false),
            number("user_id"),
            number("page_id"),
            number("ad_id"),
            number("ad_type"),
            number("event_type"),
            number("ip"),
        ]))
    });
    SCHEMA.clone()
}

/// The YSB data set of one set of options. Cheap to clone; each clone makes the same rows.
#[derive(Debug, Clone)]
pub struct Ysb {
    options: YsbOptions,
    columns: EventColumns,
}

impl Ysb {
    /// Creates the data set that `options` describe.
    ///
    /// # Errors
    /// Any option outside its bounds, by name.
    pub fn new(options: YsbOptions) -> Result<Self, WorkloadError> {
        options.check()?;
        let columns = EventColumns::new(&options);
        Ok(Self { options, columns })
    }

    /// Returns the options of this data set.
    pub fn options(&self) -> &YsbOptions {
        &self.options
    }
}

impl Generator for Ysb {
    fn schema(&self) -> SchemaRef {
        schema()
    }

    fn check_rows(&self, rows: &Range<u64>) -> Result<(), WorkloadError> {
        self.columns.times.check_rows(rows)
    }

    fn fill(&self, rows: Range<u64>, buffers: &mut Buffers) -> RecordBatch {
        let columns = &self.columns;
        let numbers = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as ArrayRef;
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(TimestampMillisecondArray::from(columns.times.column(rows.clone(), buffers))),
            numbers(columns.user_id(rows.clone(), buffers)),
            numbers(columns.page_id(rows.clone(), buffers)),
            numbers(columns.ad_id(rows.clone(), buffers)),
            numbers(columns.ad_type(rows.clone(), buffers)),
            numbers(columns.event_type(rows.clone(), buffers)),
            numbers(columns.ip(rows, buffers)),
        ];
        RecordBatch::try_new(schema(), arrays)
            .expect("the columns have the types of the schema and one length")
    }
}
