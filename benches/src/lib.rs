//! What the benchmarks need besides the engine: something to compare with, and a way to compare fairly.
//!
//! A figure in rows per second says little on its own: machines differ, and one machine differs from hour to
//! hour. So a bench runs the engine and a yardstick in turns within one process, and what counts is the
//! ratio.
//!
//! - [`fused`]: the yardstick for YSB, the query written by hand as one loop.
//! - [`log`]: rows through a log or a row queue; [`copying`]: the yardstick for it, the same bytes by `memcpy`.
//! - [`report`]: runs contenders in turns and prints rows per second beside the ratio.
//! - [`sweep`]: logs of all sizes of blocks and chunks.
//! - [`tenants`]: many queries on one engine, each fed at a fixed rate.
//! - [`settings`]: what the environment asks for.
#![forbid(unsafe_code)]

pub mod copying;
pub mod fused;
pub mod log;
pub mod query;
pub mod report;
pub mod settings;
pub mod sweep;
pub mod tenants;
