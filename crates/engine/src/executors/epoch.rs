//! Epochs: workers rank the tasks and roll up the counters between two tasks; the epoch thread fires timers, and makes
//! the roll-ups that no worker makes.
//!
//! While tasks wait, a plan is made once per epoch: a millisecond, or longer if planning would take more than one per
//! cent of a core, up to the time between two roll-ups.
//!
//! EPOCH-1. A timer that is set while the thread is about to sleep is not missed. The thread first stores when it will wake
//!     (`wakes_at_ns`) and then checks the timers again; a caller that sets a timer first adds it, under the lock of
//!     the timers, and then compares it with `wakes_at_ns`.
//! EPOCH-2. The thread sleeps without a tick only while no task runs. A worker that wakes up or goes to sleep nudges it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use penstock_queue::gate::Gate;
use penstock_scheduler::Dispatcher;
use penstock_scheduler::profile::Counter;

use super::bell::Bell;
use super::group::GroupArrivals;
use super::meter::CpuTimes;
use super::planner::Planner;
use super::{ExecutorMetrics, asks_to_trim};
use crate::clock::now_ns;
use crate::clock::timers::Timers;
use crate::options::PolicyKind;

/// Time between two plans. The paper finds no difference up to 5 ms, and latency is best with short epochs.
const EPOCH_NS: u64 = 1_000_000;
/// Planning takes one part in so many of the time of a core at most: with many tasks, epochs become longer. By CPU time:
/// a plan that was held up by other threads has cost no more for that.
const PLANNING_SHARE: u64 = 100;
/// The longest time between two plans, whatever they cost: no longer than costs stay as they are.
pub(super) const LONGEST_EPOCH_NS: u64 = ROLL_NS;
/// Time between two roll-ups.
pub(super) const ROLL_NS: u64 = 50_000_000;

/// What an executor shares with its epoch thread.
pub(super) struct Shared {
    /// For the thread that plans, or rolls up.
    pub(super) planner: Mutex<Planner>,
    pub(super) timers: Timers,
    pub(super) epoch: Epoch,
    pub(super) cpu: CpuTimes,
    /// Groups on their way to the planner.
    pub(super) arrivals: Arc<GroupArrivals>,
    trims: bool,
    /// How late a roll-up is before the epoch thread takes it for one that no worker will make.
    slack_ns: u64,
    /// How long that thread sleeps at most.
    longest_ns: u64,
}

/// The epoch thread as others see it.
#[derive(Default)]
pub(super) struct Epoch {
    gate: Gate,
    closed: AtomicBool,
    dozing: AtomicBool,
    wakes_at_ns: AtomicU64,
    /// When the next roll-up is due.
    next_roll_ns: AtomicU64,
    pub(super) epochs: Counter,
    pub(super) planning_ns: Counter,
    pub(super) rolling_ns: Counter,
}

impl Epoch {
    /// Notes that a thread starts to run tasks, or goes to sleep.
    pub(super) fn nudge(&self) {
        if self.dozing.swap(false, Ordering::AcqRel) {
            self.gate.signal();
        }
    }

    /// Asks for the thread at that time.
    fn wake_before(&self, at_ns: u64) {
        if at_ns < self.wakes_at_ns.load(Ordering::Acquire) {
            self.gate.signal();
        }
    }
}

impl Shared {
    pub(super) fn new(policy: PolicyKind, slack_ns: u64, longest_ns: u64) -> Self {
        let arrivals = Arc::default();
        Self {
            planner: Mutex::new(Planner::new(Dispatcher::new(policy), &arrivals)),
            timers: Timers::default(),
            epoch: Epoch::default(),
            cpu: CpuTimes::default(),
            arrivals,
            trims: asks_to_trim(),
            slack_ns,
            longest_ns,
        }
    }

    /// Wakes a task at that time of the system.
    pub(super) fn set_timer(&self, at_ns: u64, bell: &Arc<Bell>) {
        if self.timers.set(at_ns, Arc::clone(bell) as _) {
            self.epoch.wake_before(at_ns);
        }
    }

    /// Returns whether a roll-up is due that late.
    pub(super) fn is_roll_due(&self, now_ns: u64, slack_ns: u64) -> bool {
        now_ns >= self.epoch.next_roll_ns.load(Ordering::Relaxed).saturating_add(slack_ns)
    }

    /// Rolls the counters up. Returns whether any task has run since the last time.
    pub(super) fn roll(&self, planner: &mut Planner, now_ns: u64) -> bool {
        self.epoch.next_roll_ns.store(now_ns + ROLL_NS, Ordering::Relaxed);
        let has_run = planner.roll(now_ns, &self.cpu, self.trims);
        self.epoch.rolling_ns.add(crate::clock::now_ns().saturating_sub(now_ns));
        has_run
    }

    /// Returns the planner, if no other thread has it.
    pub(super) fn try_planner(&self) -> Option<MutexGuard<'_, Planner>> {
        match self.planner.try_lock() {
            Ok(planner) => Some(planner),
            Err(TryLockError::Poisoned(planner)) => Some(planner.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Returns the planner, once no other thread has it.
    pub(super) fn planner(&self) -> MutexGuard<'_, Planner> {
        self.planner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the epoch thread.
    pub(super) fn close(&self) {
        self.epoch.closed.store(true, Ordering::Release);
        self.epoch.gate.signal();
    }

    /// Returns what it did, without workers and threads of tasks.
    pub(super) fn metrics(&self) -> ExecutorMetrics {
        ExecutorMetrics {
            epochs: self.epoch.epochs.get(),
            planning_ns: self.epoch.planning_ns.get(),
            rolling_ns: self.epoch.rolling_ns.get(),
            ..ExecutorMetrics::default()
        }
    }
}

/// An executor, as its epoch thread sees it.
pub(super) trait Beaten: Send + Sync + 'static {
    /// Returns what it shares.
    fn shared(&self) -> &Shared;

    /// Returns how often workers have run a task.
    fn runs(&self) -> u64;

    /// Returns whether a worker is awake, or has something to do.
    fn is_awake(&self) -> bool;
}

/// Starts the thread.
pub(super) fn start(executor: Arc<impl Beaten>) -> std::io::Result<JoinHandle<()>> {
    thread::Builder::new().name("penstock-epoch".to_owned()).spawn(move || run(&*executor))
}

fn run(executor: &impl Beaten) {
    let shared = executor.shared();
    let (mut runs, mut settled) = (u64::MAX, false);
    while !shared.epoch.closed.load(Ordering::Acquire) {
        shared.epoch.wakes_at_ns.store(0, Ordering::Release);
        let now = now_ns();
        shared.timers.ring_due(now);
        if executor.runs() != runs {
            (runs, settled) = (executor.runs(), false);
        }
        if shared.is_roll_due(now, shared.slack_ns) {
            let mut planner = shared.planner();
            // Again: a worker may have made it while this thread waited.
            if shared.is_roll_due(now, shared.slack_ns) {
                settled = !shared.roll(&mut planner, now);
            }
        }
        let late_ns = shared.epoch.next_roll_ns.load(Ordering::Relaxed).saturating_add(shared.slack_ns);
        let longest_ns = now.saturating_add(shared.longest_ns);
        let until_ns = if settled { longest_ns } else { late_ns.min(longest_ns) };
        sleep(executor, until_ns, settled.then_some(runs));
    }
    // What it remembers of queries goes with the thread.
    shared.planner().clear();
}

/// Returns the time until the next plan, after one that took so much of a core.
pub(super) fn epoch_ns(cpu_ns: u64) -> u64 {
    cpu_ns.saturating_mul(PLANNING_SHARE).clamp(EPOCH_NS, LONGEST_EPOCH_NS)
}

/// Sleeps until then at the longest; without a tick if nothing has run since that many `runs`, which are rolled up.
fn sleep(executor: &impl Beaten, mut until_ns: u64, runs: Option<u64>) {
    let Shared { epoch, timers, .. } = executor.shared();
    if let Some(runs) = runs {
        epoch.dozing.swap(true, Ordering::AcqRel);
        // EPOCH-2: a worker that woke up before the swap did not nudge, but it is not parked any more; or it is again, and
        // has run.
        if executor.is_awake() || executor.runs() != runs {
            epoch.dozing.store(false, Ordering::Release);
            until_ns = until_ns.min(now_ns() + ROLL_NS);
        }
    }
    epoch.wakes_at_ns.store(until_ns, Ordering::Release);
    // EPOCH-1: again, now that all threads can see when this one will wake.
    if let Some(timer_ns) = timers.ring_due(now_ns()) {
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
