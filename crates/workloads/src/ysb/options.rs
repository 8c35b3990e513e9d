//! The options of the YSB data, and their bounds.

use crate::rates::Rates;
use crate::times::Pace;
use crate::{WorkloadError, bounds};

/// The options that define one YSB data set.
#[derive(Debug, Clone, PartialEq)]
pub struct YsbOptions {
    /// Two seeds give unrelated data sets, with different campaigns.
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
    /// Exponent of Zipf's law over the ads. 0 for uniform.
    pub zipf: f64,
    /// Probability of a view. Clicks and purchases share the rest evenly.
    pub view_share: f64,
    /// In every second period of this many seconds views are twice as probable, at most 1: what an engine has learned
    /// about the filter is then out of date. 0 for never. The periods are those of the ordered times, before rows are
    /// moved, so a row at the edge of one may be moved across it.
    pub switch_every_s: u64,
}

impl Default for YsbOptions {
    fn default() -> Self {
        Self {
            seed: 7,
            rate: 1_000_000,
            step_every_s: 0,
            out_of_order_ms: 0,
            late_every: 0,
            zipf: 0.0,
            view_share: 1.0 / 3.0,
            switch_every_s: 0,
        }
    }
}

impl YsbOptions {
    pub(super) fn check(&self) -> Result<(), WorkloadError> {
        self.pace().check()?;
        bounds::exponent(self.zipf)?;
        bounds::share("view_share", self.view_share)
    }

    pub(super) fn pace(&self) -> Pace {
        let rates = Rates { rate: self.rate, step_every_s: self.step_every_s };
        Pace { rates, out_of_order_ms: self.out_of_order_ms, late_every: self.late_every }
    }
}
