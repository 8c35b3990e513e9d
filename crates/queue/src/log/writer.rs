//! The writer's side: rows, the directory, and the readers.

use std::sync::{Arc as StdArc, OnceLock};

use crossbeam_utils::CachePadded;

use super::signals::Outbox;
use super::slots::Slots;
use super::{
    CursorLine, DirectoryEntry, Head, HeadLine, LogShared, NO_WATERMARK, PositionReader, ReadCursor,
};
use crate::sync::{Arc, AtomicBool, AtomicI64, AtomicU64, Ordering, ordering, planted};
use crate::wake::Wake;

/// The publishing side. Dropping it closes the log: readers still consume what is there.
pub struct PositionWriter<C, S> {
    pub(super) head: HeadLine,
    pub(super) shared: Arc<LogShared<C, S>>,
    pub(super) registered: Vec<RegisteredReader>,
    pub(super) outbox: Outbox,
    /// The writer's own `write_pos`.
    position: u64,
    end: u64,
    /// Entries `first..next` are in the directory. `current` is the entry that holds `position`, or `next`.
    first: u64,
    current: u64,
    next: u64,
    capacity: u64,
    /// Every present reader has consumed the rows below this position. May be out of date, never too high.
    floor: u64,
}

/// A reader, as its writer knows it.
pub(super) struct RegisteredReader {
    pub(super) cursor: CursorLine,
    wake: StdArc<dyn Wake>,
}

impl RegisteredReader {
    fn is_gone(&self) -> bool {
        // Acquire: pairs with the Release in the drop of `PositionReader`. Once this returns true, the reader has made
        // its last look at any slot.
        self.cursor.gone.load(ordering("log.gone.load", Ordering::Acquire))
    }

    fn read_pos(&self) -> u64 {
        // Acquire: pairs with the Release in `PositionReader::advance`. Once this returns the new position, the reader
        // has made its last look at the entries below it.
        self.cursor.read_pos.load(ordering("log.read_pos.load", Ordering::Acquire))
    }
}

impl<C, S> PositionWriter<C, S> {
    /// Creates a log at position zero, with room for `chunks` entries in the directory and `signals` in the ring.
    ///
    /// # Panics
    /// When one of them is zero.
    pub fn new(chunks: usize, signals: usize) -> Self {
        assert!(chunks > 0, "a log needs room for a chunk");
        let outbox = Outbox::new(signals);
        let head = Head {
            write_pos: AtomicU64::new(0),
            signal_tail: AtomicU64::new(0),
            tip: AtomicI64::new(NO_WATERMARK),
            closed: AtomicBool::new(false),
        };
        let (directory, signals) = (Slots::new(chunks), Slots::new(signals));
        Self {
            head: Arc::new(CachePadded::new(head)),
            shared: Arc::new(LogShared { directory, signals, writer: OnceLock::new() }),
            registered: Vec::new(),
            outbox,
            position: 0,
            end: 0,
            first: 0,
            current: 0,
            next: 0,
            capacity: chunks as u64,
            floor: 0,
        }
    }

    /// Returns the position of the next row.
    #[inline]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns the end of the last chunk of the directory: rows up to here can be published.
    #[inline]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Returns the number of entries in the directory.
    pub fn chunks(&self) -> usize {
        (self.next - self.first) as usize
    }

    /// Returns true if the directory has room for another entry.
    pub fn has_entry(&self) -> bool {
        self.next - self.first < self.capacity
    }

    /// Adds a chunk that takes the next `rows` positions from [`Self::end`] on.
    ///
    /// # Panics
    /// When the directory is full, or the chunk has no rows.
    pub fn add(&mut self, chunk: C, rows: u64) {
        assert!(self.has_entry(), "the directory has a free entry");
        assert!(rows > 0, "a chunk has rows");
        let end = self.end.checked_add(rows).expect("positions fit 64 bits");
        // SAFETY: the entry that had this slot was taken out (LOG-3), and readers look at the new one only after
        // `write_pos` has entered it.
        unsafe { self.shared.directory.put(self.next, DirectoryEntry { chunk, start: self.end, end }) };
        self.next += 1;
        self.end = end;
    }

    /// Returns the entry of that number, which must be in `first..next`.
    fn entry(&self, number: u64) -> &DirectoryEntry<C> {
        // SAFETY: this writer stored the entry, and takes it out only through `&mut self` (LOG-1).
        unsafe { self.shared.directory.get(number) }
    }

    /// Returns the chunk that holds [`Self::position`], and the offset in it.
    #[inline]
    pub fn current(&self) -> Option<(&C, u64)> {
        self.entry_at(self.position)
    }

    /// Returns the chunk that holds a position in `position()..end()`, and the offset in it.
    #[inline]
    pub fn entry_at(&self, position: u64) -> Option<(&C, u64)> {
        if position < self.position {
            return None;
        }
        let mut entries = (self.current..self.next).map(|number| self.entry(number));
        entries.find(|entry| position < entry.end).map(|entry| (&entry.chunk, position - entry.start))
    }

    /// Returns the number of positions from `position` to the end of the chunk that holds it; 0 where there is none.
    #[inline]
    pub fn left_at(&self, position: u64) -> u64 {
        let mut ends = (self.current..self.next).map(|number| self.entry(number).end);
        ends.find(|&end| position < end).map_or(0, |end| end - position)
    }

    /// Takes the oldest chunk out when it is full and every present reader has left it.
    ///
    /// Checks for readers that are gone only when their position would matter.
    pub fn reclaim(&mut self) -> Option<C> {
        if self.first == self.current {
            return None;
        }
        let end = self.entry(self.first).end;
        if self.floor < end && !planted("log.reclaim.look") {
            self.dismiss_gone();
            self.floor = self.slowest();
            if self.floor < end {
                return None;
            }
        }
        // SAFETY: `write_pos` and every present reader have left the entry (LOG-3); the Acquire loads order their last
        // looks at the slot before this.
        let entry = unsafe { self.shared.directory.take(self.first) };
        self.first += 1;
        entry.map(|entry| entry.chunk)
    }

    /// Returns the smallest position of the present readers; [`Self::position`] without readers.
    pub fn slowest(&self) -> u64 {
        let present = self.registered.iter().filter(|reader| !reader.is_gone());
        present.map(RegisteredReader::read_pos).min().unwrap_or(self.position)
    }

    /// Returns the number of present readers.
    pub fn readers(&self) -> usize {
        self.registered.iter().filter(|reader| !reader.is_gone()).count()
    }

    /// Sets the waker for a reader that leaves a chunk, passes a signal or goes away. The caller then looks again at
    /// what readers may have done before this call.
    ///
    /// # Panics
    /// When a waker was set before.
    pub fn set_wake(&mut self, wake: StdArc<dyn Wake>) {
        assert!(self.shared.writer.set(wake).is_ok(), "a log has one writer to wake");
    }

    /// Adds a reader that starts at [`Self::position`] and first sees the current watermark, if there is one. The log
    /// wakes `wake` whenever something was published.
    pub fn join(&mut self, wake: StdArc<dyn Wake>) -> PositionReader<C, S> {
        self.dismiss_gone();
        let cursor = Arc::new(CachePadded::new(ReadCursor {
            read_pos: AtomicU64::new(self.position),
            signal_pos: AtomicU64::new(self.outbox.tail()),
            watermark: AtomicI64::new(NO_WATERMARK),
            gone: AtomicBool::new(false),
        }));
        self.registered.push(RegisteredReader { cursor: Arc::clone(&cursor), wake });
        let (head, shared) = (Arc::clone(&self.head), Arc::clone(&self.shared));
        PositionReader::new(head, shared, cursor, self.current, self.outbox.tip())
    }

    pub(super) fn dismiss_gone(&mut self) {
        self.registered.retain(|reader| !reader.is_gone());
    }

    pub(super) fn wake_readers(&self) {
        for reader in &self.registered {
            reader.wake.wake();
        }
    }
}

impl<C, S: Copy> PositionWriter<C, S> {
    /// Returns true if rows may be published: not while the watermark at [`Self::position`] finds no room in the ring.
    /// Tries to put it there; when there is no room, the writer is woken once a reader has passed a signal.
    #[inline]
    pub fn can_publish(&mut self) -> bool {
        self.post_tip()
    }

    /// Publishes the next `rows` rows, and wakes the readers.
    ///
    /// # Panics
    /// When [`Self::can_publish`] is false, or the directory ends before.
    #[inline]
    pub fn publish(&mut self, rows: u64) {
        if rows == 0 {
            return;
        }
        assert!(rows <= self.end - self.position, "rows are published where there are chunks");
        assert!(self.can_publish(), "the ring has room for the watermark before the rows");
        self.position += rows;
        while self.current < self.next && self.entry(self.current).end <= self.position {
            self.current += 1;
        }
        // Release: pairs with the Acquire in `Seen::load`. A reader that sees the new position sees the rows below it,
        // their entries (LOG-3) and the signals before them (LOG-5).
        self.head.write_pos.store(self.position, ordering("log.write_pos.store", Ordering::Release));
        if !planted("log.publish.wake") {
            self.wake_readers();
        }
    }
}

impl<C, S> Drop for PositionWriter<C, S> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `Seen::load` (LOG-7).
        self.head.closed.store(true, ordering("log.closed.store", Ordering::Release));
        if !planted("log.close.wake") {
            self.wake_readers();
        }
    }
}
