//! The start and end of trips.
//!
//! Most start around a few centres, some anywhere in the city, a few at implausible places. From there a trip goes in
//! a straight line that fits its distance. Places are in degrees, as multiples of a millionth; metres per degree are
//! those of the query's grid.

use std::ops::Range;

use super::grid::{
    CELL_METRES, HOT_COLUMN, HOT_ROW, METRES_PER_DEGREE_EAST, METRES_PER_DEGREE_SOUTH, centre_of,
};
use super::{NytOptions, lanes};
use crate::Buffers;
use crate::random::RandomLane;
use crate::shapes::{draws_of, either_side, is_among, normal, round};

/// A place where many trips start: latitude, longitude, the scatter around it in metres per direction, and its trips
/// in a thousand.
type Centre = (f64, f64, f64, u64);

const CENTRES: [Centre; 13] = [
    (40.7527, -73.9772, 500.0, 120), // Grand Central
    (40.7580, -73.9855, 400.0, 110), // Times Square
    (40.7505, -73.9934, 300.0, 80),  // Penn Station
    (40.7359, -73.9911, 500.0, 100), // Union Square
    (40.7265, -73.9815, 600.0, 90),  // East Village
    (40.7336, -74.0027, 600.0, 90),  // Greenwich Village
    (40.7233, -74.0000, 600.0, 60),  // SoHo
    (40.7075, -74.0113, 500.0, 40),  // Wall Street
    (40.7736, -73.9566, 800.0, 120), // Upper East Side
    (40.7870, -73.9754, 800.0, 80),  // Upper West Side
    (40.7740, -73.8726, 250.0, 20),  // LaGuardia airport
    (40.6450, -73.7845, 350.0, 15),  // Kennedy airport
    (40.7143, -73.9565, 700.0, 25),  // Williamsburg
];

/// A box of uniform starts: the middle, and its extent from there, in degrees.
type Area = (f64, f64, f64, f64);

/// The other trips in a thousand: 30 in the city, 2 in an area of which the grid is a small part. The rest are
/// unknown.
const AREAS: [(Area, u64); 2] = [((40.74, -73.90, 0.14, 0.13), 30), ((40.5, -74.0, 2.5, 3.0), 2)];

/// Trips in a thousand of which only the end is unknown.
const ENDS_UNKNOWN: u64 = 3;

const METRES_PER_MILE: f64 = 1_609.344;
/// The ratio of a trip's length to the straight line: from the first, up to the first plus twice the second.
const DETOUR: f64 = 1.15;
const MORE_DETOUR: f64 = 0.2;
/// The direction of Manhattan's avenues: east and north.
const AVENUES: (f64, f64) = (0.484_8, 0.874_6);

/// The ends of some trips, in degrees.
pub(super) struct TripEnds {
    pub(super) pickup_longitude: Vec<f64>,
    pub(super) pickup_latitude: Vec<f64>,
    pub(super) dropoff_longitude: Vec<f64>,
    pub(super) dropoff_latitude: Vec<f64>,
}

/// The choice of a start.
#[derive(Debug, Clone, Copy)]
enum Start {
    Around(Centre),
    Within(Area),
    Unknown,
}

#[derive(Debug, Clone)]
pub(super) struct TripPlaces {
    /// One for each thousandth of the trips.
    starts: Vec<Start>,
    hot: u64,
    which: RandomLane,
    east: RandomLane,
    north: RandomLane,
    is_hot: RandomLane,
    detour: RandomLane,
    direction: RandomLane,
    end_is_known: RandomLane,
}

impl TripPlaces {
    pub(super) fn new(options: &NytOptions) -> Self {
        let mut starts = Vec::with_capacity(1_000);
        for centre in CENTRES {
            starts.extend((0..centre.3).map(|_| Start::Around(centre)));
        }
        for (area, trips) in AREAS {
            starts.extend((0..trips).map(|_| Start::Within(area)));
        }
        starts.resize(1_000, Start::Unknown);
        let lane = |lane| RandomLane::new(options.seed, lane);
        Self {
            starts,
            hot: draws_of(options.hot_share),
            which: lane(lanes::CENTRE),
            east: lane(lanes::EAST),
            north: lane(lanes::NORTH),
            is_hot: lane(lanes::IS_HOT),
            detour: lane(lanes::DETOUR),
            direction: lane(lanes::DIRECTION),
            end_is_known: lane(lanes::END_IS_KNOWN),
        }
    }

    /// Computes the ends of trips of these distances, in hundredths of a mile. Unknown places are at (0, 0), as in the
    /// published data.
    pub(super) fn ends(&self, hundredths: &[u32], rows: Range<u64>, buffers: &mut Buffers) -> TripEnds {
        let mut ends = TripEnds {
            pickup_longitude: buffers.take(hundredths.len()),
            pickup_latitude: buffers.take(hundredths.len()),
            dropoff_longitude: buffers.take(hundredths.len()),
            dropoff_latitude: buffers.take(hundredths.len()),
        };
        for (&hundredths, row) in hundredths.iter().zip(rows) {
            let start = self.start(row);
            let (latitude, longitude) = start.unwrap_or_default();
            ends.pickup_latitude.push(in_millionths(latitude));
            ends.pickup_longitude.push(in_millionths(longitude));
            let is_known = start.is_some() && self.end_is_known.below(row, 1_000) >= ENDS_UNKNOWN;
            let (south_north, west_east) = self.way(hundredths, row);
            let known = f64::from(u8::from(is_known));
            ends.dropoff_latitude.push(in_millionths(known * (latitude + south_north)));
            ends.dropoff_longitude.push(in_millionths(known * (longitude + west_east)));
        }
        ends
    }

    /// Draws latitude and longitude of the start; `None` if it is unknown.
    #[inline(always)]
    fn start(&self, row: u64) -> Option<(f64, f64)> {
        let (east, north) = (self.east.bits(row), self.north.bits(row));
        if is_among(self.is_hot.bits(row), self.hot) {
            // Well within the cell, whatever the rounding.
            let reach = 0.4 * CELL_METRES;
            let (latitude, longitude) = centre_of(HOT_ROW, HOT_COLUMN);
            return Some((
                latitude + reach * either_side(north) / METRES_PER_DEGREE_SOUTH,
                longitude + reach * either_side(east) / METRES_PER_DEGREE_EAST,
            ));
        }
        match self.starts[self.which.below(row, 1_000) as usize] {
            Start::Around((latitude, longitude, metres, _)) => Some((
                latitude + metres * normal(north) / METRES_PER_DEGREE_SOUTH,
                longitude + metres * normal(east) / METRES_PER_DEGREE_EAST,
            )),
            Start::Within((latitude, longitude, north_south, east_west)) => {
                Some((latitude + north_south * either_side(north), longitude + east_west * either_side(east)))
            }
            Start::Unknown => None,
        }
    }

    /// Draws the way from the start to the end: degrees of latitude and of longitude.
    #[inline(always)]
    fn way(&self, hundredths: u32, row: u64) -> (f64, f64) {
        let detour = DETOUR + MORE_DETOUR * (1.0 + either_side(self.detour.bits(row)));
        let metres = f64::from(hundredths) / 100.0 * METRES_PER_MILE / detour;
        // A point of the unit circle for each t; twice as many of them along the avenues as across. The lowest bit,
        // which t does not use, selects the half of the circle.
        let bits = self.direction.bits(row);
        let t = either_side(bits);
        let metres = if bits & 1 == 0 { metres } else { -metres };
        let along = metres * (2.0 * t / (1.0 + t * t));
        let across = metres * ((1.0 - t * t) / (1.0 + t * t));
        let (east, north) = AVENUES;
        (
            (along * north - across * east) / METRES_PER_DEGREE_SOUTH,
            (along * east + across * north) / METRES_PER_DEGREE_EAST,
        )
    }
}

#[inline(always)]
fn in_millionths(degrees: f64) -> f64 {
    round(degrees * 1e6) as f64 / 1e6
}
