//! The crate's public promises: one binary, so that it is linked once.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod frames;
mod log;
mod log_model;
mod loom;
mod loom_log;
mod loom_schedule;
mod loom_supply;
mod ring;
mod schedule;
mod schedule_model;
mod supply;
