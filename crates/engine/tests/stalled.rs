//! A sink that takes nothing for a minute: memory stays within the budget, and every row arrives afterwards.
//!
//! `PENSTOCK_STALL_SECONDS` changes how long the sink stalls. The only test of this binary, so that the resident size
//! is its own.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
#![cfg(target_os = "linux")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use penstock_engine::{
    Chaining, Deliver, Doorbell, Engine, EngineOptions, FEED_BATCHES, Input, Plan, Pushed, RunOptions, Sink,
    feed,
};
use penstock_expr::{BinaryOp, Expr, Literal};
use penstock_types::Span;

const BUDGET_BYTES: usize = 64 << 20;
const SLACK_BYTES: usize = 64 << 20;
const BATCH_ROWS: i64 = 100_000;
/// After the stall: more than the budget holds, so that the engine has to go on to take it all.
const BATCHES_AFTER: u64 = 50;

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// Takes batches once it is open, and checks that no row is missing or out of order.
struct Stalling {
    open: Arc<AtomicBool>,
    next: Arc<Mutex<i64>>,
}

impl Deliver for Stalling {
    fn deliver(&mut self, batch: RecordBatch) -> Option<RecordBatch> {
        if !self.open.load(Ordering::Acquire) {
            return Some(batch);
        }
        let mut next = self.next.lock().unwrap();
        for id in batch.column_by_name("id").unwrap().as_primitive::<Int64Type>().values() {
            assert_eq!(*id, *next);
            *next += 2;
        }
        None
    }
}

fn stall(chain: Chaining, seconds: u64) {
    let schema = Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("a", DataType::Int64, false),
        Field::new("b", DataType::Int64, true),
    ]);
    let even = Expr::column("id")
        .binary(BinaryOp::from_symbol("%").unwrap(), Expr::literal(Literal::Int(2)))
        .unwrap()
        .binary(BinaryOp::Equal, Expr::literal(Literal::Int(0)))
        .unwrap();
    let plan = Plan::stream(&Arc::new(schema), None, Span::Ticks(0)).unwrap().filter(even).unwrap();
    let options = RunOptions { chain, budget_bytes: Some(BUDGET_BYTES), ..RunOptions::default() };
    let (open, next) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(0)));
    let deliver = Box::new(Stalling { open: Arc::clone(&open), next: Arc::clone(&next) });

    let batch = |number: u64| {
        let first = number as i64 * BATCH_ROWS;
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(first..first + BATCH_ROWS));
        let columns = [("id", Arc::clone(&ids)), ("a", Arc::clone(&ids)), ("b", ids)];
        RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, column)| (name, column, name == "b")),
        )
        .unwrap()
    };
    let engine = Engine::start(EngineOptions { run: options, ..EngineOptions::default() }).unwrap();
    let doorbell = Doorbell::default();
    let (mut feed, end) = feed(FEED_BATCHES);
    let query =
        engine.submit(&plan, Input::feed(end), Sink::deliver(deliver, doorbell.clone()), None).unwrap();
    let taken = Arc::new(AtomicU64::new(0));
    let stop_at = Arc::new(AtomicU64::new(u64::MAX));
    let before = resident_bytes();
    let feeding = {
        let (taken, stop_at) = (Arc::clone(&taken), Arc::clone(&stop_at));
        thread::spawn(move || {
            let mut number = 0;
            while number < stop_at.load(Ordering::Acquire) {
                let mut waiting = batch(number);
                loop {
                    match feed.push(waiting, Duration::from_millis(50)) {
                        Pushed::Taken => break,
                        Pushed::Full(back) => waiting = back,
                        other => panic!("the job has ended early: {other:?}"),
                    }
                }
                number += 1;
                taken.store(number, Ordering::Release);
            }
            number
        })
    };

    let started = Instant::now();
    let mut most = 0;
    let mut taken_halfway = 0;
    while started.elapsed() < Duration::from_secs(seconds) {
        most = most.max(resident_bytes() - before.min(resident_bytes()));
        assert!(most <= BUDGET_BYTES + SLACK_BYTES, "{most} bytes more than at the start");
        if started.elapsed() < Duration::from_secs(seconds) / 2 {
            taken_halfway = taken.load(Ordering::Acquire);
        }
        thread::sleep(Duration::from_millis(20));
    }
    let taken_by_then = taken.load(Ordering::Acquire);
    assert_eq!(taken_by_then, taken_halfway, "a stalled sink holds the source up");
    println!(
        "{chain:?}: {taken_by_then} batches taken in, at most {} MiB more than at the start",
        most >> 20
    );

    stop_at.store(taken_by_then + BATCHES_AFTER, Ordering::Release);
    open.store(true, Ordering::Release);
    doorbell.ring();
    let batches = feeding.join().unwrap();
    assert!(query.wait(Duration::from_secs(60)));
    let output = query.take_output().unwrap();
    assert_eq!(output.rows_in, batches * BATCH_ROWS as u64);
    assert_eq!(*next.lock().unwrap(), batches as i64 * BATCH_ROWS);
    assert!(output.memory.peak_used_bytes <= BUDGET_BYTES as u64);
}

#[test]
fn a_stalled_sink_holds_the_source_up_and_loses_nothing() {
    let seconds = std::env::var("PENSTOCK_STALL_SECONDS").ok().map_or(60, |text| text.parse().unwrap());
    stall(Chaining::Auto, seconds);
    stall(Chaining::Off, (seconds / 6).max(6));
}
