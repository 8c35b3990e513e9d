//! What time it is.
//!
//! Two clocks: one that only grows, by which the engine measures and waits, and the one on the wall, which people may set.
//! Both can be replaced by a [`ManualClock`], whose hands are moved by whoever tests what happens as time goes by.

use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use crate::engine::bell::Bell;
use crate::engine::timers::Timers;

/// Now. Only grows, and is the same for all threads.
pub fn now_ns() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let start = *START.get_or_init(Instant::now);
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Where idle sources, windows that close by the clock and times of arrival get their time from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Timepiece {
    /// From the system.
    #[default]
    System,
    /// From somebody who moves the hands.
    Manual(ManualClock),
}

impl Timepiece {
    /// The time that only grows.
    pub fn now_ns(&self) -> u64 {
        match self {
            Self::System => now_ns(),
            Self::Manual(clock) => clock.0.now_ns.load(Ordering::Acquire),
        }
    }

    /// Microseconds since 1970 by the clock on the wall.
    pub fn wall_us(&self) -> i64 {
        match self {
            Self::System => {
                let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
                since.map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
            }
            Self::Manual(clock) => clock.0.wall_us.load(Ordering::Acquire),
        }
    }
}

/// When somebody wants to be woken if nothing happens before: by the time of the system, by the clock of the query, or by
/// either. The two cannot be compared: the hands of a [`ManualClock`] stand still while time goes by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Until {
    pub(crate) system_ns: Option<u64>,
    pub(crate) clock_ns: Option<u64>,
}

impl Until {
    pub(crate) fn system(ns: u64) -> Self {
        Self { system_ns: Some(ns), clock_ns: None }
    }

    pub(crate) fn clock(ns: u64) -> Self {
        Self { system_ns: None, clock_ns: Some(ns) }
    }

    /// Whichever of the two comes first, by either time.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            system_ns: earlier(self.system_ns, other.system_ns),
            clock_ns: earlier(self.clock_ns, other.clock_ns),
        }
    }

    /// The same, where that is the clock: without hands to be moved there is one time.
    pub(crate) fn on(self, clock: &Timepiece) -> Self {
        match clock {
            Timepiece::System => Self { system_ns: earlier(self.system_ns, self.clock_ns), clock_ns: None },
            Timepiece::Manual(_) => self,
        }
    }
}

fn earlier(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

struct Hands {
    now_ns: AtomicU64,
    wall_us: AtomicI64,
    timers: Timers,
}

/// A clock that stands still until somebody moves its hands. Clones are the same clock.
#[derive(Clone)]
pub struct ManualClock(Arc<Hands>);

impl ManualClock {
    /// A clock that shows so many microseconds since 1970 on the wall.
    pub fn new(wall_us: i64) -> Self {
        let now_ns = AtomicU64::new(now_ns());
        Self(Arc::new(Hands { now_ns, wall_us: AtomicI64::new(wall_us), timers: Timers::default() }))
    }

    /// Lets time go by, on both clocks, and wakes whoever has waited for that.
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

    /// Sets the clock on the wall, as people do: forwards or back, while no time goes by.
    pub fn set_wall(&self, wall_us: i64) {
        self.0.wall_us.store(wall_us, Ordering::Release);
    }

    /// Rings at that time.
    pub(crate) fn set_timer(&self, at_ns: u64, bell: &Arc<Bell>) {
        self.0.timers.set(at_ns, bell);
        // The hands may have been moved meanwhile.
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
