//! What one log is charged: `max(reserved, held) + payload`.
//!
//! The writer of the log grows and shrinks it; whoever exports one of its chunks shrinks it too, on another thread.
//!
//! C1. Every change of `held` from one value to another goes with exactly the change of `used_bytes` that belongs to
//!     these two values: before it when it rises, after it when it falls (M2). So the sum is right however changes of
//!     many threads mix.
//! C2. CLOSED in `held` is final: the log is gone and everything was given back. Chunks that outlive it are not
//!     charged to anybody, so a log drops its memory before its account.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use penstock_queue::wake::Wake;

use super::limit::MemoryLimit;
use super::memory::Memory;
use super::order::ChunkOrder;
use super::pool::chunk_bytes;
use super::source::Source;
use super::{Coordinator, counters::Count};

const CLOSED: usize = usize::MAX;

/// Why memory is allocated in the caller's thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inline {
    /// A log starts: nothing waits for it yet.
    Start,
    /// A log is out of memory in the middle of its work. Counted, since it should have asked ahead.
    HotPath,
}

/// The numbers of an account. Memory of the log keeps them alive, to leave the account when it is exported.
#[derive(Debug)]
pub(super) struct Charge {
    pub(super) source: Arc<Source>,
    reserved: usize,
    held: AtomicUsize,
    payload: AtomicUsize,
    spare: Count,
}

impl Charge {
    /// What chunks of `held` bytes are charged (M4).
    fn for_chunks(&self, held: usize) -> usize {
        held.max(self.reserved)
    }

    fn fits_cap(&self, held: usize) -> bool {
        held.saturating_add(self.payload.load(Relaxed)) <= self.source.options.log_cap_bytes
    }

    fn try_grow(&self, bytes: usize) -> bool {
        let mut held = self.held.load(Relaxed);
        loop {
            let grown = held.saturating_add(bytes);
            let more = self.for_chunks(grown) - self.for_chunks(held);
            // M4: within the reservation the cap does not count, and there is nothing more to charge.
            if grown > self.reserved && !self.fits_cap(grown) || self.source.budget.try_charge(more).is_err()
            {
                return false;
            }
            match self.held.compare_exchange(held, grown, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) => {
                    self.source.budget.release(more);
                    held = now;
                }
            }
        }
    }

    pub(super) fn shrink(&self, bytes: usize) {
        let mut held = self.held.load(Relaxed);
        while held != CLOSED {
            debug_assert!(held >= bytes, "a log gives back what it holds");
            let shrunk = held.saturating_sub(bytes);
            match self.held.compare_exchange(held, shrunk, Relaxed, Relaxed) {
                Ok(_) => return self.source.budget.release(self.for_chunks(held) - self.for_chunks(shrunk)),
                Err(now) => held = now,
            }
        }
    }
}

/// The memory of one log. Everything charged is given back when it is dropped: drop the log's memory first (C2).
#[derive(Debug)]
pub struct Account {
    charge: Arc<Charge>,
    /// Keeps the allocator thread for as long as there is a log to serve.
    coordinator: Coordinator,
}

impl Account {
    pub(super) fn open(coordinator: Coordinator, reserved: usize) -> Result<Self, MemoryLimit> {
        let source = Arc::clone(coordinator.source());
        source.budget.try_charge(reserved)?;
        let charge = Charge {
            source,
            reserved,
            held: AtomicUsize::new(0),
            payload: AtomicUsize::new(0),
            spare: Count::default(),
        };
        Ok(Self { charge: Arc::new(charge), coordinator })
    }

    /// The coordinator it is with.
    pub fn coordinator(&self) -> &Coordinator {
        &self.coordinator
    }

    /// Bytes of chunks that it holds.
    pub fn held_bytes(&self) -> usize {
        self.charge.held.load(Relaxed)
    }

    /// All that it is charged.
    pub fn charged_bytes(&self) -> usize {
        self.charge.for_chunks(self.held_bytes()) + self.charge.payload.load(Relaxed)
    }

    /// Charges a chunk of so many bytes, before it is allocated or asked for. Within the reservation it always fits;
    /// beyond, it has to fit the cap of a log and the budget.
    pub fn try_grow(&self, bytes: usize) -> bool {
        self.charge.try_grow(bytes)
    }

    /// Takes a chunk off that was dropped, or was charged and never came. Not for one that was
    /// [detached](Memory::detach): that one has left already.
    pub fn shrink(&self, bytes: usize) {
        self.charge.shrink(bytes);
    }

    /// Charges payload that a chunk keeps alive. It is there already, so it always goes through (M3).
    pub fn charge_payload(&self, bytes: usize) {
        self.charge.source.budget.charge(bytes);
        self.charge.source.tally.pinned_bytes.add(bytes as u64);
        self.charge.payload.fetch_add(bytes, Relaxed);
    }

    /// Takes payload off that was let go of.
    pub fn release_payload(&self, bytes: usize) {
        let before = self.charge.payload.fetch_sub(bytes, Relaxed);
        debug_assert!(before >= bytes, "only payload that was charged is released");
        self.charge.source.tally.pinned_bytes.sub(bytes as u64);
        self.charge.source.budget.release(bytes);
    }

    /// Whether chunks and payload are more than a log may have: its writer should wait.
    pub fn over_cap(&self) -> bool {
        !self.charge.fits_cap(self.held_bytes())
    }

    /// Whether it has payload while all together have more than the budget: its writer should wait, too.
    pub fn over_budget(&self) -> bool {
        let budget = &self.charge.source.budget;
        budget.used() > budget.bytes() && self.charge.payload.load(Relaxed) > 0
    }

    /// Memory of [`chunk_bytes`]`(bytes)` now, which the log has charged: from the pool, or mapped in this thread.
    pub fn allocate(&self, bytes: usize, why: Inline) -> io::Result<Memory> {
        let source = &self.charge.source;
        let mapping = source.obtain(chunk_bytes(bytes))?;
        source.tally.inline.add(u64::from(why == Inline::HotPath));
        Ok(Memory::new(mapping, Arc::clone(&self.charge)))
    }

    /// The order for the log's next chunks, with the waker that is called when one is ready or refused.
    pub fn order(&self, wake: Arc<dyn Wake>) -> ChunkOrder {
        ChunkOrder::new(Arc::clone(&self.charge), wake)
    }

    /// Counts a chunk that the log used again.
    pub fn count_recycle(&self) {
        self.charge.source.tally.recycles.add(1);
    }

    /// Counts chunks that wait for their turn in the log: more of them, or fewer.
    pub fn count_spare(&self, change: isize) {
        let amount = change.unsigned_abs() as u64;
        for count in [&self.charge.spare, &self.charge.source.tally.spare] {
            if change < 0 { count.sub(amount) } else { count.add(amount) }
        }
    }

    /// Counts time that the writer waited for memory.
    pub fn add_backpressure_ns(&self, ns: u64) {
        self.charge.source.tally.backpressure_ns.add(ns);
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let Charge { source, held, payload, spare, .. } = &*self.charge;
        let payload = payload.swap(0, Relaxed);
        source.tally.spare.sub(spare.get());
        source.tally.pinned_bytes.sub(payload as u64);
        source.budget.release(self.charge.for_chunks(held.swap(CLOSED, Relaxed)) + payload);
        // The log's chunks came back just before: the pool may have too many now.
        if source.is_of_this_process() {
            source.supply.nudge();
        }
    }
}
