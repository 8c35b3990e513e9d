//! A reader's view of the writer.

use super::Head;
use crate::sync::{Ordering, ordering, planted};

/// A view of the head, valid for everything below `write_pos` and for the signals below `tail`.
pub(super) struct Seen {
    pub(super) closed: bool,
    pub(super) tip: i64,
    pub(super) write_pos: u64,
    pub(super) tail: u64,
}

impl Seen {
    /// Loads a view. LOG-5, LOG-6 and LOG-7 rest on the order of the loads; each Acquire keeps the later loads after
    /// it.
    #[inline]
    pub(super) fn load(head: &Head) -> Self {
        let closed = head.is_closed();
        let tip = head.tip();
        let write_pos = head.write_pos();
        let mut seen = Self { closed, tip, write_pos, tail: head.signal_tail() };
        if planted("log.closed.late") {
            seen.closed = head.is_closed();
        }
        if planted("log.tip.late") {
            seen.tip = head.tip();
        }
        if planted("log.write_pos.late") {
            seen.write_pos = head.write_pos();
        }
        seen
    }
}

impl Head {
    #[inline]
    fn is_closed(&self) -> bool {
        // Acquire: pairs with the Release in the drop of `PositionWriter`.
        self.closed.load(ordering("log.closed.load", Ordering::Acquire))
    }

    #[inline]
    fn tip(&self) -> i64 {
        // Acquire: pairs with the Release in `PositionWriter::watermark`.
        self.tip.load(ordering("log.tip.load", Ordering::Acquire))
    }

    #[inline]
    fn write_pos(&self) -> u64 {
        // Acquire: pairs with the Release in `PositionWriter::publish`.
        self.write_pos.load(ordering("log.write_pos.load", Ordering::Acquire))
    }

    #[inline]
    fn signal_tail(&self) -> u64 {
        // Acquire: pairs with the Release in `PositionWriter::post`.
        self.signal_tail.load(ordering("log.tail.load", Ordering::Acquire))
    }
}
