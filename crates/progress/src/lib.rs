//! Event time: watermarks, lateness and the arithmetic of windows.
//!
//! Pure functions and small structs. Times are `i64` ticks of the time column; nothing here reads a
//! clock.
//!
//! - [`watermark`]: how far event time has come at a source, row by row
//! - [`aligned`]: tumbling and sliding windows, and the panes they are made of
//! - [`tumbling`]: which window a time belongs to, and whether it is over

#![forbid(unsafe_code)]

pub mod aligned;
pub mod tumbling;
pub mod watermark;

pub use aligned::Aligned;
pub use tumbling::Tumbling;
pub use watermark::{BoundedDelay, NEVER};
