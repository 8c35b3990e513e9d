//! One direction of an expressway: its cars, in the order in which they report.
//!
//! ROAD-1. Cars that report in the same seconds, counted from one report to the next, are adjacent in the order of
//!     their numbers, which is that of their entries. So the reports of a second come from one range of cars, up to
//!     the last that has entered, without those that have left.

use std::ops::Range;

use super::accidents::{Accident, AccidentPlanner, Crash, WAIT_S};
use super::journey::{Slowness, travel};
use super::leg::Leg;
use super::requests::RequestPlan;
use super::trip::{CarArrivals, Trips};
use super::{LrbOptions, REPORTS_OF_A_STOP, SEGMENT_FT, SEGMENTS};
use crate::random::RandomLane;

/// Numbers of cars of one road are below this: `vid` is this times the road, plus the number.
pub(super) const CARS_PER_ROAD: u32 = 1 << 23;

// Lanes for what is drawn, besides those of trips (1..7), journeys (7..9), accidents (9..13) and requests (13..15).
// They are part of the data set (WORKLOAD-3): never reuse or renumber them.
const LANE_WOBBLE: u64 = 15;
const LANE_TRAVEL: u64 = 16;
/// Lanes of one road.
const LANES: u64 = 32;

/// Largest difference between the reported and the real speed, in mph.
const WOBBLE_MPH: i32 = 2;
/// Seconds for which a car stays in its lane.
const LANE_KEPT_S: u32 = 240;
const MPH_PER_FPS: f32 = 3_600.0 / 5_280.0;

/// A car's report.
#[derive(Debug, Clone, Copy)]
pub(super) struct Report {
    /// The number of the car on its road, and the number of its report, counted from 0.
    pub(super) car: u32,
    pub(super) nth: u32,
    pub(super) time: i64,
    pub(super) vid: i32,
    pub(super) speed: i32,
    pub(super) lane: i32,
    pub(super) pos: i32,
}

#[derive(Debug, Clone, Copy)]
struct Car {
    number: u32,
    /// Its legs end where those of the next car start.
    first_leg: u32,
    /// The lane in which it stands still, if it ever does; otherwise 0.
    stop_lane: u8,
}

#[derive(Debug)]
pub(super) struct Road {
    pub(super) expressway: i32,
    pub(super) direction: i32,
    first_vid: i32,
    report_every: u32,
    wobble: RandomLane,
    travel: RandomLane,
    pub(super) requests: Option<RequestPlan>,
    crashes: Vec<Crash>,
    /// For each second of a report interval, the start of its range of cars; and the end of the last range.
    stretches: Vec<usize>,
    // Per car, in the order of ROAD-1: its entry, its first and last report, and the rest.
    entry_s: Vec<u32>,
    last_s: Vec<u32>,
    cars: Vec<Car>,
    legs: Vec<Leg>,
}

impl Road {
    /// Creates a road from checked options. Roads are numbered from 0, two for each expressway.
    pub(super) fn new(options: &LrbOptions, road: u32) -> Self {
        let lane = |lane: u64| RandomLane::new(options.seed, u64::from(road) * LANES + lane);
        let end_s = options.seconds();
        let report_every = options.report_every as u32;
        // Cars that enter after the end may be part of an accident: the choice of its cars must not depend on the end,
        // or fewer minutes would not give the beginning of the same data.
        let trips = Trips::new(CarArrivals::new(options.cars_per_second), lane).before(end_s + WAIT_S);
        let slowness = Slowness::new(lane);
        let crashes =
            AccidentPlanner::new(options.accident_every as u32, lane).plan(&trips, &slowness, end_s);

        let mut stretches = vec![0; report_every as usize + 1];
        let watched = &trips[..trips.partition_point(|trip| trip.entry_s < end_s)];
        for trip in watched {
            stretches[(trip.entry_s % report_every) as usize + 1] += 1;
        }
        for second in 1..stretches.len() {
            stretches[second] += stretches[second - 1];
        }
        let mut places = stretches.clone();
        let mut order = vec![0; watched.len()];
        for (car, trip) in watched.iter().enumerate() {
            let place = &mut places[(trip.entry_s % report_every) as usize];
            order[*place] = car;
            *place += 1;
        }

        let (mut entry_s, mut last_s) = (Vec::with_capacity(order.len()), Vec::with_capacity(order.len()));
        let (mut cars, mut legs) = (Vec::with_capacity(order.len() + 1), Vec::with_capacity(order.len()));
        let mut way = Vec::new();
        for trip in order.iter().map(|&car| &watched[car]) {
            let exit_s = travel(trip, &crashes, &slowness, &mut way) as u32;
            entry_s.push(trip.entry_s);
            last_s.push(trip.entry_s + exit_s / report_every * report_every);
            let stop = crashes.iter().find(|crash| crash.cars.contains(&trip.number));
            let stop_lane = stop.map_or(0, |crash| crash.lane);
            cars.push(Car { number: trip.number, first_leg: legs.len() as u32, stop_lane });
            legs.extend_from_slice(&way);
        }
        legs.shrink_to_fit();
        // The end of the last car's legs.
        cars.push(Car { number: 0, first_leg: legs.len() as u32, stop_lane: 0 });

        Self {
            expressway: (road / 2) as i32,
            direction: (road % 2) as i32,
            first_vid: (road * CARS_PER_ROAD) as i32,
            report_every,
            wobble: lane(LANE_WOBBLE),
            travel: lane(LANE_TRAVEL),
            requests: RequestPlan::new(options.queries_every, lane),
            crashes,
            stretches,
            entry_s,
            last_s,
            cars,
            legs,
        }
    }

    /// Returns the rows of each second before `end_s`.
    pub(super) fn rows_per_second(&self, end_s: u32) -> Vec<u32> {
        let every = self.report_every as usize;
        let mut rows = vec![0u32; end_s as usize];
        let mut leaving = vec![0u32; end_s as usize];
        for (&entry_s, &last_s) in self.entry_s.iter().zip(&self.last_s) {
            rows[entry_s as usize] += 1;
            if let Some(left) = leaving.get_mut(last_s as usize + every) {
                *left += 1;
            }
        }
        for second in every..rows.len() {
            rows[second] = rows[second] + rows[second - every] - leaving[second];
        }
        let Some(requests) = &self.requests else { return rows };
        for (car, (&entry_s, &last_s)) in self.cars.iter().zip(self.entry_s.iter().zip(&self.last_s)) {
            let (mut report, step) = requests.turns(car.number);
            let reports = u64::from((last_s.min(end_s - 1) - entry_s) / self.report_every) + 1;
            while report < reports {
                rows[entry_s as usize + report as usize * every] += 1;
                // The next request may be so late that its number overflows.
                report = report.saturating_add(step);
            }
        }
        rows
    }

    /// Returns the cars that may report in this second: all that have entered, of which some have left.
    pub(super) fn stretch(&self, second: u32) -> Range<usize> {
        let phase = (second % self.report_every) as usize;
        let (start, end) = (self.stretches[phase], self.stretches[phase + 1]);
        start..start + self.entry_s[start..end].partition_point(|&entry_s| entry_s <= second)
    }

    /// Returns true if a car in the range of this second has not left.
    #[inline(always)]
    pub(super) fn is_on_the_road(&self, car: usize, second: u32) -> bool {
        self.last_s[car] >= second
    }

    /// Returns the report of a car on the road, within this range.
    #[inline(always)]
    pub(super) fn report(&self, place: usize, second: u32) -> Report {
        let car = self.cars[place];
        let driven_s = second - self.entry_s[place];
        let s = driven_s as f32;
        let legs = &self.legs[car.first_leg as usize..self.cars[place + 1].first_leg as usize];
        let mut leg = &legs[0];
        for next in &legs[1..] {
            if next.start_s > s {
                break;
            }
            leg = next;
        }
        let (ft, fps) = leg.at(s);
        let stands = leg.cruise_fps == 0.0;
        let row = u64::from(car.number) << 20;
        let wobble =
            self.wobble.below(row | u64::from(driven_s), 2 * WOBBLE_MPH as u64 + 1) as i32 - WOBBLE_MPH;
        let speed = (fps * MPH_PER_FPS + 0.5) as i32 + wobble;
        let lane = if driven_s == 0 {
            0
        } else if second == self.last_s[place] {
            4
        } else if stands {
            i32::from(car.stop_lane)
        } else {
            1 + self.travel.below(row | u64::from(driven_s / LANE_KEPT_S), super::TRAVEL_LANES) as i32
        };
        Report {
            car: car.number,
            nth: driven_s / self.report_every,
            time: i64::from(second),
            vid: self.first_vid + car.number as i32,
            // A crawling car must differ from one that stands still.
            speed: if stands { 0 } else { speed.max(1) },
            lane,
            pos: self.pos(ft),
        }
    }

    /// Converts feet to the expressway's count: in direction 0 along the traffic, in direction 1 against it.
    #[inline(always)]
    fn pos(&self, ft: f32) -> i32 {
        let foot = ft as i32;
        if self.direction == 0 { foot } else { SEGMENTS as i32 * SEGMENT_FT - 1 - foot }
    }

    /// Returns the accidents that can be found in the data: both cars report often enough from there before its end.
    pub(super) fn accidents(&self, end_s: u32) -> impl Iterator<Item = Accident> {
        self.crashes.iter().filter_map(move |crash| {
            let last_s = crash.until_s.min(end_s) - 1;
            let mut stops = crash.cars.iter().zip([crash.from_s, crash.first_s]);
            let is_seen = stops.all(|(&car, from_s)| {
                let entry_s = self.entry_of(car);
                entry_s.is_some_and(|entry_s| self.reports(entry_s, from_s, last_s) >= REPORTS_OF_A_STOP)
            });
            let pos = self.pos(crash.ft);
            is_seen.then(|| Accident {
                expressway: self.expressway,
                direction: self.direction,
                lane: i32::from(crash.lane),
                segment: pos / SEGMENT_FT,
                pos,
                first: i64::from(crash.first_s),
                last: i64::from(last_s),
                vehicles: crash.cars.map(|car| self.first_vid + car as i32),
            })
        })
    }

    fn entry_of(&self, number: u32) -> Option<u32> {
        self.stretches.windows(2).find_map(|stretch| {
            let cars = &self.cars[stretch[0]..stretch[1]];
            let place = cars.binary_search_by_key(&number, |car| car.number).ok()?;
            Some(self.entry_s[stretch[0] + place])
        })
    }

    /// Returns the number of reports of a car from one second to another.
    fn reports(&self, entry_s: u32, first_s: u32, last_s: u32) -> u32 {
        let by = |second: u32| (second - entry_s) / self.report_every + 1;
        if last_s < first_s || first_s <= entry_s { 0 } else { by(last_s) - by(first_s - 1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_minutes_have_the_same_accidents_up_to_the_end() {
        for seed in 0..8 {
            let options = |minutes| LrbOptions { seed, minutes, accident_every: 90, ..LrbOptions::default() };
            let all = Road::new(&options(60), 0).crashes;
            assert!(all.len() > 10, "{} accidents", all.len());
            for minutes in 1..60 {
                let begun = |crash: &&Crash| crash.slot * 90 < options(minutes).seconds();
                let begun: Vec<Crash> = all.iter().filter(begun).copied().collect();
                let road = Road::new(&options(minutes), 0);
                assert_eq!(road.crashes, begun, "seed {seed}, {minutes} minutes");
            }
        }
    }
}
