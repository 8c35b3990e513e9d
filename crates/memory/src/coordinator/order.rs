//! The order for a log's next chunk.

use std::sync::Arc;

use penstock_queue::supply::{Refused, SupplyOrder};
use penstock_queue::wake::{NoWake, Wake};

use super::charge::LogCharge;
use super::memory::Memory;
use super::pool::chunk_bytes;
use crate::platform::Mapping;

/// Memory for one chunk at a time, prepared by the allocator thread. Memory that was prepared and never taken returns
/// to the pool; its charge stays with the log, to shrink.
///
/// In a forked child there is no allocator thread: no order can be made, and an open one is refused.
#[derive(Debug)]
pub struct ChunkOrder {
    order: SupplyOrder<usize, Mapping>,
    charge: Arc<LogCharge>,
}

impl ChunkOrder {
    pub(super) fn new(charge: Arc<LogCharge>, wake: Arc<dyn Wake>) -> Self {
        Self { order: charge.core.supply.order(wake), charge }
    }

    /// Orders memory of [`chunk_bytes`]`(bytes)`, which the log has charged to its account. Returns false without an
    /// order when one is already open, and in a forked child.
    pub fn ask(&mut self, bytes: usize) -> bool {
        // The order would never be answered, and the lock that wakes the allocator may be held for ever.
        if !self.charge.core.is_of_this_process() {
            return false;
        }
        let asked = self.order.ask(chunk_bytes(bytes));
        self.charge.core.tally.requested.add(u64::from(asked));
        asked
    }

    /// Returns true while an order is open: made, and its answer not taken yet.
    pub fn is_waiting(&self) -> bool {
        self.order.is_waiting()
    }

    /// Takes the answer, if there is one. A refusal leaves the charge with the log, to order again or to shrink.
    pub fn take(&mut self) -> Option<Result<Memory, Refused>> {
        let answer = match self.order.take() {
            None if self.is_orphaned() => {
                // The open order is dropped; its replacement is never used.
                self.order = self.charge.core.supply.order(Arc::new(NoWake));
                Err(Refused)
            }
            answer => answer?,
        };
        Some(answer.map(|mapping| Memory::new(mapping, Arc::clone(&self.charge))))
    }

    /// Returns true if an order is open that only the allocator thread of another process could answer.
    fn is_orphaned(&self) -> bool {
        self.order.is_waiting() && !self.charge.core.is_of_this_process()
    }
}
