//! SG, a smart grid: the readings of the plugs of some houses, after the data of the DEBS challenge of 2014.
//!
//! A house has up to 14 households, a household up to 14 plugs. At each reading a plug gives two rows, first its work,
//! then its load. Two thirds of the plugs have nothing switched on and a load of 0. The columns, none of them ever
//! null:
//!
//! | column      | values                                                                               |
//! |-------------|--------------------------------------------------------------------------------------|
//! | `timestamp` | milliseconds; row r is at [`START_MS`]` + floor(r * 1000 / rate)`, see [`SgOptions`] for steps and disorder |
//! | `value`     | kilowatt hours or watts, in thousandths. The work of a plug never falls, and grows with its load as if it were read every two seconds |
//! | `property`  | 0 work, 1 load                                                                        |
//! | `plug`      | number within the household, 0..14                                                    |
//! | `household` | number within the house, 0..14                                                        |
//! | `house`     | `0..houses`                                                                           |
//!
//! ```
//! use penstock_workloads::Generator;
//! use penstock_workloads::sg::{SgOptions, Sg};
//!
//! let sg = Sg::new(SgOptions { seed: 42, ..SgOptions::default() })?;
//! let whole = sg.generate(0..1_000)?;
//! let tail = sg.generate(600..1_000)?;
//! assert_eq!(whole.slice(600, 400), tail);
//! # Ok::<(), penstock_workloads::WorkloadError>(())
//! ```

mod options;
mod plugs;

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use arrow_array::{ArrayRef, Float32Array, Int32Array, RecordBatch, TimestampMillisecondArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};

pub use options::SgOptions;

use crate::random::RandomLane;
use crate::shapes::{normal, round};
use crate::times::RowTimes;
use crate::zipf::Zipf;
use crate::{Buffers, Generator, WorkloadError};
use plugs::{Plug, plugs};

/// The largest [`SgOptions::houses`]: all plugs together have numbers of 16 bits.
pub const MAX_HOUSES: u16 = 300;
/// The time of the first reading: the start of September 2013 in central Europe, as in the published data.
pub const START_MS: u64 = 1_377_986_400_000;
/// The `property` of rows whose value is a work.
pub const WORK: i32 = 0;
/// The `property` of rows whose value is a load.
pub const LOAD: i32 = 1;

/// Seconds from one reading of a plug to the next, for computing its work.
const SECONDS_PER_READING: f64 = 2.0;
const WATT_SECONDS_PER_KILOWATT_HOUR: f64 = 3_600_000.0;

// Part of the data set, like all lanes (WORKLOAD-3). The plugs have those from 300 on.
const LANE_PLUG: u64 = 310;
const LANE_NOISE: u64 = 311;
/// And the two after it.
const LANE_TIMES: u64 = 312;

/// Returns the columns of the readings.
pub fn schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
        let number = |name: &str| Field::new(name, DataType::Int32, false);
        Arc::new(Schema::new(vec![
            Field::new("timestamp", DataType::Timestamp(TimeUnit::Millisecond, None), false),
            Field::new("value", DataType::Float32, false),
            number("property"),
            number("plug"),
            number("household"),
            number("house"),
        ]))
    });
    SCHEMA.clone()
}

/// The readings of one set of options. Cheap to clone; each clone makes the same rows.
#[derive(Debug, Clone)]
pub struct Sg {
    options: SgOptions,
    model: Arc<MeterModel>,
}

#[derive(Debug)]
struct MeterModel {
    times: RowTimes,
    plugs: Vec<Plug>,
    zipf: Option<Zipf>,
    plug: RandomLane,
    noise: RandomLane,
}

impl Sg {
    /// Creates the data set that `options` describe.
    ///
    /// # Errors
    /// Any option outside its bounds, by name.
    pub fn new(options: SgOptions) -> Result<Self, WorkloadError> {
        options.check()?;
        let plugs = plugs(&options);
        let zipf = (options.zipf > 0.0).then(|| Zipf::new(plugs.len() as u16, options.zipf));
        let model = MeterModel {
            times: RowTimes::new(options.seed, LANE_TIMES, START_MS, options.pace()),
            plugs,
            zipf,
            plug: RandomLane::new(options.seed, LANE_PLUG),
            noise: RandomLane::new(options.seed, LANE_NOISE),
        };
        Ok(Self { options, model: Arc::new(model) })
    }

    /// Returns the options of this data set.
    pub fn options(&self) -> &SgOptions {
        &self.options
    }

    /// Returns the number of plugs of all houses.
    pub fn plugs(&self) -> usize {
        self.model.plugs.len()
    }
}

impl Generator for Sg {
    fn schema(&self) -> SchemaRef {
        schema()
    }

    fn check_rows(&self, rows: &Range<u64>) -> Result<(), WorkloadError> {
        self.model.times.check_rows(rows)
    }

    fn fill(&self, rows: Range<u64>, buffers: &mut Buffers) -> RecordBatch {
        let model = &*self.model;
        let plugs = model.plugs(rows.clone());
        let number = |of: fn(&Plug) -> i32, buffers: &mut Buffers| {
            Arc::new(Int32Array::from(buffers.filled(plugs.iter().map(|plug| of(plug))))) as ArrayRef
        };
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(TimestampMillisecondArray::from(model.times.column(rows.clone(), buffers))),
            Arc::new(Float32Array::from(model.value(&plugs, rows.clone(), buffers))),
            Arc::new(Int32Array::from(buffers.filled(rows.map(property)))),
            number(|plug| plug.plug, buffers),
            number(|plug| plug.household, buffers),
            number(|plug| plug.house, buffers),
        ];
        RecordBatch::try_new(schema(), arrays)
            .expect("the columns have the types of the schema and one length")
    }
}

/// Returns the property of a row: of the two rows of a reading, the first has the work.
fn property(row: u64) -> i32 {
    if row.is_multiple_of(2) { WORK } else { LOAD }
}

impl MeterModel {
    fn plugs(&self, rows: Range<u64>) -> Vec<&Plug> {
        match &self.zipf {
            Some(zipf) => rows.map(|row| &self.plugs[zipf.pick(self.plug.bits(row / 2)) as usize]).collect(),
            None => {
                let mut in_turn = (rows.start / 2 % self.plugs.len() as u64) as usize;
                rows.map(|row| {
                    let plug = &self.plugs[in_turn];
                    in_turn += (row % 2) as usize;
                    in_turn = if in_turn == self.plugs.len() { 0 } else { in_turn };
                    plug
                })
                .collect()
            }
        }
    }

    fn value(&self, plugs: &[&Plug], rows: Range<u64>, buffers: &mut Buffers) -> Vec<f32> {
        let value = |(plug, row): (&&Plug, u64)| {
            let value = if property(row) == WORK {
                let seconds = (row / 2 / self.plugs.len() as u64) as f64 * SECONDS_PER_READING;
                plug.kilowatt_hours + plug.watts * seconds / WATT_SECONDS_PER_KILOWATT_HOUR
            } else {
                plug.watts + plug.noise_watts * normal(self.noise.bits(row))
            };
            (round(value.max(0.0) * 1_000.0) as f64 / 1_000.0) as f32
        };
        buffers.filled(plugs.iter().zip(rows).map(value))
    }
}
