//! Who comes first, and for how many rows: policies as pure functions.
//!
//! A policy maps a [`Snapshot`] to one [`Decision`] per task. It reads no clock, knows no task but by its counters,
//! and gives the same plan for the same snapshot and the same past.
//!
//! P1. A plan has one decision per task, in the order of the tasks.
//! P2. Priorities are finite.
//! P3. A task is eligible by the snapshot iff it is not blocked and [`is_worth_running`] holds for its counters. So
//!     eligible means work, and signals mean eligible, whatever the thresholds say.
//!
//! An ineligible task still runs when no eligible one is ready: thresholds decide who comes first under load, never
//! whether somebody runs. A task that has used its quantum up is as ineligible until the next plan: however late that is,
//! nobody waits for more than a quantum of each of those in front.
//!
//! - [`adaptive`]: least cost per result first, with thresholds that follow the latency
//! - [`fcfs`]: oldest arrival first
//! - [`rr`]: least recently run first
//! - [`order`]: from priorities to ranks

pub mod adaptive;
pub mod fcfs;
pub mod order;
pub mod rr;

pub use adaptive::Adaptive;
pub use fcfs::Fcfs;
pub use order::Order;
pub use rr::Rr;

use crate::quantum::Quantum;
use crate::snapshot::{Snapshot, TaskView};

/// What a policy wants for one task until the next epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// The highest goes first.
    pub priority: f64,
    /// Fewer pending rows are not worth a run, unless signals wait.
    pub threshold_rows: u64,
    /// Whether the task was worth a run when the snapshot was taken.
    pub is_eligible: bool,
    /// How long it may run. Then it stands behind those that had no run since the plan.
    pub quantum: Quantum,
}

impl Decision {
    /// The decision for `task` with the eligibility that follows from its threshold (P3).
    fn new(task: &TaskView, priority: f64, threshold_rows: u64, quantum: Quantum) -> Self {
        let is_eligible =
            !task.is_blocked && is_worth_running(task.pending_rows, task.signals, threshold_rows);
        Self { priority, threshold_rows, is_eligible, quantum }
    }
}

/// Ranks tasks by their counters.
pub trait Policy: Send {
    /// Its name, as users write it.
    fn name(&self) -> &'static str;

    /// Replaces `decisions` by one for each task of the snapshot, in the same order.
    fn plan(&mut self, snapshot: &Snapshot, decisions: &mut Vec<Decision>);
}

/// Whether a task with this much work deserves a run before the ineligible ones.
pub fn is_worth_running(pending_rows: u64, signals: u64, threshold_rows: u64) -> bool {
    signals > 0 || (pending_rows > 0 && pending_rows >= threshold_rows)
}

/// The policies that an engine can be started with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PolicyKind {
    /// Least cost per result first, with thresholds that follow the latency.
    #[default]
    Adaptive,
    /// Oldest arrival first.
    Fcfs,
    /// Least recently run first.
    Rr,
}

impl PolicyKind {
    /// Every policy under the name that users write.
    pub const NAMES: [(&'static str, Self); 3] =
        [("adaptive", Self::Adaptive), ("fcfs", Self::Fcfs), ("rr", Self::Rr)];

    /// Whether a worker that has run a task goes on with the one that reads its rows, which are still in the cache: where
    /// the policy would rank that one before the first in any case.
    pub fn follows_rows(self) -> bool {
        match self {
            Self::Adaptive => true,
            Self::Fcfs | Self::Rr => false,
        }
    }

    /// The policy, with no past.
    pub fn make(self) -> Box<dyn Policy> {
        match self {
            Self::Adaptive => Box::new(Adaptive::default()),
            Self::Fcfs => Box::new(Fcfs::default()),
            Self::Rr => Box::new(Rr),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_needs_work_and_a_signal_needs_no_rows() {
        assert!(is_worth_running(4, 0, 4) && !is_worth_running(3, 0, 4));
        assert!(is_worth_running(0, 1, u64::MAX));
        assert!(!is_worth_running(0, 0, 0));
    }
}
