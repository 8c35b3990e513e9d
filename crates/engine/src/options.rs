//! How a plan is run, where the plan itself leaves it open. Nothing here changes an answer.

use penstock_memory::MemoryKind;
use penstock_memory::coordinator;
use penstock_memory::platform::Platform;
use penstock_memory::shape::ShapeOptions;
use penstock_queue::schedule::MOST_WORKERS;

use crate::clock::Timepiece;

pub use penstock_graph::{Chaining, Strategy};
pub use penstock_scheduler::PolicyKind;
pub use penstock_types::choose;

/// How a plan is run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunOptions {
    /// How rows go from task to task.
    pub memory: MemoryKind,
    /// Which operators make up a task.
    pub chain: Chaining,
    /// Bytes for streams and state together; half of the machine's memory by default.
    pub budget_bytes: Option<usize>,
    /// Bytes that a single stream may take.
    pub stream_bytes: Option<usize>,
    /// Rows per block and blocks per chunk.
    pub shape: ShapeOptions,
    /// Rows that a source cuts from a batch at a time; by default the width of the rows decides.
    pub rows_per_run: Option<usize>,
    /// Where memory comes from.
    pub platform: Option<Platform>,
}

impl RunOptions {
    pub(crate) fn coordinator(&self) -> coordinator::CoordinatorOptions {
        let platform = self.platform.unwrap_or(Platform::native());
        let usual = coordinator::CoordinatorOptions::default();
        let budget_bytes = self.budget_bytes.unwrap_or(usual.budget_bytes);
        coordinator::CoordinatorOptions {
            budget_bytes,
            // One stream alone must leave room for the others.
            log_cap_bytes: self.stream_bytes.unwrap_or(usual.log_cap_bytes.min(budget_bytes / 4)),
            platform,
        }
    }
}

/// Who runs tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Workers that share a queue, ranked by a policy.
    #[default]
    State,
    /// A thread for each task, left to the system: what the other is compared with.
    Threads,
}

impl Mode {
    /// All of them, by name.
    pub const NAMES: [(&'static str, Self); 2] = [("state", Self::State), ("threads", Self::Threads)];
}

/// How an engine runs its queries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineOptions {
    /// Threads that run tasks; one for each core by default.
    pub workers: Option<usize>,
    /// Which task runs next.
    pub policy: PolicyKind,
    /// Who runs tasks.
    pub mode: Mode,
    /// How each query is laid out, and the memory that all of them share.
    pub run: RunOptions,
    /// What time it is, where that matters to a plan. A replay goes by the time of the system in any case.
    pub clock: Timepiece,
}

impl EngineOptions {
    /// Threads that run tasks.
    pub fn worker_count(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.workers.unwrap_or_else(cores).clamp(1, MOST_WORKERS)
    }
}
