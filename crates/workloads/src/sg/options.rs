//! The options of the meter readings, and their bounds.

use super::MAX_HOUSES;
use crate::rates::Rates;
use crate::times::Pace;
use crate::{WorkloadError, bounds};

/// The options that define one set of readings.
#[derive(Debug, Clone, PartialEq)]
pub struct SgOptions {
    /// Two seeds give unrelated data sets, with different houses.
    pub seed: u64,
    /// Rows per second of event time.
    pub rate: u64,
    /// Seconds after which the rate changes: it is 1, 2, 6 and 12 times `rate` in turn ([`STEPS`](crate::STEPS)), then
    /// from the start again. 0 for never.
    pub step_every_s: u64,
    /// Each row's time is moved by a uniform distance between minus and plus this many milliseconds.
    pub out_of_order_ms: u64,
    /// One row in this many, on average, is moved back by 1 to 60,000 milliseconds more. 0 for none.
    pub late_every: u64,
    /// Number of houses, each with about 50 plugs. A house does not depend on their number.
    pub houses: u16,
    /// Exponent of Zipf's law over the plugs. 0 for plugs that report in turn.
    pub zipf: f64,
}

impl Default for SgOptions {
    fn default() -> Self {
        Self {
            seed: 7,
            rate: 1_000_000,
            step_every_s: 0,
            out_of_order_ms: 0,
            late_every: 0,
            houses: 10,
            zipf: 0.0,
        }
    }
}

impl SgOptions {
    pub(super) fn check(&self) -> Result<(), WorkloadError> {
        self.pace().check()?;
        bounds::within("houses", self.houses.into(), 1, MAX_HOUSES.into())?;
        bounds::exponent(self.zipf)
    }

    pub(super) fn pace(&self) -> Pace {
        let rates = Rates { rate: self.rate, step_every_s: self.step_every_s };
        Pace { rates, out_of_order_ms: self.out_of_order_ms, late_every: self.late_every }
    }
}
