//! What idle queries cost those at work: one query that is never idle and one that is paced, alone and beside many that
//! wait for rows that never come.
//!
//! `cargo bench -p penstock-benches --bench idle_queries`
//!
//! - `planning`: time spent on plans and roll-ups, as a part of one core
//! - `p99`: the 99th percentile of the latency of the paced query
//! - `submit`, `end`: the median of 100 queries, with ten others and with all of them
//!
//! Idle queries by `PENSTOCK_BENCH_QUERIES` (10,000), seconds of each measurement by `PENSTOCK_BENCH_SECONDS` (4).

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use penstock_benches::settings::number;
use penstock_engine::{
    Aggregate, Engine, EngineOptions, FEED_BATCHES, Feed, Input, Plan, Query, Replay, Sink, feed,
};
use penstock_expr::Expr;
use penstock_operators::aggregates::AggregateKind;
use penstock_types::Span;

const WORKERS: usize = 2;
/// Queries of one median.
const SAMPLES: usize = 100;
const PACED_ROWS_PER_SECOND: f64 = 100_000.0;
const BATCH_ROWS: i64 = 10_000;
const WARM_UP: Duration = Duration::from_millis(1_500);
const EVER: Duration = Duration::from_secs(60);

/// Counts of rows by key.
fn counts() -> Plan {
    let schema = Schema::new(["t", "k"].map(|name| Field::new(name, DataType::Int64, false)).to_vec());
    let count = Aggregate { kind: AggregateKind::Count, input: None, name: None };
    let stream = Plan::stream(&schema, Some("t"), Span::Ticks(0)).expect("the columns are there");
    let key = vec![Expr::column("k")];
    stream.tumbling(Span::Ticks(1_000), key, vec![count]).expect("the plan is valid")
}

fn submit_replay(engine: &Engine, rows_per_second: Option<f64>) -> Query {
    let times = Arc::new(Int64Array::from_iter_values(0..BATCH_ROWS)) as ArrayRef;
    let keys = Arc::new(Int64Array::from_iter_values((0..BATCH_ROWS).map(|row| row % 100))) as ArrayRef;
    let batch = RecordBatch::try_from_iter([("t", times), ("k", keys)]).expect("the columns are alike");
    let replay = Replay { batches: Arc::from([batch]), rows_per_second, rounds: None };
    engine.submit(&counts(), Input::replay(replay), Sink::discard(), None).expect("the plan is valid")
}

/// A query that waits for what is pushed to it.
struct Idle {
    query: Query,
    _feed: Feed,
}

impl Idle {
    fn submit(engine: &Engine) -> Self {
        let (feed, end) = feed(FEED_BATCHES);
        let query = engine.submit(&counts(), Input::feed(end), Sink::discard(), None);
        Self { query: query.expect("there is room for it"), _feed: feed }
    }

    fn end(self) {
        self.query.stop();
        assert!(self.query.wait(EVER), "a query that is stopped ends");
    }
}

/// Prints what planning costs and how long rows of the paced query take.
fn print_beside(what: &str, engine: &Engine, paced: &Query, measured: Duration) {
    thread::sleep(WARM_UP);
    paced.clear_latencies();
    let before = engine.metrics();
    thread::sleep(measured);
    let after = engine.metrics();
    let planning_ns = after.planning_ns - before.planning_ns + after.rolling_ns - before.rolling_ns;
    let share = planning_ns as f64 / 1e9 / (after.seconds - before.seconds);
    let p99_ms = paced.metrics().event_latency.p99_ns as f64 / 1e6;
    println!("{what:<32} planning {:>8.4} %   p99 {p99_ms:>10.3} ms", share * 100.0);
}

fn median_us(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6
}

/// Prints what it costs to submit and to end a query beside those that are there.
fn print_coming_and_going(what: &str, engine: &Engine) -> (f64, f64) {
    let (mut submits, mut ends) = (Vec::new(), Vec::new());
    for _ in 0..SAMPLES {
        let began = Instant::now();
        let query = Idle::submit(engine);
        submits.push(began.elapsed());
        let began = Instant::now();
        query.end();
        ends.push(began.elapsed());
    }
    let (submit, end) = (median_us(submits), median_us(ends));
    println!("{what:<32} submit {submit:>9.1} µs   end {end:>10.1} µs");
    (submit, end)
}

fn main() {
    let idle = number("PENSTOCK_BENCH_QUERIES", 10_000) as usize;
    let measured = Duration::from_secs(number("PENSTOCK_BENCH_SECONDS", 4));
    let options = EngineOptions { workers: Some(WORKERS), ..EngineOptions::default() };
    let engine = Engine::start(options).expect("threads can be started");
    let _busy = submit_replay(&engine, None);
    let paced = submit_replay(&engine, Some(PACED_ROWS_PER_SECOND));
    println!("idle_queries: {idle} beside a busy and a paced one, {WORKERS} workers");
    print_beside("alone", &engine, &paced, measured);
    let mut waiting: Vec<Idle> = (0..10).map(|_| Idle::submit(&engine)).collect();
    let few = print_coming_and_going("with 10 others", &engine);
    waiting.extend((waiting.len()..idle).map(|_| Idle::submit(&engine)));
    print_beside("with all others", &engine, &paced, measured);
    let many = print_coming_and_going("with all others", &engine);
    println!("{:<32} submit {:>9.2}      end {:>10.2}", "ratio", many.0 / few.0, many.1 / few.1);
    waiting.into_iter().for_each(Idle::end);
    print_beside("after they have ended", &engine, &paced, measured);
}
