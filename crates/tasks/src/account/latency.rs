//! Latencies, as histograms.

use std::sync::{Mutex, PoisonError};

use hdrhistogram::Histogram;
use penstock_scheduler::profile::Counter;

/// Digits that a histogram keeps of a value: one per cent.
const DIGITS: u8 = 2;
/// What takes longer counts as an hour.
const MOST_NS: u64 = 3_600_000_000_000;

/// Times that any thread adds to and reads.
pub struct Latencies {
    times: Mutex<Histogram<u64>>,
    sum_ns: Counter,
    count: Counter,
}

/// What a histogram says.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Latency {
    /// How many were measured.
    pub count: u64,
    /// Their mean.
    pub mean_ns: f64,
    /// Half of them took no longer.
    pub p50_ns: u64,
    /// 95 of 100 took no longer.
    pub p95_ns: u64,
    /// 99 of 100 took no longer.
    pub p99_ns: u64,
    /// 999 of 1,000 took no longer.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        let times = Histogram::new_with_bounds(1, MOST_NS, DIGITS).expect("so few digits are allowed");
        Self { times: Mutex::new(times), sum_ns: Counter::default(), count: Counter::default() }
    }
}

impl Latencies {
    /// Adds a time.
    pub fn record(&self, ns: u64) {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.saturating_record(ns.max(1));
        // Under the lock: a query may have several sinks, and counters have one writer at a time.
        self.sum_ns.add(ns);
        self.count.add(1);
    }

    /// Returns what the histogram says.
    pub fn summary(&self) -> Latency {
        let times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let (sum_ns, count) = (self.sum_ns.get(), self.count.get());
        let at = |quantile: f64| times.value_at_quantile(quantile);
        Latency {
            count,
            mean_ns: if count == 0 { 0.0 } else { sum_ns as f64 / count as f64 },
            p50_ns: at(0.5),
            p95_ns: at(0.95),
            p99_ns: at(0.99),
            p999_ns: at(0.999),
            max_ns: times.max(),
        }
    }

    /// Forgets what was measured so far, so that a warm-up does not count.
    pub fn clear(&self) {
        self.times.lock().unwrap_or_else(PoisonError::into_inner).reset();
        self.sum_ns.set(0);
        self.count.set(0);
    }
}

/// Sum and number of latencies up to the sink: what policies adapt by. They cannot change how fast results are read, so
/// that part is left out here.
#[derive(Default)]
pub struct SinkLatency(Mutex<(u64, u64)>);

impl SinkLatency {
    fn locked(&self) -> std::sync::MutexGuard<'_, (u64, u64)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a latency.
    pub fn record(&self, ns: u64) {
        let mut totals = self.locked();
        totals.0 += ns;
        totals.1 += 1;
    }

    /// Returns the sum in nanoseconds and the number.
    pub fn totals(&self) -> (u64, u64) {
        *self.locked()
    }
}
