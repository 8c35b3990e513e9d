//! Who comes first, and for how many rows: policies as pure functions.
//!
//! A policy maps a [`Snapshot`] to one [`Decision`] per task. It reads no clock, knows no task but by its counters,
//! and gives the same plan for the same snapshot and the same past.
//!
//! POLICY-1. A plan has one decision per task, in the order of the tasks.
//! POLICY-2. Priorities are finite.
//! POLICY-3. Eligibility follows from the threshold of a decision alone (ELIGIBLE-1).
//! POLICY-4. `ready` depends on the view, the time and the parameters, and on no state that plans change: workers ask
//!     a copy of the policy that makes no plans.
//!
//! An ineligible task still runs when no eligible one is ready: thresholds decide who comes first under load, never
//! whether a task runs. What holds whatever a policy says is the business of the [`dispatcher`](crate::dispatcher).
//!
//! - [`adaptive`]: least cost per result first, with thresholds that follow the latency
//! - [`fcfs`]: oldest arrival first
//! - [`rr`]: least recently run first
//! - [`kind`]: a policy by its name
//! - [`parameters`]: what can be set of a policy

pub mod adaptive;
mod block_rows;
pub mod fcfs;
pub mod kind;
pub mod parameters;
pub mod rr;

use penstock_queue::schedule::Level;

pub use adaptive::Adaptive;
pub use fcfs::Fcfs;
pub use kind::PolicyKind;
pub use parameters::{Parameter, ParameterError, Value};
pub use rr::Rr;

use crate::decision::{Decision, is_worth_running};
use crate::views::{Snapshot, TaskView};

/// The policies, by their names: the one list of them. The first one is the default.
const POLICIES: [PolicyKind; 3] = [
    PolicyKind::new(adaptive::NAME, new::<Adaptive>),
    PolicyKind::new(fcfs::NAME, new::<Fcfs>),
    PolicyKind::new(rr::NAME, new::<Rr>),
];

/// Makes a policy with no past.
fn new<P: Policy + Default + 'static>() -> Box<dyn Policy> {
    Box::<P>::default()
}

/// Ranks tasks by their counters.
pub trait Policy: Send + Sync {
    /// Returns its name, as users write it.
    fn name(&self) -> &'static str;

    /// Replaces `decisions` by one for each task of the snapshot, in the same order.
    fn plan(&mut self, snapshot: &Snapshot, decisions: &mut Vec<Decision>);

    /// Keeps what it knows of a query that has no task at work: the next snapshots go without the query until it has again. A
    /// query that is missing from a snapshot otherwise has gone, and so has what was known of it.
    fn rest(&mut self, query: u64) {
        let _ = query;
    }

    /// Drops what it knows of a query that has ended at rest.
    fn forget(&mut self, query: u64) {
        let _ = query;
    }

    /// Returns the level of a task that is ready: when it is handed back, woken, or ranked by a plan. `now_ns` may be that
    /// of the last plan or run.
    ///
    /// Only called if [`Self::has_levels`] returns true. By default a task that is worth running by its threshold is at
    /// the first level, and any other one at the last.
    fn ready(&self, task: &TaskView, now_ns: u64) -> Level {
        let _ = now_ns;
        let is_worth_it = is_worth_running(task.pending_rows, task.signals, task.threshold_rows);
        if is_worth_it { Level::FIRST } else { Level::LAST }
    }

    /// Returns whether it has a [`Self::ready`] of its own. The default one needs no view of the task.
    fn has_levels(&self) -> bool {
        false
    }

    /// Returns whether its plans put every task with work first sooner or later, however much work others have. If not, the
    /// dispatcher sees to it.
    fn is_fair(&self) -> bool {
        false
    }

    /// Returns whether a worker that has run a task goes on with the one that reads its rows, which are still in the cache:
    /// where the policy would rank that one before the first in any case.
    fn follows_rows(&self) -> bool {
        false
    }

    /// Returns its parameters with their present values.
    fn parameters(&self) -> Vec<Parameter> {
        Vec::new()
    }

    /// Sets a parameter by its name.
    ///
    /// # Errors
    /// When there is no such parameter, or the value has another type or is out of range.
    fn set(&mut self, name: &str, value: Value) -> Result<(), ParameterError> {
        parameters::find(self.name(), &self.parameters(), name, value).map(|_| ())
    }
}
