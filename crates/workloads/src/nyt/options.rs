//! The options of the taxi trips, and their bounds.

use crate::rates::Rates;
use crate::times::Pace;
use crate::{WorkloadError, bounds};

/// The options that define one set of trips.
#[derive(Debug, Clone, PartialEq)]
pub struct NytOptions {
    /// Two seeds give unrelated data sets, with different taxis.
    pub seed: u64,
    /// Trips that end per second of event time.
    pub rate: u64,
    /// Seconds after which the rate changes: it is 1, 2, 6 and 12 times `rate` in turn ([`STEPS`](crate::STEPS)), then
    /// from the start again. 0 for never.
    pub step_every_s: u64,
    /// The times of a trip are moved by a uniform distance between minus and plus this many milliseconds.
    pub out_of_order_ms: u64,
    /// The times of one trip in this many, on average, are moved back by 1 to 60,000 milliseconds more. 0 for none.
    pub late_every: u64,
    /// Probability that a taxi belongs to the vendor VTS. The others belong to CMT.
    pub vts_share: f64,
    /// Probability that a trip is moved, with both ends, so that it starts in [`HOT_CELL`](super::HOT_CELL).
    pub hot_share: f64,
}

impl Default for NytOptions {
    fn default() -> Self {
        Self {
            seed: 7,
            rate: 1_000_000,
            step_every_s: 0,
            out_of_order_ms: 0,
            late_every: 0,
            vts_share: 0.5,
            hot_share: 0.0,
        }
    }
}

impl NytOptions {
    pub(super) fn check(&self) -> Result<(), WorkloadError> {
        self.pace().check()?;
        bounds::share("vts_share", self.vts_share)?;
        bounds::share("hot_share", self.hot_share)
    }

    pub(super) fn pace(&self) -> Pace {
        let rates = Rates { rate: self.rate, step_every_s: self.step_every_s };
        Pace { rates, out_of_order_ms: self.out_of_order_ms, late_every: self.late_every }
    }
}
