//! Event time: watermarks, lateness and the arithmetic of windows.
//!
//! Pure functions and small structs. Times are `i64` ticks of the time column; this crate reads no clock.
//!
//! - [`watermark`]: the watermark of a source, row by row
//! - [`frontier`]: the watermark where several inputs meet
//! - [`aligned`]: tumbling and sliding windows, and their panes
//! - [`windows`]: windows of any kind
//! - [`laws`]: invariants of event time, checked on request

#![forbid(unsafe_code)]

pub mod aligned;
pub mod frontier;
pub mod laws;
pub mod watermark;
pub mod windows;

pub use aligned::Aligned;
pub use frontier::Frontier;
pub use watermark::{BoundedDelay, NEVER, WatermarkSide};
pub use windows::Windows;
