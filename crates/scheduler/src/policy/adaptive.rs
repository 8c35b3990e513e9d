//! Least output cost first, with thresholds that follow the latency: the policy of Enjima.
//!
//! From "Enjima" (SIGMOD 2025), with its equations put right. A task's priority is the inverse of its output cost,
//! weighted by how the latency of its query changes; it is worth a run when enough rows wait for it, or when it has
//! not run for long enough; and it runs for about as long as an epoch.
//!
//! Added to it, since a priority alone leaves out whoever is dearest for as long as the others have work:
//!
//! A1. A task that nobody has measured gets a block at once, whatever waits for it.
//! A2. A task whose writer has no room is worth a run: its input cannot grow to the threshold.
//! A3. A task that has waited for `STARVED_NS` goes in front of all that have not.
//! A4. Before that, its priority grows with its wait, by itself for each `TURN_NS`. So those that cost alike take turns,
//!     and who costs twice as much has half as many: small differences of what was measured decide nothing.

mod latency;
mod output_cost;
mod thresholds;

use std::collections::HashMap;

use self::latency::Latency;
use self::output_cost::{LEAST_OUTPUT_COST_NS, OutputCosts};
use self::thresholds::Thresholds;
use super::{Decision, Policy};
use crate::quantum::{BLOCK_ROWS, QUANTUM_NS, Quantum};
use crate::snapshot::{QueryView, Snapshot, TaskView};

/// The fewest rows of a run at the end of an epoch: the shortest run, whose fixed cost is a quarter.
const LEAST_ROWS: u64 = 512;

/// How long a task may wait with work before it goes in front (A3): ten epochs.
/// From `cargo bench -p penstock-benches --bench scheduling -- policies`, six queries at 95 % of what each setting sustained,
/// one round each: with 100 ms and runs of 512 rows a mean latency of 118 ms, not sustained (167 M rows/s); with this 1 ms
/// (157 M rows/s). The rates differ, and no other wait was tried.
const STARVED_NS: u64 = 10_000_000;

/// The wait that adds a task's priority to itself once more (A4): about a turn of somebody else.
const TURN_NS: u64 = QUANTUM_NS;

/// Above every priority that comes from a cost and from less of a wait.
const STARVED_PRIORITY: f64 = 2.0 * (1.0 + (STARVED_NS / TURN_NS) as f64) / LEAST_OUTPUT_COST_NS;

/// The adaptive policy.
#[derive(Debug, Default)]
pub struct Adaptive {
    costs: OutputCosts,
    /// Whether the writer of a task's input has no room (A2).
    is_full: Vec<bool>,
    /// One per query, in the order of the last snapshot.
    queries: Vec<QueryState>,
    fixed: Option<Thresholds>,
}

#[derive(Debug)]
struct QueryState {
    id: u64,
    latency: Latency,
    thresholds: Thresholds,
}

impl Adaptive {
    /// The policy with thresholds that stay as they are, to compare with those that adapt.
    pub fn with_fixed_thresholds(event_rows: u64, idle_ns: u64) -> Self {
        Self { fixed: Some(Thresholds::starting_at(event_rows, idle_ns)), ..Self::default() }
    }

    /// Lines up the states with the queries: new ones begin, and those of queries that have gone are dropped.
    fn line_up(&mut self, queries: &[QueryView]) {
        let ids = self.queries.iter().map(|state| state.id);
        if ids.eq(queries.iter().map(|query| query.id)) {
            return;
        }
        let mut known: HashMap<u64, QueryState> =
            self.queries.drain(..).map(|state| (state.id, state)).collect();
        let thresholds = self.fixed.clone().unwrap_or_default();
        self.queries.extend(queries.iter().map(|&QueryView { id, .. }| {
            let new = || QueryState { id, latency: Latency::default(), thresholds: thresholds.clone() };
            known.remove(&id).unwrap_or_else(new)
        }));
    }

    fn observe(&mut self, snapshot: &Snapshot) {
        for (state, query) in self.queries.iter_mut().zip(&snapshot.queries) {
            let gradient = state.latency.observe(query, snapshot.now_ns);
            if let (Some(gradient), None) = (gradient, &self.fixed) {
                state.thresholds.adjust(gradient);
            }
        }
    }

    fn find_full_inputs(&mut self, snapshot: &Snapshot) {
        self.is_full.clear();
        self.is_full.resize(snapshot.tasks.len(), false);
        for (index, _) in snapshot.tasks.iter().enumerate().filter(|(_, task)| task.is_blocked) {
            for down in snapshot.downstream(index) {
                self.is_full[down] = true;
            }
        }
    }

    fn decide(&self, index: usize, task: &TaskView, now_ns: u64) -> Decision {
        let state = self.queries.get(task.query);
        let weight = state.map_or(1.0, |state| state.latency.weight());
        let waited_ns = waited_ns(task, now_ns);
        let quantum = task
            .cost_ns
            .map_or(Quantum::of_rows(BLOCK_ROWS), |cost_ns| Quantum::of_cost(cost_ns, LEAST_ROWS));
        if waited_ns > STARVED_NS {
            let priority = STARVED_PRIORITY + waited_ns as f64 / STARVED_NS as f64;
            return Decision::new(task, priority, 1, quantum);
        }
        let turns = 1.0 + waited_ns as f64 / TURN_NS as f64;
        let priority = weight * turns / self.costs.cost_ns(index);
        if task.cost_ns.is_none() {
            return Decision::new(task, priority, 1, quantum);
        }
        let (event_rows, idle_ns) =
            state.map_or((1, 0), |state| (state.thresholds.event_rows(), state.thresholds.idle_ns()));
        let threshold_rows = if self.is_full[index] { 1 } else { event_rows };
        let has_idled = !task.is_running && now_ns.saturating_sub(task.last_run_ns) > idle_ns;
        if has_idled && task.pending_rows < threshold_rows {
            return Decision::new(task, priority, 1, quantum);
        }
        Decision::new(task, priority, threshold_rows, quantum)
    }
}

impl Policy for Adaptive {
    fn name(&self) -> &'static str {
        "adaptive"
    }

    fn plan(&mut self, snapshot: &Snapshot, decisions: &mut Vec<Decision>) {
        self.line_up(&snapshot.queries);
        self.observe(snapshot);
        self.costs.compute(snapshot);
        self.find_full_inputs(snapshot);
        decisions.clear();
        let tasks = snapshot.tasks.iter().enumerate();
        decisions.extend(tasks.map(|(index, task)| self.decide(index, task, snapshot.now_ns)));
    }
}

/// How long the task has had work that nobody did. Rows count from when the engine got them: what has aged upstream
/// need not age again.
fn waited_ns(task: &TaskView, now_ns: u64) -> u64 {
    if task.is_blocked || task.is_running || !task.has_work() {
        return 0;
    }
    let arrived_ns = if task.pending_rows > 0 { task.arrived_ns } else { 0 };
    now_ns.saturating_sub(task.last_run_ns.max(arrived_ns))
}
