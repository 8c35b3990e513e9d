//! The epoch thread: ranks tasks, rings timers, rolls counters up. It sleeps when there is nothing of that to do.
//!
//! E1. A timer that is set while the thread is about to sleep is not missed: the thread says when it will wake
//!     (`wakes_at_ns`) and then looks at the timers again; whoever sets one adds it, under the lock of the timers, and
//!     then looks at when the thread will wake.
//! E2. The thread dozes, without a tick, only while no task has been run for a while. Whoever starts to run tasks
//!     nudges it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use penstock_queue::gate::Gate;
use penstock_scheduler::profile::Counter;

use super::core::Core;
use super::planner::Planner;
use crate::clock::now_ns;
use crate::options::Mode;

/// Time between two plans. The paper finds no difference up to 5 ms, and latency is best with short epochs.
const EPOCH_NS: u64 = 1_000_000;
/// Planning takes one part in so many of the time of a core at most: with many tasks, epochs become longer.
const PLANNING_SHARE: u64 = 100;
/// Time between two roll-ups.
const ROLL_NS: u64 = 50_000_000;
/// For so long after the last run the thread goes on ticking.
const LINGER_NS: u64 = 10_000_000;
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
    /// When the next epoch begins.
    pub(crate) next_ns: AtomicU64,
    pub(crate) epochs: Counter,
    pub(crate) planning_ns: Counter,
    pub(crate) rolling_ns: Counter,
}

impl Epoch {
    /// Somebody starts to run tasks.
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
    let mut planner = Planner::new(core.options.policy);
    let (mut next_epoch_ns, mut next_roll_ns) = (0, 0);
    let (mut runs, mut active_ns) = (u64::MAX, 0);
    let mut settled = false;
    while !epoch.closed.load(Ordering::Acquire) {
        epoch.wakes_at_ns.store(0, Ordering::Release);
        let now = now_ns();
        core.timers.ring_due(now);
        let schedules = core.options.mode == Mode::State;
        if core.runs() != runs {
            (runs, active_ns, settled) = (core.runs(), now, false);
        }
        let active = schedules && (now < active_ns + LINGER_NS || core.queue.has_ready());
        if active && now >= next_epoch_ns {
            let took_ns = planner.plan(core, now, now + EPOCH_NS);
            next_epoch_ns = now + EPOCH_NS.max(took_ns * PLANNING_SHARE);
            epoch.next_ns.store(next_epoch_ns, Ordering::Relaxed);
        }
        if now >= next_roll_ns {
            settled = !planner.roll(core, now);
            next_roll_ns = now + ROLL_NS;
        }
        // Threads of tasks say that they have begun, but not that they are still at it.
        let mut until = now + if schedules { LONG_NS } else { LOOK_NS };
        if active {
            until = until.min(next_epoch_ns);
        }
        if !settled {
            until = until.min(next_roll_ns);
        }
        sleep(core, until, !active && settled);
    }
}

fn sleep(core: &Core, mut until_ns: u64, doze: bool) {
    let epoch = &core.epoch;
    if doze {
        epoch.dozing.swap(true, Ordering::AcqRel);
        // E2: whoever woke up before this has not nudged, but is not asleep any more.
        if core.queue.parked() < core.workers.len() || core.queue.has_ready() {
            epoch.dozing.store(false, Ordering::Release);
            until_ns = until_ns.min(now_ns() + EPOCH_NS);
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
