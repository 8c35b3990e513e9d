//! The supply of a log's chunks, and their reuse once every reader has left them.
//!
//! A log starts with two small chunks, which its reservation pays for. When the last spare goes into the directory,
//! the next chunk is ordered, to be there before it is needed. A log in use moves to larger chunks until its blocks
//! are full; beyond that it grows only when its readers lag, and gives back what it does not need when they have
//! caught up.
//!
//! KEEPER-1. A chunk is in the directory, among the spares, in limbo (left by every reader but held by a lease), or
//!     gone.
//! KEEPER-2. The account holds the bytes of every chunk that is not exported, and those of the open order. A chunk
//!     removes its own bytes when it is dropped; the keeper removes those of an order that brings no memory.
//! KEEPER-3. A chunk whose rows bring much payload is not filled: it takes as many rows as keep its payload, estimated
//!     from the last rows, within a share of the log's cap.

use std::sync::Arc;

use penstock_queue::log;
use penstock_queue::wake::Wake;

use super::OpenError;
use super::strings::Strings;
use crate::chunk::Chunk;
use crate::coordinator::{ChunkOrder, Coordinator, Inline, LogAccount, Memory};
use crate::shape::{ChunkShape, Shapes};
use crate::signal::Signal;

/// Chunks that an idle log keeps: the one being written and a spare.
const IDLE_CHUNKS: usize = 2;
/// The payload of one chunk may take one part in this many of a log's cap.
const PAYLOAD_SHARE: usize = 8;

type ChunkLog = log::PositionWriter<Arc<Chunk>, Signal>;

pub(super) struct Keeper {
    shapes: Shapes,
    by_class: Vec<Arc<ChunkShape>>,
    working: usize,
    /// Class of the chunk that went into the directory last.
    last: usize,
    spares: Vec<Arc<Chunk>>,
    limbo: Vec<Arc<Chunk>>,
    order: ChunkOrder,
    /// Bytes of the open order.
    ordered: usize,
    /// Payload per row, estimated from the last rows.
    payload_per_row: usize,
    account: LogAccount,
}

impl Keeper {
    pub(super) fn new(
        shapes: Shapes,
        coordinator: &Coordinator,
        wake: Arc<dyn Wake>,
    ) -> Result<Self, OpenError> {
        let account = coordinator.reserve(IDLE_CHUNKS * shapes.start_bytes())?;
        let by_class: Vec<Arc<ChunkShape>> =
            (0..=shapes.last()).map(|class| Arc::new(shapes.shape(class))).collect();
        let working = shapes.working();
        let mut keeper = Self {
            by_class,
            working,
            last: 0,
            spares: Vec::with_capacity(8),
            limbo: Vec::new(),
            order: account.order(wake),
            ordered: 0,
            payload_per_row: 0,
            shapes,
            account,
        };
        for _ in 0..IDLE_CHUNKS {
            let charged = keeper.account.try_grow(keeper.shapes.start_bytes());
            debug_assert!(charged, "the reservation is for these");
            keeper.allocate(0, Inline::Start)?;
        }
        Ok(keeper)
    }

    pub(super) fn shapes(&self) -> &Shapes {
        &self.shapes
    }

    pub(super) fn account(&self) -> &LogAccount {
        &self.account
    }

    fn spare(&mut self, memory: Memory) {
        let class = (memory.bytes() / self.shapes.start_bytes()).ilog2() as usize;
        self.spares.push(Arc::new(Chunk::new(memory, Arc::clone(&self.by_class[class]))));
        self.account.count_spare(1);
    }

    /// Allocates a spare of that class in this thread; the account was charged for it.
    fn allocate(&mut self, class: usize, inline: Inline) -> std::io::Result<()> {
        let memory = self.account.allocate(self.shapes.bytes(class), inline)?;
        self.spare(memory);
        Ok(())
    }

    /// Returns true if a chunk is on order.
    pub(super) fn is_waiting(&self) -> bool {
        self.order.is_waiting()
    }

    /// Updates the estimate with payload that came with that many rows.
    pub(super) fn note_payload(&mut self, bytes: usize, rows: usize) {
        self.payload_per_row = (bytes / rows.max(1)).max(self.payload_per_row / 8 * 7);
    }

    /// Returns the number of rows that a chunk may take: it keeps the payload of all of them until its last one is
    /// read (KEEPER-3).
    fn most_rows(&self) -> usize {
        let share = self.account.coordinator().options().log_cap_bytes / PAYLOAD_SHARE;
        share.checked_div(self.payload_per_row).map_or(usize::MAX, |rows| rows.max(1))
    }

    /// Puts chunks into the directory until a block's worth of rows can be written, as far as chunks are available.
    pub(super) fn provide(&mut self, core: &mut ChunkLog, strings: &mut Strings) {
        let most_rows = self.most_rows();
        let wanted = self.by_class[self.last].block.rows.min(most_rows) as u64;
        while core.end() - core.position() < wanted {
            self.collect(core, strings);
            if !core.has_entry() {
                break;
            }
            let Some(chunk) = self.take(core) else { break };
            self.last = chunk.shape().class;
            let rows = chunk.rows().min(most_rows) as u64;
            core.add(chunk, rows);
            self.order_ahead(core);
        }
    }

    /// Takes back every chunk that all readers have left.
    pub(super) fn collect(&mut self, core: &mut ChunkLog, strings: &mut Strings) {
        for number in (0..self.limbo.len()).rev() {
            let chunk = self.limbo.swap_remove(number);
            self.take_back(chunk, core.chunks(), strings);
        }
        while let Some(chunk) = core.reclaim() {
            self.take_back(chunk, core.chunks(), strings);
        }
    }

    fn take_back(&mut self, mut chunk: Arc<Chunk>, in_directory: usize, strings: &mut Strings) {
        if chunk.is_exported() {
            return; // the user owns its memory; payloads and all else are dropped here
        }
        let Some(free) = Arc::get_mut(&mut chunk) else {
            self.limbo.push(chunk);
            return;
        };
        free.reset(|payload| strings.take_back(payload));
        self.account.count_recycle();
        let outgrown = chunk.shape().class < self.last.min(self.working);
        if !outgrown || in_directory + self.spares.len() < IDLE_CHUNKS {
            self.spares.push(chunk);
            self.account.count_spare(1);
        }
    }

    /// Gives spares back, the largest first, all but `keep`.
    pub(super) fn shed(&mut self, keep: usize) {
        self.spares.sort_by_key(|chunk| chunk.shape().bytes);
        while self.spares.len() > keep {
            self.spares.pop();
            self.account.count_spare(-1);
        }
    }

    /// Receives the ordered chunk, if it has arrived.
    pub(super) fn receive(&mut self) {
        match self.order.take() {
            Some(Ok(memory)) => {
                self.ordered = 0;
                self.spare(memory);
            }
            Some(Err(_)) => self.account.shrink(std::mem::take(&mut self.ordered)),
            None => {}
        }
    }

    /// Takes the largest spare. Without a spare, and with nothing left for readers to do, allocates a new chunk at
    /// once: no other event would let the stream proceed.
    fn take(&mut self, core: &mut ChunkLog) -> Option<Arc<Chunk>> {
        self.receive();
        let stuck = self.spares.is_empty() && !self.order.is_waiting() && core.slowest() == core.position();
        if stuck && core.position() == core.end() && self.account.try_grow(self.shapes.start_bytes()) {
            // A system without memory is backpressure, like a budget that is used up: memory may be given back later.
            if self.allocate(0, Inline::HotPath).is_err() {
                self.account.shrink(self.shapes.start_bytes());
            }
        }
        let largest = (0..self.spares.len()).max_by_key(|&number| self.spares[number].shape().bytes)?;
        self.account.count_spare(-1);
        Some(self.spares.swap_remove(largest))
    }

    /// Orders the next chunk when no spare is left, or none that is larger while blocks are not full yet.
    fn order_ahead(&mut self, core: &ChunkLog) {
        let larger = self.spares.iter().any(|spare| spare.shape().class > self.last);
        // A log that never fills its first chunk stays small.
        let growing = self.last < self.working && !larger && core.position() > 0;
        if self.order.is_waiting() || !(self.spares.is_empty() || growing) {
            return;
        }
        let behind = core.chunks() > IDLE_CHUNKS;
        let class = if self.last < self.working || behind { self.last + 1 } else { self.last };
        // The largest class that fits the cap and the budget.
        for class in (0..=class.min(self.shapes.last())).rev() {
            let bytes = self.shapes.bytes(class);
            if self.account.try_grow(bytes) {
                if self.order.ask(bytes) {
                    self.ordered = bytes;
                } else {
                    self.account.shrink(bytes); // no order can be made in a forked child
                }
                return;
            }
        }
    }

    /// Gives spares back while the log is drained, all but one, the smallest last.
    pub(super) fn trim(&mut self, core: &mut ChunkLog, strings: &mut Strings) {
        if core.slowest() < core.position() {
            return;
        }
        self.collect(core, strings);
        self.receive();
        self.shed(IDLE_CHUNKS - 1);
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.receive();
        self.account.shrink(self.ordered);
        self.shed(0);
    }
}
