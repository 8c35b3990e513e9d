//! A worker: runs tasks, and between two of them makes the plan and the roll-up that are due.
//!
//! WORKER-1. Workers make the plans, between two tasks: only workers use the ranks, and a running worker has a processor.
//!     On a busy machine a separate thread may wait for a processor for seconds, with the planner locked. A worker that
//!     finds the planner locked skips the plan: another worker is making it. The time of the processor is read
//!     without the lock: at a system call a busy thread is likely to lose its processor.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use penstock_queue::schedule::{Level, TaskId};
use penstock_scheduler::profile::Counter;
use penstock_scheduler::worker::{Handed, Host, work};

use super::StateExecutor;
use crate::clock::now_ns;
use crate::executors::cell::{Ran, TaskCell, USUAL_QUANTUM};
use crate::executors::epoch::epoch_ns;
use crate::executors::meter::{CpuMeter, cpu_time};
use crate::executors::spawn;
use crate::metrics::WorkerMetrics;

/// What one worker did.
#[derive(Debug, Default)]
pub(super) struct WorkerStats {
    busy_ns: Counter,
    /// Time between runs that it was awake, up to its last run or sleep.
    overhead_ns: Counter,
    parked_ns: Counter,
    parks: Counter,
    pub(super) runs: Counter,
    /// When it fell asleep; 0 while it is awake.
    parked_since_ns: Counter,
}

impl WorkerStats {
    /// Returns what it did until now.
    pub(super) fn metrics(&self, now_ns: u64) -> WorkerMetrics {
        let since = self.parked_since_ns.get();
        let asleep = if since == 0 { 0 } else { now_ns.saturating_sub(since) };
        WorkerMetrics {
            runs: self.runs.get(),
            busy_ns: self.busy_ns.get(),
            parked_ns: self.parked_ns.get() + asleep,
            parks: self.parks.get(),
            overhead_ns: self.overhead_ns.get(),
        }
    }
}

struct Worker<'a> {
    core: &'a StateExecutor,
    stats: &'a WorkerStats,
    meter: CpuMeter,
    /// When its last run or sleep ended: the time until the next one begins is overhead.
    left_ns: u64,
}

impl Worker<'_> {
    /// Counts the overhead that ends now.
    fn note_overhead(&self, now_ns: u64) {
        self.stats.overhead_ns.add(now_ns.saturating_sub(self.left_ns));
    }
}

impl Host<TaskCell> for Worker<'_> {
    fn run(&mut self, _: TaskId, cell: &mut TaskCell) -> Handed {
        let start_ns = now_ns();
        self.note_overhead(start_ns);
        let quantum = self.core.rules.quantum(&cell.bell.row, USUAL_QUANTUM);
        let (end_ns, ran) = cell.run(quantum, start_ns, self.core);
        let busy_ns = end_ns.saturating_sub(start_ns);
        self.stats.busy_ns.add(busy_ns);
        self.stats.runs.add(1);
        self.left_ns = end_ns;
        self.meter.note(busy_ns, end_ns, &self.core.shared.cpu);
        cell.bell.row.spend(busy_ns, ran == Ran::Ready);
        tend(self.core, end_ns);
        match ran {
            Ran::Ready => Handed::Ready(self.core.rules.level(&cell.bell.row)),
            Ran::Idle => Handed::Idle,
            Ran::Done => Handed::Done,
        }
    }

    fn level(&self, cell: &TaskCell) -> Level {
        // It was woken during its run, perhaps because there is room again.
        cell.bell.row.unblock();
        self.core.rules.level(&cell.bell.row)
    }

    fn next(&self, cell: &TaskCell) -> Option<TaskId> {
        cell.followed(&self.core.rules)
    }

    fn retired(&mut self, cell: TaskCell) {
        cell.retire();
    }

    fn before_park(&mut self) {
        let now = now_ns();
        self.note_overhead(now);
        self.stats.parked_since_ns.set(now);
        self.core.shared.epoch.nudge();
    }

    fn unparked(&mut self) {
        let now = now_ns();
        self.stats.parked_ns.add(now.saturating_sub(self.stats.parked_since_ns.get()));
        self.left_ns = now;
        self.stats.parked_since_ns.set(0);
        self.stats.parks.add(1);
        self.core.shared.epoch.nudge();
    }
}

/// Makes the roll-up and the plan that are due, unless another worker is at it (WORKER-1).
fn tend(core: &StateExecutor, now: u64) {
    // Asked again with the planner locked: another worker may have been faster.
    if core.shared.is_roll_due(now, 0)
        && let Some(mut planner) = core.shared.try_planner()
        && core.shared.is_roll_due(now, 0)
    {
        core.shared.roll(&mut planner, now);
    }
    let plan_due = || now >= core.next_plan_ns.load(Ordering::Relaxed);
    // If no task waits, the order does not matter.
    if !plan_due() || !core.queue.has_ready() {
        return;
    }
    let (until_ns, cpu_ns) = cpu_time(|| {
        let mut planner = core.shared.try_planner().filter(|_| plan_due())?;
        planner.plan(now, &core.rules, core, &core.queue);
        let epoch = &core.shared.epoch;
        epoch.epochs.add(1);
        epoch.planning_ns.add(now_ns().saturating_sub(now));
        // As long as the last one, until it is known what this plan has cost.
        let until_ns = now + epoch_ns(core.plan_cpu_ns.load(Ordering::Relaxed));
        core.next_plan_ns.store(until_ns, Ordering::Relaxed);
        Some(until_ns)
    });
    let Some(until_ns) = until_ns else { return };
    core.plan_cpu_ns.store(cpu_ns, Ordering::Relaxed);
    // Unless the next plan is made already.
    let known_ns = now + epoch_ns(cpu_ns);
    let next = &core.next_plan_ns;
    let _ = next.compare_exchange(until_ns, known_ns, Ordering::Relaxed, Ordering::Relaxed);
}

/// Starts the worker of that number.
pub(super) fn start(core: &Arc<StateExecutor>, number: usize) -> std::io::Result<JoinHandle<()>> {
    let core = Arc::clone(core);
    spawn(format!("penstock-worker-{number}"), core.engine, move || {
        let stats = &core.workers[number];
        let mut worker = Worker { core: &core, stats, meter: CpuMeter::default(), left_ns: now_ns() };
        work(&core.queue, number, &mut worker);
    })
}
