//! The vocabulary of all crates: names of types, ticks of event time, durations, sizes, key groups, closest matches,
//! and the errors that pass through several crates before a user reads them.
//!
//! This crate holds no state and touches no rows.

#![forbid(unsafe_code)]

mod choice;
mod duration;
mod error;
mod key_group;
pub mod key_hash;
mod size;
mod suggest;
mod tick;
mod type_name;

pub use choice::choose;
pub use duration::Span;
pub use error::{ComputeError, OutsideError, PlanError, SizeError};
pub use key_group::{KEY_GROUPS, KeyGroup, KeyGroups};
pub use size::ByteSize;
pub use suggest::closest;
pub use tick::Tick;
pub use type_name::{COMMON_TYPES, TypeName, describe_field, parse_type, suggest_type};
