//! The bytes that long string and binary values point into.
//!
//! A [`Payload`] is one piece of memory with such bytes: an Arrow buffer, shared in place, or an [`Arena`] into which
//! a log has copied values so that a few short ones do not keep a large buffer alive.
//!
//! PAYLOAD-1. One [`ArenaWriter`] fills an arena from front to back. Bytes below `filled` never change again, and only
//!     that writer touches the others.
//! PAYLOAD-2. A table only grows while it is shared. An entry is stored before a view that names it is published.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use arrow_buffer::Buffer;

/// Identifies the memory and the part of it that a payload is: foreign buffers may share a start and differ in length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PayloadIdentity {
    pub(crate) memory: usize,
    start: usize,
    bytes: usize,
}

/// Bytes that views point into.
#[derive(Clone, Debug)]
pub enum Payload {
    /// Memory of an Arrow array.
    Buffer(Buffer),
    /// Memory of a log.
    Arena(Arc<Arena>),
}

impl From<Buffer> for Payload {
    fn from(buffer: Buffer) -> Self {
        Self::Buffer(buffer)
    }
}

impl Payload {
    /// Returns the bytes of one value.
    ///
    /// # Panics
    /// When they do not lie within the payload.
    #[inline]
    pub fn bytes(&self, offset: usize, len: usize) -> &[u8] {
        match self {
            Self::Buffer(buffer) => &buffer.as_slice()[offset..offset + len],
            Self::Arena(arena) => arena.bytes(offset, len),
        }
    }

    /// Returns the bytes that stay in memory while this payload lives.
    pub fn held_bytes(&self) -> usize {
        match self {
            Self::Buffer(buffer) => buffer.capacity(),
            Self::Arena(arena) => arena.capacity(),
        }
    }

    /// Returns what distinguishes this payload from every other live one.
    pub(crate) fn identity(&self) -> PayloadIdentity {
        match self {
            Self::Buffer(buffer) => PayloadIdentity {
                memory: buffer.data_ptr().as_ptr() as usize,
                start: buffer.as_ptr() as usize,
                bytes: buffer.len(),
            },
            Self::Arena(arena) => PayloadIdentity { memory: Arc::as_ptr(arena) as usize, start: 0, bytes: 0 },
        }
    }
}

/// Memory that one writer fills while others read the bytes already written.
pub struct Arena {
    cells: Box<[UnsafeCell<u8>]>,
    filled: AtomicUsize,
}

// SAFETY: by PAYLOAD-1 bytes below `filled` are only read, one writer touches the others, and `filled` hands them over
// with Release and Acquire.
unsafe impl Sync for Arena {}

impl std::fmt::Debug for Arena {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Arena({} of {} bytes)", self.filled.load(Ordering::Relaxed), self.capacity())
    }
}

impl Arena {
    /// Returns the bytes that it can hold.
    pub fn capacity(&self) -> usize {
        self.cells.len()
    }

    fn bytes(&self, offset: usize, len: usize) -> &[u8] {
        let end = offset.checked_add(len).expect("a value lies within its payload");
        // Acquire: pairs with the Release in `push`. A reader that sees the new length sees the bytes below it.
        assert!(end <= self.filled.load(Ordering::Acquire), "PAYLOAD-1: the value has not been written");
        let start = self.cells[offset..].as_ptr().cast::<u8>();
        // SAFETY: offset..end lies below `filled`, within the cells, and by PAYLOAD-1 is never written again.
        unsafe { std::slice::from_raw_parts(start, len) }
    }
}

/// The only writer of an arena (PAYLOAD-1).
#[derive(Debug)]
pub struct ArenaWriter {
    arena: Arc<Arena>,
    filled: usize,
}

impl ArenaWriter {
    /// Creates an arena of `capacity` bytes, all of which 32-bit offsets can name.
    pub fn new(capacity: usize) -> Self {
        let capacity = capacity.min(u32::MAX as usize);
        let cells = std::iter::repeat_with(|| UnsafeCell::new(0)).take(capacity).collect();
        Self { arena: Arc::new(Arena { cells, filled: AtomicUsize::new(0) }), filled: 0 }
    }

    /// Reuses an arena without readers; returns `None` while it has any.
    pub fn again(mut arena: Arc<Arena>) -> Option<Self> {
        *Arc::get_mut(&mut arena)?.filled.get_mut() = 0;
        Some(Self { arena, filled: 0 })
    }

    /// Returns the arena, for its readers.
    pub fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// Returns the free bytes.
    pub fn room(&self) -> usize {
        self.arena.capacity() - self.filled
    }

    /// Copies a value in and returns its offset; `None` when it does not fit.
    pub fn push(&mut self, bytes: &[u8]) -> Option<u32> {
        if bytes.len() > self.room() {
            return None;
        }
        let offset = self.filled;
        let free = UnsafeCell::raw_get(self.arena.cells[offset..].as_ptr());
        // SAFETY: the check above left room for these bytes in the cells at and above `filled`, and by PAYLOAD-1 only
        // this writer touches them.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), free, bytes.len()) };
        self.filled += bytes.len();
        // Release: pairs with the Acquire in `Arena::bytes`.
        self.arena.filled.store(self.filled, Ordering::Release);
        Some(offset as u32)
    }
}

/// Entries of the first segment of a table; each further one is twice as long.
const FIRST_SEGMENT: usize = 8;
const SEGMENTS: usize = 26;

type PayloadSegment = Box<[OnceLock<Payload>]>;

/// Payloads that a chunk keeps alive, by number (PAYLOAD-2).
#[derive(Default)]
pub struct PayloadTable {
    segments: [OnceLock<PayloadSegment>; SEGMENTS],
    len: AtomicUsize,
}

fn locate(index: usize) -> (usize, usize) {
    let segment = (index / FIRST_SEGMENT + 1).ilog2() as usize;
    (segment, index - FIRST_SEGMENT * ((1 << segment) - 1))
}

impl PayloadTable {
    /// Adds a payload and returns its number. One thread calls this at a time.
    pub fn push(&self, payload: Payload) -> u32 {
        let index = self.len.load(Ordering::Relaxed);
        let (segment, place) = locate(index);
        let entries = self.segments[segment]
            .get_or_init(|| std::iter::repeat_with(OnceLock::new).take(FIRST_SEGMENT << segment).collect());
        entries[place].set(payload).expect("PAYLOAD-2: a number is assigned once");
        // Release: pairs with the Acquire in `len`. A reader that sees the new length finds the entry.
        self.len.store(index + 1, Ordering::Release);
        index as u32
    }

    /// Returns the number of payloads.
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    /// Returns true if there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the payload of that number.
    ///
    /// # Panics
    /// When there is none.
    #[inline]
    pub fn get(&self, index: usize) -> &Payload {
        let (segment, place) = locate(index);
        let entries = self.segments[segment].get().expect("PAYLOAD-2: an entry precedes its views");
        entries[place].get().expect("PAYLOAD-2: an entry precedes its views")
    }

    /// Empties the table, handing each payload to `take`. The first segment stays allocated.
    pub fn clear(&mut self, mut take: impl FnMut(Payload)) {
        for (number, segment) in self.segments.iter_mut().enumerate() {
            let Some(entries) = segment.get_mut() else { break };
            entries.iter_mut().filter_map(OnceLock::take).for_each(&mut take);
            if number > 0 {
                segment.take();
            }
        }
        *self.len.get_mut() = 0;
    }
}

/// The payloads that the views of one column point into.
#[derive(Clone, Copy)]
pub enum Payloads<'a> {
    /// Those of a batch, or of scratch.
    List(&'a [Payload]),
    /// Those of a chunk.
    Table(&'a PayloadTable),
}

impl std::fmt::Debug for Payloads<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Payloads({})", self.len())
    }
}

impl<'a> Payloads<'a> {
    /// No payload: for values that all fit in their views.
    pub const NONE: Self = Self::List(&[]);

    /// Returns the number of payloads.
    pub fn len(self) -> usize {
        match self {
            Self::List(list) => list.len(),
            Self::Table(table) => table.len(),
        }
    }

    /// Returns true if there is none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns the payload of that number.
    ///
    /// # Panics
    /// When there is none.
    #[inline]
    pub fn get(self, index: usize) -> &'a Payload {
        match self {
            Self::List(list) => &list[index],
            Self::Table(table) => table.get(index),
        }
    }

    /// Returns all payloads, in order.
    pub fn iter(self) -> impl Iterator<Item = &'a Payload> {
        (0..self.len()).map(move |index| self.get(index))
    }
}

impl<'a> From<&'a Vec<Payload>> for Payloads<'a> {
    fn from(list: &'a Vec<Payload>) -> Self {
        Self::List(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arena_keeps_what_was_pushed_while_it_fills() {
        let mut writer = ArenaWriter::new(10);
        assert_eq!(writer.push(b"abcd"), Some(0));
        let payload = Payload::Arena(Arc::clone(writer.arena()));
        assert_eq!(writer.push(b"efg"), Some(4));
        assert_eq!(writer.push(b"too long"), None);
        assert_eq!((payload.bytes(0, 4), payload.bytes(4, 3)), (b"abcd".as_slice(), b"efg".as_slice()));
        assert_eq!(writer.room(), 3);
        let arena = Arc::clone(writer.arena());
        drop(writer);
        assert!(ArenaWriter::again(Arc::clone(&arena)).is_none(), "the arena has a reader");
        drop(payload);
        assert_eq!(ArenaWriter::again(arena).map(|writer| writer.room()), Some(10));
    }

    #[test]
    #[should_panic(expected = "has not been written")]
    fn bytes_that_are_not_written_cannot_be_read() {
        let writer = ArenaWriter::new(10);
        Payload::Arena(Arc::clone(writer.arena())).bytes(0, 1);
    }

    #[test]
    fn a_table_finds_every_number() {
        let mut table = PayloadTable::default();
        for number in 0..100_u32 {
            let buffer = Buffer::from_vec(number.to_le_bytes().to_vec());
            assert_eq!(table.push(buffer.into()), number);
        }
        for number in 0..100_u32 {
            assert_eq!(table.get(number as usize).bytes(0, 4), number.to_le_bytes());
        }
        let mut taken = 0;
        table.clear(|_| taken += 1);
        assert_eq!((taken, table.len()), (100, 0));
        assert_eq!(table.push(Buffer::from_vec(vec![7_u8]).into()), 0);
    }
}
