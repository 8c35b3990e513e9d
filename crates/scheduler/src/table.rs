//! The task table: what workers, the planner and wakers know of a task.
//!
//! A row has three kinds of numbers, and each is written by one party at a time:
//!
//! - what the policy decided for the epoch: written by the planner, on one thread at a time;
//! - what the task did: written by the thread that runs it;
//! - what the roll-up made of that: written by the planner as well.
//!
//! ROW-1. The numbers are for deciding, never for correctness: each may be an epoch old, and they are not of one instant.
//! ROW-2. A request is no such number: the run that takes it away sees what led to it, or the request stays.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use penstock_queue::log::Work;
use penstock_queue::run_request::RunRequest;

use crate::decision::Decision;
use crate::profile::Counter;
use crate::quantum::Quantum;
use crate::views::{InputView, InputViews, TaskView};

/// Tells how much waits for a task.
pub trait Pending: Send + Sync {
    /// Returns what waits now. May read high for an instant, never low: rows that the task has taken count until it is
    /// done with them.
    fn work(&self) -> Work;

    /// Returns when the oldest of the rows arrived at the engine, or a time before that; `None` where that cannot be told
    /// now. Means nothing when no rows wait.
    fn arrived_ns(&self) -> Option<u64>;

    /// Adds a view of each input, in their order. All of them together as one, where they are not told apart.
    fn inputs(&self, inputs: &mut InputViews) {
        let Work { rows, signals } = self.work();
        let arrived_ns = if rows > 0 { self.arrived_ns() } else { None };
        inputs.push(InputView { rows, signals, arrived_ns, ..InputView::default() });
    }
}

/// A row of the table.
#[derive(Default)]
pub struct TaskRow {
    decided: CachePadded<Decided>,
    /// What the task did.
    pub did: CachePadded<Did>,
    rolled: Rolled,
    pending: OnceLock<Box<dyn Pending>>,
    /// When its oldest row had arrived at the last refresh that could tell.
    arrived_ns: Counter,
    /// Whether the task is gone: nothing waits for it any more.
    is_gone: AtomicBool,
    /// Whether the task is to look at something that no counter tells.
    run_request: RunRequest,
}

#[derive(Default)]
struct Decided {
    threshold_rows: AtomicU64,
    /// How long it may run: 0 before the first decision.
    quantum_rows: AtomicU64,
    quantum_ns: AtomicU64,
    planned_ns: AtomicU64,
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
    /// What it waits for while it is blocked, by the code of the task: for people, not for policies.
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
    /// Sets where to look for pending work.
    ///
    /// # Panics
    /// When it was set before.
    pub fn set_pending(&self, pending: Box<dyn Pending>) {
        assert!(self.pending.set(pending).is_ok(), "a task has one input");
    }

    /// Marks the task as gone. What it was to read may go on without it.
    pub fn leave(&self) {
        self.is_gone.store(true, Ordering::Relaxed);
    }

    /// Returns whether it is gone.
    pub fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }

    /// Returns what waits for the task now. A request, and output that has not left yet, count like a signal.
    pub fn work(&self) -> Work {
        if self.is_gone() {
            return Work::default();
        }
        let mut work = self.pending.get().map_or_else(Work::default, |pending| pending.work());
        work.signals += self.own_signals();
        work
    }

    /// Returns what waits for it besides its inputs.
    fn own_signals(&self) -> u64 {
        self.did.unfinished.get() + u64::from(self.run_request.is_waiting())
    }

    /// Makes the task look at something that no counter tells: a stop, a timer, a request.
    pub fn request_run(&self) {
        self.run_request.request_run();
    }

    /// Takes the request away: the task is about to look.
    pub fn clear_request(&self) {
        self.run_request.clear_request();
    }

    /// Returns whether a run was requested.
    pub fn has_request(&self) -> bool {
        self.run_request.is_waiting()
    }

    /// Notes that the task may have room for its output again.
    pub fn unblock(&self) {
        if self.is_blocked() {
            self.did.blocked.set(0);
        }
    }

    /// Returns whether the task waits for room.
    pub fn is_blocked(&self) -> bool {
        self.did.blocked.get() > 0
    }

    /// Returns when the oldest row that waits for the task arrived, where that can be told.
    pub fn arrived_ns(&self) -> Option<u64> {
        self.pending.get().and_then(|pending| pending.arrived_ns())
    }

    /// Brings the numbers of a view up to date. The time of arrival stays where it cannot be told: rows only come later.
    pub fn refresh(&self, view: &mut TaskView) {
        view.inputs.clear();
        if let Some(pending) = self.pending.get().filter(|_| !self.is_gone()) {
            pending.inputs(&mut view.inputs);
        }
        view.pending_rows = view.inputs.iter().map(|input| input.rows).sum();
        view.signals = view.inputs.iter().map(|input| input.signals).sum();
        if !self.is_gone() {
            view.signals += self.own_signals();
        }
        match view.inputs.iter().filter_map(|input| input.arrived_ns).min() {
            Some(arrived_ns) => {
                self.arrived_ns.set(arrived_ns);
                view.arrived_ns = arrived_ns;
            }
            None => view.arrived_ns = view.arrived_ns.max(self.arrived_ns.get()),
        }
        view.threshold_rows = self.threshold_rows();
        view.is_blocked = self.is_blocked();
        view.is_running = self.did.running.get() > 0;
        view.cost_ns = self.cost_ns();
        view.selectivity = self.selectivity();
        view.last_run_ns = self.did.last_run_ns.get();
    }

    /// Returns a view of the task alone: without its id, its query and its neighbours.
    pub fn view(&self) -> TaskView {
        let mut view = TaskView::default();
        self.refresh(&mut view);
        view
    }

    /// Takes over what was decided by the plan of that time. The task may run anew.
    pub fn decide(&self, decision: &Decision, now_ns: u64) {
        self.decided.threshold_rows.store(decision.threshold_rows, Ordering::Relaxed);
        self.decided.quantum_rows.store(decision.quantum.rows, Ordering::Relaxed);
        self.decided.quantum_ns.store(decision.quantum.ns, Ordering::Relaxed);
        self.decided.planned_ns.store(now_ns, Ordering::Relaxed);
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

    /// Lets the task run anew, without a plan: nothing has waited for it for a while.
    pub fn restore_quantum(&self) {
        self.did.spent_ns.set(0);
    }

    /// Returns whether it has run for a quantum since the last plan, in one run or several.
    pub fn is_spent(&self) -> bool {
        let quantum_ns = self.decided.quantum_ns.load(Ordering::Relaxed);
        quantum_ns > 0 && self.did.spent_ns.get() >= quantum_ns
    }

    /// Returns the rows that are worth a run by the last plan; 0 before the first one.
    pub fn threshold_rows(&self) -> u64 {
        self.decided.threshold_rows.load(Ordering::Relaxed)
    }

    /// Returns how long a run may be by the last plan; `None` before the first one.
    pub fn quantum(&self) -> Option<Quantum> {
        let rows = self.decided.quantum_rows.load(Ordering::Relaxed);
        let ns = self.decided.quantum_ns.load(Ordering::Relaxed);
        (rows > 0).then_some(Quantum { rows, ns })
    }

    /// Returns the time of its last run or plan, whichever was later: about now, without a look at a clock.
    pub fn last_known_ns(&self) -> u64 {
        self.did.last_run_ns.get().max(self.decided.planned_ns.load(Ordering::Relaxed))
    }

    /// Takes over what the roll-up has made of the counters.
    pub fn roll(&self, cost_ns: Option<f64>, selectivity: Option<f64>, time_share: f64) {
        let bits = |value: Option<f64>| value.unwrap_or(f64::NAN).to_bits();
        self.rolled.cost_ns.store(bits(cost_ns), Ordering::Relaxed);
        self.rolled.selectivity.store(bits(selectivity), Ordering::Relaxed);
        self.rolled.time_share.store(time_share.to_bits(), Ordering::Relaxed);
    }

    /// Returns the part of a core that it took recently.
    pub fn time_share(&self) -> f64 {
        f64::from_bits(self.rolled.time_share.load(Ordering::Relaxed))
    }

    /// Returns its recent cost in nanoseconds per row; `None` until it is known.
    pub fn cost_ns(&self) -> Option<f64> {
        known(&self.rolled.cost_ns)
    }

    /// Returns its recent rows out per row in; `None` until it is known.
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
    use super::*;

    struct Waits(Vec<InputView>);

    impl Pending for Waits {
        fn work(&self) -> Work {
            let sum = |of: fn(&InputView) -> u64| self.0.iter().map(of).sum();
            Work { rows: sum(|input| input.rows), signals: sum(|input| input.signals) }
        }

        fn arrived_ns(&self) -> Option<u64> {
            self.0.iter().filter_map(|input| input.arrived_ns).min()
        }
    }

    fn row(rows: u64, signals: u64) -> TaskRow {
        let row = TaskRow::default();
        let input = InputView { rows, signals, arrived_ns: Some(7), ..InputView::default() };
        row.set_pending(Box::new(Waits(vec![input, InputView { rows: 2, ..InputView::default() }])));
        row
    }

    #[test]
    fn a_view_has_what_waits_at_the_inputs_and_besides_them() {
        let row = row(5, 1);
        row.request_run();
        row.did.unfinished.set(1);
        row.did.blocked.set(1);
        row.did.last_run_ns.set(9);
        let view = row.view();
        assert_eq!((view.pending_rows, view.signals, view.arrived_ns), (7, 3, 7));
        assert_eq!((row.work().rows, row.work().signals), (view.pending_rows, view.signals));
        let input = InputView { rows: 7, signals: 1, arrived_ns: Some(7), ..InputView::default() };
        assert_eq!(view.inputs[..], [input], "inputs that are not told apart are one");
        assert!(view.is_blocked && !view.is_running && view.last_run_ns == 9);
        row.leave();
        assert_eq!((row.view().has_work(), row.work()), (false, Work::default()));
    }

    #[test]
    fn a_time_of_arrival_that_cannot_be_told_stays() {
        let mut view = TaskView { arrived_ns: 3, ..TaskView::default() };
        let row = TaskRow::default();
        row.set_pending(Box::new(Waits(vec![InputView { rows: 4, ..InputView::default() }])));
        row.refresh(&mut view);
        assert_eq!((view.pending_rows, view.arrived_ns), (4, 3));
        row.arrived_ns.set(5);
        assert_eq!(row.view().arrived_ns, 5, "a new view starts with what the row knows");
    }
}
