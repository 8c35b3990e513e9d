//! Where workers sleep while no task is ready.
//!
//! A mask says which workers are parked, and each worker has a gate of its own.
//!
//! PARK-1. A thread that makes a task ready sets its bit first and then reads the mask, with a read-modify-write. A worker
//!     that parks sets its own bit in the mask first, with a read-modify-write, and then looks for ready tasks. Of the
//!     two read-modify-writes the later one sees what came before the earlier one: either the worker is seen
//!     parked, or it sees the task.
//! PARK-2. A worker's bit in the mask is cleared by that worker, or by a thread that signals its gate afterwards. A signal
//!     that is late makes the worker's next sleep a short one, no more.

use std::time::Duration;

use crossbeam_utils::CachePadded;

use super::MOST_WORKERS;
use crate::gate::Gate;
use crate::sync::{AtomicBool, AtomicU64, Ordering, ordering, planted};

pub(super) struct Parking {
    mask: CachePadded<AtomicU64>,
    gates: Box<[CachePadded<Gate>]>,
    closed: AtomicBool,
}

impl Parking {
    /// Makes a gate for each worker.
    pub(super) fn new(workers: usize) -> Self {
        assert!(workers <= MOST_WORKERS, "at most {MOST_WORKERS} workers, not {workers}");
        Self {
            mask: CachePadded::new(AtomicU64::new(0)),
            gates: (0..workers).map(|_| CachePadded::new(Gate::new())).collect(),
            closed: AtomicBool::new(false),
        }
    }

    /// Sleeps until this worker is unparked, unless `any` says that a task is ready, or the queue is closed.
    pub(super) fn park(&self, worker: usize, any: impl FnOnce() -> bool) {
        let gate = &self.gates[worker];
        let own = 1 << worker;
        // Acquire: pairs with the Release in `unpark_one` (PARK-1).
        self.mask.fetch_or(own, ordering("schedule.park", Ordering::Acquire));
        let found = !planted("schedule.park.look") && any();
        if !found && !self.is_closed() {
            gate.wait(Duration::MAX);
        }
        if !planted("schedule.park.leave") {
            // A thread that wakes a worker is to find one that sleeps. Relaxed: this tells nothing else.
            self.mask.fetch_and(!own, Ordering::Relaxed);
        }
    }

    /// Wakes a parked worker, if there is one. Returns whether there was.
    pub(super) fn unpark_one(&self) -> bool {
        if planted("schedule.unpark") {
            return false;
        }
        // Release: pairs with the Acquire in `park` (PARK-1). The mask stays as it is.
        let mut mask = self.mask.fetch_or(0, ordering("schedule.unpark.look", Ordering::Release));
        while mask != 0 {
            let worker = mask.trailing_zeros();
            let without = mask & !(1 << worker);
            // Relaxed: what the worker is to see, the gate hands over.
            match self.mask.compare_exchange(mask, without, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    self.gates[worker as usize].signal();
                    return true;
                }
                Err(now) => mask = now,
            }
        }
        false
    }

    /// Returns how many workers are parked. A hint.
    pub(super) fn parked(&self) -> usize {
        self.mask.load(Ordering::Relaxed).count_ones() as usize
    }

    /// Wakes every worker for good.
    pub(super) fn close(&self) {
        // Release: pairs with the Acquire in `is_closed`. A worker that sees the end sees what led to it.
        self.closed.store(true, ordering("schedule.closed.store", Ordering::Release));
        if planted("schedule.close.wake") {
            return;
        }
        // All, parked or not: one that is about to park finds the signal at its gate.
        self.gates.iter().for_each(|gate| gate.signal());
    }

    /// Returns whether it was closed.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(ordering("schedule.closed.load", Ordering::Acquire))
    }
}
