//! The crate's public promises: one binary, so that it is linked once.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod columns;
mod join;
mod join_state;
mod key_groups;
mod keys;
mod laws;
mod lookup;
mod stream;
mod top_k;
mod windows;
mod windows_edges;
mod windows_parts;
