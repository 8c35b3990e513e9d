//! The account of one log: what its writer requests from the coordinator, and reports to it.

use std::io;
use std::sync::Arc;

use penstock_queue::wake::Wake;

use super::Coordinator;
use super::charge::LogCharge;
use super::limit::MemoryLimit;
use super::memory::Memory;
use super::order::ChunkOrder;
use super::pool::chunk_bytes;

/// Why memory is allocated in the caller's thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inline {
    /// A log starts: no row waits for it yet.
    Start,
    /// A log has run out of memory in the middle of its work. Counted, since it should have ordered ahead.
    HotPath,
}

/// The memory of one log, charged `max(reserved, held) + payload`.
///
/// Dropping it releases what was reserved and not held. Memory with other owners stays charged until they drop it, on
/// any thread, and payload until it is released.
#[derive(Debug)]
pub struct LogAccount {
    charge: Arc<LogCharge>,
    /// Keeps the allocator thread alive while there is a log to serve.
    coordinator: Coordinator,
}

impl LogAccount {
    pub(super) fn open(coordinator: Coordinator, reserved: usize) -> Result<Self, MemoryLimit> {
        let charge = Arc::new(LogCharge::open(Arc::clone(coordinator.core()), reserved)?);
        Ok(Self { charge, coordinator })
    }

    /// Returns the coordinator of this account.
    pub fn coordinator(&self) -> &Coordinator {
        &self.coordinator
    }

    /// Returns the bytes of the chunks that it holds, and of those charged and still to come.
    pub fn held_bytes(&self) -> usize {
        self.charge.held()
    }

    /// Returns all bytes charged.
    pub fn charged_bytes(&self) -> usize {
        self.charge.all()
    }

    /// Charges memory of that many bytes, a size of [`chunk_bytes`], before it is allocated or ordered; returns false
    /// if it does not fit. Within the reservation it always fits; beyond, it has to fit the cap of a log and the part
    /// of the budget that logs may grow to. Dropping or [detaching](Memory::detach) the memory takes it off again.
    pub fn try_grow(&self, bytes: usize) -> bool {
        self.charge.try_grow(bytes)
    }

    /// Takes off bytes that [`try_grow`](Self::try_grow) charged and that became no memory: the allocation failed, or
    /// the order was refused or given up before its answer was taken.
    pub fn shrink(&self, bytes: usize) {
        self.charge.shrink(bytes);
    }

    /// Returns true if chunks of the log keep payload alive.
    pub fn has_payload(&self) -> bool {
        self.charge.payload() > 0
    }

    /// Returns true if it has payload, and with its chunks more than a log may have: its writer should wait.
    pub fn over_cap(&self) -> bool {
        self.has_payload() && !self.charge.fits_cap(self.held_bytes())
    }

    /// Returns true if it has payload while all accounts together exceed the budget: its writer should wait, too.
    pub fn over_budget(&self) -> bool {
        let budget = &self.charge.core.budget;
        self.has_payload() && budget.used() > budget.bytes()
    }

    /// Returns memory of [`chunk_bytes`]`(bytes)`, which the log has charged: from the pool, or mapped in this thread.
    pub fn allocate(&self, bytes: usize, why: Inline) -> io::Result<Memory> {
        let core = &self.charge.core;
        let mapping = core.obtain(chunk_bytes(bytes))?;
        core.tally.inline.add(u64::from(why == Inline::HotPath));
        Ok(Memory::new(mapping, Arc::clone(&self.charge)))
    }

    /// Creates the order for the log's next chunks; calls `wake` when one is ready or refused.
    pub fn order(&self, wake: Arc<dyn Wake>) -> ChunkOrder {
        ChunkOrder::new(Arc::clone(&self.charge), wake)
    }

    /// Counts a chunk that the log has reused.
    pub fn count_recycle(&self) {
        self.charge.core.tally.recycles.add(1);
    }

    /// Counts spare chunks of the log: more of them, or fewer.
    pub fn count_spare(&self, change: isize) {
        let amount = change.unsigned_abs() as u64;
        for count in [&self.charge.spare, &self.charge.core.tally.spare] {
            if change < 0 { count.sub(amount) } else { count.add(amount) }
        }
    }

    /// Adds time that the writer waited for memory.
    pub fn add_backpressure_ns(&self, ns: u64) {
        self.charge.core.tally.backpressure_ns.add(ns);
    }
}

impl Drop for LogAccount {
    fn drop(&mut self) {
        let core = &self.charge.core;
        core.tally.spare.sub(self.charge.spare.get());
        self.charge.close();
        // The log has just returned its chunks, except those with readers: the pool may exceed its limit now.
        if core.is_of_this_process() {
            core.supply.nudge();
        }
    }
}
