//! Bounds checks shared by the options of all workloads.

use crate::WorkloadError;

/// Refuses a whole number outside its bounds.
pub(crate) fn within(option: &'static str, value: u64, least: u64, most: u64) -> Result<(), WorkloadError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(WorkloadError::OutOfBounds { option, value, least, most })
}

/// Refuses a number that is no probability.
pub(crate) fn share(option: &'static str, value: f64) -> Result<(), WorkloadError> {
    if (0.0..=1.0).contains(&value) { Ok(()) } else { Err(WorkloadError::NotAShare { option, value }) }
}

/// Refuses a number that is no exponent of Zipf's law.
pub(crate) fn exponent(value: f64) -> Result<(), WorkloadError> {
    if value.is_finite() && value >= 0.0 { Ok(()) } else { Err(WorkloadError::BadExponent { value }) }
}
