//! The task table: what workers, the epoch thread and whoever wakes a task know of it.
//!
//! A row has three kinds of numbers, and each is written by one party at a time:
//!
//! - what the policy decided for the epoch: written by the epoch thread;
//! - what the task did: written by whoever runs it;
//! - what the roll-up made of that: written by the epoch thread.
//!
//! T1. The numbers are for deciding, never for correctness: each may be an epoch old, and they are not of one instant.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use penstock_queue::log::Work;
use penstock_queue::schedule::Class;

use crate::policy::{Decision, is_worth_running};
use crate::profile::Counter;
use crate::quantum::Quantum;

/// Says how much waits for a task.
pub trait Pending: Send + Sync {
    /// What waits now. May read high for an instant, never low.
    fn work(&self) -> Work;
}

/// A row of the table.
#[derive(Default)]
pub struct TaskRow {
    decided: CachePadded<Decided>,
    /// What the task did.
    pub did: CachePadded<Did>,
    rolled: Rolled,
    pending: OnceLock<Box<dyn Pending>>,
    /// Whether somebody wants the task to look at something that no counter tells: 1 or 0.
    called: Counter,
}

#[derive(Default)]
struct Decided {
    threshold_rows: AtomicU64,
    once: AtomicBool,
    /// Rows of a run; with a cost, at least so many.
    quantum_rows: AtomicU64,
    /// Bits of the cost per row in nanoseconds; 0 when the rows alone count.
    quantum_cost: AtomicU64,
}

/// What a task did.
#[derive(Debug, Default)]
pub struct Did {
    /// Rows taken in.
    pub rows_in: Counter,
    /// Rows given out.
    pub rows_out: Counter,
    /// Times it was run.
    pub runs: Counter,
    /// Nanoseconds that it ran.
    pub busy_ns: Counter,
    /// Nanoseconds that it had work and no room for its output.
    pub blocked_ns: Counter,
    /// When it was run last.
    pub last_run_ns: Counter,
    /// When the oldest of its pending input arrived.
    pub arrived_ns: Counter,
    /// Whether it waits for room: 1 or 0.
    pub blocked: Counter,
    /// Whether output of what it has consumed is still to leave it: 1 or 0.
    pub unfinished: Counter,
    /// Whether it is being run: 1 or 0.
    pub running: Counter,
}

#[derive(Debug)]
struct Rolled {
    cost_ns: AtomicU64,
    selectivity: AtomicU64,
    time_share: AtomicU64,
}

impl Default for Rolled {
    fn default() -> Self {
        let unknown = || AtomicU64::new(f64::NAN.to_bits());
        Self { cost_ns: unknown(), selectivity: unknown(), time_share: AtomicU64::new(0.0_f64.to_bits()) }
    }
}

impl TaskRow {
    /// Says where to look for pending work.
    ///
    /// # Panics
    /// When it was said before.
    pub fn set_pending(&self, pending: Box<dyn Pending>) {
        assert!(self.pending.set(pending).is_ok(), "a task has one input");
    }

    /// What waits for the task now. A call, and output that has not left yet, count like a signal.
    pub fn work(&self) -> Work {
        let mut work = self.pending.get().map_or_else(Work::default, |pending| pending.work());
        work.signals += self.did.unfinished.get() + self.called.get();
        work
    }

    /// Notes that the task is to look at something that no counter tells: a stop, a timer, a request.
    pub fn call(&self) {
        self.called.set(1);
    }

    /// The task is about to look.
    pub fn answer(&self) {
        self.called.set(0);
    }

    /// Says that the task may have room for its output again.
    pub fn unblock(&self) {
        if self.did.blocked.get() > 0 {
            self.did.blocked.set(0);
        }
    }

    /// Takes over what the policy has decided.
    pub fn decide(&self, decision: &Decision) {
        let (rows, cost) = match decision.quantum {
            Quantum::Rows(rows) => (rows, 0.0),
            Quantum::UntilEpoch { cost_ns, least_rows } => (least_rows, cost_ns),
        };
        self.decided.threshold_rows.store(decision.threshold_rows, Ordering::Relaxed);
        self.decided.once.store(decision.once, Ordering::Relaxed);
        self.decided.quantum_rows.store(rows, Ordering::Relaxed);
        self.decided.quantum_cost.store(cost.to_bits(), Ordering::Relaxed);
    }

    /// The class of a task that has become ready.
    pub fn class(&self) -> Class {
        let work = self.work();
        let threshold = self.decided.threshold_rows.load(Ordering::Relaxed);
        if is_worth_running(work.rows, work.signals, threshold) { Class::Now } else { Class::Spare }
    }

    /// The class of a task that was run and still has work. Signals count whatever the policy says.
    pub fn class_after_run(&self) -> Class {
        let yields = self.decided.once.load(Ordering::Relaxed) && self.work().signals == 0;
        if yields { Class::Spare } else { self.class() }
    }

    /// Rows that a run may take now; `usual` before the first decision.
    pub fn quantum(&self, now_ns: u64, next_epoch_ns: u64, usual: Quantum) -> u64 {
        let rows = self.decided.quantum_rows.load(Ordering::Relaxed);
        let cost_ns = f64::from_bits(self.decided.quantum_cost.load(Ordering::Relaxed));
        let decided = match (rows, cost_ns > 0.0) {
            (0, _) => usual,
            (rows, false) => Quantum::Rows(rows),
            (least_rows, true) => Quantum::UntilEpoch { cost_ns, least_rows },
        };
        decided.rows(now_ns, next_epoch_ns)
    }

    /// Takes over what the roll-up has made of the counters.
    pub fn roll(&self, cost_ns: Option<f64>, selectivity: Option<f64>, time_share: f64) {
        let bits = |value: Option<f64>| value.unwrap_or(f64::NAN).to_bits();
        self.rolled.cost_ns.store(bits(cost_ns), Ordering::Relaxed);
        self.rolled.selectivity.store(bits(selectivity), Ordering::Relaxed);
        self.rolled.time_share.store(time_share.to_bits(), Ordering::Relaxed);
    }

    /// The part of a core that it took, of late.
    pub fn time_share(&self) -> f64 {
        f64::from_bits(self.rolled.time_share.load(Ordering::Relaxed))
    }

    /// Nanoseconds per row, of late; `None` until it is known.
    pub fn cost_ns(&self) -> Option<f64> {
        known(&self.rolled.cost_ns)
    }

    /// Rows out per row in, of late; `None` until it is known.
    pub fn selectivity(&self) -> Option<f64> {
        known(&self.rolled.selectivity)
    }
}

fn known(bits: &AtomicU64) -> Option<f64> {
    let value = f64::from_bits(bits.load(Ordering::Relaxed));
    (!value.is_nan()).then_some(value)
}
