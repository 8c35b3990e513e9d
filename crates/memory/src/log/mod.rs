//! Stream logs: rows from one task to others, in blocks.
//!
//! One writer appends rows, any number of readers consume them, each at its own pace. All bookkeeping is arithmetic on
//! absolute row positions, which `penstock_queue::log` keeps; this module adds the memory.
//!
//! - [`LogWriter`]: room, rows, signals; readers join through it
//! - [`LogReader`] and [`Lease`]: rows to be consumed, and the lease on the chunk that holds them
//! - `keeper`: the supply of chunks, and their reuse once every reader has left them
//! - `strings`: which payloads are shared and which are copied
//!
//! BLOCK_LOG-1. A run is the rows pending in the current block, however few. No reader waits for a batch to fill.
//! BLOCK_LOG-2. A chunk is reused only when every reader has left it and no lease or export of it is alive: its
//!     reference count decides, not the positions alone.
//! BLOCK_LOG-3. A writer whose readers have consumed everything can always write again: its reservation is never lent,
//!     and payload holds it back only while rows are unread.

mod keeper;
mod reader;
mod strings;
mod writer;

pub use reader::{BlockNext, Lease, LogReader};
pub use writer::{LogWriter, SelectedColumn};

use thiserror::Error;

use crate::coordinator::MemoryLimit;
use crate::shape::ShapeOptions;

/// Why a log cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The budget has no room for its first chunks.
    #[error(transparent)]
    Limit(#[from] MemoryLimit),
    /// The system provides no memory.
    #[error("the system gives no memory for a stream: {0}")]
    System(#[from] std::io::Error),
}

/// Entries of a log's directory: the most chunks that it holds at a time.
const DIRECTORY: usize = 64;
/// Signals that a log may hold, besides the last watermark.
const SIGNALS: usize = 256;

/// The capacities of a log.
#[derive(Clone, Copy, Debug)]
pub struct LogOptions {
    /// Sizes of blocks and chunks.
    pub shape: ShapeOptions,
    /// The most chunks at a time.
    pub directory: usize,
    /// The most signals at a time.
    pub signals: usize,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self { shape: ShapeOptions::default(), directory: DIRECTORY, signals: SIGNALS }
    }
}
