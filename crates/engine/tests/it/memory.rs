//! The budget, the streams and the sink of a pipeline: what a user sees of memory.

use crate::running;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use penstock_engine::{
    Aggregate, Chaining, Deliver, Doorbell, Engine, EngineOptions, FEED_BATCHES, Input, Plan, Pushed,
    RunError, RunOptions, Sink, StartError, feed,
};
use penstock_expr::Expr;
use penstock_memory::{MemoryKind, OpenError};
use penstock_operators::LookupKind;
use penstock_operators::aggregates::AggregateKind;
use penstock_types::Span;
use running::run_with;

const EVER: Duration = Duration::from_secs(20);

fn stream() -> Plan {
    let schema = Schema::new(vec![
        Field::new("t", DataType::Int64, false),
        Field::new("k", DataType::Int64, true),
        Field::new("s", DataType::Utf8, true),
    ]);
    Plan::stream(&schema, Some("t"), Span::Ticks(0)).unwrap()
}

fn batch(from: i64, rows: i64, text: &str) -> RecordBatch {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(from..from + rows));
    let texts: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..rows).map(|row| format!("{row}{text}"))));
    RecordBatch::try_from_iter_with_nullable([
        ("t", Arc::clone(&numbers), false),
        ("k", numbers, true),
        ("s", texts, true),
    ])
    .unwrap()
}

fn every_way(budget_bytes: usize) -> impl Iterator<Item = RunOptions> {
    [
        (MemoryKind::Blocks, Chaining::Auto),
        (MemoryKind::Blocks, Chaining::Off),
        (MemoryKind::Queue, Chaining::Off),
    ]
    .into_iter()
    .map(move |(memory, chain)| RunOptions {
        memory,
        chain,
        budget_bytes: Some(budget_bytes),
        ..RunOptions::default()
    })
}

fn largest_per_window(size: i64) -> Plan {
    let largest = Aggregate { kind: AggregateKind::Max, input: Some(Expr::column("s")), name: None };
    stream().tumbling(Span::Ticks(size), vec![], vec![largest]).unwrap()
}

#[test]
fn long_strings_on_their_way_do_not_fail_a_small_state() {
    let text = "x".repeat(4000);
    let batches: Vec<RecordBatch> = (0..4).map(|number| batch(number * 2000, 2000, &text)).collect();
    for options in every_way(4 << 20) {
        let output = run_with(&largest_per_window(1000), &options, &batches).unwrap();
        assert_eq!(output.rows_out(), 8, "{options:?}");
    }
}

#[test]
fn state_that_outgrows_the_budget_ends_the_query_by_its_name() {
    let count = Aggregate { kind: AggregateKind::Count, input: None, name: None };
    let plan = stream().tumbling(Span::Ticks(10_000_000), vec![Expr::column("k")], vec![count]).unwrap();
    let batches: Vec<RecordBatch> = (0..100).map(|number| batch(number * 5000, 5000, "")).collect();
    for options in every_way(2 << 20) {
        match run_with(&plan, &options, &batches) {
            Err(RunError::MemoryLimit { operator, bytes, limit }) => {
                assert_eq!((operator.as_str(), limit.budget_bytes), ("window", 2 << 20));
                assert!(bytes > 1 << 20);
            }
            other => panic!("{options:?}: {other:?}"),
        }
    }
}

/// Why the plan cannot be started.
fn refusal(plan: &Plan, options: &RunOptions) -> Option<StartError> {
    let engine = Engine::start(EngineOptions { run: options.clone(), ..EngineOptions::default() }).unwrap();
    let (_feed, end) = feed(FEED_BATCHES);
    engine.submit(plan, Input::feed(end), Sink::collect(), None).err()
}

#[test]
fn what_does_not_fit_is_refused_before_anything_runs() {
    let options = RunOptions { budget_bytes: Some(20_000), ..RunOptions::default() };
    match refusal(&stream(), &options) {
        Some(StartError::Memory(OpenError::Limit(limit))) => assert_eq!(limit.budget_bytes, 20_000),
        other => panic!("{other:?}"),
    }
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100_000));
    let table = RecordBatch::try_from_iter([("k", Arc::clone(&numbers)), ("g", numbers)]).unwrap();
    let plan = stream().lookup(&table, vec!["k".to_owned()], LookupKind::Inner).unwrap();
    let options = RunOptions { budget_bytes: Some(1 << 20), ..RunOptions::default() };
    match refusal(&plan, &options) {
        Some(StartError::Table { operator, bytes, .. }) => {
            assert_eq!(operator, "lookup");
            assert!(bytes > 1 << 20);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_result_that_is_kept_leaves_the_budget_without_a_copy() {
    let batches: Vec<RecordBatch> = (0..40).map(|number| batch(number * 50_000, 50_000, "")).collect();
    let plan = stream().select(vec![Expr::column("t"), Expr::column("k")]).unwrap();
    for chain in [Chaining::Auto, Chaining::Off] {
        let options = RunOptions { chain, budget_bytes: Some(24 << 20), ..RunOptions::default() };
        let output = run_with(&plan, &options, &batches).unwrap();
        assert_eq!(output.rows_out(), 2_000_000);
        let memory = output.memory;
        // Of 17 bytes a row, 16 are shared; what the log starts with, in small blocks, is copied.
        assert!(memory.exported_bytes > 20_000_000, "{memory:?}");
        assert!(memory.used_bytes == 0 && memory.peak_used_bytes <= 24 << 20, "{memory:?}");
        let batch_rows: Vec<usize> = output.batches().iter().map(RecordBatch::num_rows).collect();
        assert!(batch_rows.len() < 200, "{batch_rows:?}");
    }
}

/// Takes everything at once.
#[derive(Clone, Default)]
struct Taken(Arc<Mutex<usize>>);

impl Deliver for Taken {
    fn deliver(&mut self, batch: RecordBatch) -> Option<RecordBatch> {
        *self.0.lock().unwrap() += batch.num_rows();
        None
    }
}

#[test]
fn results_of_a_stream_that_goes_quiet_are_delivered() {
    let taken = Taken::default();
    let engine = Engine::start(EngineOptions::default()).unwrap();
    let (mut feed, end) = feed(FEED_BATCHES);
    let sink = Sink::deliver(Box::new(taken.clone()), Doorbell::default());
    let query = engine.submit(&stream(), Input::feed(end), sink, None).unwrap();
    for number in 0..10 {
        assert!(matches!(feed.push(batch(number * 300, 300, ""), EVER), Pushed::Taken));
    }
    let started = Instant::now();
    while *taken.0.lock().unwrap() < 3000 {
        assert!(started.elapsed() < EVER, "only {} rows were delivered", taken.0.lock().unwrap());
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(feed);
    assert!(query.wait(EVER));
    assert_eq!(query.take_output().unwrap().rows_in, 3000);
}

#[test]
fn a_long_run_allocates_nothing_in_the_middle_of_its_work() {
    let batches: Vec<RecordBatch> = (0..60).map(|number| batch(number * 20_000, 20_000, "")).collect();
    let count = Aggregate { kind: AggregateKind::Count, input: None, name: None };
    let plan = stream().tumbling(Span::Ticks(1_000), vec![], vec![count]).unwrap();
    for chain in [Chaining::Auto, Chaining::Off] {
        let options = RunOptions { chain, ..RunOptions::default() };
        let output = run_with(&plan, &options, &batches).unwrap();
        assert_eq!(output.memory.inline_allocations, 0, "{:?}", output.memory);
        assert!(output.event_latency.count > 0);
    }
}
