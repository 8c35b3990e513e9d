//! The account of one log: what its writer asks of the coordinator, and tells it.

use std::io;
use std::sync::Arc;

use penstock_queue::wake::Wake;

use super::Coordinator;
use super::charge::Charge;
use super::limit::MemoryLimit;
use super::memory::Memory;
use super::order::ChunkOrder;
use super::pool::chunk_bytes;

/// Why memory is allocated in the caller's thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inline {
    /// A log starts: nothing waits for it yet.
    Start,
    /// A log is out of memory in the middle of its work. Counted, since it should have asked ahead.
    HotPath,
}

/// The memory of one log, charged `max(reserved, held) + payload`.
///
/// Dropping it gives back what was reserved and not held. Memory that others still have stays charged until they drop
/// it, on whatever thread, and payload until it is released.
#[derive(Debug)]
pub struct LogAccount {
    charge: Arc<Charge>,
    /// Keeps the allocator thread for as long as there is a log to serve.
    coordinator: Coordinator,
}

impl LogAccount {
    pub(super) fn open(coordinator: Coordinator, reserved: usize) -> Result<Self, MemoryLimit> {
        let charge = Arc::new(Charge::open(Arc::clone(coordinator.source()), reserved)?);
        Ok(Self { charge, coordinator })
    }

    /// The coordinator it is with.
    pub fn coordinator(&self) -> &Coordinator {
        &self.coordinator
    }

    /// Bytes of chunks that it holds, and of those that were charged and are to come.
    pub fn held_bytes(&self) -> usize {
        self.charge.held()
    }

    /// All that it is charged.
    pub fn charged_bytes(&self) -> usize {
        self.charge.all()
    }

    /// Charges memory of so many bytes, a size of [`chunk_bytes`], before it is allocated or asked for. Within the
    /// reservation it always fits; beyond, it has to fit the cap of a log and the part of the budget that logs may
    /// grow to. Dropping or [detaching](Memory::detach) the memory takes it off again.
    pub fn try_grow(&self, bytes: usize) -> bool {
        self.charge.try_grow(bytes)
    }

    /// Takes off what [`try_grow`](Self::try_grow) charged and no memory came of: it was not to be had, its order was
    /// refused, or is given up with its answer not taken.
    pub fn shrink(&self, bytes: usize) {
        self.charge.shrink(bytes);
    }

    /// Whether chunks of the log keep payload alive.
    pub fn has_payload(&self) -> bool {
        self.charge.payload() > 0
    }

    /// Whether it has payload, and with its chunks that is more than a log may have: its writer should wait.
    pub fn over_cap(&self) -> bool {
        self.has_payload() && !self.charge.fits_cap(self.held_bytes())
    }

    /// Whether it has payload while all together have more than the budget: its writer should wait, too.
    pub fn over_budget(&self) -> bool {
        let budget = &self.charge.source.budget;
        self.has_payload() && budget.used() > budget.bytes()
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

impl Drop for LogAccount {
    fn drop(&mut self) {
        let source = &self.charge.source;
        source.tally.spare.sub(self.charge.spare.get());
        self.charge.close();
        // The log's chunks came back just before, those that nobody reads: the pool may have too many now.
        if source.is_of_this_process() {
            source.supply.nudge();
        }
    }
}
