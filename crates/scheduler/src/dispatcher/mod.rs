//! The one rule of which task is eligible, at which level, for how long, which task follows which, and the guard against
//! starvation. The policy only ranks.
//!
//! A dispatcher is pure: time is an argument, and all that it knows of tasks is in views and rows. The engine calls it, and
//! so can a simulator.
//!
//! DISPATCH-1. A plan ranks the tasks of its snapshot by falling priority, equal ones in the order of the tasks; but for
//!     DISPATCH-3.
//! DISPATCH-2. A task that is not eligible (ELIGIBLE-1) is at the last level, where it runs once no other task is ready.
//! DISPATCH-3. The guard: unless the policy is fair by itself, tasks that have had work for longer than [`STARVED_NS`]
//!     without a run are at the first level and in front of all others, the longest wait first. So each of them runs before
//!     any other task does, once a plan is made.
//! DISPATCH-4. What comes for a task between the snapshot and the plan counts all the same: the caller that
//!     publishes the ranks raises the tasks that are not at the first level afterwards, by [`Rules::level`].

mod order;
mod rules;

use std::fmt;

use penstock_queue::schedule::{Level, TaskId};

pub use order::Order;
pub use rules::Rules;

use crate::decision::Decision;
use crate::policy::{Policy, PolicyKind};
use crate::quantum::STARVED_NS;
use crate::ready::ReadyTasks;
use crate::table::TaskRow;
use crate::views::Snapshot;

/// Turns snapshots into ranks and levels, with buffers that serve again.
pub struct Dispatcher {
    policy: Box<dyn Policy>,
    decisions: Vec<Decision>,
    order: Order,
    ranks: Vec<(TaskId, Level)>,
    /// The task of each rank, by its index in the snapshot.
    indices: Vec<usize>,
    /// Tasks that starve, by their wait and their index.
    starved: Vec<(u64, usize)>,
}

impl Dispatcher {
    /// Makes a dispatcher with the policy of that kind.
    pub fn new(policy: PolicyKind) -> Self {
        Self::with_policy(policy.make())
    }

    /// Makes a dispatcher with that policy.
    pub fn with_policy(policy: Box<dyn Policy>) -> Self {
        Self {
            policy,
            decisions: Vec::new(),
            order: Order::default(),
            ranks: Vec::new(),
            indices: Vec::new(),
            starved: Vec::new(),
        }
    }

    /// Returns its policy.
    pub fn policy(&mut self) -> &mut dyn Policy {
        &mut *self.policy
    }

    /// Ranks the tasks of a snapshot: their ids with their levels, the first rank first. Tells each task of the snapshot
    /// what was decided for it.
    pub fn plan<'r>(
        &mut self,
        snapshot: &mut Snapshot,
        row: impl Fn(usize) -> &'r TaskRow,
    ) -> &[(TaskId, Level)] {
        self.policy.plan(snapshot, &mut self.decisions);
        for (index, decision) in self.decisions.iter().enumerate() {
            snapshot.tasks[index].threshold_rows = decision.threshold_rows;
            row(index).decide(decision, snapshot.now_ns);
        }
        self.find_starved(snapshot);
        let Self { policy, decisions, order, ranks, indices, starved } = self;
        ranks.clear();
        indices.clear();
        for &(_, index) in starved.iter() {
            ranks.push((snapshot.tasks[index].task, Level::FIRST));
            indices.push(index);
        }
        for &index in order.rank(decisions) {
            // Ranked already.
            if !starved.is_empty() && snapshot.tasks[index].waited_ns(snapshot.now_ns) > STARVED_NS {
                continue;
            }
            ranks.push((snapshot.tasks[index].task, level(&**policy, snapshot, index, &decisions[index])));
            indices.push(index);
        }
        ranks
    }

    /// Finds the tasks that DISPATCH-3 is about.
    fn find_starved(&mut self, snapshot: &Snapshot) {
        self.starved.clear();
        if self.policy.is_fair() {
            return;
        }
        let waits = snapshot.tasks.iter().map(|task| task.waited_ns(snapshot.now_ns)).zip(0..);
        self.starved.extend(waits.filter(|(waited_ns, _)| *waited_ns > STARVED_NS));
        self.starved.sort_unstable_by_key(|&(waited_ns, index)| (std::cmp::Reverse(waited_ns), index));
    }

    /// Plans, and publishes the ranks in `ready` (DISPATCH-4).
    pub fn dispatch<'r, T>(
        &mut self,
        snapshot: &mut Snapshot,
        row: impl Fn(usize) -> &'r TaskRow,
        rules: &Rules,
        ready: &impl ReadyTasks<T>,
    ) {
        ready.publish(self.plan(snapshot, &row));
        self.raise(row, rules, ready);
    }

    /// Raises the tasks of the last plan, whose ranks are published, to the levels that they have by now (DISPATCH-4).
    pub fn raise<'r, T>(
        &self,
        row: impl Fn(usize) -> &'r TaskRow,
        rules: &Rules,
        ready: &impl ReadyTasks<T>,
    ) {
        for (&(task, level), &index) in self.ranks.iter().zip(&self.indices) {
            if level > Level::FIRST {
                let row = row(index);
                ready.raise(task, || if row.is_blocked() { level } else { rules.level(row) });
            }
        }
    }
}

/// Returns the level of a task that is ready when the plan is made.
fn level(policy: &dyn Policy, snapshot: &Snapshot, index: usize, decision: &Decision) -> Level {
    let task = &snapshot.tasks[index];
    if !decision.is_eligible {
        return Level::LAST; // DISPATCH-2
    }
    if policy.has_levels() { policy.ready(task, snapshot.now_ns) } else { Level::FIRST }
}

impl fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatcher").field("policy", &self.policy.name()).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
