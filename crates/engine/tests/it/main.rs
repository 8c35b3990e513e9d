//! What the crate promises to those who use it: one binary, so that it is linked once.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod connectors;
mod ends;
mod engine;
mod graph;
mod hostile;
mod memory;
mod pipeline;
mod plan;
mod rejects;
mod running;
mod tables;
mod time;
