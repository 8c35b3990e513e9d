//! The crate's public promises: one binary, so that it is linked once.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod arbitrary;
mod batch;
mod budget_laws;
mod coordinator;
mod export;
mod kept;
mod log;
mod row_queue;
mod run;
mod strings;
mod support;
mod threads;
