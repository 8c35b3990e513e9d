//! The clock of the engine: nanoseconds since the process first looked.

use std::sync::OnceLock;
use std::time::Instant;

/// Now. Only grows, and is the same for all threads.
pub fn now_ns() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let start = *START.get_or_init(Instant::now);
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
