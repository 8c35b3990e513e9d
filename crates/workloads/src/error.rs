//! Requests that a workload refuses. Every message names the option and the value.

use thiserror::Error;

/// An option or a range of rows that a workload refuses.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// A whole-number option outside its bounds.
    #[error("{option} must be between {least} and {most}, got {value}")]
    OutOfBounds {
        /// The option's name.
        option: &'static str,
        /// The given value.
        value: u64,
        /// The smallest value allowed.
        least: u64,
        /// The largest value allowed.
        most: u64,
    },
    /// A point in time outside its bounds.
    #[error("{option} must be between {least} and {most}, got {value}")]
    TimeOutOfBounds {
        /// The option's name.
        option: &'static str,
        /// The given value.
        value: i64,
        /// The earliest value allowed.
        least: i64,
        /// The latest value allowed.
        most: i64,
    },
    /// A share that is no probability.
    #[error("{option} must be a number between 0 and 1, got {value}")]
    NotAShare {
        /// The option's name.
        option: &'static str,
        /// The given value.
        value: f64,
    },
    /// A Zipf exponent that is negative, infinite or not a number.
    #[error("zipf must be a finite exponent of at least 0 (0 is uniform), got {value}")]
    BadExponent {
        /// The given value.
        value: f64,
    },
    /// Row ids run out before the range does.
    #[error("{rows} rows from row {start} on go past the last row id, {}", u64::MAX)]
    RowsOverflow {
        /// The first requested row.
        start: u64,
        /// Number of requested rows.
        rows: u64,
    },
    /// A data set that ends before the range does.
    #[error("there is no row {row}: the data set has {rows} rows")]
    PastTheEnd {
        /// The last requested row.
        row: u64,
        /// Number of rows of the data set.
        rows: u64,
    },
    /// A row of one of several jointly numbered streams, beyond the last event id.
    #[error("row {row} of {stream} comes after the last event id, {}", u64::MAX)]
    EventsOverflow {
        /// The stream's name.
        stream: &'static str,
        /// The last requested row.
        row: u64,
    },
    /// An event so late that one of its times does not fit a timestamp.
    #[error(
        "event {event} has no event time: at {rate} events per second it does not fit 64 bits of milliseconds"
    )]
    EventTimeOverflow {
        /// The last requested event.
        event: u64,
        /// Events per second of event time.
        rate: u64,
    },
    /// A row so late that its event time does not fit a timestamp.
    #[error("row {row} has no event time: at {rate} rows per second it does not fit 64 bits of milliseconds")]
    TimeOverflow {
        /// The last requested row.
        row: u64,
        /// Rows per second of event time.
        rate: u64,
    },
}
