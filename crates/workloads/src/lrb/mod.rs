//! LRB, Linear Road: the position reports of cars on expressways, with accidents and queues.
//!
//! A small model of traffic. An expressway has two directions of 100 segments, which are a mile long. Cars arrive ever
//! more often, enter, speed up, change lanes and leave; some collide, stand still for ten minutes or more and drive
//! on; the others queue up upstream of them. Each car reports when it enters, on lane 0, and at fixed intervals from
//! then on; its last report is from lane 4. The columns, none of them ever null:
//!
//! | column  | values                                                                                |
//! |---------|---------------------------------------------------------------------------------------|
//! | `time`  | seconds; rows are ordered by time, then by `vid`. See [`LrbOptions`] for disorder         |
//! | `type`  | 0 for a position report; 2, 3 and 4 for the requests of [`LrbOptions::queries_every`]    |
//! | `vid`   | the car: unique over all expressways                                                  |
//! | `speed` | miles per hour: 0 in an accident, 1 to 70 elsewhere, at least 40 without accidents    |
//! | `xway`  | the expressway                                                                        |
//! | `lane`  | 0 entry, 1 to 3 travel, 4 exit                                                        |
//! | `dir`   | 0 or 1: the direction, in which `pos` grows or falls                                  |
//! | `seg`   | 0..100: the segment, `pos / 5280`                                                     |
//! | `pos`   | 0..528,000: feet from the start of the expressway                                     |
//! | `qid`, `sinit`, `send`, `dow`, `tod`, `day` | the subject of a request; -1 in reports           |
//!
//! Each car travels independently: its journey follows from the seed, its road, its number and the plan of the
//! accidents, never from the positions of other cars. A data set knows from the start when each car enters and leaves,
//! so any of its rows can be made at once. Unlike other workloads it ends: [`Lrb::rows`].
//!
//! ```
//! use penstock_workloads::Generator;
//! use penstock_workloads::lrb::{Lrb, LrbOptions};
//!
//! let lrb = Lrb::new(LrbOptions { seed: 42, minutes: 20, ..LrbOptions::default() })?;
//! let whole = lrb.generate(0..1_000)?;
//! let tail = lrb.generate(600..1_000)?;
//! assert_eq!(whole.slice(600, 400), tail);
//! assert!(lrb.generate(0..lrb.rows() + 1).is_err());
//! # Ok::<(), penstock_workloads::WorkloadError>(())
//! ```

mod accidents;
mod columns;
mod journey;
mod leg;
mod options;
mod requests;
mod road;
mod trip;

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef};

pub use accidents::Accident;
pub use options::{
    LrbOptions, MAX_ACCIDENT_EVERY, MAX_CARS, MAX_CARS_PER_SECOND, MAX_EXPRESSWAYS, MAX_MINUTES,
    MAX_OUT_OF_ORDER_S, MAX_REPORT_EVERY, MIN_ACCIDENT_EVERY,
};

use crate::random::RandomLane;
use crate::{Buffers, Generator, WorkloadError};
use columns::ReportColumns;
use road::Road;

/// Segments of an expressway.
pub const SEGMENTS: u64 = 100;
/// Feet of a segment.
pub const SEGMENT_FT: i32 = 5_280;
/// Lanes that cars drive in, from 1 on.
pub const TRAVEL_LANES: u64 = 3;
/// Number of reports from the same place after which the query sees that a car stands still.
pub const REPORTS_OF_A_STOP: u32 = 4;
/// Largest distance by which a late row is moved back.
pub const MAX_LATE_S: u64 = 60;

// Lanes for what is drawn by row, far from those of any road. They are part of the data set (WORKLOAD-3): never reuse
// or renumber them.
const LANE_JITTER: u64 = 1 << 32;
const LANE_IS_LATE: u64 = LANE_JITTER + 1;
const LANE_LATE_BY: u64 = LANE_JITTER + 2;

/// Returns the columns of LRB.
pub fn schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
        let numbers = [
            "type", "vid", "speed", "xway", "lane", "dir", "seg", "pos", "qid", "sinit", "send", "dow",
            "tod", "day",
        ];
        let time = Field::new("time", DataType::Int64, false);
        let numbers = numbers.map(|name| Field::new(name, DataType::Int32, false));
        Arc::new(Schema::new(std::iter::once(time).chain(numbers).collect::<Vec<_>>()))
    });
    SCHEMA.clone()
}

/// The LRB data set of one set of options. Cheap to clone; each clone makes the same rows.
#[derive(Debug, Clone)]
pub struct Lrb {
    options: LrbOptions,
    traffic: Arc<Traffic>,
}

#[derive(Debug)]
struct Traffic {
    roads: Vec<Road>,
    /// The first row of each road in each second, in the order of the rows, and the end of the last one.
    starts: Vec<u64>,
}

impl Lrb {
    /// Creates the data set that `options` describe. Computes the journey of each car, once: some hundredths of a
    /// second for an expressway of three hours.
    ///
    /// # Errors
    /// Any option outside its bounds, by name.
    pub fn new(options: LrbOptions) -> Result<Self, WorkloadError> {
        options.check()?;
        let end_s = options.seconds();
        let roads: Vec<Road> = (0..2 * options.expressways as u32).map(|n| Road::new(&options, n)).collect();
        let rows: Vec<Vec<u32>> = roads.iter().map(|road| road.rows_per_second(end_s)).collect();
        let mut starts = Vec::with_capacity(end_s as usize * roads.len() + 1);
        let mut row = 0;
        for second in 0..end_s as usize {
            for road in &rows {
                starts.push(row);
                row += u64::from(road[second]);
            }
        }
        starts.push(row);
        Ok(Self { options, traffic: Arc::new(Traffic { roads, starts }) })
    }

    /// Returns the options of this data set.
    pub fn options(&self) -> &LrbOptions {
        &self.options
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> u64 {
        self.traffic.starts[self.traffic.starts.len() - 1]
    }

    /// Returns the accidents, ordered by their first second, then by expressway and direction. The query must find
    /// exactly these: an accident that the end of the data cuts short is listed if both cars report four times from
    /// there.
    pub fn accidents(&self) -> Vec<Accident> {
        let end_s = self.options.seconds();
        let mut all: Vec<Accident> =
            self.traffic.roads.iter().flat_map(|road| road.accidents(end_s)).collect();
        all.sort_by_key(|accident| (accident.first, accident.expressway, accident.direction));
        all
    }

    /// Moves ordered times as the options ask for.
    fn disorder(&self, rows: Range<u64>, times: &mut [i64]) {
        let lane = |lane| RandomLane::new(self.options.seed, lane);
        if self.options.out_of_order_s > 0 {
            let jitter = lane(LANE_JITTER);
            let reach = self.options.out_of_order_s;
            for (time, row) in times.iter_mut().zip(rows.clone()) {
                *time += jitter.below(row, reach * 2 + 1) as i64 - reach as i64;
            }
        }
        // 0 means no rows: then there is no last draw that makes a row late.
        if let Some(last_late) = u64::MAX.checked_div(self.options.late_every) {
            let (is_late, late_by) = (lane(LANE_IS_LATE), lane(LANE_LATE_BY));
            for (time, row) in times.iter_mut().zip(rows) {
                if is_late.bits(row) <= last_late {
                    *time -= 1 + late_by.below(row, MAX_LATE_S) as i64;
                }
            }
        }
    }
}

impl Generator for Lrb {
    fn schema(&self) -> SchemaRef {
        schema()
    }

    fn check_rows(&self, rows: &Range<u64>) -> Result<(), WorkloadError> {
        if rows.is_empty() || rows.end <= self.rows() {
            return Ok(());
        }
        Err(WorkloadError::PastTheEnd { row: rows.end - 1, rows: self.rows() })
    }

    fn fill(&self, rows: Range<u64>, buffers: &mut Buffers) -> RecordBatch {
        let Traffic { roads, starts } = &*self.traffic;
        let mut columns =
            ReportColumns::new(rows.start, rows.end.saturating_sub(rows.start) as usize, buffers);
        if !rows.is_empty() {
            // Finds the first row: the last start at or before it.
            let first = starts.partition_point(|&start| start <= rows.start) - 1;
            for (place, bounds) in starts.windows(2).enumerate().skip(first) {
                if bounds[0] >= rows.end {
                    break;
                }
                let within = |row: u64| (row.clamp(bounds[0], bounds[1]) - bounds[0]) as usize;
                let second = (place / roads.len()) as u32;
                columns.fill(&roads[place % roads.len()], second, within(rows.start)..within(rows.end));
            }
        }
        self.disorder(rows, &mut columns.time);
        columns.into_batch()
    }
}
