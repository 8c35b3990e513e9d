//! The clock as tasks see it.
//!
//! Tasks never read a clock of the system: their host passes one in. A query has two times. *System* time is
//! what costs, latencies and rates are measured by. *Query* time decides when a source is idle and when windows close
//! without rows; a test may move it by hand, while system time goes on.

use std::sync::Arc;
use std::time::Duration;

/// Tells the time.
pub trait Clock: Send + Sync {
    /// Returns the monotonic time of the system.
    fn system_ns(&self) -> u64;

    /// Returns the monotonic time of the query.
    fn now_ns(&self) -> u64;

    /// Returns the wall-clock time of the query, in microseconds since 1970.
    fn wall_us(&self) -> i64;

    /// Returns the wall-clock time at `system_ns`, a recent time of the system.
    fn wall_us_at(&self, system_ns: u64) -> i64;
}

/// A clock that several threads read.
pub type SharedClock = Arc<dyn Clock>;

/// Returns the system time that has passed since `since_ns`.
pub fn elapsed_ns(clock: &dyn Clock, since_ns: u64) -> u64 {
    clock.system_ns().saturating_sub(since_ns)
}

/// A time up to which a caller waits.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    /// `None` lies too far ahead to be counted.
    at_ns: Option<u64>,
    timeout: Duration,
}

impl Deadline {
    /// Returns the deadline `timeout` from now.
    pub fn after(clock: &dyn Clock, timeout: Duration) -> Self {
        let ns = u64::try_from(timeout.as_nanos()).ok();
        Self { at_ns: ns.and_then(|ns| clock.system_ns().checked_add(ns)), timeout }
    }

    /// Returns the time that is left; zero once the deadline has passed.
    pub fn left(&self, clock: &dyn Clock) -> Duration {
        self.at_ns.map_or(self.timeout, |at_ns| Duration::from_nanos(at_ns.saturating_sub(clock.system_ns())))
    }
}

/// When a task asks to run again if nothing wakes it before: at a system time, at a query time, or at either. The two
/// cannot be compared, since query time may be moved by hand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Until {
    /// A time of the system.
    pub system_ns: Option<u64>,
    /// A time of the query.
    pub clock_ns: Option<u64>,
}

impl Until {
    /// Waits for a system time.
    pub fn system(ns: u64) -> Self {
        Self { system_ns: Some(ns), clock_ns: None }
    }

    /// Waits for a query time.
    pub fn clock(ns: u64) -> Self {
        Self { system_ns: None, clock_ns: Some(ns) }
    }

    /// Waits for the earlier of two times, of either kind.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            system_ns: earlier(self.system_ns, other.system_ns),
            clock_ns: earlier(self.clock_ns, other.clock_ns),
        }
    }

    /// Waits for the same times, where query time is system time.
    #[must_use]
    pub fn on_system_clock(self) -> Self {
        Self { system_ns: earlier(self.system_ns, self.clock_ns), clock_ns: None }
    }
}

fn earlier(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// A clock whose three times are one number.
    #[derive(Debug, Default)]
    pub(crate) struct Hand(AtomicU64);

    impl Hand {
        pub fn at(ns: u64) -> Arc<Self> {
            Arc::new(Self(AtomicU64::new(ns)))
        }

        pub fn set(&self, ns: u64) {
            self.0.store(ns, Ordering::Relaxed);
        }
    }

    impl Clock for Hand {
        fn system_ns(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }

        fn now_ns(&self) -> u64 {
            self.system_ns()
        }

        fn wall_us(&self) -> i64 {
            (self.system_ns() / 1000) as i64
        }

        fn wall_us_at(&self, system_ns: u64) -> i64 {
            (system_ns / 1000) as i64
        }
    }

    #[test]
    fn the_earlier_time_counts_for_each_clock() {
        let both = Until::system(5).or(Until::clock(3)).or(Until::system(4));
        assert_eq!(both, Until { system_ns: Some(4), clock_ns: Some(3) });
        assert_eq!(both.on_system_clock(), Until::system(3));
        assert_eq!(Until::default().or(Until::default()), Until::default());
    }

    #[test]
    fn a_deadline_passes_unless_it_is_too_far_ahead() {
        let clock = Hand::at(1_000);
        let deadline = Deadline::after(&*clock, Duration::from_nanos(500));
        assert_eq!(deadline.left(&*clock), Duration::from_nanos(500));
        clock.set(2_000);
        assert_eq!(deadline.left(&*clock), Duration::ZERO);
        let never = Deadline::after(&*clock, Duration::MAX);
        clock.set(u64::MAX);
        assert_eq!(never.left(&*clock), Duration::MAX);
    }
}
