//! Tests of the planner from inside: what a snapshot shows of the tasks, and how long planning takes.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use penstock_expr::Expr;
use penstock_operators::aggregates::AggregateKind;
use penstock_scheduler::{Decision, Policy, Quantum, Snapshot};
use penstock_types::Span;

use super::epoch::{LONGEST_EPOCH_NS, epoch_ns};
use super::planner::Planner;
use super::*;
use crate::plan::Aggregate;

/// Longer than anything here takes: a test that waits so long has failed.
const EVER: Duration = Duration::from_secs(30);

/// Counts of rows by key, of a replay that never ends.
fn submit_busy(engine: &Engine) -> Query {
    let schema = Schema::new(["t", "k"].map(|name| Field::new(name, DataType::Int64, false)).to_vec());
    let count = Aggregate { kind: AggregateKind::Count, input: None, name: None };
    let stream = Plan::stream(&schema, Some("t"), Span::Ticks(0)).unwrap();
    let plan = stream.tumbling(Span::Ticks(1000), vec![Expr::column("k")], vec![count]).unwrap();
    let times = Arc::new(Int64Array::from_iter_values(0..10_000)) as ArrayRef;
    let batch = RecordBatch::try_from_iter([("t", Arc::clone(&times)), ("k", times)]).unwrap();
    let replay = Replay { batches: Arc::from([batch]), rows_per_second: None, rounds: None };
    engine.submit(&plan, Input::Replay(replay), Sink::Discard, None).unwrap()
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
    let mut planner = Planner::with_policy(Box::new(HeldUp(held_up)));
    let (mut plans, started) = (0, Instant::now());
    while plans < 5 {
        assert!(started.elapsed() < EVER, "no task was ever ready");
        let cost_ns = planner.plan(engine.0.core(), now_ns());
        if cost_ns == 0 {
            continue; // no task was ready
        }
        plans += 1;
        assert!(u128::from(cost_ns) < held_up.as_nanos() / 4, "{cost_ns} ns for a plan of a few tasks");
        assert!(epoch_ns(cost_ns) <= LONGEST_EPOCH_NS);
    }
}
