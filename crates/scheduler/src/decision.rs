//! What a policy wants for one task until the next epoch, and the rule of who is eligible.
//!
//! ELIGIBLE-1. A task is eligible iff it is not blocked and [`is_worth_running`] holds for its counters. So eligible means
//!     work, and signals mean eligible, whatever the thresholds say.

use crate::quantum::Quantum;
use crate::views::TaskView;

/// What a policy wants for one task until the next epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// The highest goes first.
    pub priority: f64,
    /// Fewer pending rows are not worth a run, unless signals wait.
    pub threshold_rows: u64,
    /// Whether the task was worth a run when the snapshot was taken.
    pub is_eligible: bool,
    /// How long it may run. Then it comes after those that had no run since the plan.
    pub quantum: Quantum,
}

impl Decision {
    /// Makes the decision for `task` with the eligibility that follows from its threshold (ELIGIBLE-1).
    pub fn new(task: &TaskView, priority: f64, threshold_rows: u64, quantum: Quantum) -> Self {
        let is_eligible =
            !task.is_blocked && is_worth_running(task.pending_rows, task.signals, threshold_rows);
        Self { priority, threshold_rows, is_eligible, quantum }
    }
}

/// Returns whether a task with this much work deserves a run before the ineligible ones.
pub fn is_worth_running(pending_rows: u64, signals: u64, threshold_rows: u64) -> bool {
    signals > 0 || (pending_rows > 0 && pending_rows >= threshold_rows)
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

    #[test]
    fn a_blocked_task_is_not_eligible_whatever_waits_for_it() {
        let task = TaskView { pending_rows: 1 << 20, signals: 1, ..TaskView::default() };
        assert!(Decision::new(&task, 1.0, 1, Quantum::of_rows(1)).is_eligible);
        let blocked = TaskView { is_blocked: true, ..task };
        assert!(!Decision::new(&blocked, 1.0, 1, Quantum::of_rows(1)).is_eligible);
    }
}
