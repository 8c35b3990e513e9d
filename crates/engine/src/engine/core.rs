//! What the threads of an engine share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crossbeam_utils::CachePadded;
use penstock_memory::Coordinator;
use penstock_scheduler::profile::Counter;
use penstock_scheduler::{Quantum, Rules};

use super::bell::Bell;
use super::cell::TaskQueue;
use super::epoch::Epoch;
use super::planner::Planner;
use super::roster::RosterCell;
use crate::clock::Timepiece;
use crate::clock::timers::Timers;
use crate::options::{EngineOptions, Mode};
use crate::tasks::functions::FunctionToken;

/// The most tasks of an engine.
pub(crate) const MOST_TASKS: usize = 1 << 16;
/// How long a task runs before any policy has looked at it: as long as any.
pub(crate) const USUAL_QUANTUM: Quantum = Quantum::of_rows(u64::MAX);

/// What one worker did.
#[derive(Debug, Default)]
pub(crate) struct WorkerStats {
    pub(crate) busy_ns: Counter,
    /// Time between runs that it was awake, up to its last run or sleep.
    pub(crate) overhead_ns: Counter,
    pub(crate) parked_ns: Counter,
    pub(crate) parks: Counter,
    pub(crate) runs: Counter,
    /// When it fell asleep; 0 while it is awake.
    pub(crate) parked_since_ns: Counter,
}

/// The shared part of an engine.
pub(crate) struct Core {
    pub(crate) options: EngineOptions,
    pub(crate) queue: Arc<TaskQueue>,
    /// What holds for its tasks between two plans.
    pub(crate) rules: Arc<Rules>,
    pub(crate) coordinator: Coordinator,
    pub(crate) workers: Vec<CachePadded<WorkerStats>>,
    pub(crate) epoch: Epoch,
    /// For whoever plans, or rolls up.
    pub(crate) planner: Mutex<Planner>,
    pub(crate) timers: Timers,
    pub(crate) roster: RosterCell,
    /// Lets one of its tasks call into the interpreter.
    pub(crate) functions: Arc<FunctionToken>,
    /// Its number, unique in the process.
    pub(crate) number: u64,
    /// CPU time of the threads that run tasks, and the time that they ran tasks by the clock, of the same intervals.
    pub(crate) cpu_ns: AtomicU64,
    pub(crate) busy_ns: AtomicU64,
    pub(crate) next_id: AtomicU64,
    pub(crate) stopped: AtomicBool,
    pub(crate) started_ns: u64,
    /// Whether tasks that have gone idle are asked to give memory back: see [`asks_to_trim`].
    pub(crate) trims: bool,
    /// Of threads mode: how many tasks have a thread.
    pub(crate) task_threads: AtomicU64,
}

/// Whether the roll-up is to ring tasks that have gone idle, so that they give memory back. It is, unless
/// `PENSTOCK_TRIM=off` stands in the environment when the engine starts: such a ring also wakes whoever has missed a
/// wake-up, so tests of wake-ups go without.
pub(crate) fn asks_to_trim() -> bool {
    std::env::var("PENSTOCK_TRIM").map_or(true, |value| value != "off")
}

impl Core {
    /// Rings the bell at that time of the system. A thread of its own looks at the time itself.
    pub(crate) fn set_timer(&self, at_ns: u64, bell: &Arc<Bell>) {
        if self.options.mode == Mode::State && self.timers.set(at_ns, Arc::clone(bell) as _) {
            self.epoch.wake_before(at_ns);
        }
    }

    /// Rings the bell when the hands of the clock come to that time. Whoever moves them rings.
    pub(crate) fn set_clock_timer(&self, at_ns: u64, bell: &Arc<Bell>) {
        if let Timepiece::Manual(clock) = &self.options.clock {
            clock.set_timer(at_ns, Arc::clone(bell) as _);
        }
    }

    /// How often a worker has run a task.
    pub(crate) fn runs(&self) -> u64 {
        self.workers.iter().map(|worker| worker.runs.get()).sum()
    }

    /// Adds what a thread has measured of itself.
    pub(crate) fn note_cpu(&self, cpu_ns: u64, busy_ns: u64) {
        self.cpu_ns.fetch_add(cpu_ns, Ordering::Relaxed);
        self.busy_ns.fetch_add(busy_ns, Ordering::Relaxed);
    }
}
