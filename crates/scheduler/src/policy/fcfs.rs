//! First come, first served: oldest arrival first, a block at a time.
//!
//! Arrival is when the engine got a row, so that a row keeps its turn from task to task. A task that has no rows yet
//! ranks with the oldest row upstream of it: that is what the epoch may bring it.

use super::block_rows::BlockRows;
use super::{Decision, Parameter, ParameterError, Policy, Value};
use crate::quantum::Quantum;
use crate::views::{Snapshot, TaskView};

pub(super) const NAME: &str = "fcfs";

/// Oldest arrival first.
#[derive(Debug, Default)]
pub struct Fcfs {
    block: BlockRows,
    /// How long the rows that wait for a task, or may reach it, have been in the engine.
    ages_ns: Vec<u64>,
}

impl Policy for Fcfs {
    fn name(&self) -> &'static str {
        NAME
    }

    fn plan(&mut self, snapshot: &Snapshot, decisions: &mut Vec<Decision>) {
        self.ages_ns.clear();
        self.ages_ns.resize(snapshot.tasks.len(), 0);
        for (index, task) in snapshot.tasks.iter().enumerate() {
            if let Some(age_ns) = age_ns(task, snapshot.now_ns) {
                self.ages_ns[index] = age_ns;
            }
            for down in snapshot.downstream(index) {
                self.ages_ns[down] = self.ages_ns[down].max(self.ages_ns[index]);
            }
        }
        decisions.clear();
        decisions.extend(snapshot.tasks.iter().zip(&self.ages_ns).map(|(task, &age_ns)| {
            Decision::new(task, age_ns as f64, 1, Quantum::of_rows(self.block.rows()))
        }));
    }

    fn is_fair(&self) -> bool {
        true
    }

    fn parameters(&self) -> Vec<Parameter> {
        vec![self.block.parameter()]
    }

    fn set(&mut self, name: &str, value: Value) -> Result<(), ParameterError> {
        self.block.set(NAME, name, value)
    }
}

/// Returns the age of what waits for the task. Signals bear no time: they count from its last run, or they would come
/// after rows for as long as there are any.
fn age_ns(task: &TaskView, now_ns: u64) -> Option<u64> {
    let since_ns = if task.pending_rows > 0 { task.arrived_ns } else { task.last_run_ns };
    task.has_work().then(|| now_ns.saturating_sub(since_ns))
}
