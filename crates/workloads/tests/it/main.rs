//! The crate's public promises: one binary, so that it is linked once.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod auction_house;
mod cm;
mod expressways;
mod ipq;
mod laws;
mod lrb;
mod lrb_traffic;
mod me;
mod nexmark;
mod nexmark_values;
mod nyt;
mod sg;
mod steps;
mod ysb;
mod ysb_strings;
