//! Positions, directory and signals of a stream with one writer and many readers.
//!
//! The protocol of a stream log, without its bytes: `C` is the directory's value for a chunk, `S` a signal other than
//! a watermark. The writer owns the [`PositionWriter`], each reader its [`PositionReader`]; a [`LogGauge`] reports to
//! any thread how much work waits for a reader. They share three things: the writer's line of atomics (`Head`), one
//! line per reader (`ReadCursor`), and the slots of the directory and of the signal ring.
//!
//! LOG-1. Only the writer writes `Head` and the slots; only a reader writes its `ReadCursor`. The writer owns the list
//!     of readers; a reader is *present* until the writer has seen its `gone`.
//! LOG-2. Positions, entries and signals are numbered for ever and only grow; slot `n & mask` holds number `n`.
//! LOG-3. An entry is stored before `write_pos` enters it, and taken out after `write_pos` and the `read_pos` of every
//!     present reader have left it. In between its slot is not written.
//! LOG-4. A signal is stored before `signal_tail` passes it; its slot is written again after the `signal_pos` of every
//!     present reader has passed it.
//! LOG-5. A signal at position `p` precedes row `p`: it is in the ring before `write_pos` passes `p`. A reader loads
//!     `write_pos` before `signal_tail`, so it knows every signal before the rows that it knows.
//! LOG-6. The newest watermark, `tip`, is at `write_pos` and goes into the ring only when rows or another signal are
//!     about to follow it. A reader loads `tip` before `write_pos` and `signal_tail`: once it has consumed everything
//!     up to those two, either that tip is right there, or the ring has held it (or a newer one).
//! LOG-7. `closed` is stored last and loaded first: a reader that sees it then sees the last value of every other
//!     field.
//! LOG-8. A side that changes something that another side waits for wakes that side afterwards.

mod gauge;
mod reader;
mod signals;
mod slots;
mod view;
mod writer;

use std::sync::{Arc as StdArc, OnceLock};

use crossbeam_utils::CachePadded;

pub use self::gauge::{LogGauge, Work};
pub use self::reader::{LogNext, PositionReader};
pub use self::writer::PositionWriter;

use self::signals::Posted;
use self::slots::Slots;
use crate::sync::{Arc, AtomicBool, AtomicI64, AtomicU64};
use crate::wake::Wake;

/// The value of `tip` before the first watermark.
const NO_WATERMARK: i64 = i64::MIN;

/// The writer's cache line.
struct Head {
    write_pos: AtomicU64,
    /// Number of signals put into the ring so far.
    signal_tail: AtomicU64,
    tip: AtomicI64,
    closed: AtomicBool,
}

/// A reader's cache line.
struct ReadCursor {
    read_pos: AtomicU64,
    /// Number of signals of the ring that the reader has passed, counted like `signal_tail`.
    signal_pos: AtomicU64,
    /// The last watermark the reader has passed.
    watermark: AtomicI64,
    gone: AtomicBool,
}

/// A chunk of the directory, and the positions `start..end` that it holds.
struct DirectoryEntry<C> {
    chunk: C,
    start: u64,
    end: u64,
}

/// What the writer and its readers share besides the lines of atomics.
///
/// `Head` is not part of it, so that a gauge that outlives both sides keeps no chunk alive.
struct LogShared<C, S> {
    directory: Slots<DirectoryEntry<C>>,
    signals: Slots<Posted<S>>,
    writer: OnceLock<StdArc<dyn Wake>>,
}

impl<C, S> LogShared<C, S> {
    fn wake_writer(&self) {
        if let Some(writer) = self.writer.get() {
            writer.wake();
        }
    }
}

type HeadLine = Arc<CachePadded<Head>>;
type CursorLine = Arc<CachePadded<ReadCursor>>;
