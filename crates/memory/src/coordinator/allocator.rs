//! The supply of memory: the pool, and the allocator thread that maps and unmaps.
//!
//! The lock of the pool is held to put or take a piece, never during a system call.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{io, process};

use penstock_queue::supply::{Maker, Supply};

use super::budget::Budget;
use super::counters::Tally;
use super::options::CoordinatorOptions;
use super::pool::Pool;
use crate::platform::{HUGE_PAGE_BYTES, Mapping};

/// The pool keeps at most one part in this many of the budget: enough to start queries from, too little to be missed.
const POOL_SHARE: usize = 8;

/// What handles, accounts and memory share. Memory keeps it alive beyond the last handle.
#[derive(Debug)]
pub(super) struct CoordinatorCore {
    pub(super) options: CoordinatorOptions,
    pub(super) budget: Budget,
    pub(super) tally: Tally,
    pub(super) supply: Supply<usize, Mapping>,
    pool: Mutex<Pool>,
    /// The process that runs the allocator thread.
    process: u32,
}

impl CoordinatorCore {
    pub(super) fn new(options: CoordinatorOptions) -> Self {
        Self {
            budget: Budget::new(options.budget_bytes),
            options,
            tally: Tally::default(),
            supply: Supply::new(),
            pool: Mutex::default(),
            process: process::id(),
        }
    }

    /// Returns false in a forked child: it has neither the allocator thread nor the threads that held locks.
    pub(super) fn is_of_this_process(&self) -> bool {
        self.process == process::id()
    }

    /// Returns memory from the pool, or else from the system. Counts as pooled until a [`super::Memory`] takes it
    /// over.
    pub(super) fn obtain(&self, bytes: usize) -> io::Result<Mapping> {
        if self.is_of_this_process() {
            let mut pool = self.pool();
            self.supply.take_back().into_iter().for_each(|mapping| pool.put(mapping));
            let pooled = pool.take(bytes);
            drop(pool);
            if let Some(mapping) = pooled {
                return Ok(mapping);
            }
            // COORDINATOR-6: the memory about to be mapped has been charged, so the pool makes room for it.
            self.trim();
        }
        let mapping = Mapping::new(self.options.platform, bytes, bytes >= HUGE_PAGE_BYTES)?;
        self.tally.pooled.add(1);
        Ok(mapping)
    }

    /// Takes a piece back from a log or from the user. Never waits (COORDINATOR-5).
    pub(super) fn take_back(&self, mapping: Mapping) {
        if self.is_of_this_process() {
            self.tally.pooled.add(1);
            self.supply.give_back(mapping);
        }
    }

    /// Unmaps what exceeds the pool's limit.
    fn trim(&self) {
        self.trim_to(self.budget.free().min(self.budget.bytes() / POOL_SHARE));
    }

    /// Unmaps the whole pool.
    pub(super) fn clear(&self) {
        self.trim_to(0);
    }

    fn trim_to(&self, limit: usize) {
        let trimmed = self.pool().trim(limit);
        self.tally.trims.add(trimmed.len() as u64);
        self.tally.pooled.sub(trimmed.len() as u64);
        drop(trimmed);
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        // No call under the lock leaves the pool half changed, so a panic elsewhere does no harm.
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The allocator thread's maker of memory.
pub(super) struct Allocator<'a>(pub(super) &'a CoordinatorCore);

impl Maker<usize, Mapping> for Allocator<'_> {
    fn make(&mut self, bytes: usize) -> Option<Mapping> {
        // A refusal is all that the writer can use: it tries again, and waits meanwhile.
        let mapping = self.0.obtain(bytes).ok()?;
        self.0.tally.background.add(1);
        Some(mapping)
    }

    fn returned(&mut self, mapping: Mapping) {
        self.0.pool().put(mapping);
    }

    fn idle(&mut self) {
        self.0.trim();
    }
}
