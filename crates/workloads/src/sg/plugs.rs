//! The plugs: in a household, in a house, in use or not.

use crate::random::RandomLane;
use crate::shapes::log_normal;

use super::SgOptions;

/// A house has 1 to 14 households, and a household 1 to 14 plugs: some numbers of the published data.
const MAX_HOUSEHOLDS: u64 = 14;
const MAX_PLUGS: u64 = 14;

/// Percentage of plugs in use. The median of their load, and the octaves around it that hold two thirds of the plugs.
const IN_USE: u64 = 36;
const MEDIAN_WATTS: f64 = 25.0;
const OCTAVES: f64 = 2.0;
/// The largest load of a plug.
const MAX_WATTS: f64 = 3_600.0;
/// The initial work of a plug is the median one or within this many octaves.
const MEDIAN_KILOWATT_HOURS: f64 = 5.0;
const WORK_OCTAVES: f64 = 2.5;

// Part of the data set, like all lanes (WORKLOAD-3).
const LANE_HOUSEHOLDS: u64 = 300;
const LANE_PLUGS: u64 = 301;
const LANE_IN_USE: u64 = 302;
const LANE_WATTS: u64 = 303;
const LANE_WORK: u64 = 304;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Plug {
    pub(super) house: i32,
    pub(super) household: i32,
    pub(super) plug: i32,
    /// The average load; 0 when not in use.
    pub(super) watts: f64,
    /// The standard deviation of the load.
    pub(super) noise_watts: f64,
    /// The work before the first reading.
    pub(super) kilowatt_hours: f64,
}

/// Creates all plugs of the grid, house by house.
pub(super) fn plugs(options: &SgOptions) -> Vec<Plug> {
    let lane = |lane| RandomLane::new(options.seed, lane);
    let mut plugs = Vec::new();
    for house in 0..u64::from(options.houses) {
        for household in 0..1 + lane(LANE_HOUSEHOLDS).below(house, MAX_HOUSEHOLDS) {
            let number = house * MAX_HOUSEHOLDS + household;
            for plug in 0..1 + lane(LANE_PLUGS).below(number, MAX_PLUGS) {
                let number = number * MAX_PLUGS + plug;
                let in_use = lane(LANE_IN_USE).below(number, 100) < IN_USE;
                let watts = log_normal(lane(LANE_WATTS).bits(number), MEDIAN_WATTS, OCTAVES).min(MAX_WATTS);
                let watts = if in_use { watts } else { 0.0 };
                let work = lane(LANE_WORK).bits(number);
                plugs.push(Plug {
                    house: house as i32,
                    household: household as i32,
                    plug: plug as i32,
                    watts,
                    // As measured: 2 watts at 20, 10 at 500. The square root is exact on every platform.
                    noise_watts: 0.45 * watts.sqrt(),
                    kilowatt_hours: log_normal(work, MEDIAN_KILOWATT_HOURS, WORK_OCTAVES),
                });
            }
        }
    }
    plugs
}
