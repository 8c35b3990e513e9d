//! The threads that run tasks: workers that share the queue, or a thread for each task.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use penstock_memory::platform;
use penstock_queue::schedule::{Level, TaskId};
use penstock_scheduler::worker::{Handed, Host, work};

use super::cell::{Ran, TaskCell};
use super::core::{Core, USUAL_QUANTUM, WorkerStats};
use super::epoch;
use crate::clock::now_ns;

/// Stack of a thread that runs tasks: an expression is evaluated by recursion, and a debug build takes large steps.
const STACK_BYTES: usize = 8 << 20;
/// How often a thread reads its CPU time, which costs as much as a short run.
const CPU_EVERY_NS: u64 = 50_000_000;
/// How long the thread of a task sleeps at most when it has no timer. It is woken before if there is anything to do.
const LONG: Duration = Duration::from_secs(3600);

thread_local! {
    /// The number of the engine whose tasks this thread runs.
    static RUNS_FOR: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Whether this thread runs tasks of the engine of that number: it cannot wait for any of them.
pub(crate) fn is_of(engine: u64) -> bool {
    RUNS_FOR.get() == Some(engine)
}

/// CPU time of a thread beside the time that it ran tasks.
#[derive(Default)]
struct CpuMeter {
    at_ns: u64,
    cpu_ns: u64,
    busy_ns: u64,
}

impl CpuMeter {
    fn note(&mut self, busy_ns: u64, now_ns: u64, core: &Core) {
        self.busy_ns += busy_ns;
        if now_ns.saturating_sub(self.at_ns) < CPU_EVERY_NS {
            return;
        }
        let cpu_ns = platform::thread_cpu_ns();
        if self.at_ns > 0 {
            core.note_cpu(cpu_ns.saturating_sub(self.cpu_ns), self.busy_ns);
        }
        *self = Self { at_ns: now_ns, cpu_ns, busy_ns: 0 };
    }
}

struct Worker<'a> {
    core: &'a Core,
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
        self.meter.note(busy_ns, end_ns, self.core);
        cell.bell.row.spend(busy_ns, ran == Ran::Ready);
        epoch::tend(self.core, end_ns);
        match ran {
            Ran::Ready => Handed::Ready(self.core.rules.level(&cell.bell.row)),
            Ran::Idle => Handed::Idle,
            Ran::Done => Handed::Done,
        }
    }

    fn level(&self, cell: &TaskCell) -> Level {
        // Somebody rang while it ran, perhaps because there is room again.
        cell.bell.row.unblock();
        self.core.rules.level(&cell.bell.row)
    }

    fn next(&self, cell: &TaskCell) -> Option<TaskId> {
        cell.worthy_reader(&self.core.rules)
    }

    fn retired(&mut self, cell: TaskCell) {
        cell.retire();
    }

    fn before_park(&mut self) {
        let now = now_ns();
        self.note_overhead(now);
        self.stats.parked_since_ns.set(now);
        self.core.epoch.nudge();
    }

    fn unparked(&mut self) {
        let now = now_ns();
        self.stats.parked_ns.add(now.saturating_sub(self.stats.parked_since_ns.get()));
        self.left_ns = now;
        self.stats.parked_since_ns.set(0);
        self.stats.parks.add(1);
        self.core.epoch.nudge();
    }
}

/// Starts the worker of that number.
pub(crate) fn start(core: &Arc<Core>, number: usize) -> std::io::Result<JoinHandle<()>> {
    let core = Arc::clone(core);
    let name = format!("penstock-worker-{number}");
    thread::Builder::new().name(name).stack_size(STACK_BYTES).spawn(move || {
        RUNS_FOR.set(Some(core.number));
        let stats = &core.workers[number];
        let mut worker = Worker { core: &core, stats, meter: CpuMeter::default(), left_ns: now_ns() };
        work(&core.queue, number, &mut worker);
    })
}

/// Starts a thread for one task, which ends with it.
pub(crate) fn start_own(core: &Arc<Core>, mut cell: TaskCell) -> std::io::Result<JoinHandle<()>> {
    let core = Arc::clone(core);
    // The system keeps 15 characters of it.
    let name = format!("ps-{}", cell.name());
    cell.bell.connect_thread();
    thread::Builder::new().name(name).stack_size(STACK_BYTES).spawn(move || {
        RUNS_FOR.set(Some(core.number));
        core.task_threads.fetch_add(1, Ordering::Relaxed);
        let mut meter = CpuMeter::default();
        loop {
            let start_ns = now_ns();
            // Not for ever, so that what it has done can be seen.
            let (end_ns, ran) = cell.run(USUAL_QUANTUM, start_ns, &core);
            meter.note(end_ns.saturating_sub(start_ns), end_ns, &core);
            match ran {
                Ran::Ready => {}
                Ran::Idle => {
                    let until = cell.timer_ns().map(|at_ns| at_ns.saturating_sub(now_ns()));
                    cell.bell.wait(until.map_or(LONG, Duration::from_nanos));
                    core.epoch.nudge();
                }
                Ran::Done => break,
            }
        }
        core.task_threads.fetch_sub(1, Ordering::Relaxed);
        cell.retire();
    })
}
