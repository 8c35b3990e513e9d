//! The signals between rows, except watermarks, which the log keeps itself.

/// A signal at a position of a log, before the row of that number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Sent by a source now and then, and timed where it arrives.
    Marker {
        /// Arrival time of the rows before it, on the engine's clock.
        sent_ns: u64,
    },
    /// The rows before it had arrived by `at_ns`.
    Arrival {
        /// Their arrival time, on the engine's clock.
        at_ns: u64,
    },
    /// The rows before it are results of windows, and timed where they arrive.
    Results {
        /// Arrival time of the watermark that closed the windows, on the engine's clock.
        due_ns: u64,
    },
    /// The rows after it are judged by that watermark of their own source, which may be ahead of the watermark here.
    Judge {
        /// The watermark.
        watermark: i64,
    },
    /// The writer is idle: no reader waits for it until something follows.
    Idle,
    /// No row follows.
    End,
}
