//! The options of the traffic, and their bounds.

use super::trip::CarArrivals;
use crate::{WorkloadError, bounds};

/// The most expressways. With it, the number of a car on its road and the number of the road fit one `vid`.
pub const MAX_EXPRESSWAYS: u64 = 128;
/// The largest [`LrbOptions::minutes`]: a day.
pub const MAX_MINUTES: u64 = 24 * 60;
/// The largest [`LrbOptions::cars_per_second`].
pub const MAX_CARS_PER_SECOND: u64 = 1_000;
/// The largest [`LrbOptions::report_every`]: the shortest trip takes longer, so that every car reports twice.
pub const MAX_REPORT_EVERY: u64 = 60;
/// The smallest [`LrbOptions::accident_every`] except 0.
pub const MIN_ACCIDENT_EVERY: u64 = 60;
/// The largest [`LrbOptions::accident_every`]: a day.
pub const MAX_ACCIDENT_EVERY: u64 = 24 * 60 * 60;
/// The largest [`LrbOptions::out_of_order_s`]: a year. Far beyond use, and far from overflow.
pub const MAX_OUT_OF_ORDER_S: u64 = 365 * 24 * 60 * 60;
/// The most cars of one data set, on all expressways: about 50 bytes are kept of each.
pub const MAX_CARS: u64 = 1 << 24;

/// The options that define one LRB data set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LrbOptions {
    /// Two seeds give unrelated traffic, with accidents elsewhere.
    pub seed: u64,
    /// Number of expressways. Adding one leaves the traffic of the others unchanged.
    pub expressways: u64,
    /// Length of the data in minutes. Fewer minutes give the beginning of the same data.
    pub minutes: u64,
    /// Cars that arrive at an expressway per second, in both directions together, at the peak. The rate grows evenly
    /// from nothing over the first three hours, and stays there.
    pub cars_per_second: u64,
    /// Seconds between two reports of a car. It does not change the journeys.
    pub report_every: u64,
    /// Seconds in which at most one accident begins, on each direction of an expressway. 0 for none.
    pub accident_every: u64,
    /// One in this many reports of a car is followed by a request: a row of type 2, 3 or 4. 0 for none.
    pub queries_every: u64,
    /// Each row's time is moved by a uniform distance between minus and plus this many seconds. The order of rows does
    /// not change.
    pub out_of_order_s: u64,
    /// One row in this many, on average, is moved back by 1 to 60 seconds more. 0 for none.
    pub late_every: u64,
}

impl Default for LrbOptions {
    fn default() -> Self {
        Self {
            seed: 7,
            expressways: 1,
            minutes: 180,
            cars_per_second: 20,
            report_every: 30,
            accident_every: 600,
            queries_every: 0,
            out_of_order_s: 0,
            late_every: 0,
        }
    }
}

impl LrbOptions {
    pub(super) fn check(&self) -> Result<(), WorkloadError> {
        bounds::within("expressways", self.expressways, 1, MAX_EXPRESSWAYS)?;
        bounds::within("minutes", self.minutes, 1, MAX_MINUTES)?;
        bounds::within("cars_per_second", self.cars_per_second, 1, MAX_CARS_PER_SECOND)?;
        bounds::within("report_every", self.report_every, 1, MAX_REPORT_EVERY)?;
        if self.accident_every > 0 {
            bounds::within("accident_every", self.accident_every, MIN_ACCIDENT_EVERY, MAX_ACCIDENT_EVERY)?;
        }
        bounds::within("out_of_order_s", self.out_of_order_s, 0, MAX_OUT_OF_ORDER_S)?;
        let cars = CarArrivals::new(self.cars_per_second).by(self.seconds()) * 2 * self.expressways;
        bounds::within("cars (by expressways, minutes and cars_per_second)", cars, 0, MAX_CARS)
    }

    /// Returns the length of the data in seconds.
    pub(super) fn seconds(&self) -> u32 {
        // At most a day: `check`.
        self.minutes as u32 * 60
    }
}
