//! The distance and duration of a trip.

use std::ops::Range;

use super::{NytOptions, lanes};
use crate::Buffers;
use crate::random::RandomLane;
use crate::shapes::{log_normal, round};

/// Half of the trips are shorter, in miles, and two thirds within this many octaves of it.
const MEDIAN_MILES: f64 = 1.8;
const OCTAVES: f64 = 1.3;

/// Miles per hour: long trips are faster, up to a limit.
const SLOWEST: f64 = 7.0;
const FASTER_PER_MILE: f64 = 2.0;
const FASTEST: f64 = 30.0;
/// The variation of speed by traffic, in octaves.
const TRAFFIC_OCTAVES: f64 = 0.35;

#[derive(Debug, Clone)]
pub(super) struct Distances {
    distance: RandomLane,
    speed: RandomLane,
}

impl Distances {
    pub(super) fn new(options: &NytOptions) -> Self {
        let lane = |lane| RandomLane::new(options.seed, lane);
        Self { distance: lane(lanes::DISTANCE), speed: lane(lanes::SPEED) }
    }

    /// Computes distances in hundredths of a mile, as the meter counts; between 0.07 and 41 miles.
    pub(super) fn hundredths(&self, rows: Range<u64>) -> Vec<u32> {
        rows.map(|row| round(100.0 * log_normal(self.distance.bits(row), MEDIAN_MILES, OCTAVES)) as u32)
            .collect()
    }

    /// Computes the durations of trips of these distances.
    pub(super) fn seconds(&self, hundredths: &[u32], rows: Range<u64>, buffers: &mut Buffers) -> Vec<i64> {
        let seconds = |(&hundredths, row): (&u32, u64)| {
            let miles = f64::from(hundredths) / 100.0;
            let usual = (SLOWEST + FASTER_PER_MILE * miles).min(FASTEST);
            let speed = log_normal(self.speed.bits(row), usual, TRAFFIC_OCTAVES);
            round(3_600.0 * miles / speed)
        };
        buffers.filled(hundredths.iter().zip(rows).map(seconds))
    }
}
