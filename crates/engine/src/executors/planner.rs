//! From active groups to ranks, and from counters to costs.
//!
//! PLANNER-1. A plan and a roll-up walk the tasks of active groups, and no others (GROUP-1).

use std::collections::BTreeMap;
use std::sync::Arc;

use penstock_queue::schedule::TaskId;
use penstock_scheduler::profile::Counter;
use penstock_scheduler::{Dispatcher, PartView, QueryView, Rules, Snapshot, TaskView};

use super::Executor;
use super::bell::Bell;
use super::cell::TaskQueue;
use super::group::{Group, GroupArrivals, Roll};
use super::meter::CpuTimes;
use penstock_tasks::share::ShareGauge;

/// Plans and rolls up, with buffers that serve again.
pub(super) struct Planner {
    dispatcher: Dispatcher,
    arrivals: Arc<GroupArrivals>,
    /// The active groups by their ids, which are in the order in which they were installed.
    active: BTreeMap<u64, Arc<Group>>,
    /// Whether other groups are active than those of the snapshot.
    is_outdated: bool,
    snapshot: Snapshot,
    /// What each task of the snapshot is refreshed from.
    tasks: Vec<Planned>,
    rolled_ns: u64,
    cpu_ns: u64,
    busy_ns: u64,
    /// Tasks that plans and roll-ups have walked.
    walked: Counter,
}

/// A task of the snapshot.
struct Planned {
    bell: Arc<Bell>,
    /// The first part of its operator, and the part of the rows that it takes.
    part: Option<(usize, Arc<ShareGauge>)>,
}

impl Planner {
    pub(super) fn new(dispatcher: Dispatcher, arrivals: &Arc<GroupArrivals>) -> Self {
        Self {
            dispatcher,
            arrivals: Arc::clone(arrivals),
            active: BTreeMap::new(),
            is_outdated: false,
            snapshot: Snapshot::default(),
            tasks: Vec::new(),
            rolled_ns: 0,
            cpu_ns: 0,
            busy_ns: 0,
            walked: Counter::default(),
        }
    }

    /// Drops what it remembers.
    pub(super) fn clear(&mut self) {
        self.arrivals.active.close();
        self.arrivals.ended.close();
        self.active.clear();
        self.tasks.clear();
        self.snapshot = Snapshot::default();
    }

    /// Returns how many tasks plans and roll-ups have walked.
    #[cfg(test)]
    pub(super) fn walked(&self) -> u64 {
        self.walked.get()
    }

    /// Returns the tasks of the last plan.
    #[cfg(test)]
    pub(super) fn planned(&self) -> &[TaskView] {
        &self.snapshot.tasks
    }

    /// Returns how many groups are active, or about to be.
    #[cfg(test)]
    pub(super) fn active(&mut self) -> usize {
        self.collect();
        self.active.len()
    }

    /// Takes groups over that have become active, and lets go of those that have ended.
    fn collect(&mut self) {
        for group in self.arrivals.active.take_all() {
            if !group.is_gone() && self.active.insert(group.id, Arc::clone(&group)).is_none() {
                self.is_outdated = true;
            }
        }
        for id in self.arrivals.ended.take_all() {
            self.is_outdated |= self.active.remove(&id).is_some();
            self.dispatcher.policy().forget(id);
        }
    }

    /// Makes the snapshot one of the active groups.
    fn rebuild(&mut self) {
        if !std::mem::take(&mut self.is_outdated) {
            return;
        }
        let Self { active, snapshot, tasks, .. } = self;
        tasks.clear();
        snapshot.tasks.clear();
        snapshot.queries.clear();
        let mut firsts = BTreeMap::new();
        for (query, group) in active.values().enumerate() {
            let first = tasks.len();
            firsts.insert(group.id, first);
            snapshot.queries.push(QueryView { id: group.id, ..QueryView::default() });
            // A shared source is installed before the queries that read it (VIEWS-1).
            for (source, reader) in &group.reads {
                if let Some(&source) = firsts.get(source) {
                    snapshot.tasks[source].downstream.push(first + reader);
                }
            }
            for (index, member) in group.members.iter().enumerate() {
                snapshot.tasks.push(TaskView {
                    query,
                    downstream: member.readers.iter().map(|reader| first + reader).collect(),
                    is_source: member.is_source,
                    ..TaskView::default()
                });
                // The parts of an operator come one after the other.
                let part = member.part.as_ref();
                let part = part.map(|(number, share)| (first + index - number, Arc::clone(share)));
                tasks.push(Planned { bell: Arc::clone(&member.bell), part });
            }
        }
        if cfg!(debug_assertions) {
            snapshot.check_order();
        }
    }

    fn refresh(&mut self, now_ns: u64) {
        self.snapshot.now_ns = now_ns;
        for (group, view) in self.active.values().zip(&mut self.snapshot.queries) {
            (view.latency_sum_ns, view.latency_count) = group.supervisor.latency_totals();
        }
        for (task, view) in self.tasks.iter().zip(&mut self.snapshot.tasks) {
            // A task that has ended has no place, or its place is another's.
            view.task = task.bell.task().unwrap_or(TaskId::MAX);
            task.bell.row.refresh(view);
            let part = task.part.as_ref();
            view.part = part.map(|(first, share)| PartView { first: *first, share: share.fraction() });
        }
        self.walked.add(self.tasks.len() as u64);
    }

    /// Ranks the tasks of active groups, as they are at `now_ns`.
    pub(super) fn plan(&mut self, now_ns: u64, rules: &Rules, executor: &dyn Executor, queue: &TaskQueue) {
        self.collect();
        self.rebuild();
        self.refresh(now_ns);
        let tasks = &self.tasks;
        let row = |index: usize| &tasks[index].bell.row;
        executor.publish(self.dispatcher.plan(&mut self.snapshot, row));
        self.dispatcher.raise(row, rules, queue);
    }

    /// Rolls the counters of active groups up. Returns whether any of their tasks has run since the last time.
    pub(super) fn roll(&mut self, now_ns: u64, times: &CpuTimes, trims: bool) -> bool {
        self.collect();
        let (cpu_ns, busy_ns) = times.get();
        let cpu_share = (cpu_ns - self.cpu_ns) as f64 / (busy_ns - self.busy_ns) as f64;
        (self.cpu_ns, self.busy_ns) = (cpu_ns, busy_ns);
        let elapsed_ns = now_ns.saturating_sub(self.rolled_ns).max(1);
        self.rolled_ns = now_ns;
        let (mut has_run, mut resting) = (false, Vec::new());
        for group in self.active.values() {
            self.walked.add(group.members.len() as u64);
            let is_at_work = group.roll(Roll { now_ns, elapsed_ns, cpu_share, trims });
            has_run |= is_at_work;
            if !is_at_work && group.rest() {
                resting.push(group.id);
            }
        }
        for id in resting {
            self.active.remove(&id);
            self.is_outdated = true;
            self.dispatcher.policy().rest(id);
        }
        if self.is_outdated {
            self.tasks.clear(); // until the next plan: what has ended is not held
        }
        has_run
    }
}
