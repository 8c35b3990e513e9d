//! The metrics of an engine.

use penstock_memory::coordinator::Counters;
use penstock_memory::platform::Usage;

/// What one worker did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerMetrics {
    /// Tasks that it ran.
    pub runs: u64,
    /// Time that it ran tasks.
    pub busy_ns: u64,
    /// Time that it slept, because no task was ready.
    pub parked_ns: u64,
    /// Times that it fell asleep.
    pub parks: u64,
    /// All other time: choosing tasks, handing them back, plans and roll-ups.
    pub overhead_ns: u64,
}

/// The metrics of an engine.
#[derive(Clone, Debug, Default)]
pub struct EngineMetrics {
    /// Time since it was started.
    pub seconds: f64,
    /// Queries and shared sources that run.
    pub queries: usize,
    /// Tasks that they are made of.
    pub tasks: usize,
    /// What each worker did; none in threads mode.
    pub workers: Vec<WorkerMetrics>,
    /// Threads of tasks, in threads mode.
    pub task_threads: u64,
    /// Plans made so far.
    pub epochs: u64,
    /// Time spent on plans, a part of what workers spend beside tasks.
    pub planning_ns: u64,
    /// Time spent on rolling counters up: by workers, and by a thread of its own where these rest or there are none.
    pub rolling_ns: u64,
    /// The use of memory.
    pub memory: Counters,
    /// What the process has used.
    pub process: Usage,
}

impl EngineMetrics {
    /// Returns the time spent on deciding what to run, as a part of the time that tasks ran.
    pub fn scheduling_share(&self) -> f64 {
        let busy: u64 = self.workers.iter().map(|worker| worker.busy_ns).sum();
        let overhead: u64 = self.workers.iter().map(|worker| worker.overhead_ns).sum();
        overhead as f64 / (busy.max(1)) as f64
    }
}

/// What one task of a query did.
#[derive(Clone, Debug)]
pub struct TaskMetrics {
    /// The last of its operators.
    pub name: String,
    /// Rows that wait for it.
    pub pending_rows: u64,
    /// Signals that wait for it, and output that has not left it.
    pub signals: u64,
    /// Times it was run.
    pub runs: u64,
    /// Time that it ran.
    pub busy_ns: u64,
    /// Time that it had output and no room for it.
    pub blocked_ns: u64,
    /// The part of a core that it took recently.
    pub time_share: f64,
    /// Its recent time per row.
    pub cost_ns: Option<f64>,
    /// Its recent rows out per row in.
    pub selectivity: Option<f64>,
}
