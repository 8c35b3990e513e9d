//! The options of the cluster events, and their bounds.

use super::MAX_JOBS;
use crate::rates::Rates;
use crate::times::Pace;
use crate::{WorkloadError, bounds};

/// The options that define one set of events.
#[derive(Debug, Clone, PartialEq)]
pub struct CmOptions {
    /// Two seeds give unrelated data sets, with different jobs.
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
    /// Number of jobs.
    pub jobs: u16,
    /// Exponent of Zipf's law over the jobs. 0 for uniform.
    pub zipf: f64,
    /// Probability that a task fails, which is what CM2 keeps. The other events share the rest as in the trace. A
    /// failing task has a machine.
    pub fail_share: f64,
}

impl Default for CmOptions {
    fn default() -> Self {
        Self {
            seed: 7,
            rate: 1_000_000,
            step_every_s: 0,
            out_of_order_ms: 0,
            late_every: 0,
            jobs: 240,
            zipf: 1.3,
            fail_share: 0.005,
        }
    }
}

impl CmOptions {
    pub(super) fn check(&self) -> Result<(), WorkloadError> {
        self.pace().check()?;
        bounds::within("jobs", self.jobs.into(), 1, MAX_JOBS.into())?;
        bounds::exponent(self.zipf)?;
        bounds::share("fail_share", self.fail_share)
    }

    pub(super) fn pace(&self) -> Pace {
        let rates = Rates { rate: self.rate, step_every_s: self.step_every_s };
        Pace { rates, out_of_order_ms: self.out_of_order_ms, late_every: self.late_every }
    }
}
