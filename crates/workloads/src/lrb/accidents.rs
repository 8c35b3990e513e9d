//! The plan of the accidents: where and when two cars of the traffic run into each other.
//!
//! Time is cut into slots, and each slot of a road has at most one accident. Place, time and length are
//! drawn; the cars are the first two that come by and that nothing has held up before. Where there are not
//! two of them within a minute, or another accident is near, the slot has none.
//!
//! ACCIDENTS-1. An accident changes journeys only from the second in which the first of its cars stops, and that is in
//!     its own slot. So the plan can be made slot after slot: what comes later never changes who comes by.
//! ACCIDENTS-2. Only the cars of accidents ever stand, and accidents of a road that overlap in time have different
//!     places. So no third car stands where two do.

use super::journey::{DISSOLVING_S, Slowness, travel};
use super::trip::{LONGEST_TRIP_S, Trip};
use super::{SEGMENT_FT, TRAVEL_LANES};
use crate::random::RandomStream;

/// How long to wait for two cars to come by.
pub(super) const WAIT_S: u32 = 60;
/// How long both cars stand, from and to.
const STAND_S: (u32, u32) = (600, 1_200);
/// Accidents happen from this segment on, as the cars count them, in so many of them: the queue has its place
/// before, and the cars have some way to go after.
const FIRST_SEGMENT: u64 = 8;
const POSSIBLE_SEGMENTS: u64 = 84;
/// How far the cars of an accident still want to go at least. It takes longer than the longest time between
/// two reports, so that they are never seen on the exit lane while they stand.
const TO_GO_FT: f32 = 2.0 * SEGMENT_FT as f32;
/// No two accidents are nearer to each other while traffic is slow at one of them. So often is another place
/// drawn to find one.
const APART_FT: f32 = 10.0 * SEGMENT_FT as f32;
const ATTEMPTS: u64 = 8;

/// An accident that was planned: two cars that stand at the same place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accident {
    /// `xway` of the cars.
    pub expressway: i32,
    /// `dir` of the cars.
    pub direction: i32,
    /// The lane they stand in, of the three travel lanes.
    pub lane: i32,
    /// `seg` of the place.
    pub segment: i32,
    /// `pos` of the place.
    pub pos: i32,
    /// The first second in which both stand.
    pub first: i64,
    /// The last one, or the last of the data if that comes before.
    pub last: i64,
    /// `vid` of the cars, first the one that stood first.
    pub vehicles: [i32; 2],
}

/// An accident as the journeys see it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Crash {
    pub(super) slot: u32,
    /// The middle of the foot that the cars report, so that rounding never leads out of it.
    pub(super) ft: f32,
    pub(super) lane: u8,
    /// The road is blocked from here on.
    pub(super) from_s: u32,
    /// Both cars stand from here on.
    pub(super) first_s: u32,
    /// Both cars drive on.
    pub(super) until_s: u32,
    /// Numbers of the cars, in the order in which they stop.
    pub(super) cars: [u32; 2],
}

/// What the plan is drawn from.
#[derive(Debug, Clone, Copy)]
pub(super) struct AccidentPlanner {
    every_s: u32,
    moment: RandomStream,
    place: RandomStream,
    lane: RandomStream,
    length: RandomStream,
}

impl AccidentPlanner {
    /// `every_s` is the length of a slot, 0 for no accidents.
    pub(super) fn new(every_s: u32, lane: impl Fn(u64) -> RandomStream) -> Self {
        Self { every_s, moment: lane(9), place: lane(10), lane: lane(11), length: lane(12) }
    }

    /// The accidents of the slots that begin before `end_s`, ordered by place. The trips go on for
    /// [`WAIT_S`] beyond it.
    pub(super) fn plan(&self, trips: &[Trip], slowness: &Slowness, end_s: u32) -> Vec<Crash> {
        let mut crashes = Vec::new();
        // 0 is no slots.
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

/// The first two cars that come by a place from a second on, with the seconds from which on they are there.
fn first_two(
    ft: f32,
    start_s: u32,
    trips: &[Trip],
    slowness: &Slowness,
    earlier: &[Crash],
) -> Option<[(u32, u32); 2]> {
    let (start, end) = (f64::from(start_s), f64::from(start_s + WAIT_S));
    // Trips are in order of entry: no other one can come by in time.
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
