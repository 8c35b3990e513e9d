//! From the task table to ranks, and from counters to costs.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use penstock_queue::schedule::TaskId;
use penstock_scheduler::profile::Reading;
use penstock_scheduler::{Dispatcher, PolicyKind, QueryView, Rollup, Snapshot, TaskView};

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
    dispatcher: Dispatcher,
    roster: Arc<Roster>,
    snapshot: Snapshot,
    pasts: Vec<(Arc<Bell>, Past)>,
    rolled_ns: u64,
    rows: Vec<(u64, u64)>,
    cpu_ns: u64,
    busy_ns: u64,
}

impl Planner {
    pub(crate) fn new(policy: PolicyKind) -> Self {
        Self::with(Dispatcher::new(policy))
    }

    pub(super) fn with(dispatcher: Dispatcher) -> Self {
        Self {
            dispatcher,
            roster: Arc::default(),
            snapshot: Snapshot::default(),
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
            .map(|query| QueryView { id: query.id, ..QueryView::default() })
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
            // A roster may be older or newer than its tasks: some have no place yet, and that of others is another's.
            view.task = task.bell.task().unwrap_or(TaskId::MAX);
            task.bell.row.refresh(view);
            view.part = task.part.as_ref().map(Part::view);
        }
    }

    /// Ranks all tasks, as they stand at `now`.
    pub(crate) fn plan(&mut self, core: &Core, now: u64) {
        self.refresh(core);
        self.snapshot.now_ns = now;
        self.fill();
        let tasks = &self.roster.tasks;
        let row = |index: usize| &tasks[index].bell.row;
        self.dispatcher.dispatch(&mut self.snapshot, row, &core.rules, &*core.queue);
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
