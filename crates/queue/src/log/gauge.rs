//! How much waits for a reader, for anyone who asks.

use super::{CursorLine, HeadLine};
use crate::sync::{Ordering, ordering};

/// Tells how much work waits for one reader. It keeps no chunk alive.
#[derive(Clone)]
pub struct LogGauge {
    pub(super) head: HeadLine,
    pub(super) place: CursorLine,
}

/// What waits for a reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Rows that were published and not consumed.
    pub rows: u64,
    /// Signals that were not passed. The newest watermark may count twice, or once after it was passed: the number
    /// is for deciding whether to look, and a look sets it right.
    pub signals: u64,
}

impl LogGauge {
    /// What waits now. While others work it may read high for an instant, never low.
    #[inline]
    pub fn work(&self) -> Work {
        // Relaxed: a reader that is gone wants nothing, however far the writer goes on.
        if self.place.gone.load(Ordering::Relaxed) {
            return Work::default();
        }
        // Acquire: pairs with the Release stores of the reader. It knew the head that it consumed up to, so the
        // loads below give that head or a newer one, and the differences cannot be negative.
        let read_pos = self.place.read_pos.load(ordering("log.gauge.read_pos", Ordering::Acquire));
        let signal_pos = self.place.signal_pos.load(ordering("log.gauge.signal_pos", Ordering::Acquire));
        // Relaxed: compared with the tip, not subtracted from it, and it covers nothing else.
        let watermark = self.place.watermark.load(Ordering::Relaxed);
        let rows = self.head.write_pos.load(Ordering::Relaxed) - read_pos;
        let ringed = self.head.signal_tail.load(Ordering::Relaxed) - signal_pos;
        let tip = self.head.tip.load(Ordering::Relaxed) > watermark;
        Work { rows, signals: ringed + u64::from(tip) }
    }
}
