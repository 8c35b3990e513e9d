//! The rules of a dispatcher, with policies and rows that each test makes.

use std::sync::Arc;

use penstock_queue::log::Work;
use penstock_queue::schedule::{Level, TaskId};

use super::*;
use crate::profile::Counter;
use crate::quantum::{QUANTUM_NS, Quantum};
use crate::ready::{SortedTasks, TakenTask};
use crate::table::Pending;
use crate::views::TaskView;

struct Waits(Arc<Counter>, Arc<Counter>);

impl Pending for Waits {
    fn work(&self) -> Work {
        Work { rows: self.0.get(), signals: self.1.get() }
    }

    fn arrived_ns(&self) -> Option<u64> {
        Some(7)
    }
}

fn decision(is_eligible: bool) -> Decision {
    Decision { priority: 1.0, threshold_rows: 10, is_eligible, quantum: Quantum::of_rows(100) }
}

/// A row for which the counters say what waits.
fn undecided() -> (TaskRow, Arc<Counter>, Arc<Counter>) {
    let (row, rows, signals) = (TaskRow::default(), Arc::default(), Arc::default());
    row.set_pending(Box::new(Waits(Arc::clone(&rows), Arc::clone(&signals))));
    (row, rows, signals)
}

fn row() -> (TaskRow, Arc<Counter>, Arc<Counter>) {
    let row = undecided();
    row.0.decide(&decision(true), 0);
    row
}

fn rules() -> Rules {
    Rules::new(PolicyKind::default().make())
}

#[test]
fn rows_are_worth_a_run_from_the_threshold_on_and_signals_always() {
    let ((row, rows, signals), rules) = (row(), rules());
    rows.set(9);
    assert_eq!(rules.level(&row), Level::LAST);
    rows.set(10);
    assert_eq!((rules.level(&row), row.arrived_ns()), (Level::FIRST, Some(7)));
    rows.set(0);
    signals.set(1);
    assert_eq!(rules.level(&row), Level::FIRST);
}

#[test]
fn a_task_that_has_had_a_quantum_comes_last_until_the_next_plan() {
    let ((row, rows, signals), rules) = (row(), rules());
    rows.set(1000);
    signals.set(1);
    row.spend(QUANTUM_NS / 2, false);
    assert_eq!(rules.level(&row), Level::FIRST);
    row.spend(QUANTUM_NS / 2, false);
    assert_eq!(rules.level(&row), Level::LAST, "several short runs are a long one");
    row.request_run();
    assert_eq!(rules.level(&row), Level::FIRST, "a request comes first");
    row.clear_request();
    row.decide(&decision(true), 0);
    assert_eq!(rules.level(&row), Level::FIRST);
    row.spend(1, true);
    assert_eq!(rules.level(&row), Level::LAST);
    row.restore_quantum();
    assert_eq!(rules.level(&row), Level::FIRST);
}

#[test]
fn before_the_first_plan_a_task_has_the_usual_quantum() {
    let (usual, rules) = (Quantum::of_rows(1), rules());
    let new = TaskRow::default();
    new.spend(u64::MAX, true);
    new.request_run();
    assert_eq!((rules.quantum(&new, usual), rules.level(&new)), (usual, Level::FIRST));
    assert_eq!(rules.quantum(&row().0, usual), Quantum::of_rows(100));
}

/// Has its say about levels: by the rows that wait. Never plans a task as eligible.
#[derive(Debug, Default)]
struct ByRows;

impl Policy for ByRows {
    fn name(&self) -> &'static str {
        "by rows"
    }

    fn plan(&mut self, snapshot: &Snapshot, decisions: &mut Vec<Decision>) {
        decisions.clear();
        decisions.extend(snapshot.tasks.iter().map(|task| decision(task.pending_rows >= 10)));
    }

    fn ready(&self, task: &TaskView, _now_ns: u64) -> Level {
        Level::new(7_u64.saturating_sub(task.pending_rows / 10) as u8).unwrap_or(Level::LAST)
    }

    fn has_levels(&self) -> bool {
        true
    }
}

#[test]
fn a_policy_may_decide_about_levels_but_for_requests_and_quanta() {
    let (row, rows, _) = row();
    let rules = Rules::new(Box::new(ByRows));
    rows.set(30);
    assert_eq!(rules.level(&row), Level::new(4).unwrap());
    row.spend(1, true);
    assert_eq!(rules.level(&row), Level::LAST);
    row.request_run();
    assert_eq!(rules.level(&row), Level::FIRST);
}

#[test]
fn only_a_policy_that_follows_rows_does_and_only_to_a_task_worth_it() {
    let (reader, rows, _) = row();
    let adaptive = rules();
    assert!(!adaptive.follows(&reader), "nothing waits for it");
    rows.set(10);
    assert!(adaptive.follows(&reader));
    assert!(!Rules::new(Box::new(ByRows)).follows(&reader));
    reader.spend(1, true);
    assert!(!adaptive.follows(&reader));
}

/// Tasks of one query, each with a row and so many rows waiting.
fn snapshot(waiting: &[u64]) -> (Snapshot, Vec<TaskRow>) {
    let view = |(task, &pending_rows): (usize, &u64)| TaskView {
        task: task as TaskId,
        pending_rows,
        ..TaskView::default()
    };
    let tasks: Vec<TaskView> = waiting.iter().enumerate().map(view).collect();
    let rows = tasks.iter().map(|_| TaskRow::default()).collect();
    (Snapshot { tasks, queries: vec![Default::default()], now_ns: 1 }, rows)
}

#[test]
fn a_plan_gives_levels_to_those_eligible_and_the_last_one_to_others() {
    let (mut snapshot, rows) = snapshot(&[9, 10, 30, 0]);
    let mut dispatcher = Dispatcher::with_policy(Box::new(ByRows));
    let level = |number| Level::new(number).expect("a level");
    let expected = [(0, Level::LAST), (1, level(6)), (2, level(4)), (3, Level::LAST)];
    assert_eq!(dispatcher.plan(&mut snapshot, |index| &rows[index]), expected);
    assert_eq!((rows[0].threshold_rows(), rows[0].last_known_ns()), (10, 1), "a task knows what was decided");
}

#[test]
fn a_task_that_starves_is_at_the_first_level_whatever_the_policy_says() {
    let (mut snapshot, rows) = snapshot(&[3, 3, 0, 3]);
    snapshot.now_ns = 2 * STARVED_NS;
    for (task, arrived_ns) in [STARVED_NS, STARVED_NS - 1, 0, STARVED_NS - 2].into_iter().enumerate() {
        snapshot.tasks[task].arrived_ns = arrived_ns;
    }
    let mut dispatcher = Dispatcher::with_policy(Box::new(ByRows));
    let expected = [(3, Level::FIRST), (1, Level::FIRST), (0, Level::LAST), (2, Level::LAST)];
    assert_eq!(dispatcher.plan(&mut snapshot, |index| &rows[index]), expected);
    for (_, fair) in PolicyKind::NAMES {
        let mut alone = Order::default();
        let mut decisions = Vec::new();
        fair.make().plan(&snapshot, &mut decisions);
        let by_priority: Vec<TaskId> =
            alone.rank(&decisions).iter().map(|&index| snapshot.tasks[index].task).collect();
        let mut dispatcher = Dispatcher::new(fair);
        let ranked: Vec<TaskId> =
            dispatcher.plan(&mut snapshot, |index| &rows[index]).iter().map(|(task, _)| *task).collect();
        assert_eq!(ranked, by_priority, "{fair:?} ranks by itself");
    }
}

#[test]
fn what_comes_during_a_plan_counts() {
    let (mut snapshot, _) = snapshot(&[0, 0, 0]);
    let made: Vec<_> = (0..3).map(|_| undecided()).collect();
    let ready = SortedTasks::<()>::default();
    for task in 0..3 {
        assert_eq!(ready.add(|_| ()), Some(task));
        ready.wake(task, || Level::LAST);
    }
    // After the snapshot come a signal for task 2, and one for task 1, which has no room.
    made[2].2.set(1);
    made[1].2.set(1);
    made[1].0.did.blocked.set(1);
    let mut dispatcher = Dispatcher::new(PolicyKind::default());
    dispatcher.dispatch(&mut snapshot, |index| &made[index].0, &rules(), &ready);
    let order: Vec<TaskId> = std::iter::from_fn(|| {
        let task = ready.pop()?;
        let id = task.id();
        task.idle(|_| unreachable!("it is not woken"));
        Some(id)
    })
    .collect();
    assert_eq!(order, [2, 0, 1]);
}
