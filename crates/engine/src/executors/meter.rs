//! CPU time of threads beside the time that they ran tasks.

use std::sync::atomic::{AtomicU64, Ordering};

use penstock_memory::platform;

use crate::clock::now_ns;

/// How often a thread reads its CPU time, which costs as much as a short run.
const CPU_EVERY_NS: u64 = 50_000_000;

/// CPU time of the threads that run tasks, and the time that they ran tasks by the clock, of the same intervals.
#[derive(Default)]
pub(super) struct CpuTimes {
    cpu_ns: AtomicU64,
    busy_ns: AtomicU64,
}

impl CpuTimes {
    fn add(&self, cpu_ns: u64, busy_ns: u64) {
        self.cpu_ns.fetch_add(cpu_ns, Ordering::Relaxed);
        self.busy_ns.fetch_add(busy_ns, Ordering::Relaxed);
    }

    /// Returns CPU time and busy time so far.
    pub(super) fn get(&self) -> (u64, u64) {
        (self.cpu_ns.load(Ordering::Relaxed), self.busy_ns.load(Ordering::Relaxed))
    }
}

/// The meter of one thread.
#[derive(Default)]
pub(super) struct CpuMeter {
    at_ns: u64,
    cpu_ns: u64,
    busy_ns: u64,
}

impl CpuMeter {
    /// Notes a run that has ended now.
    pub(super) fn note(&mut self, busy_ns: u64, now_ns: u64, times: &CpuTimes) {
        self.busy_ns += busy_ns;
        if now_ns.saturating_sub(self.at_ns) < CPU_EVERY_NS {
            return;
        }
        let cpu_ns = platform::thread_cpu_ns();
        if self.at_ns > 0 {
            times.add(cpu_ns.saturating_sub(self.cpu_ns), self.busy_ns);
        }
        *self = Self { at_ns: now_ns, cpu_ns, busy_ns: 0 };
    }
}

/// Returns what `work` returns, and the time of a core that it took.
pub(super) fn cpu_time<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let (cpu_ns, began_ns) = (platform::thread_cpu_ns(), now_ns());
    let done = work();
    match platform::thread_cpu_ns().saturating_sub(cpu_ns) {
        0 => (done, now_ns().saturating_sub(began_ns)), // the system does not say
        cpu_ns => (done, cpu_ns),
    }
}
