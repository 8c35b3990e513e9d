//! Tasks without an engine: a hand-driven pipeline, over the public face of the crate.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod pipeline;
mod support;
