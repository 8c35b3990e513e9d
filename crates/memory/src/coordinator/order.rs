//! The order for a log's next chunk.

use std::sync::Arc;

use penstock_queue::supply::{Refused, SupplyOrder};
use penstock_queue::wake::{NoWake, Wake};

use super::charge::Charge;
use super::memory::Memory;
use super::pool::chunk_bytes;
use crate::platform::Mapping;

/// Memory for one chunk at a time, made ready by the allocator thread. What was made and never taken goes back; what the
/// log charged for it stays with the log, to shrink.
///
/// In a forked child there is no allocator thread: nothing can be ordered, and an order that was under way is refused.
#[derive(Debug)]
pub struct ChunkOrder {
    order: SupplyOrder<usize, Mapping>,
    charge: Arc<Charge>,
}

impl ChunkOrder {
    pub(super) fn new(charge: Arc<Charge>, wake: Arc<dyn Wake>) -> Self {
        Self { order: charge.source.supply.order(wake), charge }
    }

    /// Asks for memory of [`chunk_bytes`]`(bytes)`, which the log has charged to its account. False when an order is
    /// under way already, and in a forked child: then nothing was asked for.
    pub fn ask(&mut self, bytes: usize) -> bool {
        // Nobody would answer, and the lock that wakes the allocator may be held for ever.
        if !self.charge.source.is_of_this_process() {
            return false;
        }
        let asked = self.order.ask(chunk_bytes(bytes));
        self.charge.source.tally.requested.add(u64::from(asked));
        asked
    }

    /// Whether an order is under way: asked for, and its answer not taken yet.
    pub fn is_waiting(&self) -> bool {
        self.order.is_waiting()
    }

    /// Takes the answer, if there is one. A refusal leaves the charge with the log, to ask again or to shrink.
    pub fn take(&mut self) -> Option<Result<Memory, Refused>> {
        let answer = match self.order.take() {
            None if self.is_orphaned() => {
                // The one that was under way is dropped; this one is never asked for.
                self.order = self.charge.source.supply.order(Arc::new(NoWake));
                Err(Refused)
            }
            answer => answer?,
        };
        Some(answer.map(|mapping| Memory::new(mapping, Arc::clone(&self.charge))))
    }

    /// Whether an order is under way that the allocator thread of another process would have to answer.
    fn is_orphaned(&self) -> bool {
        self.order.is_waiting() && !self.charge.source.is_of_this_process()
    }
}
