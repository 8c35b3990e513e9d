//! The reader's side: rows and signals in the order of their positions.

use super::signals::Notice;
use super::view::Seen;
use super::{CursorLine, DirectoryEntry, HeadLine, LogGauge, LogShared, NO_WATERMARK};
use crate::sync::{Arc, Ordering, ordering, planted};

/// The consuming side. Dropping it gives up everything that it has not consumed.
pub struct PositionReader<C, S> {
    head: HeadLine,
    shared: Arc<LogShared<C, S>>,
    cursor: CursorLine,
    seen: Seen,
    peeked: PeekedItem<S>,
    /// This reader's own `read_pos`, `signal_pos` and passed watermark.
    position: u64,
    signal: u64,
    watermark: i64,
    /// The positions of the entry that was looked up last, and the number of the entry to look up at its end.
    start: u64,
    end: u64,
    next: u64,
}

/// What comes next for a reader. A signal at a position comes before the row there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogNext<'a, C, S> {
    /// Adjacent rows of one chunk, with no signal between them.
    Rows {
        /// The chunk that holds them.
        chunk: &'a C,
        /// Offset of the first row in the chunk.
        offset: u64,
        /// Number of rows.
        rows: u64,
        /// Position of the first row.
        position: u64,
    },
    /// No later row is older than this.
    Watermark(i64),
    /// Another signal.
    Signal(S),
    /// Nothing now; more may come.
    Nothing,
    /// Nothing now or ever: the writer is gone.
    Closed,
}

/// What `peek` has returned and `advance` or `pass` may consume.
#[derive(Clone, Copy)]
enum PeekedItem<S> {
    Nothing,
    Rows(u64),
    Tip(i64),
    Posted(Notice<S>),
}

impl<C, S> PositionReader<C, S> {
    /// Creates the reader that owns a cursor. The cursor says where it starts: at the writer's position, which entry
    /// `next` holds, with the watermark `tip`.
    pub(super) fn new(
        head: HeadLine,
        shared: Arc<LogShared<C, S>>,
        cursor: CursorLine,
        next: u64,
        tip: i64,
    ) -> Self {
        // Relaxed: the cursor is not shared yet.
        let position = cursor.read_pos.load(Ordering::Relaxed);
        let signal = cursor.signal_pos.load(Ordering::Relaxed);
        Self {
            head,
            shared,
            cursor,
            // As if loaded now, so that the tip comes before the rows that follow.
            seen: Seen { closed: false, tip, write_pos: position, tail: signal },
            peeked: PeekedItem::Nothing,
            position,
            signal,
            watermark: NO_WATERMARK,
            start: position,
            end: position,
            next,
        }
    }

    /// Returns the position of the next row to consume.
    #[inline]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns the last watermark passed; `i64::MIN` before the first.
    #[inline]
    pub fn watermark(&self) -> i64 {
        self.watermark
    }

    /// Returns the number of rows published and not consumed.
    #[inline]
    pub fn pending(&self) -> u64 {
        // Relaxed: a number only. It cannot be older than the position that this reader has consumed up to.
        self.head.write_pos.load(Ordering::Relaxed) - self.position
    }

    /// Returns a gauge that reports to any thread how much work waits for this reader.
    pub fn gauge(&self) -> LogGauge {
        LogGauge { head: Arc::clone(&self.head), cursor: Arc::clone(&self.cursor) }
    }

    /// Consumes rows that [`Self::peek`] has returned.
    ///
    /// # Panics
    /// When `peek` has returned fewer rows.
    #[inline]
    pub fn advance(&mut self, rows: u64) {
        let peeked = if let PeekedItem::Rows(peeked) = self.peeked { peeked } else { 0 };
        assert!(rows <= peeked, "only peeked rows are consumed");
        if rows == 0 {
            return;
        }
        self.peeked = PeekedItem::Nothing;
        self.position += rows;
        // Release: pairs with the Acquire in `RegisteredReader::read_pos`. `&mut self` proves that no borrow of a
        // peeked chunk is alive, so this reader's last look at the entry comes before this store.
        self.cursor.read_pos.store(self.position, ordering("log.read_pos.store", Ordering::Release));
        // Caught up: the writer may wait for that, too. A reader at the true `write_pos` has seen it.
        let caught_up = self.position == self.seen.write_pos && !planted("log.caught_up.wake");
        if (self.position == self.end && !planted("log.advance.wake")) || caught_up {
            self.shared.wake_writer();
        }
    }

    fn leave_signal(&mut self) {
        self.signal += 1;
        // Release: pairs with the Acquire in `PositionWriter::has_signal_room`. This reader's last look at the slot
        // comes before it.
        self.cursor.signal_pos.store(self.signal, ordering("log.signal_pos.store", Ordering::Release));
        if !planted("log.pass.wake") {
            self.shared.wake_writer();
        }
    }

    fn pass_watermark(&mut self, value: i64) {
        self.watermark = value;
        // Relaxed: a number for `LogGauge::work`, which covers nothing else.
        self.cursor.watermark.store(value, Ordering::Relaxed);
    }
}

impl<C, S: Copy> PositionReader<C, S> {
    /// Returns what comes next. The result stays the same until [`Self::advance`] or [`Self::pass`] consumes it,
    /// except that a run of rows may grow, and [`LogNext::Nothing`] is looked up anew each time.
    #[inline]
    pub fn peek(&mut self) -> LogNext<'_, C, S> {
        if let PeekedItem::Nothing | PeekedItem::Rows(_) = self.peeked {
            self.peeked = self.look();
        }
        match self.peeked {
            PeekedItem::Rows(rows) => {
                let (position, offset) = (self.position, self.position - self.start);
                LogNext::Rows { chunk: &self.entry(self.next - 1).chunk, offset, rows, position }
            }
            PeekedItem::Tip(value) | PeekedItem::Posted(Notice::Watermark(value)) => {
                LogNext::Watermark(value)
            }
            PeekedItem::Posted(Notice::Signal(signal)) => LogNext::Signal(signal),
            // By LOG-7 this view has missed nothing.
            PeekedItem::Nothing if self.seen.closed => LogNext::Closed,
            PeekedItem::Nothing => LogNext::Nothing,
        }
    }

    /// Consumes the signal or the watermark that [`Self::peek`] has returned.
    ///
    /// # Panics
    /// When `peek` has not returned one.
    #[inline]
    pub fn pass(&mut self) {
        // Replaced before the wake-up, which may panic: nothing is passed twice.
        match std::mem::replace(&mut self.peeked, PeekedItem::Nothing) {
            PeekedItem::Tip(value) => self.pass_watermark(value),
            PeekedItem::Posted(notice) => {
                if let Notice::Watermark(value) = notice {
                    self.pass_watermark(value);
                }
                self.leave_signal();
            }
            PeekedItem::Nothing | PeekedItem::Rows(_) => panic!("only a peeked signal is passed"),
        }
    }

    #[inline]
    fn look(&mut self) -> PeekedItem<S> {
        if let Some(peeked) = self.due_signal() {
            return peeked;
        }
        // While the view covers the rest of the chunk, a newer view could not offer more rows: the writer's line stays
        // untouched.
        if self.position == self.end || self.seen.write_pos < self.end {
            self.seen = Seen::load(&self.head);
            if let Some(peeked) = self.due_signal() {
                return peeked;
            }
        }
        let known = self.next_signal().map_or(self.seen.write_pos, |(at, _)| at.min(self.seen.write_pos));
        if self.position == known {
            return PeekedItem::Nothing;
        }
        if self.position == self.end {
            self.next += 1;
            (self.start, self.end) = {
                let entry = self.entry(self.next - 1);
                (entry.start, entry.end)
            };
        }
        PeekedItem::Rows(known.min(self.end) - self.position)
    }

    /// Returns the signal of this view at the reader's position. Skips watermarks that are not newer than the last: a
    /// tip that was passed at once may come again through the ring.
    #[inline]
    fn due_signal(&mut self) -> Option<PeekedItem<S>> {
        while let Some((at, notice)) = self.next_signal() {
            if at != self.position {
                return None;
            }
            match notice {
                Notice::Watermark(value) if value <= self.watermark => self.leave_signal(),
                notice => return Some(PeekedItem::Posted(notice)),
            }
        }
        let due = self.position == self.seen.write_pos && self.seen.tip > self.watermark;
        due.then_some(PeekedItem::Tip(self.seen.tip))
    }

    /// Returns the first signal of this view that was not passed, and its position.
    #[inline]
    fn next_signal(&self) -> Option<(u64, Notice<S>)> {
        if self.signal == self.seen.tail {
            return None;
        }
        // SAFETY: the Acquire of `signal_tail` made the slot visible, and the writer does not write it before this
        // reader passes it (LOG-4).
        let posted = unsafe { self.shared.signals.get(self.signal) };
        Some((posted.position, posted.notice))
    }

    /// Returns the entry of that number, which must hold the reader's position.
    #[inline]
    fn entry(&self, number: u64) -> &DirectoryEntry<C> {
        // SAFETY: `write_pos` was seen beyond the reader's position, so the entry is visible, and the writer does not
        // take it out before this reader's `read_pos` leaves it (LOG-3), which needs `&mut self`.
        unsafe { self.shared.directory.get(number) }
    }
}

impl<C, S> Drop for PositionReader<C, S> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `RegisteredReader::is_gone`. This reader's last look at any slot comes
        // before it.
        self.cursor.gone.store(true, ordering("log.gone.store", Ordering::Release));
        if !planted("log.leave.wake") {
            self.shared.wake_writer();
        }
    }
}
