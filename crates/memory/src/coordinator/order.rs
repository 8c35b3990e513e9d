//! The order for a log's next chunk.

use std::sync::Arc;

use penstock_queue::supply::{Order, Refused};
use penstock_queue::wake::Wake;

use super::account::Charge;
use super::memory::Memory;
use super::pool::chunk_bytes;
use crate::platform::Mapping;

/// Memory for one chunk at a time, made ready by the allocator thread. What was made and never taken goes back.
#[derive(Debug)]
pub struct ChunkOrder {
    order: Order<usize, Mapping>,
    charge: Arc<Charge>,
}

impl ChunkOrder {
    pub(super) fn new(charge: Arc<Charge>, wake: Arc<dyn Wake>) -> Self {
        Self { order: charge.source.supply.order(wake), charge }
    }

    /// Asks for memory of [`chunk_bytes`]`(bytes)`, which the log has charged to its account. False when an order is
    /// under way already.
    pub fn ask(&mut self, bytes: usize) -> bool {
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
        let answer = self.order.take()?;
        Some(answer.map(|mapping| Memory::new(mapping, Arc::clone(&self.charge))))
    }
}
