//! Round robin: least recently run first, a block at a time.

use super::{Decision, Policy};
use crate::quantum::{BLOCK_ROWS, Quantum};
use crate::snapshot::Snapshot;

/// Least recently run first.
#[derive(Debug, Default)]
pub struct Rr;

impl Policy for Rr {
    fn name(&self) -> &'static str {
        "rr"
    }

    fn plan(&mut self, snapshot: &Snapshot, decisions: &mut Vec<Decision>) {
        decisions.clear();
        decisions.extend(snapshot.tasks.iter().map(|task| {
            // Elapsed time rather than the instant: a float tells nanoseconds apart in what is near only.
            let rested_ns = snapshot.now_ns.saturating_sub(task.last_run_ns);
            Decision::new(task, rested_ns as f64, 1, Quantum::of_rows(BLOCK_ROWS))
        }));
    }
}
