//! Memory counters: numbers that any thread adds to and any thread reads.
//!
//! All orderings are Relaxed: a number hands nothing over. What is counted down was counted up before by the same
//! thread, or by one that handed the memory over, so no number falls below zero.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::budget::Budget;

/// A snapshot of all memory counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// The budget, for all logs and all state together.
    pub budget_bytes: u64,
    /// Bytes in use: charges of all logs, and state.
    pub used_bytes: u64,
    /// Bytes of used_bytes that are payload: foreign buffers that chunks keep alive, or copies of results that wait to
    /// be read.
    pub pinned_bytes: u64,
    /// Bytes handed to the user and not released yet. Not part of used_bytes.
    pub exported_bytes: u64,
    /// Bytes of used_bytes that are state.
    pub state_bytes: u64,
    /// Chunks owned by logs.
    pub chunks_live: u64,
    /// Those of them that are spare.
    pub chunks_spare: u64,
    /// Chunks in the pool, ready for a log.
    pub chunks_pooled: u64,
    /// Chunks that the user keeps.
    pub chunks_exported: u64,
    /// Chunks that logs ordered ahead of need.
    pub chunks_requested: u64,
    /// Chunks that a log had to allocate in the middle of its work. Zero in a steady state.
    pub inline_allocations: u64,
    /// Chunks that the allocator thread prepared.
    pub background_allocations: u64,
    /// Chunks that a log reused.
    pub recycles: u64,
    /// Chunks that the pool returned to the system.
    pub trims: u64,
    /// Time that writers waited for memory.
    pub backpressure_ns: u64,
    /// The most bytes that were ever in use, as seen by the requests that took them.
    pub peak_used_bytes: u64,
}

/// A number that many threads add to.
#[derive(Debug, Default)]
pub(super) struct SharedCounter(AtomicU64);

impl SharedCounter {
    pub(super) fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Relaxed);
    }

    pub(super) fn sub(&self, amount: u64) {
        self.0.fetch_sub(amount, Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The numbers of [`Counters`], except those of the budget.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) exported_bytes: SharedCounter,
    pub(super) state_bytes: SharedCounter,
    pub(super) live: SharedCounter,
    pub(super) spare: SharedCounter,
    pub(super) pooled: SharedCounter,
    pub(super) exported: SharedCounter,
    pub(super) requested: SharedCounter,
    pub(super) inline: SharedCounter,
    pub(super) background: SharedCounter,
    pub(super) recycles: SharedCounter,
    pub(super) trims: SharedCounter,
    pub(super) backpressure_ns: SharedCounter,
}

impl Tally {
    pub(super) fn snapshot(&self, budget: &Budget) -> Counters {
        Counters {
            budget_bytes: budget.bytes() as u64,
            used_bytes: budget.used() as u64,
            pinned_bytes: budget.payload() as u64,
            exported_bytes: self.exported_bytes.get(),
            state_bytes: self.state_bytes.get(),
            chunks_live: self.live.get(),
            chunks_spare: self.spare.get(),
            chunks_pooled: self.pooled.get(),
            chunks_exported: self.exported.get(),
            chunks_requested: self.requested.get(),
            inline_allocations: self.inline.get(),
            background_allocations: self.background.get(),
            recycles: self.recycles.get(),
            trims: self.trims.get(),
            backpressure_ns: self.backpressure_ns.get(),
            peak_used_bytes: budget.peak() as u64,
        }
    }
}
