//! What the benchmarks need besides the engine: something to compare with, and a way to compare fairly.
//!
//! A figure in rows per second says little on its own: machines differ, and one machine differs from hour to
//! hour. So a bench runs the engine and a yardstick in turns within one process, and what counts is the
//! ratio.
//!
//! - [`fused`]: the yardstick for YSB, the query written by hand as one loop.
//! - [`report`]: runs contenders in turns and prints rows per second beside the ratio.
#![forbid(unsafe_code)]

pub mod fused;
pub mod query;
pub mod report;
