//! How long a task runs at a time, and what it cost.
//!
//! The scheduler sees counters and sizes only; rows are none of its business.
//!
//! - [`quantum`]: rows per run
//! - [`profile`]: what an operator took in, gave out and cost

#![forbid(unsafe_code)]

pub mod profile;
pub mod quantum;

pub use profile::Profile;
pub use quantum::rows_per_run;
