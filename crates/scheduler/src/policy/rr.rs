//! Round robin: least recently run first, a block at a time.

use super::block_rows::BlockRows;
use super::{Decision, Parameter, ParameterError, Policy, Value};
use crate::quantum::Quantum;
use crate::views::Snapshot;

pub(super) const NAME: &str = "rr";

/// Least recently run first.
#[derive(Debug, Default)]
pub struct Rr {
    block: BlockRows,
}

impl Policy for Rr {
    fn name(&self) -> &'static str {
        NAME
    }

    fn plan(&mut self, snapshot: &Snapshot, decisions: &mut Vec<Decision>) {
        decisions.clear();
        decisions.extend(snapshot.tasks.iter().map(|task| {
            // Elapsed time rather than the instant: a float tells nanoseconds apart in what is near only.
            let rested_ns = snapshot.now_ns.saturating_sub(task.last_run_ns);
            Decision::new(task, rested_ns as f64, 1, Quantum::of_rows(self.block.rows()))
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
