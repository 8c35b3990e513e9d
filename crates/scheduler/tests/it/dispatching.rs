//! A dispatcher, the rules and the loop of a worker in virtual time: what an engine and a simulator have in common.
#![cfg(not(any(loom, shuttle)))]

use std::sync::Arc;

use penstock_queue::log::Work;
use penstock_queue::schedule::{Level, TaskId};
use penstock_scheduler::profile::Counter;
use penstock_scheduler::table::{Pending, TaskRow};
use penstock_scheduler::worker::{Handed, Host, turn};
use penstock_scheduler::{
    Decision, Dispatcher, Policy, PolicyKind, Quantum, ReadyTasks, Rules, Snapshot, SortedTasks, TaskView,
};

const MS: u64 = 1_000_000;

/// One of the tasks: what a row costs, and how many wait.
struct Desk {
    row: TaskRow,
    cost_ns: u64,
    rows: Arc<Counter>,
    longest_gap_ns: u64,
    began_ns: Vec<u64>,
}

/// Rows that arrive as fast as a worker alone would take them: what waits, what waited at first, and the time between two.
struct Waits(Arc<Counter>, u64, u64);

impl Pending for Waits {
    fn work(&self) -> Work {
        Work { rows: self.0.get(), signals: 0 }
    }

    fn arrived_ns(&self) -> Option<u64> {
        Some((self.1 - self.0.get()) * self.2)
    }
}

/// One worker in virtual time.
struct Virtual {
    desks: Vec<Desk>,
    rules: Rules,
    now_ns: u64,
}

impl Host<()> for Virtual {
    fn run(&mut self, id: TaskId, _: &mut ()) -> Handed {
        let desk = &mut self.desks[id as usize];
        let quantum = self.rules.quantum(&desk.row, Quantum::of_rows(u64::MAX));
        let gap_ns = self.now_ns - desk.began_ns.last().copied().unwrap_or(0);
        desk.longest_gap_ns = desk.longest_gap_ns.max(gap_ns);
        desk.began_ns.push(self.now_ns);
        let (mut rows, mut elapsed_ns) = (0, 0);
        while quantum.lasts(rows, elapsed_ns) && desk.rows.get() > 0 {
            rows += 1;
            elapsed_ns += desk.cost_ns;
            desk.rows.set(desk.rows.get() - 1);
        }
        self.now_ns += elapsed_ns.max(1);
        desk.row.did.last_run_ns.set(self.now_ns);
        let is_idle = desk.rows.get() == 0;
        desk.row.spend(elapsed_ns, !is_idle);
        if is_idle { Handed::Idle } else { Handed::Ready(self.rules.level(&desk.row)) }
    }

    fn level(&self, _: &()) -> Level {
        unreachable!("no task is woken during a run")
    }

    fn retired(&mut self, _: ()) {}
}

/// Runs tasks with so many rows at such costs for a while, with a plan at each millisecond at most.
fn simulate(make: impl Fn() -> Box<dyn Policy>, tasks: &[(u64, u64)], until_ns: u64) -> Virtual {
    let ready = SortedTasks::default();
    let desk = |&(rows, cost_ns): &(u64, u64)| {
        let (row, waiting) = (TaskRow::default(), Arc::new(Counter::default()));
        waiting.set(rows);
        row.set_pending(Box::new(Waits(Arc::clone(&waiting), rows, cost_ns)));
        row.roll(Some(cost_ns as f64), Some(1.0), 0.0);
        Desk { row, cost_ns, rows: waiting, longest_gap_ns: 0, began_ns: Vec::new() }
    };
    let mut host = Virtual { desks: tasks.iter().map(desk).collect(), rules: Rules::new(make()), now_ns: 0 };
    let mut snapshot = Snapshot { queries: vec![Default::default()], ..Snapshot::default() };
    for _ in &host.desks {
        let task = ready.add(|_| ()).unwrap();
        snapshot.tasks.push(TaskView { task, ..TaskView::default() });
        ready.wake(task, || host.rules.level(&host.desks[task as usize].row));
    }
    let (mut dispatcher, mut next, mut next_plan_ns) = (Dispatcher::with_policy(make()), None, 0);
    while host.now_ns < until_ns && ready.has_ready() {
        if host.now_ns >= next_plan_ns {
            next_plan_ns = host.now_ns + MS;
            snapshot.now_ns = host.now_ns;
            host.desks.iter().zip(&mut snapshot.tasks).for_each(|(desk, view)| desk.row.refresh(view));
            let desks = &host.desks;
            dispatcher.dispatch(&mut snapshot, |index| &desks[index].row, &host.rules, &ready);
        }
        assert!(turn(&ready, &mut next, &mut host), "a task is ready");
    }
    host
}

#[test]
fn every_policy_gives_every_task_its_turns() {
    let endless = u64::MAX / 2;
    let tasks = [(endless, 10), (endless, 20), (endless, 900), (endless, 50_000), (endless, 15)];
    for (name, kind) in PolicyKind::NAMES {
        let host = simulate(|| kind.make(), &tasks, 500 * MS);
        for (task, desk) in host.desks.iter().enumerate() {
            let last_ns = desk.began_ns.last().copied().unwrap_or(0);
            let gap_ns = desk.longest_gap_ns.max(host.now_ns - last_ns);
            assert!(gap_ns < 250 * MS, "{name}: task {task} waited {gap_ns}");
        }
    }
}

#[test]
fn a_run_is_no_longer_than_its_quantum_and_the_step_that_it_is_in() {
    let host = simulate(|| PolicyKind::default().make(), &[(1_000_000, 10), (1_000_000, 30)], 100 * MS);
    assert!(host.desks.iter().all(|desk| desk.rows.get() == 0), "all rows are done");
    let mut began: Vec<u64> = host.desks.iter().flat_map(|desk| desk.began_ns.clone()).collect();
    began.sort_unstable();
    assert!(began.windows(2).all(|pair| pair[1] - pair[0] <= MS + 30), "{began:?}");
}

/// Ranks the first task first, whatever the others wait for, and the others at a level of their own.
#[derive(Debug)]
struct Unfair;

impl Policy for Unfair {
    fn name(&self) -> &'static str {
        "unfair"
    }

    fn plan(&mut self, snapshot: &Snapshot, decisions: &mut Vec<Decision>) {
        decisions.clear();
        let quantum = Quantum::of_rows(u64::MAX);
        let decide = |(index, task)| Decision::new(task, -(index as f64), 1, quantum);
        decisions.extend(snapshot.tasks.iter().enumerate().map(decide));
    }

    fn ready(&self, task: &TaskView, _now_ns: u64) -> Level {
        // The first task is the only one whose rows cost so little.
        if task.cost_ns < Some(15.0) { Level::FIRST } else { Level::LAST }
    }

    fn has_levels(&self) -> bool {
        true
    }
}

#[test]
fn no_task_starves_although_the_policy_is_unfair() {
    let endless = u64::MAX / 2;
    let host = simulate(|| Box::new(Unfair), &[(endless, 10), (endless, 20), (endless, 30)], 200 * MS);
    for (task, desk) in host.desks.iter().enumerate() {
        assert!(desk.longest_gap_ns < 20 * MS, "task {task} waited {}", desk.longest_gap_ns);
        assert!(desk.began_ns.len() > 5, "task {task} ran {} times", desk.began_ns.len());
    }
    let [first, second, _] = &host.desks[..] else { panic!("three tasks") };
    assert!(first.began_ns.len() > 3 * second.began_ns.len(), "the first one has most turns all the same");
}
