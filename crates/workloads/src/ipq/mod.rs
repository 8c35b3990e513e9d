//! IPQ, the queries of the Cameo paper: ad revenue from many sources, and logs to join it with.
//!
//! Each source is a table of its own, with rows numbered from 0: [`Ipq::revenue`] and [`Ipq::logs`]. The
//! volume of a source in a second is a pure function of the seed, the source and the second ([`Ipq::volume`]).
//! [`Tenants`] describes the mix of jobs. The columns, none of them ever null:
//!
//! | column      | values                                                                            |
//! |-------------|-----------------------------------------------------------------------------------|
//! | `timestamp` | milliseconds; the rows of a second are spread over it evenly, see [`IpqOptions`] for disorder |
//! | `key`       | `0..keys`, uniform or by Zipf's law with key 0 in front; in both tables             |
//! | `other_key` | 0..100, uniform; revenue only                                                       |
//! | `revenue`   | cents: log-normal around 40; revenue only                                           |
//! | `value`     | 0..1000, uniform; logs only                                                         |
//!
//! ```
//! use penstock_workloads::Generator;
//! use penstock_workloads::ipq::{Ipq, IpqOptions};
//!
//! let ipq = Ipq::new(IpqOptions { is_variable: true, ..IpqOptions::default() })?;
//! let first_second = ipq.revenue(0)?.generate(0..ipq.volume(0, 0)?)?;
//! assert_eq!(first_second.num_rows() as u64, ipq.rows_before(0, 1)?);
//! # Ok::<(), penstock_workloads::WorkloadError>(())
//! ```

mod options;
mod tenants;
mod volumes;

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, TimestampMillisecondArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};

pub use options::IpqOptions;
pub use tenants::{MAX_JOBS, TenantJob, TenantQuery, Tenants, Urgency};
pub use volumes::PERIOD_S;

use crate::random::RandomLane;
use crate::shapes::{log_normal, round};
use crate::times::RowTimes;
use crate::zipf::Zipf;
use crate::{Buffers, Generator, WorkloadError};
use volumes::Volumes;

/// The largest [`IpqOptions::sources`].
pub const MAX_SOURCES: u16 = 10_000;
/// The largest [`IpqOptions::rate`].
pub const MAX_RATE: u64 = 1_000_000_000;
/// The largest [`IpqOptions::skew`].
pub const MAX_SKEW: u64 = 1_000_000;
/// The largest [`IpqOptions::keys`].
pub const MAX_KEYS: u16 = u16::MAX;
/// Values of `other_key`.
pub const OTHER_KEYS: u64 = 100;

const MEDIAN_CENTS: f64 = 40.0;
const CENTS_OCTAVES: f64 = 1.5;
const VALUES: u64 = 1_000;

// Part of the data set, like all lanes (WORKLOAD-3). The source is added above their 16 bits; volumes have 510.
const LANE_REVENUE_KEY: u64 = 500;
const LANE_OTHER_KEY: u64 = 501;
const LANE_REVENUE: u64 = 502;
const LANE_LOG_KEY: u64 = 503;
const LANE_VALUE: u64 = 504;
/// And the two after each.
const LANE_REVENUE_TIMES: u64 = 520;
const LANE_LOG_TIMES: u64 = 523;

/// Returns the columns of the revenue.
pub fn revenue_schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| columns(&["key", "other_key", "revenue"]));
    SCHEMA.clone()
}

/// Returns the columns of the logs.
pub fn logs_schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| columns(&["key", "value"]));
    SCHEMA.clone()
}

fn columns(numbers: &[&str]) -> SchemaRef {
    let mut fields = vec![Field::new("timestamp", DataType::Timestamp(TimeUnit::Millisecond, None), false)];
    fields.extend(numbers.iter().map(|name| Field::new(*name, DataType::Int64, false)));
    Arc::new(Schema::new(fields))
}

/// The sources of one set of options. Cheap to clone; each clone has the same.
#[derive(Debug, Clone)]
pub struct Ipq {
    options: IpqOptions,
    zipf: Option<Arc<Zipf>>,
}

/// The rows of one source, in either table.
#[derive(Debug, Clone)]
struct IpqSource {
    seed: u64,
    number: u64,
    volumes: Volumes,
    times: RowTimes,
    keys: u64,
    zipf: Option<Arc<Zipf>>,
}

/// The revenue of one source. Cheap to clone; each clone makes the same rows.
#[derive(Debug, Clone)]
pub struct Revenue {
    source: IpqSource,
}

/// The logs of one source. Cheap to clone; each clone makes the same rows.
#[derive(Debug, Clone)]
pub struct Logs {
    source: IpqSource,
}

impl Ipq {
    /// Creates the sources that `options` describe.
    ///
    /// # Errors
    /// Any option outside its bounds, by name.
    pub fn new(options: IpqOptions) -> Result<Self, WorkloadError> {
        options.check()?;
        let zipf = (options.zipf > 0.0).then(|| Arc::new(Zipf::new(options.keys, options.zipf)));
        Ok(Self { options, zipf })
    }

    /// Returns the options of these sources.
    pub fn options(&self) -> &IpqOptions {
        &self.options
    }

    /// Returns the revenue of a source.
    ///
    /// # Errors
    /// A source that does not exist.
    pub fn revenue(&self, source: u16) -> Result<Revenue, WorkloadError> {
        Ok(Revenue { source: self.source(source, LANE_REVENUE_TIMES)? })
    }

    /// Returns the logs of a source.
    ///
    /// # Errors
    /// A source that does not exist.
    pub fn logs(&self, source: u16) -> Result<Logs, WorkloadError> {
        Ok(Logs { source: self.source(source, LANE_LOG_TIMES)? })
    }

    /// Returns the rows that a source sends in a second of event time, in each of the two tables. Disorder moves
    /// times, but does not change this count.
    ///
    /// # Errors
    /// A source that does not exist.
    pub fn volume(&self, source: u16, second: u64) -> Result<u64, WorkloadError> {
        self.options.check_source(source)?;
        Ok(Volumes::new(&self.options, source).of_second(second))
    }

    /// Returns the rows that a source sends in all seconds before this one: the number of the second's first row. It
    /// is `u64::MAX` where row ids run out.
    ///
    /// # Errors
    /// A source that does not exist.
    pub fn rows_before(&self, source: u16, second: u64) -> Result<u64, WorkloadError> {
        self.options.check_source(source)?;
        Ok(Volumes::new(&self.options, source).before_second(second))
    }

    fn source(&self, source: u16, times_lane: u64) -> Result<IpqSource, WorkloadError> {
        let options = &self.options;
        options.check_source(source)?;
        let volumes = Volumes::new(options, source);
        let number = u64::from(source);
        Ok(IpqSource {
            seed: options.seed,
            number,
            volumes,
            times: RowTimes::new(options.seed, times_lane | number << 16, 0, options.pace(volumes.rate)),
            keys: options.keys.into(),
            zipf: self.zipf.clone(),
        })
    }
}

impl IpqSource {
    fn check_rows(&self, rows: &Range<u64>) -> Result<(), WorkloadError> {
        if rows.is_empty() {
            return Ok(());
        }
        let row = rows.end - 1;
        self.times.check_last(row, self.volumes.latest_ms(row), self.volumes.rate)
    }

    fn batch(
        &self,
        schema: SchemaRef,
        rows: Range<u64>,
        numbers: Vec<Vec<i64>>,
        buffers: &mut Buffers,
    ) -> RecordBatch {
        let times = match self.volumes.in_order(rows.clone(), buffers) {
            Some(mut times) => {
                self.times.disorder(rows, &mut times);
                times
            }
            None => self.times.column(rows, buffers),
        };
        let mut arrays: Vec<ArrayRef> = vec![Arc::new(TimestampMillisecondArray::from(times))];
        arrays.extend(numbers.into_iter().map(|column| Arc::new(Int64Array::from(column)) as ArrayRef));
        RecordBatch::try_new(schema, arrays).expect("the columns have the types of the schema and one length")
    }

    fn key(&self, lane: u64, rows: Range<u64>, buffers: &mut Buffers) -> Vec<i64> {
        match &self.zipf {
            None => self.below(lane, self.keys, rows, buffers),
            Some(zipf) => {
                let lane = self.lane(lane);
                buffers.filled(rows.map(|row| zipf.pick(lane.bits(row)) as i64))
            }
        }
    }

    fn below(&self, lane: u64, bound: u64, rows: Range<u64>, buffers: &mut Buffers) -> Vec<i64> {
        let lane = self.lane(lane);
        buffers.filled(rows.map(|row| lane.below(row, bound) as i64))
    }

    fn lane(&self, lane: u64) -> RandomLane {
        RandomLane::new(self.seed, lane | self.number << 16)
    }
}

impl Generator for Revenue {
    fn schema(&self) -> SchemaRef {
        revenue_schema()
    }

    fn check_rows(&self, rows: &Range<u64>) -> Result<(), WorkloadError> {
        self.source.check_rows(rows)
    }

    fn fill(&self, rows: Range<u64>, buffers: &mut Buffers) -> RecordBatch {
        let source = &self.source;
        let lane = source.lane(LANE_REVENUE);
        let cents = |row| round(log_normal(lane.bits(row), MEDIAN_CENTS, CENTS_OCTAVES));
        let numbers = vec![
            source.key(LANE_REVENUE_KEY, rows.clone(), buffers),
            source.below(LANE_OTHER_KEY, OTHER_KEYS, rows.clone(), buffers),
            buffers.filled(rows.clone().map(cents)),
        ];
        source.batch(revenue_schema(), rows, numbers, buffers)
    }
}

impl Generator for Logs {
    fn schema(&self) -> SchemaRef {
        logs_schema()
    }

    fn check_rows(&self, rows: &Range<u64>) -> Result<(), WorkloadError> {
        self.source.check_rows(rows)
    }

    fn fill(&self, rows: Range<u64>, buffers: &mut Buffers) -> RecordBatch {
        let source = &self.source;
        let numbers = vec![
            source.key(LANE_LOG_KEY, rows.clone(), buffers),
            source.below(LANE_VALUE, VALUES, rows.clone(), buffers),
        ];
        source.batch(logs_schema(), rows, numbers, buffers)
    }
}
