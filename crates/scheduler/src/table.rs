//! The task table: what workers, the planner and whoever wakes a task know of it.
//!
//! A row has three kinds of numbers, and each is written by one party at a time:
//!
//! - what the policy decided for the epoch: written by the planner, on one thread at a time;
//! - what the task did: written by whoever runs it;
//! - what the roll-up made of that: written by the planner as well.
//!
//! T1. The numbers are for deciding, never for correctness: each may be an epoch old, and they are not of one instant.
//! T2. A call is no such number: the run that takes it away sees what led to it, or the call stays.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use penstock_queue::log::Work;
use penstock_queue::run_request::RunRequest;
use penstock_queue::schedule::Level;

use crate::policy::{Decision, is_worth_running};
use crate::profile::Counter;
use crate::quantum::Quantum;

/// Says how much waits for a task.
pub trait Pending: Send + Sync {
    /// What waits now. May read high for an instant, never low: rows that the task has taken count until it is done with
    /// them.
    fn work(&self) -> Work;

    /// When the oldest of the rows arrived at the engine, or a time before that; None where nobody can tell now. Means
    /// nothing when no rows wait.
    fn arrived_ns(&self) -> Option<u64>;
}

/// A row of the table.
#[derive(Default)]
pub struct TaskRow {
    decided: CachePadded<Decided>,
    /// What the task did.
    pub did: CachePadded<Did>,
    rolled: Rolled,
    pending: OnceLock<Box<dyn Pending>>,
    /// Whether the task is gone: nothing waits for it any more.
    is_gone: AtomicBool,
    /// Whether somebody wants the task to look at something that no counter tells.
    run_request: RunRequest,
}

#[derive(Default)]
struct Decided {
    threshold_rows: AtomicU64,
    /// How long it may run: 0 before the first decision.
    quantum_rows: AtomicU64,
    quantum_ns: AtomicU64,
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
    /// Whether it waits for room: 1 or 0.
    pub blocked: Counter,
    /// What it waits for while it is blocked, as whoever runs it says: for people, not for policies.
    pub blocked_on: Counter,
    /// Whether it has something to do that no other counter tells, such as output of what it has consumed: 1 or 0.
    pub unfinished: Counter,
    /// Rows that it has taken in and not given out: of a sink, or of an operator with state.
    pub held_rows: Counter,
    /// Sessions that it has not given out.
    pub held_sessions: Counter,
    /// Whether it is being run: 1 or 0.
    pub running: Counter,
    /// Whether it waits for a time: 1 or 0.
    pub timed: Counter,
    /// What it has run since the last plan. The planner sets it back: one of the two may be lost.
    spent_ns: Counter,
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

    /// The task is gone. Whatever it was to read may go on without it.
    pub fn leave(&self) {
        self.is_gone.store(true, Ordering::Relaxed);
    }

    /// Whether it is gone.
    pub fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }

    /// What waits for the task now. A call, and output that has not left yet, count like a signal.
    pub fn work(&self) -> Work {
        if self.is_gone() {
            return Work::default();
        }
        let mut work = self.pending.get().map_or_else(Work::default, |pending| pending.work());
        work.signals += self.did.unfinished.get() + u64::from(self.run_request.is_waiting());
        work
    }

    /// Notes that the task is to look at something that no counter tells: a stop, a timer, a request.
    pub fn call(&self) {
        self.run_request.request_run();
    }

    /// The task is about to look.
    pub fn answer(&self) {
        self.run_request.clear_request();
    }

    /// Says that the task may have room for its output again.
    pub fn unblock(&self) {
        if self.did.blocked.get() > 0 {
            self.did.blocked.set(0);
        }
    }

    /// When the oldest row that waits for the task arrived, where somebody can tell.
    pub fn arrived_ns(&self) -> Option<u64> {
        self.pending.get().and_then(|pending| pending.arrived_ns())
    }

    /// Takes over what the policy has decided. The task may run anew.
    pub fn decide(&self, decision: &Decision) {
        self.decided.threshold_rows.store(decision.threshold_rows, Ordering::Relaxed);
        self.decided.quantum_rows.store(decision.quantum.rows, Ordering::Relaxed);
        self.decided.quantum_ns.store(decision.quantum.ns, Ordering::Relaxed);
        self.did.spent_ns.set(0);
    }

    /// Notes a run that has ended, and whether it has used the quantum up.
    pub fn spend(&self, busy_ns: u64, is_used_up: bool) {
        if is_used_up {
            self.did.spent_ns.set(u64::MAX);
        } else {
            self.did.spent_ns.set(self.did.spent_ns.get().saturating_add(busy_ns));
        }
    }

    /// Whether it has run for a quantum since the last plan, in one run or several.
    fn is_spent(&self) -> bool {
        let quantum_ns = self.decided.quantum_ns.load(Ordering::Relaxed);
        quantum_ns > 0 && self.did.spent_ns.get() >= quantum_ns
    }

    /// Returns the level of a task that is ready. One that has had its quantum since the last plan comes after those that
    /// have not, whatever waits for it, unless it is called: plans may be late.
    pub fn level(&self) -> Level {
        if self.run_request.is_waiting() {
            return Level::FIRST;
        }
        let work = self.work();
        let threshold = self.decided.threshold_rows.load(Ordering::Relaxed);
        let is_worth_it = !self.is_spent() && is_worth_running(work.rows, work.signals, threshold);
        if is_worth_it { Level::FIRST } else { Level::LAST }
    }

    /// How long a run may be now; `usual` before the first decision.
    pub fn quantum(&self, usual: Quantum) -> Quantum {
        let rows = self.decided.quantum_rows.load(Ordering::Relaxed);
        let ns = self.decided.quantum_ns.load(Ordering::Relaxed);
        if rows == 0 { usual } else { Quantum { rows, ns } }
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

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::quantum::QUANTUM_NS;

    struct Waits(Arc<Counter>, Arc<Counter>);

    impl Pending for Waits {
        fn work(&self) -> Work {
            Work { rows: self.0.get(), signals: self.1.get() }
        }

        fn arrived_ns(&self) -> Option<u64> {
            Some(7)
        }
    }

    fn row() -> (TaskRow, Arc<Counter>, Arc<Counter>) {
        let (row, rows, signals) = (TaskRow::default(), Arc::default(), Arc::default());
        row.set_pending(Box::new(Waits(Arc::clone(&rows), Arc::clone(&signals))));
        row.decide(&Decision {
            priority: 1.0,
            threshold_rows: 10,
            is_eligible: true,
            quantum: Quantum::of_rows(100),
        });
        (row, rows, signals)
    }

    #[test]
    fn rows_are_worth_a_run_from_the_threshold_on_and_signals_always() {
        let (row, rows, signals) = row();
        rows.set(9);
        assert_eq!(row.level(), Level::LAST);
        rows.set(10);
        assert_eq!((row.level(), row.arrived_ns()), (Level::FIRST, Some(7)));
        rows.set(0);
        signals.set(1);
        assert_eq!(row.level(), Level::FIRST);
    }

    #[test]
    fn who_has_had_a_quantum_stands_behind_until_the_next_plan() {
        let (row, rows, signals) = row();
        rows.set(1000);
        signals.set(1);
        row.spend(QUANTUM_NS / 2, false);
        assert_eq!(row.level(), Level::FIRST);
        row.spend(QUANTUM_NS / 2, false);
        assert_eq!(row.level(), Level::LAST, "several short runs are a long one");
        row.call();
        assert_eq!(row.level(), Level::FIRST, "whoever is called looks");
        row.answer();
        row.decide(&Decision {
            priority: 1.0,
            threshold_rows: 10,
            is_eligible: true,
            quantum: Quantum::of_rows(100),
        });
        assert_eq!(row.level(), Level::FIRST);
        row.spend(1, true);
        assert_eq!(row.level(), Level::LAST);
    }

    #[test]
    fn before_the_first_plan_a_task_has_the_usual_quantum() {
        let usual = Quantum::of_rows(1);
        let new = TaskRow::default();
        new.spend(u64::MAX, true);
        new.call();
        assert_eq!((new.quantum(usual), new.level()), (usual, Level::FIRST));
        assert_eq!(row().0.quantum(usual), Quantum::of_rows(100));
    }
}
