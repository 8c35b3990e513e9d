//! The crate's public promises: one binary, so that it is linked once.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod expressions;
mod functions;
mod lenient;
mod limits;
mod naive;
mod postfix;
mod table;
