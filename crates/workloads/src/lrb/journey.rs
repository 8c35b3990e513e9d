//! The real journey of a car: its trip among the accidents of the road.
//!
//! A car knows the plan of the accidents and nothing of other cars, so each journey can be computed alone. The effect
//! of other cars is in the shape of the queue:
//!
//! - From the second the road is blocked, the last mile before the place is a queue, where cars crawl. Further back
//!   traffic gets dense, on ever more of the road: up to seven miles before the place.
//! - When the road is cleared, the queue dissolves from its head: a wave travels back along it.

use super::SEGMENT_FT;
use super::accidents::Crash;
use super::leg::{Leg, fps};
use super::trip::Trip;
use crate::random::RandomLane;

/// The queue, and the largest extent of the dense traffic upstream of it. It exceeds the four segments in which tolls
/// are waived, so that tolls are due while the accident lasts.
const QUEUE_FT: f32 = SEGMENT_FT as f32;
const REACH_FT: f32 = 7.0 * SEGMENT_FT as f32;
/// Speed at which the dense traffic grows.
const GROWTH_FPS: f32 = 60.0;
/// Speed of the wave that clears the road.
const NEWS_FPS: f32 = 88.0;
/// Speeds in the queue and in the dense traffic, from and to, in mph. Reported speeds are below 40 and not 0.
const CRAWL_MPH: (u64, u64) = (10, 20);
const DENSE_MPH: (u64, u64) = (22, 36);

/// No car is slow for longer than this after the road is cleared.
pub(super) const DISSOLVING_S: u32 = (REACH_FT / NEWS_FPS) as u32;

/// The speeds of cars in queues.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slowness {
    dense: RandomLane,
    crawl: RandomLane,
}

impl Slowness {
    pub(super) fn new(lane: impl Fn(u64) -> RandomLane) -> Self {
        Self { dense: lane(7), crawl: lane(8) }
    }

    /// Returns the speeds in dense traffic and in the queue.
    fn speeds(&self, car: u32, slot: u32) -> [f32; 2] {
        // Slots have fewer than 20 bits: the shortest is a minute, and the longest run a day.
        let row = u64::from(car) << 20 | u64::from(slot);
        let draw = |lane: RandomLane, (from, to): (u64, u64)| fps(from + lane.below(row, to - from + 1));
        [draw(self.dense, DENSE_MPH), draw(self.crawl, CRAWL_MPH)]
    }
}

/// Puts the legs of a car's journey into `legs`, in order of time. `crashes` are ordered by place. Returns the seconds
/// from its entry to its exit.
pub(super) fn travel(trip: &Trip, crashes: &[Crash], slowness: &Slowness, legs: &mut Vec<Leg>) -> f32 {
    legs.clear();
    legs.push(trip.free());
    for crash in crashes {
        let last = legs[legs.len() - 1];
        if crash.ft <= last.start_ft || crash.ft - REACH_FT >= trip.exit_ft {
            continue;
        }
        if crash.cars.contains(&trip.number) {
            let stop = Leg::standing(last.arrival_s(crash.ft), crash.ft);
            let start_s = since_entry(trip, crash.until_s);
            legs.extend([stop, Leg { start_s, cruise_fps: trip.cruise_fps, ..stop }]);
        } else {
            queue_up(trip, crash, slowness, legs);
        }
    }
    // Legs after the exit are cut off. The first leg begins before it.
    while legs[legs.len() - 1].start_ft > trip.exit_ft {
        legs.pop();
    }
    legs[legs.len() - 1].arrival_s(trip.exit_ft)
}

/// Converts a second of the road's clock to the car's own.
fn since_entry(trip: &Trip, second: u32) -> f32 {
    (i64::from(second) - i64::from(trip.entry_s)) as f32
}

fn queue_up(trip: &Trip, crash: &Crash, slowness: &Slowness, legs: &mut Vec<Leg>) {
    let last = legs[legs.len() - 1];
    let (from_s, until_s) = (since_entry(trip, crash.from_s), since_entry(trip, crash.until_s));
    let came_s = last.arrival_s(crash.ft - REACH_FT);
    if came_s >= until_s + REACH_FT / NEWS_FPS || last.arrival_s(crash.ft) <= from_s {
        return;
    }
    let slow_ft = (QUEUE_FT + (came_s - from_s) * GROWTH_FPS).clamp(QUEUE_FT, REACH_FT);
    let free_s = until_s + slow_ft / NEWS_FPS;
    let [dense_fps, crawl_fps] = slowness.speeds(trip.number, crash.slot);
    let (dense_ft, queue_ft) = (crash.ft - slow_ft, crash.ft - QUEUE_FT);
    let mut slow = None;
    for (start_ft, end_ft, speed) in [(dense_ft, queue_ft, dense_fps), (queue_ft, crash.ft, crawl_fps)] {
        let before = slow.unwrap_or(last);
        let start_s = before.arrival_s(start_ft).max(from_s);
        let leg = before.then(start_s, speed);
        if start_s < free_s && leg.start_ft < end_ft {
            legs.push(leg);
            slow = Some(leg);
        }
    }
    if let Some(slow) = slow {
        let end_s = slow.arrival_s(crash.ft).min(free_s);
        legs.push(slow.then(end_s, trip.cruise_fps));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MILE: f32 = SEGMENT_FT as f32;

    fn trip() -> Trip {
        Trip { number: 5, entry_s: 1_000, entry_ft: 100.0, exit_ft: 60.5 * MILE, cruise_fps: fps(60) }
    }

    fn crash(mile: f32, from_s: u32) -> Crash {
        let (first_s, until_s) = (from_s + 5, from_s + 605);
        Crash { slot: 0, ft: mile * MILE + 0.5, lane: 2, from_s, first_s, until_s, cars: [7, 8] }
    }

    fn way(trip: &Trip, crashes: &[Crash]) -> (Vec<Leg>, f32) {
        let mut legs = Vec::new();
        let slowness = Slowness::new(|lane| RandomLane::new(7, lane));
        let exit_s = travel(trip, crashes, &slowness, &mut legs);
        (legs, exit_s)
    }

    #[test]
    fn accidents_elsewhere_or_at_other_times_change_nothing() {
        let free = way(&trip(), &[]);
        assert_eq!(free.0.len(), 1);
        // It passes mile 30 some 1800 s after its entry.
        for elsewhere in [crash(30.0, 2_900), crash(30.0, 100), crash(68.0, 2_800)] {
            assert_eq!(way(&trip(), &[elsewhere]), free);
        }
        let beyond = Trip { entry_ft: 31.0 * MILE, ..trip() };
        assert_eq!(way(&beyond, &[crash(30.0, 900)]).0.len(), 1);
    }

    #[test]
    fn a_car_that_comes_to_a_long_queue_is_slow_for_miles() {
        let (legs, exit_s) = way(&trip(), &[crash(30.0, 1_800)]);
        let starts: Vec<f32> = legs.iter().map(|leg| leg.start_ft / MILE).collect();
        // Traffic gets dense as it arrives. At 2405 the place is clear, and 420 s later the wave reaches the end of
        // the queue.
        assert!((starts[1] - 23.0).abs() < 0.01, "{starts:?}");
        assert!(legs[1].cruise_fps < fps(37) && legs[1].cruise_fps > fps(21));
        assert_eq!(legs[2].cruise_fps, trip().cruise_fps);
        assert!((legs[2].start_s - 1_825.0).abs() < 0.1, "{:?}", legs[2]);
        assert!(exit_s > way(&trip(), &[]).1 + 60.0);
    }

    #[test]
    fn one_that_is_near_when_it_happens_crawls_the_last_mile() {
        let (legs, _) = way(&trip(), &[crash(30.0, 2_720)]);
        assert_eq!(legs.len(), 3, "{legs:?}");
        assert!((legs[1].start_ft / MILE - 29.0).abs() < 0.01);
        assert!(legs[1].cruise_fps <= fps(20));
        assert!((legs[2].start_ft / MILE - 30.0).abs() < 0.01);
    }

    #[test]
    fn one_that_is_nearer_still_slows_down_when_it_happens() {
        // By then it has driven 1770 s, and is past mile 29.
        let (legs, _) = way(&trip(), &[crash(30.0, 2_770)]);
        assert_eq!(legs.len(), 3, "{legs:?}");
        assert_eq!(legs[1].start_s, 1_770.0);
        assert!((29.1..29.9).contains(&(legs[1].start_ft / MILE)));
    }

    #[test]
    fn the_cars_of_an_accident_stand_until_the_road_is_cleared_and_go_on() {
        let crash = crash(30.0, 2_790);
        let one = Trip { number: 7, ..trip() };
        let (legs, exit_s) = way(&one, &[crash]);
        let arrival = one.free().arrival_s(crash.ft);
        assert_eq!(legs[1], Leg::standing(arrival, crash.ft));
        assert_eq!(legs[2].start_s, (crash.until_s - one.entry_s) as f32);
        assert_eq!((legs[2].start_ft, legs[2].start_fps), (crash.ft, 0.0));
        assert!(exit_s > one.free().arrival_s(one.exit_ft) + 500.0);
    }

    proptest! {
        #[test]
        fn ways_have_no_gaps_and_never_turn_back(
            entry_s in 0u32..5_000,
            entry_ft in 0f32..90.0 * MILE,
            way_ft in 1.5 * MILE..90.0 * MILE,
            mph in 45u64..=68,
            mut places in prop::collection::vec((8f32..92.0, 0u32..6_000), 0..6),
        ) {
            places.sort_by(|a, b| a.0.total_cmp(&b.0));
            let crashes: Vec<Crash> = places.iter().map(|&(mile, from_s)| crash(mile, from_s)).collect();
            let exit_ft = (entry_ft + way_ft).min(99.9 * MILE);
            let trip = Trip { number: 1, entry_s, entry_ft, exit_ft, cruise_fps: fps(mph) };
            let (legs, exit_s) = way(&trip, &crashes);
            for two in legs.windows(2) {
                prop_assert!(two[0].start_s <= two[1].start_s && two[0].start_ft <= two[1].start_ft);
                let (ft, fps) = two[0].at(two[1].start_s);
                prop_assert!((ft - two[1].start_ft).abs() < 0.5 && (fps - two[1].start_fps).abs() < 0.5);
            }
            let end = legs[legs.len() - 1];
            prop_assert!(end.start_s <= exit_s && (end.at(exit_s).0 - exit_ft).abs() < 0.5);
            prop_assert!(exit_s >= trip.free().arrival_s(exit_ft) - 0.1);
        }
    }
}
