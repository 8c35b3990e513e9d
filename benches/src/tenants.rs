//! Many YSB queries on one engine, each fed at a fixed rate: what a configuration sustains, and how long rows take.
//!
//! Every query replays a part of the data of its own, so that no two of them find each other's rows in the cache. Rows
//! arrive when they are due, whether the engine keeps up or not, and latency counts from then.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use arrow_array::RecordBatch;
use penstock_engine::{
    Chaining, Engine, EngineMetrics, EngineOptions, Input, Mode, Plan, PolicyKind, Query, Replay, RunOptions,
    Sink,
};
use penstock_memory::MemoryKind;
use penstock_workloads::Generator;
use penstock_workloads::ysb::{Ysb, YsbOptions};

use crate::query::ysb_plan;

/// A way to run the queries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Way {
    /// Who runs tasks.
    pub mode: Mode,
    /// How rows go from task to task.
    pub memory: MemoryKind,
    /// Which task runs next.
    pub policy: PolicyKind,
    /// Which operators make up a task.
    pub chain: Chaining,
}

impl Way {
    /// One task per operator, ranked by the adaptive policy where it is the engine that ranks.
    pub fn new(mode: Mode, memory: MemoryKind) -> Self {
        Self { mode, memory, policy: PolicyKind::default(), chain: Chaining::Off }
    }

    /// What people call it.
    pub fn name(self) -> String {
        let named = |names: &[(&'static str, usize)], at: usize| {
            names.iter().find(|it| it.1 == at).map_or("", |it| it.0)
        };
        let memory = named(&[("blocks", 0), ("queue", 1)], usize::from(self.memory == MemoryKind::Queue));
        let policy =
            PolicyKind::NAMES.iter().find(|(_, kind)| *kind == self.policy).map_or("", |(name, _)| name);
        match self.mode {
            Mode::Threads => format!("threads + {memory}"),
            Mode::State => format!("{policy} + {memory}"),
        }
    }
}

/// The data of all queries.
pub struct Tenants {
    plan: Plan,
    parts: Vec<Arc<[RecordBatch]>>,
    workers: usize,
}

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Rows per second that all queries together were to take.
    pub offered: f64,
    /// Rows per second that they took.
    pub taken: f64,
    /// Mean latency of a row, over all queries.
    pub mean_ms: f64,
    /// The largest 99th percentile of any query.
    pub p99_ms: f64,
    /// The longest latency.
    pub max_ms: f64,
    /// Rows that were due and not taken at the end, as time at the rate that was offered.
    pub backlog_ms: f64,
    /// What the engine says of itself, over the measured time.
    pub scheduling_share: f64,
    /// Scheduled runs per second.
    pub runs_per_second: f64,
}

impl Trial {
    /// Whether the rate was kept up: everything that was due was taken, and latency stayed bounded.
    pub fn is_sustained(&self) -> bool {
        self.taken >= 0.98 * self.offered && self.backlog_ms < 100.0 && self.p99_ms < 500.0
    }
}

const BATCH_ROWS: u64 = 65_536;
/// Trials of one search.
const MOST_TRIALS: usize = 12;
/// Rows per second of event time: a window of 10 s closes every 10 million rows of a query.
const EVENT_RATE: u64 = 1_000_000;

impl Tenants {
    /// Data of `rows` rows for `queries` queries on so many workers.
    ///
    /// # Panics
    /// When the generator refuses its options, which are fixed.
    pub fn new(queries: usize, workers: usize, rows: u64, seed: u64) -> Self {
        let options = YsbOptions { seed, rate: EVENT_RATE, ..YsbOptions::default() };
        let generator = Ysb::new(options).expect("the options are within bounds");
        let each = rows / queries as u64;
        let part = |number: u64| -> Arc<[RecordBatch]> {
            let range = number * each..(number + 1) * each;
            generator.batches(range, BATCH_ROWS).expect("the range is valid").collect()
        };
        let plan = ysb_plan(seed).expect("the plan is valid");
        Self { plan, parts: (0..queries as u64).map(part).collect(), workers }
    }

    fn submit(&self, engine: &Engine, rows_per_second: Option<f64>) -> Vec<Query> {
        let submit = |part: &Arc<[RecordBatch]>| {
            let replay = Replay { batches: Arc::clone(part), rows_per_second, rounds: None };
            engine
                .submit(&self.plan, Input::replay(replay), Sink::discard(), None)
                .expect("the plan is valid")
        };
        self.parts.iter().map(submit).collect()
    }

    /// Runs all queries at `offered` rows per second together (as fast as they go without it) for `warm_up`, then for
    /// `measured`.
    ///
    /// # Panics
    /// When a query fails.
    pub fn run(&self, way: Way, offered: Option<f64>, warm_up: Duration, measured: Duration) -> Trial {
        let run = RunOptions { memory: way.memory, chain: way.chain, ..RunOptions::default() };
        let (policy, mode) = (way.policy, way.mode);
        let options =
            EngineOptions { workers: Some(self.workers), policy, mode, run, ..EngineOptions::default() };
        let engine = Engine::start(options).expect("threads can be started");
        let each = offered.map(|rate| rate / self.parts.len() as f64);
        let queries = self.submit(&engine, each);
        thread::sleep(warm_up);
        queries.iter().for_each(Query::clear_latencies);
        let rows = || queries.iter().map(|query| query.metrics().rows.rows_in).sum::<u64>();
        let (rows_before, before) = (rows(), engine.metrics());
        thread::sleep(measured);
        let (rows_after, after) = (rows(), engine.metrics());
        let all: Vec<_> = queries.iter().map(Query::metrics).collect();
        for query in &queries {
            assert!(query.error().is_none(), "{:?}", query.error());
        }
        engine.stop();
        let seconds = after.seconds - before.seconds;
        let taken = (rows_after - rows_before) as f64 / seconds;
        let count: u64 = all.iter().map(|query| query.event_latency.count).sum();
        let sum: f64 = all.iter().map(|it| it.event_latency.mean_ns * it.event_latency.count as f64).sum();
        let most = |of: fn(&penstock_engine::Latency) -> u64| {
            all.iter().map(|query| of(&query.event_latency)).max().unwrap_or(0) as f64 / 1e6
        };
        let backlog = all.iter().map(|query| query.backlog_rows).max().unwrap_or(0) as f64;
        Trial {
            offered: offered.unwrap_or(taken),
            taken,
            mean_ms: sum / count.max(1) as f64 / 1e6,
            p99_ms: most(|latency| latency.p99_ns),
            max_ms: most(|latency| latency.max_ns),
            backlog_ms: each.map_or(0.0, |each| backlog / each * 1e3),
            scheduling_share: share_between(&before, &after),
            runs_per_second: (runs(&after) - runs(&before)) as f64 / seconds,
        }
    }

    /// Where a way saturates: the highest rate found that is sustained, and the lowest that is not, at most a tenth above.
    ///
    /// # Panics
    /// When a query fails, or no rate at all is sustained.
    pub fn saturation(
        &self,
        way: Way,
        warm_up: Duration,
        measured: Duration,
        mut tell: impl FnMut(&Trial),
    ) -> Saturation {
        let peak = self.run(way, None, warm_up, measured).taken;
        let (mut sustained, mut too_much): (Option<Trial>, Option<f64>) = (None, None);
        let mut rate = peak * 0.9;
        for _ in 0..MOST_TRIALS {
            let trial = self.run(way, Some(rate), warm_up, measured);
            tell(&trial);
            if trial.is_sustained() {
                sustained = Some(trial);
            } else {
                too_much = Some(rate);
            }
            rate = match (sustained.as_ref().map(|trial| trial.offered), too_much) {
                (Some(low), Some(high)) if high <= low * 1.1 => break,
                (Some(low), Some(high)) => (low * high).sqrt(),
                (Some(low), None) => low * 1.1,
                (None, Some(high)) => high * 0.7,
                (None, None) => unreachable!("a trial is sustained or not"),
            };
        }
        let sustained = sustained.expect("a low rate is sustained");
        Saturation { too_much: too_much.unwrap_or(sustained.offered * 1.1), sustained }
    }
}

/// Where a way to run queries saturates.
#[derive(Clone, Debug)]
pub struct Saturation {
    /// The trial at the highest rate that was sustained.
    pub sustained: Trial,
    /// The lowest rate that was not.
    pub too_much: f64,
}

fn runs(metrics: &EngineMetrics) -> u64 {
    metrics.workers.iter().map(|worker| worker.runs).sum()
}

/// Returns the time that workers spent on deciding what to run, planning included, divided by the time that tasks ran,
/// between two readings of the metrics.
pub fn share_between(before: &EngineMetrics, after: &EngineMetrics) -> f64 {
    let sum = |metrics: &EngineMetrics, of: fn(&penstock_engine::WorkerMetrics) -> u64| {
        metrics.workers.iter().map(of).sum::<u64>()
    };
    let between = |of: fn(&penstock_engine::WorkerMetrics) -> u64| sum(after, of) - sum(before, of);
    between(|worker| worker.overhead_ns) as f64 / between(|worker| worker.busy_ns).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_trial_takes_what_is_offered() {
        let tenants = Tenants::new(2, 2, 400_000, 7);
        let way = Way::new(Mode::State, MemoryKind::Blocks);
        let brief = Duration::from_millis(300);
        let trial = tenants.run(way, Some(100_000.0), brief, brief);
        assert!(trial.taken > 0.0 && trial.mean_ms > 0.0, "{trial:?}");
        assert_eq!(way.name(), "adaptive + blocks");
    }
}
