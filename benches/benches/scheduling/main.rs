//! Six YSB queries on two workers, one task per operator: what each way to run them sustains, and at what latency. And
//! what the scheduling queue alone costs.
//!
//! `cargo bench -p penstock-benches --bench scheduling`, with the parts that are wanted behind `--`: `rates`, `overhead`,
//! `noop`, and `cycles`, `calls`, `publish` of the queue (see `queue.rs`); all of them by default.
//!
//! - `rates`: the highest rate that threads with row queues, and the adaptive policy with blocks, sustain with bounded
//!   latency, and the latency of both at the rate where the former saturate: the lowest that they do not sustain.
//! - `policies`: `adaptive`, `fcfs` and `rr` at the same rates. Only when it is named.
//! - `overhead`: time spent on deciding what to run as a part of the time that operators ran, as the engine measures it.
//! - `noop`: what a scheduled run costs when there is next to nothing to do.
//!
//! Rows by `PENSTOCK_BENCH_ROWS` (20 million, 1.1 GB), seconds of a trial by `PENSTOCK_BENCH_SECONDS` (4), rounds by
//! `PENSTOCK_BENCH_ROUNDS` (3).

mod queue;

use std::env;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use penstock_benches::settings::number;
use penstock_benches::tenants::{Tenants, Trial, Way, share_between};
use penstock_engine::{
    Chaining, Engine, EngineOptions, Input, Mode, Plan, PolicyKind, Replay, RunOptions, Sink,
};
use penstock_memory::MemoryKind;
use penstock_types::Span;

const QUERIES: usize = 6;
const WORKERS: usize = 2;
const SEED: u64 = 7;
const WARM_UP: Duration = Duration::from_millis(1_500);

fn print_head() {
    println!(
        "{:<20} {:>12} {:>12} {:>10} {:>10} {:>10} {:>12} {:>12}",
        "", "M rows/s in", "M taken/s", "mean ms", "p99 ms", "max ms", "backlog ms", "sustained"
    );
}

fn print_trial(name: &str, trial: &Trial) {
    println!(
        "{:<20} {:>12.2} {:>12.2} {:>10.3} {:>10.3} {:>10.3} {:>12.1} {:>12}",
        name,
        trial.offered / 1e6,
        trial.taken / 1e6,
        trial.mean_ms,
        trial.p99_ms,
        trial.max_ms,
        trial.backlog_ms,
        if trial.is_sustained() { "yes" } else { "no" }
    );
}

fn median(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[values.len() / 2], values[0], values[values.len() - 1])
}

fn rates(tenants: &Tenants, rounds: usize, measured: Duration) {
    let baseline = Way::new(Mode::Threads, MemoryKind::Queue);
    let ours = Way::new(Mode::State, MemoryKind::Blocks);
    let (mut rate_ratios, mut latency_ratios) = (Vec::new(), Vec::new());
    println!(
        "\n{QUERIES} YSB queries, {WORKERS} workers, one task per operator: highest sustained rates, {rounds} rounds"
    );
    for round in 1..=rounds {
        println!("\nround {round}");
        print_head();
        let mut found = Vec::new();
        for way in [baseline, ours] {
            let saturation = tenants.saturation(way, WARM_UP, measured, |trial| print_trial("", trial));
            print_trial(&way.name(), &saturation.sustained);
            found.push(saturation);
        }
        println!("where the first saturates:");
        let rate = found[0].too_much;
        let before = tenants.run(baseline, Some(rate), WARM_UP, measured);
        print_trial(&baseline.name(), &before);
        let after = tenants.run(ours, Some(rate), WARM_UP, measured);
        print_trial(&ours.name(), &after);
        rate_ratios.push(found[1].sustained.offered / found[0].sustained.offered);
        latency_ratios.push(before.mean_ms / after.mean_ms);
    }
    let (rate, least, most) = median(rate_ratios);
    println!("\nsustained rate, ratio:  {rate:.1} ({least:.1}..{most:.1})");
    let (latency, least, most) = median(latency_ratios);
    println!("mean latency, ratio:    {latency:.1} ({least:.1}..{most:.1})");
}

fn policies(tenants: &Tenants, measured: Duration) {
    println!("\npolicies, blocks, {QUERIES} YSB queries, {WORKERS} workers, one task per operator");
    let adaptive = Way::new(Mode::State, MemoryKind::Blocks);
    let peak = tenants.saturation(adaptive, WARM_UP, measured, |_| ()).sustained.offered;
    print_head();
    for share in [0.25, 0.5, 0.75, 0.95] {
        for (_, policy) in PolicyKind::NAMES {
            let way = Way { policy, ..adaptive };
            print_trial(&way.name(), &tenants.run(way, Some(peak * share), WARM_UP, measured));
        }
        let way = Way::new(Mode::Threads, MemoryKind::Blocks);
        print_trial(&way.name(), &tenants.run(way, Some(peak * share), WARM_UP, measured));
    }
}

fn overhead(tenants: &Tenants, rounds: usize, measured: Duration) {
    println!("\nscheduling as a part of the time that operators ran, {QUERIES} YSB queries, {rounds} rounds");
    println!("{:<36} {:>10} {:>22} {:>14}", "", "share", "min..max", "runs/s");
    let way = Way::new(Mode::State, MemoryKind::Blocks);
    for (name, chain, part) in [
        ("one task per operator, full speed", Chaining::Off, None),
        ("one task per operator, half of that", Chaining::Off, Some(0.5)),
        ("chained, full speed", Chaining::Auto, None),
    ] {
        let way = Way { chain, ..way };
        let peak = part.map(|part| tenants.run(way, None, WARM_UP, measured).taken * part);
        let trials: Vec<Trial> = (0..rounds).map(|_| tenants.run(way, peak, WARM_UP, measured)).collect();
        let (share, least, most) = median(trials.iter().map(|trial| trial.scheduling_share).collect());
        let (runs, ..) = median(trials.iter().map(|trial| trial.runs_per_second).collect());
        let range = format!("{:.2}..{:.2} %", least * 100.0, most * 100.0);
        println!("{name:<36} {:>8.2} % {range:>22} {runs:>14.0}", share * 100.0);
    }
}

/// A stream that passes a row at a time through two tasks that do nothing.
fn noop() {
    let schema = Schema::new(vec![Field::new("x", DataType::Int64, false)]);
    let plan = Plan::stream(&schema, None, Span::Ticks(0)).expect("the plan is valid");
    let column: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let batch = RecordBatch::try_from_iter([("x", column)]).expect("the columns fit");
    println!("\nruns of one row through two tasks that do nothing");
    println!("{:<10} {:>14} {:>18} {:>18}", "workers", "runs/s", "ns in a run", "ns between runs");
    for workers in [1, 2] {
        let run = RunOptions { chain: Chaining::Off, ..RunOptions::default() };
        let options = EngineOptions { workers: Some(workers), run, ..EngineOptions::default() };
        let engine = Engine::start(options).expect("threads can be started");
        let replay =
            Replay { batches: vec![batch.clone(); 1_000].into(), rows_per_second: None, rounds: None };
        let query =
            engine.submit(&plan, Input::replay(replay), Sink::discard(), None).expect("the plan is valid");
        std::thread::sleep(WARM_UP);
        let (before, started) = (engine.metrics(), Instant::now());
        std::thread::sleep(Duration::from_secs(2));
        let after = engine.metrics();
        let seconds = started.elapsed().as_secs_f64();
        let sum = |of: fn(&penstock_engine::WorkerMetrics) -> u64| {
            after.workers.iter().map(of).sum::<u64>() - before.workers.iter().map(of).sum::<u64>()
        };
        let runs = sum(|worker| worker.runs) as f64;
        println!(
            "{workers:<10} {:>14.0} {:>18.0} {:>18.0}",
            runs / seconds,
            sum(|worker| worker.busy_ns) as f64 / runs,
            sum(|worker| worker.overhead_ns) as f64 / runs
        );
        println!("{:<10} scheduling share {:.2} %", "", share_between(&before, &after) * 100.0);
        query.stop();
        engine.stop();
    }
}

fn main() {
    let rows = number("PENSTOCK_BENCH_ROWS", 20_000_000);
    let rounds = number("PENSTOCK_BENCH_ROUNDS", 3) as usize;
    let measured = Duration::from_secs(number("PENSTOCK_BENCH_SECONDS", 4));
    let named: Vec<String> = env::args().skip(1).filter(|part| !part.starts_with('-')).collect();
    let wanted = |part: &str| named.is_empty() || named.iter().any(|name| name == part);
    queue::print(wanted);
    if wanted("noop") {
        noop();
    }
    if !named.is_empty()
        && !["overhead", "rates", "policies"].iter().any(|part| named.iter().any(|name| name == part))
    {
        return;
    }
    let tenants = Tenants::new(QUERIES, WORKERS, rows, SEED);
    if wanted("overhead") {
        overhead(&tenants, rounds, measured);
    }
    if wanted("rates") {
        rates(&tenants, rounds, measured);
    }
    if named.iter().any(|name| name == "policies") {
        policies(&tenants, measured);
    }
}
