//! Event time: watermarks, lateness and the arithmetic of windows.
//!
//! Pure functions and small structs. Times are `i64` ticks of the time column; nothing here reads a
//! clock.
//!
//! - [`watermark`]: how far event time has come at a source, row by row
//! - [`frontier`]: how far it has come where several inputs meet
//! - [`aligned`]: tumbling and sliding windows, and the panes they are made of
//! - [`windows`]: windows of any kind
//! - [`laws`]: what always holds, and is checked where somebody wants that

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
