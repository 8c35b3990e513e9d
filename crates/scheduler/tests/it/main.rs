//! What the crate promises to those who use it: one binary, so that it is linked once.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod dispatching;
mod policies;
mod policies_laws;
mod ready;
