//! From the task table to ranks, and from counters to costs.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use penstock_queue::schedule::{Level, TaskId};
use penstock_scheduler::profile::Reading;
use penstock_scheduler::{Decision, Order, Policy, PolicyKind, QueryView, Rollup, Snapshot, TaskView};

use super::bell::Bell;
use super::core::Core;
use super::roster::{Part, Roster};
use crate::clock::now_ns;

/// What is remembered of a task from roll-up to roll-up.
#[derive(Default)]
struct Past {
    rollup: Rollup,
    runs: u64,
    busy_ns: u64,
    /// Runs that it had made when it was last asked to give memory back.
    trimmed_at: Option<u64>,
}

/// Plans and rolls up, with buffers that serve again.
pub(crate) struct Planner {
    policy: Box<dyn Policy>,
    roster: Arc<Roster>,
    snapshot: Snapshot,
    decisions: Vec<Decision>,
    order: Order,
    ranks: Vec<(TaskId, Level)>,
    pasts: Vec<(Arc<Bell>, Past)>,
    rolled_ns: u64,
    rows: Vec<(u64, u64)>,
    cpu_ns: u64,
    busy_ns: u64,
}

impl Planner {
    pub(crate) fn new(policy: PolicyKind) -> Self {
        Self::with_policy(policy.make())
    }

    pub(super) fn with_policy(policy: Box<dyn Policy>) -> Self {
        Self {
            policy,
            roster: Arc::default(),
            snapshot: Snapshot::default(),
            decisions: Vec::new(),
            order: Order::default(),
            ranks: Vec::new(),
            pasts: Vec::new(),
            rolled_ns: 0,
            rows: Vec::new(),
            cpu_ns: 0,
            busy_ns: 0,
        }
    }

    /// Takes a new roster over, with what is remembered of the tasks that were in the old one.
    fn refresh(&mut self, core: &Core) {
        let roster = core.roster.get();
        if Arc::ptr_eq(&roster, &self.roster) {
            return;
        }
        self.roster = roster;
        self.snapshot.queries = self
            .roster
            .queries
            .iter()
            .map(|query| QueryView { id: query.id, latency_sum_ns: 0, latency_count: 0 })
            .collect();
        self.snapshot.tasks = self
            .roster
            .tasks
            .iter()
            .map(|task| TaskView {
                query: task.query,
                downstream: task.downstream.iter().copied().collect(),
                is_source: task.is_source,
                ..TaskView::default()
            })
            .collect();
        if cfg!(debug_assertions) {
            self.snapshot.check_order();
        }
        // By address: an old bell cannot be taken for a new one, since the old list keeps it until here.
        let mut old: HashMap<*const Bell, (Arc<Bell>, Past)> =
            self.pasts.drain(..).map(|kept| (Arc::as_ptr(&kept.0), kept)).collect();
        self.pasts.extend(self.roster.tasks.iter().map(|task| {
            let kept = old.remove(&Arc::as_ptr(&task.bell));
            kept.unwrap_or_else(|| (Arc::clone(&task.bell), Past::default()))
        }));
        let before: HashMap<u64, u64> = self.rows.drain(..).collect();
        let rows = |id: u64| (id, before.get(&id).copied().unwrap_or(0));
        self.rows.extend(self.roster.queries.iter().map(|query| rows(query.id)));
    }

    fn fill(&mut self) {
        for (query, view) in self.roster.queries.iter().zip(&mut self.snapshot.queries) {
            (view.latency_sum_ns, view.latency_count) = query.account.sink_latency.totals();
        }
        for (task, view) in self.roster.tasks.iter().zip(&mut self.snapshot.tasks) {
            let row = &task.bell.row;
            let work = row.work();
            // A roster may be older or newer than its tasks: some have no place yet, and that of others is another's.
            view.task = task.bell.task().unwrap_or(TaskId::MAX);
            (view.pending_rows, view.signals) = (work.rows, work.signals);
            view.is_blocked = row.did.blocked.get() > 0;
            view.is_running = row.did.running.get() > 0;
            view.cost_ns = row.cost_ns();
            view.selectivity = row.selectivity();
            view.last_run_ns = row.did.last_run_ns.get();
            view.part = task.part.as_ref().map(Part::view);
            // Where nobody can tell, what was told before still holds: rows only come later.
            if work.rows > 0
                && let Some(arrived_ns) = row.arrived_ns()
            {
                view.arrived_ns = arrived_ns;
            }
        }
    }

    /// Ranks all tasks, as they stand at `now`.
    pub(crate) fn plan(&mut self, core: &Core, now: u64) {
        self.refresh(core);
        self.snapshot.now_ns = now;
        self.fill();
        self.policy.plan(&self.snapshot, &mut self.decisions);
        for (task, decision) in self.roster.tasks.iter().zip(&self.decisions) {
            task.bell.row.decide(decision);
        }
        self.ranks.clear();
        for &number in self.order.rank(&self.decisions) {
            let level = if self.decisions[number].is_eligible { Level::FIRST } else { Level::LAST };
            self.ranks.push((self.snapshot.tasks[number].task, level));
        }
        core.queue.publish(&self.ranks);
        // A signal that came behind the snapshot counts all the same.
        for (number, _) in self.decisions.iter().enumerate().filter(|(_, decision)| !decision.is_eligible) {
            let row = &self.roster.tasks[number].bell.row;
            core.queue.raise(self.snapshot.tasks[number].task, || match row.did.blocked.get() {
                0 => row.level(),
                _ => Level::LAST,
            });
        }
        core.epoch.epochs.add(1);
        core.epoch.planning_ns.add(now_ns().saturating_sub(now));
    }

    /// Rolls the counters up. Whether any task has run since the last time.
    pub(crate) fn roll(&mut self, core: &Core, now: u64) -> bool {
        self.refresh(core);
        let (cpu_ns, busy_ns) = (core.cpu_ns.load(Ordering::Relaxed), core.busy_ns.load(Ordering::Relaxed));
        let cpu_share = (cpu_ns - self.cpu_ns) as f64 / (busy_ns - self.busy_ns) as f64;
        (self.cpu_ns, self.busy_ns) = (cpu_ns, busy_ns);
        let elapsed_ns = now.saturating_sub(self.rolled_ns).max(1);
        self.rolled_ns = now;
        let mut ran = false;
        for (bell, past) in &mut self.pasts {
            let did = &bell.row.did;
            let reading = Reading {
                rows_in: did.rows_in.get(),
                rows_out: did.rows_out.get(),
                runs: did.runs.get(),
                busy_ns: did.busy_ns.get(),
            };
            past.rollup.add(reading, now, cpu_share);
            let time_share = (reading.busy_ns - past.busy_ns) as f64 / elapsed_ns as f64;
            bell.row.roll(past.rollup.cost_ns(), past.rollup.selectivity(), time_share);
            past.busy_ns = reading.busy_ns;
            if reading.runs != past.runs {
                past.runs = reading.runs;
                ran = true;
            } else if core.trims && past.trimmed_at.is_none_or(|at| reading.runs > at + 1) && reading.runs > 0
            {
                // It has run since it was asked last, apart from giving memory back, and has been idle for a while.
                past.trimmed_at = Some(reading.runs);
                bell.ask_to_trim();
                ran = true;
            }
        }
        for (query, (_, before)) in self.roster.queries.iter().zip(&mut self.rows) {
            let rows = query.account.rows().rows_in;
            let rate = (rows - *before) as f64 * 1e9 / elapsed_ns as f64;
            query.rate.set(rate.to_bits());
            *before = rows;
        }
        core.epoch.rolling_ns.add(now_ns().saturating_sub(now));
        ran
    }
}
