//! The kinds of windows.

use crate::Aligned;

/// The way event time is divided into windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Windows {
    /// On a grid that is the same for all keys: tumbling and sliding windows.
    Aligned(Aligned),
    /// Per key: rows less than `gap` ticks apart belong together, and a window ends `gap` ticks after its last row.
    Session {
        /// Ticks without a row after which a window is over; positive.
        gap: i64,
    },
}

impl Windows {
    /// Creates windows separated by gaps of `gap` ticks; `None` unless `gap` is positive.
    pub fn session(gap: i64) -> Option<Self> {
        (gap > 0).then_some(Self::Session { gap })
    }
}

impl From<Aligned> for Windows {
    fn from(aligned: Aligned) -> Self {
        Self::Aligned(aligned)
    }
}
