//! Tests of the planner from inside: what a snapshot shows of the tasks, and how long planning takes.

use std::collections::HashSet;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use penstock_expr::Expr;
use penstock_operators::aggregates::AggregateKind;
use penstock_queue::schedule::TaskId;
use penstock_scheduler::{Decision, Dispatcher, Policy, Quantum, Snapshot};
use penstock_types::Span;

use super::epoch::{LONGEST_EPOCH_NS, cpu_time, epoch_ns};
use super::planner::Planner;
use super::*;
use crate::plan::Aggregate;

/// Longer than anything here takes: a test that waits so long has failed.
const EVER: Duration = Duration::from_secs(30);

fn schema() -> Schema {
    Schema::new(["t", "k"].map(|name| Field::new(name, DataType::Int64, false)).to_vec())
}

fn replay(rounds: Option<u64>) -> Input {
    let times = Arc::new(Int64Array::from_iter_values(0..10_000)) as ArrayRef;
    let batch = RecordBatch::try_from_iter([("t", Arc::clone(&times)), ("k", times)]).unwrap();
    Input::Replay(Replay { batches: Arc::from([batch]), rows_per_second: None, rounds })
}

/// Counts of rows by key, of a replay that never ends.
fn submit_busy(engine: &Engine) -> Query {
    let count = Aggregate { kind: AggregateKind::Count, input: None, name: None };
    let stream = Plan::stream(&schema(), Some("t"), Span::Ticks(0)).unwrap();
    let plan = stream.tumbling(Span::Ticks(1000), vec![Expr::column("k")], vec![count]).unwrap();
    engine.submit(&plan, replay(None), Sink::Discard, None).unwrap()
}

fn started(workers: usize) -> Engine {
    Engine::start(EngineOptions { workers: Some(workers), ..EngineOptions::default() }).unwrap()
}

#[test]
fn a_row_reaches_one_of_the_lanes() {
    let lanes = 3;
    let engine = started(lanes);
    submit_busy(&engine);
    submit_busy(&engine);
    let roster = engine.0.core().roster.get();
    let splitters: Vec<_> = roster.tasks.iter().filter(|task| task.downstream.len() == lanes).collect();
    assert_eq!(splitters.len(), 2, "a splitter for each query");
    for splitter in splitters {
        let parts: Vec<_> =
            splitter.downstream.iter().map(|&lane| roster.tasks[lane].part.as_ref()).collect();
        let views: Vec<_> = parts.iter().map(|part| part.expect("a lane is a part").view()).collect();
        assert!(views.iter().all(|view| view.first == splitter.downstream[0]), "{views:?}");
        let taken: f64 = views.iter().map(|view| view.share).sum();
        assert!((taken - 1.0).abs() < 1e-9, "a row is paid for once: {views:?}");
    }
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
    let engine = started(1);
    (0..4).for_each(|_| drop(submit_busy(&engine)));
    let held_up = Duration::from_millis(20);
    let mut planner = Planner::with(Dispatcher::with_policy(Box::new(HeldUp(held_up))));
    for _ in 0..5 {
        let ((), cost_ns) = cpu_time(|| planner.plan(engine.0.core(), now_ns()));
        assert!(u128::from(cost_ns) < held_up.as_nanos() / 4, "{cost_ns} ns for a plan of a few tasks");
        assert!(epoch_ns(cost_ns) <= LONGEST_EPOCH_NS);
    }
}

/// Ranks all tasks alike, and tells which it was asked to rank.
struct Tells(mpsc::SyncSender<Vec<TaskId>>);

impl Policy for Tells {
    fn name(&self) -> &'static str {
        "tells"
    }

    fn plan(&mut self, snapshot: &Snapshot, decisions: &mut Vec<Decision>) {
        HeldUp(Duration::ZERO).plan(snapshot, decisions);
        let _ = self.0.try_send(snapshot.tasks.iter().map(|task| task.task).collect());
    }
}

/// Calls `work` while somebody makes one plan after the other; `work` gets a function that returns which tasks are ranked
/// by a plan that is begun and ended from then on.
fn beside_plans(engine: &Engine, work: impl FnOnce(&dyn Fn() -> Vec<TaskId>)) {
    thread::scope(|scope| {
        let (tell, told) = mpsc::sync_channel(1);
        let (done, is_done) = mpsc::channel::<()>();
        scope.spawn(move || {
            let mut planner = Planner::with(Dispatcher::with_policy(Box::new(Tells(tell))));
            while is_done.try_recv() == Err(mpsc::TryRecvError::Empty) {
                planner.plan(engine.0.core(), now_ns());
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
    let engine = started(1);
    submit_busy(&engine);
    beside_plans(&engine, |ranked| {
        for _ in 0..20 {
            submit_busy(&engine);
            let ranked = ranked();
            assert!(!ranked.contains(&TaskId::MAX), "{ranked:?}");
            assert_eq!(ranked.len(), engine.0.core().queue.live());
        }
    });
}

#[test]
fn a_task_is_not_ranked_as_the_one_that_had_its_place_before() {
    let engine = started(1);
    let streams = ["ends", "goes on"]
        .map(|name| Plan::named_stream(Some(name), &schema(), Some("t"), Span::Ticks(0)).unwrap());
    let both = Outputs::from(&Plan::union(&streams).unwrap());
    let inputs = vec![("ends".to_owned(), replay(Some(1))), ("goes on".to_owned(), replay(None))];
    let query = engine.submit_all(&both, inputs, vec![Sink::Discard], QueryOptions::default()).unwrap();
    let (installed, began) = (query.metrics().tasks.len(), Instant::now());
    while engine.0.core().queue.live() == installed {
        assert!(began.elapsed() < EVER, "no task has ended");
        thread::yield_now();
    }
    submit_busy(&engine);
    beside_plans(&engine, |ranked| {
        let ranked: Vec<_> = ranked().into_iter().filter(|&task| task != TaskId::MAX).collect();
        assert_eq!(ranked.iter().collect::<HashSet<_>>().len(), ranked.len(), "{ranked:?}");
        assert_eq!(ranked.len(), engine.0.core().queue.live());
    });
}
