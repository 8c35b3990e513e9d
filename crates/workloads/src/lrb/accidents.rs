//! The plan of the accidents: where and when two cars of the traffic collide.
//!
//! Time is cut into slots, and each slot of a road has at most one accident. Place, time and length are drawn; the
//! cars are the first two that pass the place without having been held up before. Where no two of them pass within a
//! minute, or another accident is near, the slot has none.
//!
//! ACCIDENTS-1. An accident changes journeys only from the second in which the first of its cars stops, and that is in
//!     its own slot. So the plan can be made slot by slot: a later slot never changes which cars pass an earlier one.
//! ACCIDENTS-2. Only cars in accidents ever stop, and accidents of a road that overlap in time have different places.
//!     So no third car stops at the place of two others.

use super::journey::{DISSOLVING_S, Slowness, travel};
use super::trip::{LONGEST_TRIP_S, Trip};
use super::{SEGMENT_FT, TRAVEL_LANES};
use crate::random::RandomLane;

/// Seconds to wait for two cars to pass.
pub(super) const WAIT_S: u32 = 60;
/// How long both cars stand still, from and to.
const STAND_S: (u32, u32) = (600, 1_200);
/// Accidents happen from this segment on, as the cars count them, in this many segments: the queue fits before them,
/// and the cars have some distance to go after.
const FIRST_SEGMENT: u64 = 8;
const POSSIBLE_SEGMENTS: u64 = 84;
/// Distance that the cars of an accident still have to go, at least. It takes longer than the longest interval between
/// two reports, so that they never report the exit lane while they stand still.
const TO_GO_FT: f32 = 2.0 * SEGMENT_FT as f32;
/// Smallest distance between two accidents while traffic is slow at one of them, and the number of places drawn to
/// satisfy it.
const APART_FT: f32 = 10.0 * SEGMENT_FT as f32;
const ATTEMPTS: u64 = 8;

/// A planned accident: two cars that stand still at the same place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accident {
    /// `xway` of the cars.
    pub expressway: i32,
    /// `dir` of the cars.
    pub direction: i32,
    /// The lane of the cars, one of the three travel lanes.
    pub lane: i32,
    /// `seg` of the place.
    pub segment: i32,
    /// `pos` of the place.
    pub pos: i32,
    /// The first second in which both stand still.
    pub first: i64,
    /// The last one, or the last of the data if that comes before.
    pub last: i64,
    /// `vid` of the cars, the one that stopped first in front.
    pub vehicles: [i32; 2],
}

/// An accident as seen by the journeys.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Crash {
    pub(super) slot: u32,
    /// The middle of the reported foot, so that rounding never leaves it.
    pub(super) ft: f32,
    pub(super) lane: u8,
    /// The road is blocked from this second on.
    pub(super) from_s: u32,
    /// Both cars stand still from this second on.
    pub(super) first_s: u32,
    /// Both cars drive on at this second.
    pub(super) until_s: u32,
    /// Numbers of the cars, in the order in which they stop.
    pub(super) cars: [u32; 2],
}

/// The lanes of the plan.
#[derive(Debug, Clone, Copy)]
pub(super) struct AccidentPlanner {
    every_s: u32,
    moment: RandomLane,
    place: RandomLane,
    lane: RandomLane,
    length: RandomLane,
}

impl AccidentPlanner {
    /// Creates the planner; `every_s` is the length of a slot, 0 for no accidents.
    pub(super) fn new(every_s: u32, lane: impl Fn(u64) -> RandomLane) -> Self {
        Self { every_s, moment: lane(9), place: lane(10), lane: lane(11), length: lane(12) }
    }

    /// Plans the accidents of the slots that begin before `end_s`, ordered by place. `trips` extend [`WAIT_S`] beyond
    /// it.
    pub(super) fn plan(&self, trips: &[Trip], slowness: &Slowness, end_s: u32) -> Vec<Crash> {
        let mut crashes = Vec::new();
        // 0 means no slots.
        let slots = end_s.saturating_sub(1).checked_div(self.every_s).map_or(0, |last| last + 1);
        for slot in 0..slots {
            if let Some(crash) = self.slot(slot, trips, slowness, &crashes) {
                let place = crashes.partition_point(|other: &Crash| other.ft < crash.ft);
                crashes.insert(place, crash);
            }
        }
        crashes
    }

    fn slot(&self, slot: u32, trips: &[Trip], slowness: &Slowness, earlier: &[Crash]) -> Option<Crash> {
        let row = u64::from(slot);
        let moments = u64::from((self.every_s - WAIT_S).max(1));
        let start_s = slot * self.every_s + self.moment.below(row, moments) as u32;
        let ft = (0..ATTEMPTS).map(|attempt| self.place(row * ATTEMPTS + attempt)).find(|ft| {
            let near =
                |other: &Crash| other.until_s + DISSOLVING_S >= start_s && (other.ft - ft).abs() < APART_FT;
            !earlier.iter().any(near)
        })?;
        let [(first, from_s), (second, first_s)] = first_two(ft, start_s, trips, slowness, earlier)?;
        let (least, most) = STAND_S;
        let stand_s = least + self.length.below(row, u64::from(most - least) + 1) as u32;
        let lane = 1 + self.lane.below(row, TRAVEL_LANES) as u8;
        Some(Crash { slot, ft, lane, from_s, first_s, until_s: first_s + stand_s, cars: [first, second] })
    }

    fn place(&self, row: u64) -> f32 {
        let foot = self.place.below(row, POSSIBLE_SEGMENTS * SEGMENT_FT as u64);
        (FIRST_SEGMENT * SEGMENT_FT as u64 + foot) as f32 + 0.5
    }
}

/// Returns the first two cars that pass a place from a second on, with the seconds of their arrival.
fn first_two(
    ft: f32,
    start_s: u32,
    trips: &[Trip],
    slowness: &Slowness,
    earlier: &[Crash],
) -> Option<[(u32, u32); 2]> {
    let (start, end) = (f64::from(start_s), f64::from(start_s + WAIT_S));
    // Trips are in order of entry: no earlier one can arrive in time.
    let oldest = trips.partition_point(|trip| trip.entry_s + LONGEST_TRIP_S < start_s);
    let newest = trips.partition_point(|trip| trip.entry_s < start_s + WAIT_S);
    let mut coming: Vec<(f64, &Trip)> = trips[oldest..newest]
        .iter()
        .filter(|trip| trip.entry_ft < ft && trip.exit_ft >= ft + TO_GO_FT)
        .map(|trip| (f64::from(trip.entry_s) + f64::from(trip.free().arrival_s(ft)), trip))
        .filter(|(s, _)| start < *s && *s < end)
        .collect();
    coming.sort_by(|(s, trip), (other_s, other)| s.total_cmp(other_s).then(trip.number.cmp(&other.number)));
    let mut legs = Vec::new();
    let mut unhindered = coming.into_iter().filter(|(_, trip)| {
        travel(trip, earlier, slowness, &mut legs);
        legs.get(1).is_none_or(|leg| leg.start_ft > ft)
    });
    let mut next = || unhindered.next().map(|(s, trip)| (trip.number, s.ceil() as u32));
    Some([next()?, next()?])
}
