//! The writer's side of signals: the bounded ring, and the watermark that waits at its tip.

use super::writer::Writer;
use crate::sync::{Ordering, ordering, planted};

/// What a slot of the ring holds: a signal and the position that it stands at.
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

/// What the writer knows about its signals.
pub(super) struct Outbox {
    /// Our own `signal_tail` and `tip`.
    tail: u64,
    tip: i64,
    /// The newest watermark that went into the ring.
    ringed: i64,
    capacity: u64,
    /// Every present reader has passed the signals below this number. May lag behind.
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

impl<C, S: Copy> Writer<C, S> {
    /// Says that no row behind [`Self::position`] is older than `value`. One that is not newer than the last is
    /// ignored. Takes no room: at one position only the newest watermark counts.
    pub fn watermark(&mut self, value: i64) {
        if value <= self.outbox.tip {
            return;
        }
        self.outbox.tip = value;
        // Release: pairs with the Acquire in `Seen::load`. Whoever sees the watermark sees the rows and signals that
        // stand in front of it (LOG-6).
        self.head.tip.store(value, ordering("log.tip.store", Ordering::Release));
        if !planted("log.watermark.wake") {
            self.wake_readers();
        }
    }

    /// The newest watermark; `i64::MIN` before the first.
    pub fn watermark_value(&self) -> i64 {
        self.outbox.tip
    }

    /// Puts a signal at [`Self::position`], behind the watermark that stands there. Gives it back when the ring is
    /// full: the writer's wake-up comes when a reader has passed one.
    pub fn signal(&mut self, signal: S) -> Result<(), S> {
        if !self.post_tip() || !self.post(Notice::Signal(signal)) {
            return Err(signal);
        }
        if !planted("log.signal.wake") {
            self.wake_readers();
        }
        Ok(())
    }

    /// Puts the tip into the ring unless it is there. Whether rows or another signal may follow it now (LOG-6).
    ///
    /// Wakes nobody, since the readers were woken when the tip was set; see `has_signal_room` for the rest.
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
        // Release and our Acquire of `signal_pos` put its last look at the slot before this write.
        unsafe { self.shared.signals.put(number, Posted { position, notice }) };
        self.outbox.tail = number + 1;
        // Release: pairs with the Acquire in `Seen::load`. Whoever sees the new tail sees the slot.
        self.head.signal_tail.store(number + 1, ordering("log.tail.store", Ordering::Release));
        true
    }

    fn has_signal_room(&mut self) -> bool {
        if self.outbox.tail - self.outbox.floor < self.outbox.capacity || planted("log.signal.room") {
            return true;
        }
        self.dismiss_gone();
        let places = self.seats.iter().map(|seat| &seat.place);
        // Acquire: pairs with the Release in `Reader::leave_signal`. Whoever sees the new position has the slots
        // below it for itself.
        let passed =
            places.map(|place| place.signal_pos.load(ordering("log.signal_pos.load", Ordering::Acquire)));
        self.outbox.floor = passed.min().unwrap_or(self.outbox.tail);
        let room = self.outbox.tail - self.outbox.floor < self.outbox.capacity;
        // A reader that passed the tip before it went into the ring may be asleep, and has to clear it away.
        if !room && !planted("log.full.wake") {
            self.wake_readers();
        }
        room
    }
}
