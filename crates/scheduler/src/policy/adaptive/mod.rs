//! Least output cost first, with thresholds that follow the latency: the policy of Enjima.
//!
//! From "Enjima" (SIGMOD 2025), with its equations put right. A task's priority is the inverse of its output cost,
//! weighted by how the latency of its query changes; it is worth a run when enough rows wait for it, or when it has
//! not run for long enough; and it runs for about as long as an epoch.
//!
//! Added to it, since a priority alone leaves out the dearest task for as long as the others have work:
//!
//! ADAPTIVE-1. A task that was never measured gets a block at once, whatever waits for it.
//! ADAPTIVE-2. A task whose writer has no room is worth a run: its input cannot grow to the threshold.
//! ADAPTIVE-3. A task that has waited for `STARVED_NS` goes in front of all that have not.
//! ADAPTIVE-4. Before that, its priority grows with its wait, by itself for each `TURN_NS`. So tasks that cost alike take
//!     turns, and one that costs twice as much has half as many: small differences of what was measured decide nothing.

mod latency;
mod output_cost;
mod thresholds;

use std::collections::{HashMap, HashSet};

use self::latency::Latency;
use self::output_cost::{LEAST_OUTPUT_COST_NS, OutputCosts};
use self::thresholds::Thresholds;
use super::parameters::{Parameter, ParameterError, Value, find};
use super::{Decision, Policy};
use crate::quantum::{BLOCK_ROWS, QUANTUM_NS, Quantum, STARVED_NS};
use crate::views::{QueryView, Snapshot, TaskView};

pub(super) const NAME: &str = "adaptive";

/// The fewest rows of a run at the end of an epoch: the shortest run, whose fixed cost is a quarter.
const LEAST_ROWS: u64 = 512;

/// The wait that adds a task's priority to itself once more (ADAPTIVE-4): about a turn of another task.
const TURN_NS: u64 = QUANTUM_NS;

/// Above every priority that comes from a cost and from less of a wait.
const STARVED_PRIORITY: f64 = 2.0 * (1.0 + (STARVED_NS / TURN_NS) as f64) / LEAST_OUTPUT_COST_NS;

/// The adaptive policy.
#[derive(Debug, Default)]
pub struct Adaptive {
    costs: OutputCosts,
    /// Whether the writer of a task's input has no room (ADAPTIVE-2).
    is_full: Vec<bool>,
    /// One per query, in the order of the last snapshot.
    queries: Vec<QueryState>,
    /// Those of queries that are at rest, by their ids.
    resting: HashMap<u64, QueryState>,
    /// Queries that have come to rest since the last snapshot.
    goes_to_rest: HashSet<u64>,
    fixed: Option<Thresholds>,
}

#[derive(Debug)]
struct QueryState {
    id: u64,
    latency: Latency,
    thresholds: Thresholds,
}

impl Adaptive {
    /// Makes the policy with thresholds that stay as they are, to compare with those that adapt.
    pub fn with_fixed_thresholds(event_rows: u64, idle_ns: u64) -> Self {
        Self { fixed: Some(Thresholds::starting_at(event_rows, idle_ns)), ..Self::default() }
    }

    /// Lines up the states with the queries: new ones begin, and those of queries that have gone are dropped.
    fn line_up(&mut self, queries: &[QueryView]) {
        let goes_to_rest = std::mem::take(&mut self.goes_to_rest);
        let ids = self.queries.iter().map(|state| state.id);
        if ids.eq(queries.iter().map(|query| query.id)) {
            return;
        }
        let mut known: HashMap<u64, QueryState> =
            self.queries.drain(..).map(|state| (state.id, state)).collect();
        let thresholds = self.fixed.clone().unwrap_or_default();
        let resting = &mut self.resting;
        self.queries.extend(queries.iter().map(|&QueryView { id, .. }| {
            let new = || QueryState { id, latency: Latency::default(), thresholds: thresholds.clone() };
            known.remove(&id).or_else(|| resting.remove(&id)).unwrap_or_else(new)
        }));
        resting.extend(known.into_iter().filter(|(id, _)| goes_to_rest.contains(id)));
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
        let waited_ns = task.waited_ns(now_ns);
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
        NAME
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

    fn rest(&mut self, query: u64) {
        self.goes_to_rest.insert(query);
    }

    fn forget(&mut self, query: u64) {
        self.resting.remove(&query);
        self.goes_to_rest.remove(&query);
    }

    /// By ADAPTIVE-3.
    fn is_fair(&self) -> bool {
        true
    }

    fn follows_rows(&self) -> bool {
        true
    }

    fn parameters(&self) -> Vec<Parameter> {
        let thresholds = self.fixed.clone().unwrap_or_default();
        vec![
            Parameter {
                name: "fixed",
                about: "Keeps the thresholds as they are.",
                value: Value::Flag(self.fixed.is_some()),
            },
            Parameter {
                name: "event_rows",
                about: "Rows that make a run worth it, with fixed thresholds.",
                value: Value::Rows(thresholds.event_rows()),
            },
            Parameter {
                name: "idle",
                about: "Time without a run after which any row makes one worth it, with fixed thresholds.",
                value: Value::Duration(thresholds.idle_ns()),
            },
        ]
    }

    fn set(&mut self, name: &str, value: Value) -> Result<(), ParameterError> {
        let parameter = find(NAME, &self.parameters(), name, value)?;
        let thresholds = self.fixed.clone().unwrap_or_default();
        self.fixed = match parameter.value {
            Value::Flag(is_fixed) => is_fixed.then_some(thresholds),
            Value::Rows(rows) => Some(Thresholds::starting_at(rows, thresholds.idle_ns())),
            Value::Duration(ns) => Some(Thresholds::starting_at(thresholds.event_rows(), ns)),
            Value::Number(_) => self.fixed.take(), // no parameter is one
        };
        // Queries that have started with other thresholds go on with these.
        self.queries.clear();
        self.resting.clear();
        Ok(())
    }
}
