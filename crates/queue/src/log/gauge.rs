//! Counts what waits for a reader, for any thread.

use super::{CursorLine, HeadLine};
use crate::sync::{Ordering, ordering};

/// Reports how much work waits for one reader. It keeps no chunk alive.
#[derive(Clone)]
pub struct LogGauge {
    pub(super) head: HeadLine,
    pub(super) cursor: CursorLine,
}

/// The work that waits for a reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Rows published and not consumed.
    pub rows: u64,
    /// Signals not passed. The newest watermark may count twice, or once after it was passed: the number only decides
    /// whether the reader looks, and its look corrects the number.
    pub signals: u64,
}

impl LogGauge {
    /// Returns what waits now. While the writer and the reader work it may read high for an instant, never low.
    #[inline]
    pub fn work(&self) -> Work {
        // Relaxed: a reader that is gone consumes nothing, however far the writer proceeds.
        if self.cursor.gone.load(Ordering::Relaxed) {
            return Work::default();
        }
        // Acquire: pairs with the Release stores of the reader. The reader knew the head that it consumed up to, so
        // the loads below return that head or a newer one, and the differences cannot be negative.
        let read_pos = self.cursor.read_pos.load(ordering("log.gauge.read_pos", Ordering::Acquire));
        let signal_pos = self.cursor.signal_pos.load(ordering("log.gauge.signal_pos", Ordering::Acquire));
        // Relaxed: compared with the tip, not subtracted from it, and it covers nothing else.
        let watermark = self.cursor.watermark.load(Ordering::Relaxed);
        let rows = self.head.write_pos.load(Ordering::Relaxed) - read_pos;
        let ringed = self.head.signal_tail.load(Ordering::Relaxed) - signal_pos;
        let tip = self.head.tip.load(Ordering::Relaxed) > watermark;
        Work { rows, signals: ringed + u64::from(tip) }
    }
}
