//! YSB as a plan of the engine: the query that the hand-fused loop computes.

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, TimestampMillisecondType};
use penstock_engine::{Aggregate, Engine, EngineOptions, Output, Plan, RunOptions};
use penstock_expr::{BinaryOp, Expr, Literal};
use penstock_operators::LookupKind;
use penstock_operators::aggregates::AggregateKind;
use penstock_types::{PlanError, Span};
use penstock_workloads::ysb;

use crate::fused::{WINDOW_MS, WindowCount};

/// Filter views, keep two columns, look the campaign up, count per campaign in 10 s windows.
pub fn ysb_plan(seed: u64) -> Result<Plan, PlanError> {
    let is_view =
        Expr::column("event_type").binary(BinaryOp::Equal, Expr::literal(Literal::Int(ysb::VIEW.into())))?;
    let views = Aggregate { kind: AggregateKind::Count, input: None, name: Some("views".to_owned()) };
    Plan::stream(&ysb::schema(), Some("event_time"), "2s".parse()?)?
        .filter(is_view)?
        .select(vec![Expr::column("ad_id"), Expr::column("event_time")])?
        .lookup(&ysb::campaigns(seed), vec!["ad_id".to_owned()], LookupKind::Inner)?
        .tumbling(Span::Ticks(WINDOW_MS), vec![Expr::column("campaign_id")], vec![views])
}

/// Runs a plan over batches on an engine with one worker.
///
/// # Panics
/// When the run fails: the data of a bench fits its plan.
pub fn run(plan: &Plan, options: &RunOptions, batches: &[RecordBatch]) -> Output {
    let options = EngineOptions { workers: Some(1), run: options.clone(), ..EngineOptions::default() };
    Engine::run(plan, options, batches).expect("the data fits the plan")
}

/// The result in the form of the hand-fused loop's, sorted.
pub fn window_counts(output: &Output) -> Vec<WindowCount> {
    let mut counts: Vec<WindowCount> = Vec::new();
    for batch in output.batches() {
        let starts = batch.column(0).as_primitive::<TimestampMillisecondType>().values();
        let campaigns = batch.column(2).as_primitive::<Int64Type>().values();
        let views = batch.column(3).as_primitive::<Int64Type>().values();
        counts.extend(
            starts
                .iter()
                .zip(campaigns)
                .zip(views)
                .map(|((start, campaign), views)| (*start, *campaign, *views)),
        );
    }
    counts.sort_unstable();
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fused::count_views;
    use penstock_workloads::Generator;
    use penstock_workloads::ysb::{Ysb, YsbOptions};

    #[test]
    fn engine_and_fused_loop_agree() {
        for (seed, out_of_order_ms) in [(7, 0), (8, 50)] {
            let options = YsbOptions { seed, out_of_order_ms, rate: 10_000, ..YsbOptions::default() };
            let batches: Vec<RecordBatch> =
                Ysb::new(options).unwrap().batches(0..300_000, 7_000).unwrap().collect();
            let output = run(&ysb_plan(seed).unwrap(), &RunOptions::default(), &batches);
            assert_eq!(window_counts(&output), count_views(&batches, &ysb::campaign_of_ads(seed)));
        }
    }
}
