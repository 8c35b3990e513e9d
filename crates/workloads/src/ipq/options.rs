//! The options of the sources, and their bounds.

use super::{MAX_KEYS, MAX_RATE, MAX_SKEW, MAX_SOURCES};
use crate::rates::Rates;
use crate::times::Pace;
use crate::{WorkloadError, bounds};

/// The options that define one set of sources.
#[derive(Debug, Clone, PartialEq)]
pub struct IpqOptions {
    /// Two seeds give unrelated data sets.
    pub seed: u64,
    /// Number of sources.
    pub sources: u16,
    /// Rows per second of event time and source, on average.
    pub rate: u64,
    /// True if the volume of a source changes from second to second, by Pareto's law; otherwise all seconds are alike.
    pub is_variable: bool,
    /// Ratio of the rows of the first source to those of the last. Those between send fewer the later they come, and
    /// all together as many as without a skew. 1 for none.
    pub skew: u64,
    /// Keys are `0..keys`.
    pub keys: u16,
    /// Exponent of Zipf's law over the keys. 0 for uniform.
    pub zipf: f64,
    /// Each row's time is moved by a uniform distance between minus and plus this many milliseconds.
    pub out_of_order_ms: u64,
    /// One row in this many, on average, is moved back by 1 to 60,000 milliseconds more. 0 for none.
    pub late_every: u64,
}

impl Default for IpqOptions {
    fn default() -> Self {
        Self {
            seed: 7,
            sources: 8,
            rate: 1_000,
            is_variable: false,
            skew: 1,
            keys: 1_000,
            zipf: 0.0,
            out_of_order_ms: 0,
            late_every: 0,
        }
    }
}

impl IpqOptions {
    pub(super) fn check(&self) -> Result<(), WorkloadError> {
        bounds::within("sources", self.sources.into(), 1, MAX_SOURCES.into())?;
        bounds::within("rate", self.rate, 1, MAX_RATE)?;
        bounds::within("skew", self.skew, 1, MAX_SKEW)?;
        bounds::within("keys", self.keys.into(), 1, MAX_KEYS.into())?;
        bounds::exponent(self.zipf)?;
        self.pace(self.rate).check()
    }

    pub(super) fn check_source(&self, source: u16) -> Result<(), WorkloadError> {
        bounds::within("source", source.into(), 0, u64::from(self.sources) - 1)
    }

    /// Returns the pace of a source with this rate.
    pub(super) fn pace(&self, rate: u64) -> Pace {
        // A variable source has volumes of its own.
        let rates = Rates { rate, step_every_s: 0 };
        Pace { rates, out_of_order_ms: self.out_of_order_ms, late_every: self.late_every }
    }
}
