//! Epochs: workers rank the tasks and roll up the counters between two tasks; the epoch thread fires timers, and makes
//! the last roll-up once all workers sleep.
//!
//! E1. A timer that is set while the thread is about to sleep is not missed. The thread first stores when it will wake
//!     (`wakes_at_ns`) and then checks the timers again; a caller that sets a timer first adds it, under the lock of
//!     the timers, and then compares it with `wakes_at_ns`.
//! E2. The thread sleeps without a tick only while all workers sleep. A worker that wakes up or goes to sleep nudges
//!     it.
//! E3. Workers make the plans, between two tasks: only workers use the ranks, and a running worker has a processor. On
//!     a busy machine a separate thread may wait for a processor for seconds, with the planner locked. A worker that
//!     finds the planner locked skips the plan: another worker is making it. The time of the processor is read
//!     without the lock: at a system call a busy thread is likely to lose its processor.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use penstock_memory::platform;
use penstock_queue::gate::Gate;
use penstock_scheduler::profile::Counter;

use super::core::Core;
use super::planner::Planner;
use crate::clock::now_ns;
use crate::options::Mode;

/// Time between two plans. The paper finds no difference up to 5 ms, and latency is best with short epochs.
const EPOCH_NS: u64 = 1_000_000;
/// Planning takes one part in so many of the time of a core at most: with many tasks, epochs become longer. By CPU time:
/// a plan that was held up by other threads has cost no more for that.
const PLANNING_SHARE: u64 = 100;
/// The longest time between two plans, whatever they cost: no longer than costs stay as they are.
pub(super) const LONGEST_EPOCH_NS: u64 = ROLL_NS;
/// Time between two roll-ups.
const ROLL_NS: u64 = 50_000_000;
/// How late a roll-up is before the thread takes it for one that no worker will make.
const SLACK_NS: u64 = ROLL_NS;
/// How long it sleeps at most, and how long beside threads of tasks.
const LONG_NS: u64 = 3_600_000_000_000;
const LOOK_NS: u64 = 1_000_000_000;

/// The epoch thread as others see it.
#[derive(Default)]
pub(crate) struct Epoch {
    gate: Gate,
    closed: AtomicBool,
    dozing: AtomicBool,
    wakes_at_ns: AtomicU64,
    /// When the next plan is due.
    next_ns: AtomicU64,
    /// The time of a core that the last plan took.
    plan_cpu_ns: AtomicU64,
    /// When the next roll-up is due.
    next_roll_ns: AtomicU64,
    pub(crate) epochs: Counter,
    pub(crate) planning_ns: Counter,
    pub(crate) rolling_ns: Counter,
}

impl Epoch {
    /// Somebody starts to run tasks, or has come to rest.
    pub(crate) fn nudge(&self) {
        if self.dozing.swap(false, Ordering::AcqRel) {
            self.gate.signal();
        }
    }

    /// Somebody needs it at that time.
    pub(crate) fn wake_before(&self, at_ns: u64) {
        if at_ns < self.wakes_at_ns.load(Ordering::Acquire) {
            self.gate.signal();
        }
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.gate.signal();
    }
}

/// Starts the thread.
pub(crate) fn start(core: &Arc<Core>) -> std::io::Result<JoinHandle<()>> {
    let core = Arc::clone(core);
    thread::Builder::new().name("penstock-epoch".to_owned()).spawn(move || run(&core))
}

fn run(core: &Core) {
    let epoch = &core.epoch;
    let (mut runs, mut settled) = (u64::MAX, false);
    // Threads of tasks make no roll-ups, and say that they have begun, but not that they are still at it.
    let (slack_ns, longest_ns) = match core.options.mode {
        Mode::State => (SLACK_NS, LONG_NS),
        Mode::Threads => (0, LOOK_NS),
    };
    while !epoch.closed.load(Ordering::Acquire) {
        epoch.wakes_at_ns.store(0, Ordering::Release);
        let now = now_ns();
        core.timers.ring_due(now);
        if core.runs() != runs {
            (runs, settled) = (core.runs(), false);
        }
        let late_ns = || epoch.next_roll_ns.load(Ordering::Relaxed).saturating_add(slack_ns);
        if now >= late_ns() {
            let mut planner = locked(&core.planner);
            // Again: a worker may have made it while this thread waited.
            if now >= late_ns() {
                settled = !roll(core, &mut planner, now);
            }
        }
        let until = if settled { now + longest_ns } else { late_ns().min(now + longest_ns) };
        sleep(core, until, settled.then_some(runs));
    }
    // What it remembers of queries goes with the thread.
    *locked(&core.planner) = Planner::new(core.options.policy);
}

/// Rolls the counters up. Whether any task has run since the last time.
fn roll(core: &Core, planner: &mut Planner, now: u64) -> bool {
    core.epoch.next_roll_ns.store(now + ROLL_NS, Ordering::Relaxed);
    planner.roll(core, now)
}

/// Makes the roll-up and the plan that are due, if nobody is at it (E3): for a worker, between two tasks.
pub(crate) fn tend(core: &Core, now: u64) {
    let epoch = &core.epoch;
    // Asked again with the planner locked: another worker may have been faster.
    let roll_due = || now >= epoch.next_roll_ns.load(Ordering::Relaxed);
    if roll_due()
        && let Some(mut planner) = try_locked(&core.planner)
        && roll_due()
    {
        roll(core, &mut planner, now);
    }
    let plan_due = || now >= epoch.next_ns.load(Ordering::Relaxed);
    // If nobody waits, the order does not matter.
    if !plan_due() || !core.queue.has_ready() {
        return;
    }
    let (until_ns, cpu_ns) = cpu_time(|| {
        let mut planner = try_locked(&core.planner).filter(|_| plan_due())?;
        planner.plan(core, now);
        // As long as the last one, until it is known what this plan has cost.
        let until_ns = now + epoch_ns(epoch.plan_cpu_ns.load(Ordering::Relaxed));
        epoch.next_ns.store(until_ns, Ordering::Relaxed);
        Some(until_ns)
    });
    let Some(until_ns) = until_ns else { return };
    epoch.plan_cpu_ns.store(cpu_ns, Ordering::Relaxed);
    // Unless the next plan is made already.
    let known_ns = now + epoch_ns(cpu_ns);
    let _ = epoch.next_ns.compare_exchange(until_ns, known_ns, Ordering::Relaxed, Ordering::Relaxed);
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

fn locked(planner: &Mutex<Planner>) -> MutexGuard<'_, Planner> {
    planner.lock().unwrap_or_else(PoisonError::into_inner)
}

fn try_locked(planner: &Mutex<Planner>) -> Option<MutexGuard<'_, Planner>> {
    match planner.try_lock() {
        Ok(planner) => Some(planner),
        Err(TryLockError::Poisoned(planner)) => Some(planner.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// The time until the next plan, after one that took so much of a core.
pub(super) fn epoch_ns(cpu_ns: u64) -> u64 {
    cpu_ns.saturating_mul(PLANNING_SHARE).clamp(EPOCH_NS, LONGEST_EPOCH_NS)
}

/// Sleeps until then at the longest; without a tick if nothing has run since that many `runs`, which are rolled up.
fn sleep(core: &Core, mut until_ns: u64, runs: Option<u64>) {
    let epoch = &core.epoch;
    if let Some(runs) = runs {
        epoch.dozing.swap(true, Ordering::AcqRel);
        // E2: a worker that woke up before the swap did not nudge, but it is not parked any more; or it is again, and has
        // run.
        if core.queue.parked() < core.workers.len() || core.queue.has_ready() || core.runs() != runs {
            epoch.dozing.store(false, Ordering::Release);
            until_ns = until_ns.min(now_ns() + ROLL_NS);
        }
    }
    epoch.wakes_at_ns.store(until_ns, Ordering::Release);
    // E1: again, now that everybody can see when this thread will wake.
    if let Some(timer_ns) = core.timers.ring_due(now_ns()) {
        until_ns = until_ns.min(timer_ns);
    }
    let now = now_ns();
    if until_ns > now && !epoch.closed.load(Ordering::Acquire) {
        epoch.gate.wait(Duration::from_nanos(until_ns - now));
    }
    epoch.dozing.store(false, Ordering::Release);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_follows_what_planning_costs_within_bounds() {
        assert_eq!(epoch_ns(0), EPOCH_NS);
        assert_eq!(epoch_ns(9_000), EPOCH_NS);
        assert_eq!(epoch_ns(50_000), 5_000_000);
        assert_eq!(epoch_ns(u64::MAX), LONGEST_EPOCH_NS);
    }
}
