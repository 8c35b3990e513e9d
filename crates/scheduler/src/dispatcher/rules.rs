//! The rules that hold between two plans: at which level a ready task is, for how long it may run, and which task a
//! worker goes on with.
//!
//! RULES-1. A task of which a run is requested is at the first level, whatever it has had.
//! RULES-2. A task that has had its quantum since the last plan is at the last level until the next one, whatever waits
//!     for it: however late that plan is, no task waits for more than a quantum of each of those in front.
//! RULES-3. The policy decides about all others, by the thresholds of the last plan or by a rule of its own.

use std::fmt;

use penstock_queue::schedule::Level;

use crate::decision::is_worth_running;
use crate::policy::Policy;
use crate::quantum::Quantum;
use crate::table::TaskRow;

/// The rules of a dispatcher, for all workers.
pub struct Rules {
    /// Decides about levels, if the policy does (POLICY-4).
    levels: Option<Box<dyn Policy>>,
    follows_rows: bool,
}

impl Rules {
    /// Makes the rules of a policy that makes no plans.
    pub fn new(policy: Box<dyn Policy>) -> Self {
        let follows_rows = policy.follows_rows();
        Self { levels: policy.has_levels().then_some(policy), follows_rows }
    }

    /// Returns the level of a task that is ready.
    pub fn level(&self, row: &TaskRow) -> Level {
        if row.has_request() {
            return Level::FIRST; // RULES-1
        }
        if row.is_spent() {
            return Level::LAST; // RULES-2
        }
        match &self.levels {
            Some(policy) => policy.ready(&row.view(), row.last_known_ns()),
            None => {
                let work = row.work();
                let is_worth_it = is_worth_running(work.rows, work.signals, row.threshold_rows());
                if is_worth_it { Level::FIRST } else { Level::LAST }
            }
        }
    }

    /// Returns how long the task may run now; `usual` before the first plan.
    pub fn quantum(&self, row: &TaskRow, usual: Quantum) -> Quantum {
        row.quantum().unwrap_or(usual)
    }

    /// Returns whether a worker that has run a task goes on with the one of that row, which reads its rows.
    pub fn follows(&self, reader: &TaskRow) -> bool {
        self.follows_rows && self.level(reader) < Level::LAST
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules").field("follows_rows", &self.follows_rows).finish_non_exhaustive()
    }
}
