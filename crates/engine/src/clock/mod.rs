//! The clocks of the engine.
//!
//! Two clocks: a monotonic one, by which the engine measures and waits, and the wall clock, which people may set. For
//! queries both can be replaced by a [`ManualClock`], which a test moves by hand.

pub(crate) mod timers;

use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use penstock_tasks::clock::{Clock, SharedClock, Until};
use penstock_tasks::waker::Waker;
use timers::Timers;

/// Returns the monotonic time of the system, the same for all threads.
pub fn now_ns() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let start = *START.get_or_init(Instant::now);
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the clock of the system, for code that knows no engine.
pub(crate) fn system() -> SharedClock {
    Arc::new(Timepiece::System)
}

/// The clock of a query: idle sources, windows that close by the clock and times of arrival go by it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Timepiece {
    /// The clock of the system.
    #[default]
    System,
    /// A clock that is moved by hand.
    Manual(ManualClock),
}

impl Timepiece {
    /// Returns the monotonic time.
    pub fn now_ns(&self) -> u64 {
        match self {
            Self::System => now_ns(),
            Self::Manual(clock) => clock.0.now_ns.load(Ordering::Acquire),
        }
    }

    /// Returns the microseconds since 1970 by the wall clock.
    pub fn wall_us(&self) -> i64 {
        match self {
            Self::System => {
                let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
                since.map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
            }
            Self::Manual(clock) => clock.0.wall_us.load(Ordering::Acquire),
        }
    }

    /// Returns when a task wants to run again, with one time where this clock is that of the system.
    pub(crate) fn settle(&self, until: Until) -> Until {
        match self {
            Self::System => until.on_system_clock(),
            Self::Manual(_) => until,
        }
    }
}

impl Clock for Timepiece {
    fn system_ns(&self) -> u64 {
        now_ns()
    }

    fn now_ns(&self) -> u64 {
        self.now_ns()
    }

    fn wall_us(&self) -> i64 {
        self.wall_us()
    }

    fn wall_us_at(&self, system_ns: u64) -> i64 {
        match self {
            Self::System => {
                let ago_us = now_ns().saturating_sub(system_ns) / 1000;
                self.wall_us().saturating_sub(i64::try_from(ago_us).unwrap_or(i64::MAX))
            }
            // A clock that is moved by hand does not follow the time that goes by meanwhile.
            Self::Manual(_) => self.wall_us(),
        }
    }
}

struct Hands {
    now_ns: AtomicU64,
    wall_us: AtomicI64,
    timers: Timers,
}

/// A clock that stops until it is moved by hand. Clones are the same clock.
#[derive(Clone)]
pub struct ManualClock(Arc<Hands>);

impl ManualClock {
    /// A clock whose wall clock shows so many microseconds since 1970.
    pub fn new(wall_us: i64) -> Self {
        let now_ns = AtomicU64::new(now_ns());
        Self(Arc::new(Hands { now_ns, wall_us: AtomicI64::new(wall_us), timers: Timers::default() }))
    }

    /// Lets time go by, on both clocks, and wakes the tasks that have waited for that.
    pub fn advance(&self, by: Duration) {
        let ns = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        self.0.now_ns.fetch_add(ns, Ordering::AcqRel);
        self.set_wall_forward(by);
        self.0.timers.ring_due(self.0.now_ns.load(Ordering::Acquire));
    }

    fn set_wall_forward(&self, by: Duration) {
        let us = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        self.0.wall_us.fetch_add(us, Ordering::AcqRel);
    }

    /// Sets the wall clock, as people do: forwards or back, while no time goes by.
    pub fn set_wall(&self, wall_us: i64) {
        self.0.wall_us.store(wall_us, Ordering::Release);
    }

    /// Wakes a task at that time.
    pub(crate) fn set_timer(&self, at_ns: u64, waker: Arc<dyn Waker>) {
        self.0.timers.set(at_ns, waker);
        // The clock may have been moved meanwhile.
        self.0.timers.ring_due(self.0.now_ns.load(Ordering::Acquire));
    }
}

impl PartialEq for ManualClock {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ManualClock {}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ManualClock({} us)", self.0.wall_us.load(Ordering::Relaxed))
    }
}
