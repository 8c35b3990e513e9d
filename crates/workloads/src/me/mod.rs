//! ME, manufacturing equipment: the sensors of a plant, after the data of the DEBS challenge of 2012.
//!
//! A row is a message with all sensors. The columns, none of them ever null, are those that the published queries
//! keep, 64 bytes in a row:
//!
//! | column                 | values                                                                     |
//! |------------------------|----------------------------------------------------------------------------|
//! | `timestamp`            | milliseconds; row r is at [`START_MS`]` + floor(r * 1000 / rate)`, see [`MeOptions`] for steps and disorder |
//! | `message_index`        | [`FIRST_MESSAGE`] + r                                                        |
//! | `mf01`, `mf02`, `mf03` | electrical power of the three main phases: around 13,050, 14,370 and 8,090. The first two drift and surge together |
//! | `pc13`, `pc14`, `pc15` | anode current drop of three cells: around 70, 190 and 152, give or take 4    |
//! | `pc25`, `pc26`, `pc27` | anode voltage drop of the cells: 0                                           |
//! | `res`                  | 0                                                                            |
//! | `bm05`, `bm06`         | two switches: mostly 0, and 1 for one stretch of 256 messages in 64          |
//!
//! ```
//! use penstock_workloads::Generator;
//! use penstock_workloads::me::{Me, MeOptions};
//!
//! let me = Me::new(MeOptions { seed: 42, ..MeOptions::default() })?;
//! let whole = me.generate(0..1_000)?;
//! let tail = me.generate(600..1_000)?;
//! assert_eq!(whole.slice(600, 400), tail);
//! # Ok::<(), penstock_workloads::WorkloadError>(())
//! ```

mod signals;

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, TimestampMillisecondArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};

use crate::random::RandomLane;
use crate::rates::Rates;
use crate::times::{Pace, RowTimes};
use crate::{Buffers, Generator, WorkloadError, bounds};
use signals::{drift, noise, surge};

/// When the first message is sent: the start of the minute in which the published data begins.
pub const START_MS: u64 = 1_329_929_160_000;
/// The `message_index` of the first row.
pub const FIRST_MESSAGE: i64 = 2_556_001;

// Part of the data set, like all lanes (WORKLOAD-3).
const LANE_DRIFT: u64 = 400;
const LANE_SURGE: u64 = 401;
const LANE_OWN_DRIFT: u64 = 402;
const LANE_OWN_SURGE: u64 = 403;
/// And the two after it: one for each cell.
const LANE_CELLS: u64 = 404;
/// And the one after it: one for each switch.
const LANE_SWITCHES: u64 = 407;
/// And the two after it: one for each main phase.
const LANE_MAINS: u64 = 409;
/// And the two after it.
const LANE_TIMES: u64 = 412;

/// The levels of the main phases, and the extent of their drifts and surges.
const MAINS: [i32; 3] = [13_050, 14_370, 8_090];
const DRIFT: u64 = 250;
const SURGE: u64 = 5_000;
const OWN_DRIFT: u64 = 100;
const OWN_SURGE: u64 = 1_250;
/// The extent of the second phase relative to the first, in tenths.
const SECOND_PHASE_TENTHS: i32 = 11;
/// The levels of the cells.
const CELLS: [i32; 3] = [70, 190, 152];
/// Messages for which a switch keeps its state, as a power of two; one state in this many is 1.
const SWITCH_BITS: u32 = 8;
const STATES_PER_ONE: u64 = 64;

/// The options that define one set of messages.
#[derive(Debug, Clone, PartialEq)]
pub struct MeOptions {
    /// Two seeds give unrelated data sets.
    pub seed: u64,
    /// Rows per second of event time. The plant sends 100; the sensor values follow the messages, not time, and so do
    /// not depend on this.
    pub rate: u64,
    /// Seconds after which the rate changes: it is 1, 2, 6 and 12 times `rate` in turn ([`STEPS`](crate::STEPS)), then
    /// from the start again. 0 for never.
    pub step_every_s: u64,
    /// Each row's time is moved by a uniform distance between minus and plus this many milliseconds.
    pub out_of_order_ms: u64,
    /// One row in this many, on average, is moved back by 1 to 60,000 milliseconds more. 0 for none.
    pub late_every: u64,
}

impl Default for MeOptions {
    fn default() -> Self {
        Self { seed: 7, rate: 1_000_000, step_every_s: 0, out_of_order_ms: 0, late_every: 0 }
    }
}

/// Returns the columns of the messages.
pub fn schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
        let sensors =
            ["mf01", "mf02", "mf03", "pc13", "pc14", "pc15", "pc25", "pc26", "pc27", "res", "bm05", "bm06"];
        let mut fields = vec![
            Field::new("timestamp", DataType::Timestamp(TimeUnit::Millisecond, None), false),
            Field::new("message_index", DataType::Int64, false),
        ];
        fields.extend(sensors.map(|name| Field::new(name, DataType::Int32, false)));
        Arc::new(Schema::new(fields))
    });
    SCHEMA.clone()
}

/// The messages of one set of options. Cheap to clone; each clone makes the same rows.
#[derive(Debug, Clone)]
pub struct Me {
    options: MeOptions,
    times: RowTimes,
}

impl Me {
    /// Creates the data set that `options` describe.
    ///
    /// # Errors
    /// Any option outside its bounds, by name.
    pub fn new(options: MeOptions) -> Result<Self, WorkloadError> {
        let MeOptions { seed, rate, step_every_s, out_of_order_ms, late_every } = options;
        let pace = Pace { rates: Rates { rate, step_every_s }, out_of_order_ms, late_every };
        pace.check()?;
        Ok(Self { times: RowTimes::new(seed, LANE_TIMES, START_MS, pace), options })
    }

    /// Returns the options of this data set.
    pub fn options(&self) -> &MeOptions {
        &self.options
    }

    fn lane(&self, lane: u64) -> RandomLane {
        RandomLane::new(self.options.seed, lane)
    }

    /// Computes the three main phases.
    fn mains(&self, rows: &Range<u64>, buffers: &mut Buffers) -> [Vec<i32>; 3] {
        let sum = |mut left: Vec<i32>, right: Vec<i32>| {
            left.iter_mut().zip(right).for_each(|(left, right)| *left += right);
            left
        };
        let moves = sum(
            drift(self.lane(LANE_DRIFT), DRIFT, rows.clone(), buffers),
            surge(self.lane(LANE_SURGE), SURGE, rows.clone(), buffers),
        );
        let own_moves = sum(
            drift(self.lane(LANE_OWN_DRIFT), OWN_DRIFT, rows.clone(), buffers),
            surge(self.lane(LANE_OWN_SURGE), OWN_SURGE, rows.clone(), buffers),
        );
        let second_moves = buffers.filled(moves.iter().map(|moved| moved * SECOND_PHASE_TENTHS / 10));
        let mut moves = [moves, second_moves, own_moves];
        for ((moves, level), lane) in moves.iter_mut().zip(MAINS).zip(LANE_MAINS..) {
            let noise = noise(self.lane(lane), rows.clone(), buffers);
            moves.iter_mut().zip(noise).for_each(|(moved, noise)| *moved += level + noise);
        }
        moves
    }

    fn cell(&self, cell: usize, rows: Range<u64>, buffers: &mut Buffers) -> Vec<i32> {
        let mut values = noise(self.lane(LANE_CELLS + cell as u64), rows, buffers);
        values.iter_mut().for_each(|value| *value += CELLS[cell]);
        values
    }

    fn switch(&self, switch: u64, rows: Range<u64>, buffers: &mut Buffers) -> Vec<i32> {
        let lane = self.lane(LANE_SWITCHES + switch);
        buffers.filled(rows.map(|row| i32::from(lane.below(row >> SWITCH_BITS, STATES_PER_ONE) == 0)))
    }
}

impl Generator for Me {
    fn schema(&self) -> SchemaRef {
        schema()
    }

    /// Refuses the last row ids: messages are numbered by signed 64-bit integers, whatever the time between them.
    fn check_rows(&self, rows: &Range<u64>) -> Result<(), WorkloadError> {
        self.times.check_rows(rows)?;
        let most = (i64::MAX - FIRST_MESSAGE) as u64;
        if rows.is_empty() { Ok(()) } else { bounds::within("the last row", rows.end - 1, 0, most) }
    }

    fn fill(&self, rows: Range<u64>, buffers: &mut Buffers) -> RecordBatch {
        let number = |values: Vec<i32>| Arc::new(Int32Array::from(values)) as ArrayRef;
        let nothing = number(buffers.filled(rows.clone().map(|_| 0)));
        let [mf01, mf02, mf03] = self.mains(&rows, buffers).map(number);
        let indices = rows.clone().map(|row| row as i64 + FIRST_MESSAGE);
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(TimestampMillisecondArray::from(self.times.column(rows.clone(), buffers))),
            Arc::new(Int64Array::from(buffers.filled(indices))),
            mf01,
            mf02,
            mf03,
            number(self.cell(0, rows.clone(), buffers)),
            number(self.cell(1, rows.clone(), buffers)),
            number(self.cell(2, rows.clone(), buffers)),
            nothing.clone(),
            nothing.clone(),
            nothing.clone(),
            nothing,
            number(self.switch(0, rows.clone(), buffers)),
            number(self.switch(1, rows, buffers)),
        ];
        RecordBatch::try_new(schema(), arrays)
            .expect("the columns have the types of the schema and one length")
    }
}
