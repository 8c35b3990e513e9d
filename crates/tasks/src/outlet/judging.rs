//! How the readers of an edge learn which watermark a row is judged by.

use penstock_memory::SlotId;

/// How readers learn which watermark a row is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judging {
    /// No reader asks, or the watermark at each row is right as it is.
    AsItStands,
    /// The same for results, whose time no watermark passes before they have left.
    Results {
        /// The time of each row.
        time: SlotId,
    },
    /// Rows come from their source, and may lie below the watermark before them: it is placed exactly there.
    Exact {
        /// The time of each row.
        time: SlotId,
        /// The watermark just before each row, in runs that may hold a late one.
        watermark: SlotId,
    },
    /// Rows of several sources come together, each judged by its own: a signal says which, before the rows that it matters
    /// for.
    Said {
        /// The time of each row.
        time: SlotId,
    },
}
