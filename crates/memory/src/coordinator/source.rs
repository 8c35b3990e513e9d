//! Where memory comes from: the pool, and the allocator thread that maps and unmaps.
//!
//! The lock of the pool is held to put or take a piece, never while the system is asked for anything.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{io, process};

use penstock_queue::supply::{Maker, Supply};

use super::budget::Budget;
use super::counters::Tally;
use super::options::CoordinatorOptions;
use super::pool::Pool;
use crate::platform::{HUGE_PAGE_BYTES, Mapping};

/// The pool keeps at most this part of the budget: enough to start queries from, little enough to be missed by nobody.
const POOL_SHARE: usize = 8;

/// What handles, accounts and memory have in common. Memory keeps it alive beyond the last handle.
#[derive(Debug)]
pub(super) struct CoordinatorCore {
    pub(super) options: CoordinatorOptions,
    pub(super) budget: Budget,
    pub(super) tally: Tally,
    pub(super) supply: Supply<usize, Mapping>,
    pool: Mutex<Pool>,
    /// The process that has the allocator thread.
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

    /// False in a forked child: the allocator thread and whoever held a lock stayed behind.
    pub(super) fn is_of_this_process(&self) -> bool {
        self.process == process::id()
    }

    /// Memory from the pool, or else from the system. Counts as pooled until a [`super::Memory`] takes it over.
    pub(super) fn obtain(&self, bytes: usize) -> io::Result<Mapping> {
        if self.is_of_this_process() {
            let mut pool = self.pool();
            self.supply.take_back().into_iter().for_each(|mapping| pool.put(mapping));
            let pooled = pool.take(bytes);
            drop(pool);
            if let Some(mapping) = pooled {
                return Ok(mapping);
            }
            // COORDINATOR-6: what is about to be mapped has been charged, so the pool makes room for it.
            self.trim();
        }
        let mapping = Mapping::new(self.options.platform, bytes, bytes >= HUGE_PAGE_BYTES)?;
        self.tally.pooled.add(1);
        Ok(mapping)
    }

    /// Takes a piece that a log or the user is done with. Never waits (COORDINATOR-5).
    pub(super) fn take_back(&self, mapping: Mapping) {
        if self.is_of_this_process() {
            self.tally.pooled.add(1);
            self.supply.give_back(mapping);
        }
    }

    /// Unmaps what the pool has too much of.
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
        // No call under the lock leaves the pool half done, so a panic elsewhere does it no harm.
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The allocator thread at its work.
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
