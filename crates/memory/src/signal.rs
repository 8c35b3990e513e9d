//! What stands between rows: signals other than watermarks, which the log keeps itself.

/// Something that stands at a position of a log, before the row of that number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Sent by a source now and then, and timed where it arrives.
    Marker {
        /// When the rows before it arrived, on the engine's clock.
        sent_ns: u64,
    },
    /// The rows before it had arrived by then.
    Arrival {
        /// When they arrived, on the engine's clock.
        at_ns: u64,
    },
    /// The rows before it are results of windows, and timed where they arrive.
    Results {
        /// When the watermark that closed the windows arrived, on the engine's clock.
        due_ns: u64,
    },
    /// The rows behind it are judged by that watermark of their own source, which may be ahead of the watermark here.
    Judge {
        /// The watermark.
        watermark: i64,
    },
    /// Nothing comes for now, and nobody is to wait for it, until something does.
    Idle,
    /// No row comes after it.
    End,
}
