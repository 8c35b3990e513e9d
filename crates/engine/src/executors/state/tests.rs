//! Plans that walk active groups alone, rows that are reserved, and plans beside queries that come and go.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use penstock_scheduler::{Decision, Dispatcher, Policy, Quantum, Snapshot};

use super::*;
use crate::executors::epoch::{LONGEST_EPOCH_NS, epoch_ns};
use crate::executors::meter::cpu_time;
use crate::executors::planner::Planner;
use crate::executors::tests::{EVER, StubQuery, await_that};

fn options() -> EngineOptions {
    EngineOptions { workers: Some(1), ..EngineOptions::default() }
}

/// An executor, as itself and as queries see it.
fn both(executor: Arc<StateExecutor>) -> (Arc<StateExecutor>, Arc<dyn Executor>) {
    (Arc::clone(&executor), executor)
}

/// A query whose only task is never idle.
fn busy(executor: &Arc<dyn Executor>, id: u64) -> Arc<StubQuery> {
    let query = StubQuery::new(executor, id, vec![Arc::default()]);
    query.desks[0].is_busy.store(true, Ordering::Relaxed);
    query.reserve();
    Arc::clone(executor).install(query.group()).unwrap();
    query.bell(0).ring();
    query
}

#[test]
fn plans_and_roll_ups_walk_the_tasks_at_work_and_no_idle_ones() {
    const IDLE: u64 = 10_000;
    let (executor, queries) = both(StateExecutor::start(&options(), u64::MAX).unwrap());
    // Two of them: a plan is made while a task waits.
    let busy = [1, 2].map(|id| busy(&queries, id));
    let idle: Vec<_> = (3..3 + IDLE).map(|id| StubQuery::install(&queries, id, 1)).collect();
    await_that("the idle ones to rest", || executor.shared.planner().active() == busy.len());
    let walked = || executor.shared.planner().walked();
    let few = IDLE / 10;

    let (before, epochs) = (walked(), executor.metrics().epochs);
    await_that("some plans", || executor.metrics().epochs > epochs + 20);
    assert!((1..few).contains(&(walked() - before)), "{}", walked() - before);

    // Those that come and go cost as much as they are.
    let before = walked();
    for id in 0..20 {
        let guest = StubQuery::install(&queries, 3 + IDLE + id, 2);
        guest.give(0, 1);
        await_that("a run of the guest", || guest.done(0) > 0);
        guest.end();
    }
    assert!(walked() - before < few, "{}", walked() - before);

    // An idle one that gets something to do is ranked and runs, and rests afterwards.
    let woken = &idle[idle.len() / 2];
    woken.give(0, 5);
    await_that("a run of an idle one", || woken.done(0) >= 5);
    await_that("it to rest again", || executor.shared.planner().active() == busy.len());

    busy.iter().for_each(|query| query.end());
    idle.iter().for_each(|query| query.end());
    queries.stop();
}

#[test]
fn a_task_that_wakes_while_its_group_comes_to_rest_is_ranked() {
    let (_, queries) = both(StateExecutor::start(&options(), u64::MAX).unwrap());
    let busy = busy(&queries, 1);
    let query = StubQuery::install(&queries, 2, 1);
    // Around the time of the second roll-up after a run, which takes the group off the list.
    for round in 0..20 {
        let before = query.done(0);
        query.give(0, 1);
        await_that("a run", || query.done(0) > before);
        thread::sleep(Duration::from_millis(90 + round));
        query.bell(0).ring();
        await_that("another run", || query.done(0) > before + 1);
    }
    busy.end();
    query.end();
    queries.stop();
}

/// Returns which tasks of the last plan read each of them.
fn downstream(executor: &StateExecutor) -> Vec<Vec<usize>> {
    let mut planner = executor.shared.planner();
    planner.plan(now_ns(), &executor.rules, executor, &executor.queue);
    planner.planned().iter().map(|task| task.downstream.to_vec()).collect()
}

#[test]
fn a_plan_knows_which_active_queries_read_a_shared_source() {
    let (executor, queries) = both(StateExecutor::new(&options(), u64::MAX));
    let source = StubQuery::install(&queries, 1, 1);
    let install = |id, reads| {
        let query = StubQuery::reading(&queries, id, vec![Arc::default(), Arc::default()], reads);
        query.reserve();
        Arc::clone(&queries).install(query.group()).unwrap();
        query
    };
    let readers = [install(2, vec![1]), install(3, vec![1])];
    let other = install(4, Vec::new());
    let all: [&[usize]; 7] = [&[1, 3], &[2], &[], &[4], &[], &[6], &[]];
    assert_eq!(downstream(&executor), all);
    // Those that rest are left out, and those that have ended.
    let roll = || executor.shared.planner().roll(now_ns(), &executor.shared.cpu, false);
    assert!(!roll());
    assert!(downstream(&executor).is_empty());
    source.bell(0).ring();
    readers[1].bell(1).ring();
    assert_eq!(downstream(&executor), [&[1][..], &[2], &[]]);
    other.bell(0).ring();
    queries.remove(3);
    assert_eq!(downstream(&executor), [&[][..], &[2], &[]]);
}

#[test]
fn rows_that_are_reserved_and_not_used_are_free_again() {
    let executor = StateExecutor::new(&options(), u64::MAX);
    let most = MOST_TASKS;
    let tasks = |count| vec![TaskInputs { inputs: 1, least_rows: 1 }; count];
    let all = executor.reserve(&tasks(most - 1)).unwrap();
    let refused = executor.reserve(&tasks(2)).map(|reserved| reserved.len());
    assert!(matches!(refused, Err(StartError::TooManyTasks { most }) if most == MOST_TASKS), "{refused:?}");
    assert_eq!(executor.reserve(&tasks(1)).unwrap().len(), 1, "the one of the two that there was room for");
    drop(all);
    assert_eq!(executor.reserve(&tasks(most)).unwrap().len(), most);
}

/// A policy that is kept from going on, as one is whose thread gets no processor.
struct HeldUp(Duration);

impl Policy for HeldUp {
    fn name(&self) -> &'static str {
        "held up"
    }

    fn plan(&mut self, snapshot: &Snapshot, decisions: &mut Vec<Decision>) {
        thread::sleep(self.0);
        let quantum = Quantum::of_rows(2048);
        let decision = Decision { priority: 1.0, threshold_rows: 1, is_eligible: true, quantum };
        decisions.clear();
        decisions.resize(snapshot.tasks.len(), decision);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn an_epoch_is_no_longer_for_a_plan_that_was_held_up() {
    let (executor, queries) = both(StateExecutor::new(&options(), u64::MAX));
    let held_up = Duration::from_millis(20);
    let dispatcher = Dispatcher::with_policy(Box::new(HeldUp(held_up)));
    let mut planner = Planner::new(dispatcher, &executor.shared.arrivals);
    let _queries: Vec<_> = (1..5).map(|id| busy(&queries, id)).collect();
    for _ in 0..5 {
        let plan = || planner.plan(now_ns(), &executor.rules, &*executor, &executor.queue);
        let ((), cost_ns) = cpu_time(plan);
        assert!(u128::from(cost_ns) < held_up.as_nanos() / 4, "{cost_ns} ns for a plan of a few tasks");
        assert!(epoch_ns(cost_ns) <= LONGEST_EPOCH_NS);
    }
    assert_eq!(planner.planned().len(), 4);
}

/// Calls `work` while a thread makes one plan after the other; `work` gets a function that returns which tasks are ranked
/// by a plan that is begun and ended from then on.
fn beside_plans(executor: &StateExecutor, work: impl FnOnce(&dyn Fn() -> Vec<TaskId>)) {
    thread::scope(|scope| {
        let (tell, told) = mpsc::sync_channel(1);
        let (done, is_done) = mpsc::channel::<()>();
        scope.spawn(move || {
            while is_done.try_recv() == Err(mpsc::TryRecvError::Empty) {
                let mut planner = executor.shared.planner();
                planner.plan(now_ns(), &executor.rules, executor, &executor.queue);
                let _ = tell.try_send(planner.planned().iter().map(|task| task.task).collect());
            }
        });
        let _ends = done; // also when `work` panics
        work(&|| {
            while told.try_recv().is_ok() {}
            told.recv_timeout(EVER).expect("plans are made"); // it may have begun before
            told.recv_timeout(EVER).expect("plans are made")
        });
    });
}

#[test]
fn tasks_are_ranked_although_a_plan_was_made_while_they_came() {
    let (executor, queries) = both(StateExecutor::new(&options(), u64::MAX));
    let mut running = Vec::new();
    beside_plans(&executor, |ranked| {
        for id in 1..20 {
            running.push(StubQuery::install(&queries, id, 3));
            let ranked = ranked();
            assert!(!ranked.contains(&TaskId::MAX), "{ranked:?}");
            assert_eq!(ranked.len(), executor.queue.live());
        }
    });
}

#[test]
fn a_task_is_not_ranked_as_the_one_that_had_its_place_before() {
    let (executor, queries) = both(StateExecutor::start(&options(), u64::MAX).unwrap());
    let first = StubQuery::install(&queries, 1, 2);
    // Its first task ends, and the second one goes on.
    first.desks[0].ends.store(true, Ordering::Release);
    first.bell(0).ring();
    await_that("the end of a task", || executor.queue.live() == 1);
    let second = StubQuery::install(&queries, 2, 3);
    assert!(second.places().contains(&first.places()[0]), "a place is used again");
    beside_plans(&executor, |ranked| {
        second.bell(0).ring();
        first.bell(1).ring();
        let ranked: Vec<_> = ranked().into_iter().filter(|&task| task != TaskId::MAX).collect();
        assert_eq!(ranked.iter().collect::<HashSet<_>>().len(), ranked.len(), "{ranked:?}");
    });
    first.end();
    second.end();
    queries.stop();
}
