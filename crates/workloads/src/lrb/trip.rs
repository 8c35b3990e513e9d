//! The intended trip of a car: its arrival, its entry and exit, its cruising speed. A pure function of the seed, the
//! road and the number of the car, independent of other cars.
//!
//! On the road, places are feet from where its traffic starts: they grow as a car drives, in both directions.

use super::leg::{Leg, fps};
use super::{SEGMENT_FT, SEGMENTS};
use crate::random::RandomLane;

/// Seconds for which the rate of arrivals grows.
const RAMP_S: f64 = 10_800.0;
/// The speed of a car as it enters. Like every speed without accidents it is never reported as less than 40.
const ENTRY_MPH: u64 = 42;
/// Cruising speeds, in mph. Reported speeds differ by up to 2 mph: the limit is 70.
const SLOWEST_MPH: u64 = 45;
const FASTEST_MPH: u64 = 68;
/// Cars enter in the first quarter of a segment and leave in the last quarter of another: at least a mile and a half
/// later.
const RAMP_FT: u64 = SEGMENT_FT as u64 / 4;

/// The longest time on the road of a car that is not held up.
pub(super) const LONGEST_TRIP_S: u32 = 100 * 3_600 / SLOWEST_MPH as u32 + 60;

/// The arrivals of cars at one direction of an expressway.
#[derive(Debug, Clone, Copy)]
pub(super) struct CarArrivals {
    per_s: f64,
}

impl CarArrivals {
    pub(super) fn new(cars_per_second: u64) -> Self {
        Self { per_s: cars_per_second as f64 / 2.0 }
    }

    /// Returns the number of cars that have arrived by then.
    pub(super) fn by(self, second: u32) -> u64 {
        let s = f64::from(second);
        let ramp_s = s.min(RAMP_S);
        (self.per_s * (ramp_s * ramp_s / (2.0 * RAMP_S) + (s - ramp_s))).ceil() as u64
    }

    /// Returns the second by which that many have arrived: a car arrives between two whole numbers. Uses only
    /// operations that every platform rounds alike.
    fn second(self, cars: f64) -> u32 {
        let in_ramp = self.per_s * RAMP_S / 2.0;
        let s = if cars < in_ramp {
            (2.0 * RAMP_S * cars / self.per_s).sqrt()
        } else {
            RAMP_S + (cars - in_ramp) / self.per_s
        };
        s as u32
    }
}

/// A car and its intended trip.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Trip {
    /// Cars of a road are numbered in order of arrival.
    pub(super) number: u32,
    /// The second in which it enters, and reports for the first time.
    pub(super) entry_s: u32,
    pub(super) entry_ft: f32,
    pub(super) exit_ft: f32,
    pub(super) cruise_fps: f32,
}

impl Trip {
    /// Returns its journey if it is never held up. Seconds count from its entry.
    pub(super) fn free(&self) -> Leg {
        let (start_fps, cruise_fps) = (fps(ENTRY_MPH), self.cruise_fps);
        Leg { start_s: 0.0, start_ft: self.entry_ft, start_fps, cruise_fps }
    }
}

/// The intended trips of all cars of a road.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trips {
    arrivals: CarArrivals,
    moment: RandomLane,
    one_end: RandomLane,
    other_end: RandomLane,
    entry_ramp: RandomLane,
    exit_ramp: RandomLane,
    speed: RandomLane,
}

impl Trips {
    pub(super) fn new(arrivals: CarArrivals, lane: impl Fn(u64) -> RandomLane) -> Self {
        Self {
            arrivals,
            moment: lane(1),
            one_end: lane(2),
            other_end: lane(3),
            entry_ramp: lane(4),
            exit_ramp: lane(5),
            speed: lane(6),
        }
    }

    pub(super) fn trip(&self, number: u32) -> Trip {
        let car = u64::from(number);
        let moment = (self.moment.bits(car) >> 32) as f64 / 2f64.powi(32);
        // Two different segments, the first of them to enter.
        let one = self.one_end.below(car, SEGMENTS);
        let other = self.other_end.below(car, SEGMENTS - 1);
        let other = if other < one { other } else { other + 1 };
        let (entry, exit) = (one.min(other), one.max(other));
        let feet = |segment: u64, offset: u64| (segment * SEGMENT_FT as u64 + offset) as f32;
        Trip {
            number,
            entry_s: self.arrivals.second(f64::from(number) + moment),
            entry_ft: feet(entry, self.entry_ramp.below(car, RAMP_FT)),
            exit_ft: feet(exit, SEGMENT_FT as u64 - 1 - self.exit_ramp.below(car, RAMP_FT)),
            cruise_fps: fps(SLOWEST_MPH + self.speed.below(car, FASTEST_MPH - SLOWEST_MPH + 1)),
        }
    }

    /// Returns the cars that enter before this second, in the order of their numbers.
    pub(super) fn before(&self, second: u32) -> Vec<Trip> {
        (0..).map(|number| self.trip(number)).take_while(|trip| trip.entry_s < second).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trips(cars_per_second: u64, second: u32) -> Vec<Trip> {
        Trips::new(CarArrivals::new(cars_per_second), |lane| RandomLane::new(7, lane)).before(second)
    }

    #[test]
    fn cars_come_in_the_order_of_their_numbers_and_as_many_as_announced() {
        for (cars_per_second, second) in [(1, 600), (20, 10_800), (20, 14_400), (333, 900)] {
            let all = trips(cars_per_second, second);
            assert!(all.windows(2).all(|two| two[0].entry_s <= two[1].entry_s));
            let announced = CarArrivals::new(cars_per_second).by(second);
            assert!(announced.abs_diff(all.len() as u64) <= 1, "{announced}, {}", all.len());
        }
    }

    #[test]
    fn the_peak_is_reached_after_three_hours_and_kept() {
        let all = trips(20, 14_400);
        let in_minute =
            |minute: u32| all.iter().filter(|trip| trip.entry_s / 60 == minute).count() as f64 / 60.0;
        assert!((in_minute(90) / 5.0 - 1.0).abs() < 0.05, "{}", in_minute(90));
        for minute in [180, 200, 239] {
            assert!((in_minute(minute) / 10.0 - 1.0).abs() < 0.05, "{}", in_minute(minute));
        }
    }

    #[test]
    fn trips_are_long_enough_to_report_twice_and_end_in_time() {
        for trip in trips(20, 10_800) {
            let exit_s = trip.free().arrival_s(trip.exit_ft);
            assert!((60.0..LONGEST_TRIP_S as f32).contains(&exit_s), "{trip:?}: {exit_s} s");
        }
    }
}
