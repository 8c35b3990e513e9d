//! YSB in memory: the engine beside a hand-fused loop over the same columns, in one run.
//!
//! `cargo bench -p penstock-benches --bench ysb`; rows by `PENSTOCK_BENCH_ROWS` (20 million, 1.1 GB), rounds by
//! `PENSTOCK_BENCH_ROUNDS`.

use arrow_array::RecordBatch;
use penstock_benches::fused::{count_views, count_views_on};
use penstock_benches::query::{run, window_counts, ysb_plan};
use penstock_benches::report::{Comparison, DEFAULT_ROUNDS};
use penstock_benches::settings::number;
use penstock_engine::{Chaining, Engine, EngineOptions, Output, Plan, RunOptions};
use penstock_memory::MemoryKind;
use penstock_workloads::Generator;
use penstock_workloads::ysb::{Ysb, YsbOptions, campaign_of_ads};

const SEED: u64 = 7;
const BATCH_ROWS: u64 = 65_536;
const RUN_ROWS: [usize; 6] = [512, 1_024, 2_048, 4_096, 8_192, 16_384];

/// The engine with two workers, which share the query.
fn on_two_workers(plan: &Plan, batches: &[RecordBatch]) -> Output {
    let options = EngineOptions { workers: Some(2), ..EngineOptions::default() };
    Engine::run(plan, options, batches).expect("the data fits the plan")
}

fn main() {
    let rows = number("PENSTOCK_BENCH_ROWS", 20_000_000);
    let rounds = number("PENSTOCK_BENCH_ROUNDS", DEFAULT_ROUNDS as u64) as usize;
    let generator =
        Ysb::new(YsbOptions { seed: SEED, ..YsbOptions::default() }).expect("the options are within bounds");
    let batches: Vec<RecordBatch> =
        generator.batches(0..rows, BATCH_ROWS).expect("the range is valid").collect();
    let campaigns = campaign_of_ads(SEED);
    let plan = ysb_plan(SEED).expect("the plan is valid");
    let usual = RunOptions::default();
    assert_eq!(
        window_counts(&run(&plan, &usual, &batches)),
        count_views(&batches, &campaigns),
        "the contenders must compute the same"
    );
    let expected = count_views(&batches, &campaigns);
    assert_eq!(window_counts(&on_two_workers(&plan, &batches)), expected);
    assert_eq!(count_views_on(2, &batches, &campaigns), expected);

    println!("\nYSB, {rows} rows in memory, one worker unless it says otherwise, {rounds} rounds");
    let comparison = Comparison::new(rows)
        .rounds(rounds)
        .contender("hand-fused loop", || count_views(&batches, &campaigns))
        .contender("engine", || run(&plan, &usual, &batches))
        .contender("hand-fused loop, two threads", || count_views_on(2, &batches, &campaigns))
        .contender("engine, two workers", || on_two_workers(&plan, &batches));
    println!("{}", comparison.run());

    let some = &batches[..batches.len().div_ceil(10)];
    let some_rows = some.iter().map(|batch| batch.num_rows() as u64).sum();
    println!("one task per operator, {some_rows} rows");
    let with = |memory: MemoryKind, chain: Chaining| RunOptions { memory, chain, ..RunOptions::default() };
    let comparison = Comparison::new(some_rows)
        .rounds(rounds)
        .contender("chained", || run(&plan, &with(MemoryKind::Blocks, Chaining::Auto), some))
        .contender("one each, blocks", || run(&plan, &with(MemoryKind::Blocks, Chaining::Off), some))
        .contender("one each, row queues", || run(&plan, &with(MemoryKind::Queue, Chaining::Off), some));
    println!("{}", comparison.run());

    println!("rows per run");
    let mut sweep =
        Comparison::new(rows).rounds(rounds).contender("default", || run(&plan, &usual, &batches));
    for run_rows in RUN_ROWS {
        let (plan, batches) = (&plan, &batches);
        sweep = sweep.contender(run_rows.to_string(), move || {
            run(plan, &RunOptions { rows_per_run: Some(run_rows), ..RunOptions::default() }, batches)
        });
    }
    println!("{}", sweep.run());
}
