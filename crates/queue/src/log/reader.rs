//! A reader's side: rows and signals in the order of their positions.

use super::signals::Notice;
use super::view::Seen;
use super::{CursorLine, DirectoryEntry, HeadLine, LogGauge, LogShared, NO_WATERMARK};
use crate::sync::{Arc, Ordering, ordering, planted};

/// A side that consumes. Dropping it gives up everything that it has not consumed.
pub struct Reader<C, S> {
    head: HeadLine,
    shared: Arc<LogShared<C, S>>,
    place: CursorLine,
    seen: Seen,
    shown: PeekedItem<S>,
    /// Our own `read_pos`, `signal_pos` and passed watermark.
    position: u64,
    signal: u64,
    watermark: i64,
    /// The positions of the entry that was looked up last, and the number of the one to look up at its end.
    start: u64,
    end: u64,
    next: u64,
}

/// What comes next for a reader. A signal at a position comes before the row there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogNext<'a, C, S> {
    /// Rows that lie together in one chunk, with no signal between them.
    Rows {
        /// The chunk that holds them.
        chunk: &'a C,
        /// Where in the chunk the first one is.
        offset: u64,
        /// How many there are.
        rows: u64,
        /// Position of the first one.
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

/// What `peek` has shown and `advance` or `pass` may consume.
#[derive(Clone, Copy)]
enum PeekedItem<S> {
    Nothing,
    Rows(u64),
    Tip(i64),
    Posted(Notice<S>),
}

impl<C, S> Reader<C, S> {
    /// The reader that belongs to a place. What the place says is where it starts: at the writer's position, which
    /// stands in entry `next`, with the watermark `tip`.
    pub(super) fn new(
        head: HeadLine,
        shared: Arc<LogShared<C, S>>,
        place: CursorLine,
        next: u64,
        tip: i64,
    ) -> Self {
        // Relaxed: the place is not shared yet.
        let position = place.read_pos.load(Ordering::Relaxed);
        let signal = place.signal_pos.load(Ordering::Relaxed);
        Self {
            head,
            shared,
            place,
            // As if loaded now, so that the tip comes before the rows that follow.
            seen: Seen { closed: false, tip, write_pos: position, tail: signal },
            shown: PeekedItem::Nothing,
            position,
            signal,
            watermark: NO_WATERMARK,
            start: position,
            end: position,
            next,
        }
    }

    /// The next row to consume.
    #[inline]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The last watermark passed; `i64::MIN` before the first.
    #[inline]
    pub fn watermark(&self) -> i64 {
        self.watermark
    }

    /// How many rows were published and not consumed.
    #[inline]
    pub fn pending(&self) -> u64 {
        // Relaxed: a number only. It cannot be older than the one that this reader has consumed up to.
        self.head.write_pos.load(Ordering::Relaxed) - self.position
    }

    /// Tells anyone how much work waits for this reader.
    pub fn gauge(&self) -> LogGauge {
        LogGauge { head: Arc::clone(&self.head), place: Arc::clone(&self.place) }
    }

    /// Consumes rows that [`Self::peek`] has shown.
    ///
    /// # Panics
    /// When it has not shown as many.
    #[inline]
    pub fn advance(&mut self, rows: u64) {
        let shown = if let PeekedItem::Rows(shown) = self.shown { shown } else { 0 };
        assert!(rows <= shown, "rows are consumed after they were shown");
        if rows == 0 {
            return;
        }
        self.shown = PeekedItem::Nothing;
        self.position += rows;
        // Release: pairs with the Acquire in `RegisteredReader::read_pos`. `&mut self` says that nobody holds a chunk that was
        // shown, so our last look at the entry comes before this.
        self.place.read_pos.store(self.position, ordering("log.read_pos.store", Ordering::Release));
        // Caught up: the writer may wait for that, too. Whoever stands at the true `write_pos` has seen it.
        let caught_up = self.position == self.seen.write_pos && !planted("log.caught_up.wake");
        if (self.position == self.end && !planted("log.advance.wake")) || caught_up {
            self.shared.wake_writer();
        }
    }

    fn leave_signal(&mut self) {
        self.signal += 1;
        // Release: pairs with the Acquire in `Writer::has_signal_room`. Our last look at the slot comes before this.
        self.place.signal_pos.store(self.signal, ordering("log.signal_pos.store", Ordering::Release));
        if !planted("log.pass.wake") {
            self.shared.wake_writer();
        }
    }

    fn pass_watermark(&mut self, value: i64) {
        self.watermark = value;
        // Relaxed: a number for `LogGauge::work`, which covers nothing else.
        self.place.watermark.store(value, Ordering::Relaxed);
    }
}

impl<C, S: Copy> Reader<C, S> {
    /// What comes next. The answer stays the same until it is consumed by [`Self::advance`] or [`Self::pass`],
    /// except that rows may have become more, and [`LogNext::Nothing`] is looked at anew each time.
    #[inline]
    pub fn peek(&mut self) -> LogNext<'_, C, S> {
        if let PeekedItem::Nothing | PeekedItem::Rows(_) = self.shown {
            self.shown = self.look();
        }
        match self.shown {
            PeekedItem::Rows(rows) => {
                let (position, offset) = (self.position, self.position - self.start);
                LogNext::Rows { chunk: &self.entry(self.next - 1).chunk, offset, rows, position }
            }
            PeekedItem::Tip(value) | PeekedItem::Posted(Notice::Watermark(value)) => {
                LogNext::Watermark(value)
            }
            PeekedItem::Posted(Notice::Signal(signal)) => LogNext::Signal(signal),
            // By LOG-7 there is nothing that this view has missed.
            PeekedItem::Nothing if self.seen.closed => LogNext::Closed,
            PeekedItem::Nothing => LogNext::Nothing,
        }
    }

    /// Consumes the signal or the watermark that [`Self::peek`] has shown.
    ///
    /// # Panics
    /// When it has not shown one.
    #[inline]
    pub fn pass(&mut self) {
        // Before the wake-up, which may panic: nothing is passed twice.
        match std::mem::replace(&mut self.shown, PeekedItem::Nothing) {
            PeekedItem::Tip(value) => self.pass_watermark(value),
            PeekedItem::Posted(notice) => {
                if let Notice::Watermark(value) = notice {
                    self.pass_watermark(value);
                }
                self.leave_signal();
            }
            PeekedItem::Nothing | PeekedItem::Rows(_) => panic!("a signal is passed after it was shown"),
        }
    }

    #[inline]
    fn look(&mut self) -> PeekedItem<S> {
        if let Some(shown) = self.due_signal() {
            return shown;
        }
        // While the view covers the rest of the chunk, a newer one could not show more rows: the writer's line is
        // left alone.
        if self.position == self.end || self.seen.write_pos < self.end {
            self.seen = Seen::load(&self.head);
            if let Some(shown) = self.due_signal() {
                return shown;
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

    /// The signal of this view that stands at our position, leaving behind watermarks that say nothing new: a tip
    /// that was passed at once may come again through the ring.
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

    /// The first signal of this view that was not passed, and its position.
    #[inline]
    fn next_signal(&self) -> Option<(u64, Notice<S>)> {
        if self.signal == self.seen.tail {
            return None;
        }
        // SAFETY: the Acquire of `signal_tail` made the slot visible, and nobody writes it before we pass it (LOG-4).
        let posted = unsafe { self.shared.signals.get(self.signal) };
        Some((posted.position, posted.notice))
    }

    /// The entry of that number, which must hold our position.
    #[inline]
    fn entry(&self, number: u64) -> &DirectoryEntry<C> {
        // SAFETY: `write_pos` was seen beyond our position, so the entry is visible, and nobody takes it out before
        // our `read_pos` leaves it (LOG-3), which needs `&mut self`.
        unsafe { self.shared.directory.get(number) }
    }
}

impl<C, S> Drop for Reader<C, S> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `RegisteredReader::is_gone`. Our last look at any slot comes before this.
        self.place.gone.store(true, ordering("log.gone.store", Ordering::Release));
        if !planted("log.leave.wake") {
            self.shared.wake_writer();
        }
    }
}
