//! Jobs: every way in which a worker ends, and what its feed says then.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use penstock_engine::job::Pushed;
use penstock_engine::{Feed, Job, Pipeline, Plan, RunError};
use penstock_expr::{BinaryOp, Expr, Literal};
use penstock_types::Span;

/// Longer than anything here takes: a test that waits so long has failed.
const EVER: Duration = Duration::from_secs(20);
const BRIEFLY: Duration = Duration::from_millis(20);

fn plan() -> Plan {
    let schema = Schema::new(vec![Field::new("x", DataType::Int64, true)]);
    let inverse = Expr::literal(Literal::Int(10)).binary(BinaryOp::FloorDivide, Expr::column("x")).unwrap();
    Plan::stream(&schema, None, Span::Ticks(0))
        .unwrap()
        .with_columns(vec![inverse.alias("inverse").unwrap()])
        .unwrap()
}

fn start() -> (Feed, Job) {
    Job::start(Pipeline::new(&plan()).unwrap()).unwrap()
}

fn batch(values: Vec<i64>) -> RecordBatch {
    RecordBatch::try_from_iter([("x", Arc::new(Int64Array::from(values)) as ArrayRef)]).unwrap()
}

/// Pushes until the feed says that the worker has ended.
fn push_until_ended(feed: &mut Feed, batch: &RecordBatch) {
    let started = Instant::now();
    while !matches!(feed.push(batch.clone(), BRIEFLY), Pushed::Ended) {
        assert!(started.elapsed() < EVER, "the feed never said that the worker had ended");
    }
}

#[test]
fn dropping_the_feed_finishes_the_job() {
    let (mut feed, job) = start();
    for _ in 0..20 {
        let mut left = Some(batch(vec![1, 2, 3]));
        while let Some(batch) = left.take() {
            match feed.push(batch, EVER) {
                Pushed::Taken => {}
                Pushed::Full(back) => left = Some(back),
                Pushed::Ended => panic!("the worker ended early"),
            }
        }
    }
    assert!(!job.wait(BRIEFLY), "the input is not over yet");
    drop(feed);
    assert!(job.wait(EVER));
    let started = Instant::now();
    assert!(job.wait(EVER), "a job that has ended stays so");
    assert!(started.elapsed() < EVER / 2, "nobody waits for what has happened");
    let output = job.join().unwrap();
    assert_eq!((output.rows_in, output.rows_out(), output.batches_in), (60, 60, 20));
}

#[test]
fn a_job_without_input_gives_an_empty_answer() {
    let (feed, job) = start();
    drop(feed);
    let output = job.join().unwrap();
    assert_eq!((output.rows_in, output.rows_out(), output.batches_in), (0, 0, 0));
}

#[test]
fn stop_ends_a_worker_that_waits_for_input() {
    let (mut feed, job) = start();
    assert!(matches!(feed.push(batch(vec![1]), EVER), Pushed::Taken));
    assert!(!job.wait(BRIEFLY));
    job.stop();
    assert!(job.wait(EVER), "the worker did not hear of the stop");
    push_until_ended(&mut feed, &batch(vec![1]));
    assert!(matches!(job.join(), Err(RunError::Stopped)));
}

#[test]
fn stop_ends_a_worker_in_the_middle_of_a_batch() {
    let (mut feed, job) = start();
    let large = batch(vec![3; 400_000]);
    while matches!(feed.push(large.clone(), Duration::ZERO), Pushed::Taken) {}
    job.stop();
    assert!(job.wait(EVER));
    push_until_ended(&mut feed, &large);
    assert!(matches!(job.join(), Err(RunError::Stopped)));
}

#[test]
fn a_full_feed_gives_the_batch_back() {
    let (mut feed, job) = start();
    let large = batch(vec![3; 400_000]);
    let mut taken = 0;
    // The queue holds a few; the worker is slower than a loop that only pushes.
    let back = loop {
        match feed.push(large.clone(), Duration::ZERO) {
            Pushed::Taken => taken += 1,
            Pushed::Full(back) => break back,
            Pushed::Ended => panic!("the worker ended early"),
        }
        assert!(taken < 10_000, "the queue has no end");
    };
    assert_eq!(back, large);
    let mut left = Some(back);
    while let Some(batch) = left.take() {
        if let Pushed::Full(back) = feed.push(batch, EVER) {
            left = Some(back);
        }
    }
    drop(feed);
    assert_eq!(job.join().unwrap().batches_in, taken + 1);
}

#[test]
fn an_error_in_the_middle_of_the_input_is_the_result() {
    let (mut feed, job) = start();
    assert!(matches!(feed.push(batch(vec![1, 2]), EVER), Pushed::Taken));
    assert!(matches!(feed.push(batch(vec![1, 0]), EVER), Pushed::Taken));
    push_until_ended(&mut feed, &batch(vec![1]));
    assert!(job.wait(EVER));
    assert!(matches!(feed.push(batch(vec![1]), EVER), Pushed::Ended));
    match job.join() {
        Err(RunError::Compute { operator, .. }) => assert_eq!(operator, "with_columns"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_batch_that_does_not_fit_is_the_result() {
    let (mut feed, job) = start();
    let strings: ArrayRef = Arc::new(StringArray::from(vec!["1"]));
    let wrong = RecordBatch::try_from_iter([("x", strings)]).unwrap();
    assert!(matches!(feed.push(batch(vec![1]), EVER), Pushed::Taken));
    push_until_ended(&mut feed, &wrong);
    match job.join() {
        Err(RunError::Batch { number, error }) => assert_eq!((number, error.column.as_str()), (1, "x")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn dropping_the_job_ends_its_worker() {
    let (mut feed, job) = start();
    let held = batch(vec![5; 1_000]);
    assert!(matches!(feed.push(held.clone(), EVER), Pushed::Taken));
    let started = Instant::now();
    drop(job);
    assert!(started.elapsed() < EVER);
    // The worker is gone and has let go of the queue.
    assert!(matches!(feed.push(held, EVER), Pushed::Ended));
}

#[test]
fn a_worker_that_ended_lets_go_of_its_batches() {
    let values = Int64Array::from(vec![5; 1_000]);
    let held: ArrayRef = Arc::new(values.clone());
    let (mut feed, job) = start();
    for _ in 0..3 {
        let batch = RecordBatch::try_from_iter([("x", Arc::clone(&held))]).unwrap();
        assert!(matches!(feed.push(batch, EVER), Pushed::Taken));
    }
    drop((feed, held));
    let output = job.join().unwrap();
    assert_eq!(output.rows_out(), 3_000);
    assert_eq!(values.values().inner().strong_count(), 1, "results own their memory");
}
