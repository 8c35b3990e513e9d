//! What a caller may choose about the YSB data, and the bounds of each choice.

use std::ops::Range;

use crate::WorkloadError;

/// The largest [`Options::out_of_order_ms`]: a year. Far beyond use, and far from overflow.
pub const MAX_OUT_OF_ORDER_MS: u64 = 365 * 24 * 60 * 60 * 1_000;

/// The choices that define one YSB data set.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Two seeds give unrelated data sets, with different campaigns.
    pub seed: u64,
    /// Rows per second of event time.
    pub rate: u64,
    /// Each row's time is moved by a uniform distance between minus and plus this many milliseconds.
    pub out_of_order_ms: u64,
    /// One row in so many, on average, is moved back by 1 to 60,000 milliseconds more. 0 for none.
    pub late_every: u64,
    /// Exponent of Zipf's law over the ads. 0 for uniform.
    pub zipf: f64,
    /// Probability of a view. Clicks and purchases share the rest evenly.
    pub view_share: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self { seed: 7, rate: 1_000_000, out_of_order_ms: 0, late_every: 0, zipf: 0.0, view_share: 1.0 / 3.0 }
    }
}

impl Options {
    pub(super) fn check(&self) -> Result<(), WorkloadError> {
        let bounds = [
            // Half the range of u64, so that a remainder below `rate` can be added to without overflow.
            ("rate", self.rate, 1, i64::MAX as u64),
            ("out_of_order_ms", self.out_of_order_ms, 0, MAX_OUT_OF_ORDER_MS),
        ];
        for (option, value, least, most) in bounds {
            if !(least..=most).contains(&value) {
                return Err(WorkloadError::OutOfBounds { option, value, least, most });
            }
        }
        if !(self.zipf.is_finite() && self.zipf >= 0.0) {
            return Err(WorkloadError::BadExponent { value: self.zipf });
        }
        if !(0.0..=1.0).contains(&self.view_share) {
            return Err(WorkloadError::NotAShare { option: "view_share", value: self.view_share });
        }
        Ok(())
    }

    /// Refuses rows whose event time could go past the last timestamp. Times grow with the row id, so the
    /// last row decides; backwards there is no limit to reach, since the first row is at 0.
    pub(super) fn check_times(&self, rows: &Range<u64>) -> Result<(), WorkloadError> {
        if rows.is_empty() {
            return Ok(());
        }
        let row = rows.end - 1;
        let latest_ms = u128::from(row) * 1_000 / u128::from(self.rate) + u128::from(self.out_of_order_ms);
        if latest_ms > i64::MAX as u128 {
            return Err(WorkloadError::TimeOverflow { row, rate: self.rate });
        }
        Ok(())
    }
}
