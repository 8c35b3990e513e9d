//! The writer's side of signals: the bounded ring, and the watermark at its tip.

use super::writer::PositionWriter;
use crate::sync::{Ordering, ordering, planted};

/// The content of a slot of the ring: a signal and its position.
#[derive(Clone, Copy)]
pub(super) struct Posted<S> {
    pub(super) position: u64,
    pub(super) notice: Notice<S>,
}

#[derive(Clone, Copy)]
pub(super) enum Notice<S> {
    Watermark(i64),
    Signal(S),
}

/// The writer's own state of its signals.
pub(super) struct Outbox {
    /// The writer's own `signal_tail` and `tip`.
    tail: u64,
    tip: i64,
    /// The newest watermark that was put into the ring.
    ringed: i64,
    capacity: u64,
    /// Every present reader has passed the signals below this number. May be out of date, never too high.
    floor: u64,
}

impl Outbox {
    pub(super) fn new(capacity: usize) -> Self {
        assert!(capacity > 0, "a log needs room for a signal");
        let none = super::NO_WATERMARK;
        Self { tail: 0, tip: none, ringed: none, capacity: capacity as u64, floor: 0 }
    }

    pub(super) fn tail(&self) -> u64 {
        self.tail
    }

    pub(super) fn tip(&self) -> i64 {
        self.tip
    }
}

impl<C, S: Copy> PositionWriter<C, S> {
    /// Publishes that no row from [`Self::position`] on is older than `value`. Ignores a value that is not newer than
    /// the last. Takes no room: at one position only the newest watermark counts.
    pub fn watermark(&mut self, value: i64) {
        if value <= self.outbox.tip {
            return;
        }
        self.outbox.tip = value;
        // Release: pairs with the Acquire in `Seen::load`. A reader that sees the watermark sees the rows and signals
        // before it (LOG-6).
        self.head.tip.store(value, ordering("log.tip.store", Ordering::Release));
        if !planted("log.watermark.wake") {
            self.wake_readers();
        }
    }

    /// Returns the newest watermark; `i64::MIN` before the first.
    pub fn watermark_value(&self) -> i64 {
        self.outbox.tip
    }

    /// Puts a signal at [`Self::position`], after the watermark there. Returns the signal when the ring is full: the
    /// writer is woken when a reader has passed one.
    pub fn signal(&mut self, signal: S) -> Result<(), S> {
        if !self.post_tip() || !self.post(Notice::Signal(signal)) {
            return Err(signal);
        }
        if !planted("log.signal.wake") {
            self.wake_readers();
        }
        Ok(())
    }

    /// Puts the tip into the ring unless it is there; returns true if rows or another signal may follow it now
    /// (LOG-6).
    ///
    /// Wakes no reader, since the readers were woken when the tip was set; see `has_signal_room` for the exception.
    pub(super) fn post_tip(&mut self) -> bool {
        if self.outbox.tip == self.outbox.ringed || planted("log.tip.post") {
            return true;
        }
        let posted = self.post(Notice::Watermark(self.outbox.tip));
        if posted {
            self.outbox.ringed = self.outbox.tip;
        }
        posted
    }

    fn post(&mut self, notice: Notice<S>) -> bool {
        if !self.has_signal_room() {
            return false;
        }
        let (number, position) = (self.outbox.tail, self.position());
        // SAFETY: there is room, so every present reader has passed the number that had this slot (LOG-4), and its
        // Release and the Acquire of `signal_pos` here order its last look at the slot before this write.
        unsafe { self.shared.signals.put(number, Posted { position, notice }) };
        self.outbox.tail = number + 1;
        // Release: pairs with the Acquire in `Seen::load`. A reader that sees the new tail sees the slot.
        self.head.signal_tail.store(number + 1, ordering("log.tail.store", Ordering::Release));
        true
    }

    fn has_signal_room(&mut self) -> bool {
        if self.outbox.tail - self.outbox.floor < self.outbox.capacity || planted("log.signal.room") {
            return true;
        }
        self.dismiss_gone();
        let cursors = self.registered.iter().map(|reader| &reader.cursor);
        // Acquire: pairs with the Release in `PositionReader::leave_signal`. A writer that sees the new position may
        // reuse the slots below it.
        let passed =
            cursors.map(|cursor| cursor.signal_pos.load(ordering("log.signal_pos.load", Ordering::Acquire)));
        self.outbox.floor = passed.min().unwrap_or(self.outbox.tail);
        let room = self.outbox.tail - self.outbox.floor < self.outbox.capacity;
        // A reader that passed the tip before it went into the ring may be asleep, and has to pass it there as well.
        if !room && !planted("log.full.wake") {
            self.wake_readers();
        }
        room
    }
}
