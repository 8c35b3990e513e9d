//! What the threads of an engine share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use penstock_memory::Coordinator;
use penstock_scheduler::Quantum;
use penstock_scheduler::profile::Counter;

use super::bell::Bell;
use super::cell::TaskQueue;
use super::epoch::Epoch;
use super::roster::RosterCell;
use super::timers::Timers;
use crate::clock::Timepiece;
use crate::options::{EngineOptions, Mode};

/// The most tasks of an engine.
pub(crate) const MOST_TASKS: usize = 1 << 16;
/// How long a task runs before any policy has looked at it: a millisecond, if a row costs as much as a cheap one does.
pub(crate) const USUAL_QUANTUM: Quantum = Quantum::UntilEpoch { cost_ns: 20.0, least_rows: 1024 };

/// What one worker did.
#[derive(Debug, Default)]
pub(crate) struct WorkerStats {
    pub(crate) started_ns: Counter,
    pub(crate) busy_ns: Counter,
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
    pub(crate) coordinator: Coordinator,
    pub(crate) workers: Vec<CachePadded<WorkerStats>>,
    pub(crate) epoch: Epoch,
    pub(crate) timers: Timers,
    pub(crate) roster: RosterCell,
    /// CPU time of the threads that run tasks, and the time that they ran tasks by the clock, of the same intervals.
    pub(crate) cpu_ns: AtomicU64,
    pub(crate) busy_ns: AtomicU64,
    pub(crate) next_id: AtomicU64,
    pub(crate) stopped: AtomicBool,
    pub(crate) started_ns: u64,
    /// Of threads mode: how many tasks have a thread.
    pub(crate) task_threads: AtomicU64,
}

impl Core {
    /// Rings the bell at that time. A thread of its own looks at the time itself.
    pub(crate) fn set_timer(&self, at_ns: u64, bell: &Arc<Bell>) {
        if let Timepiece::Manual(clock) = &self.options.clock {
            clock.set_timer(at_ns, bell);
        } else if self.options.mode == Mode::State && self.timers.set(at_ns, bell) {
            self.epoch.wake_before(at_ns);
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
