//! Wakes tasks at times that they have asked for.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use penstock_tasks::waker::Waker;

struct Timer {
    at_ns: u64,
    waker: Arc<dyn Waker>,
}

impl PartialEq for Timer {
    fn eq(&self, other: &Self) -> bool {
        self.at_ns == other.at_ns
    }
}

impl Eq for Timer {}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timer {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at_ns.cmp(&other.at_ns)
    }
}

/// Timers of all tasks.
#[derive(Default)]
pub(crate) struct Timers(Mutex<BinaryHeap<Reverse<Timer>>>);

impl Timers {
    fn locked(&self) -> MutexGuard<'_, BinaryHeap<Reverse<Timer>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Schedules a wake-up at `at_ns`; returns true if it is now the earliest.
    pub(crate) fn set(&self, at_ns: u64, waker: Arc<dyn Waker>) -> bool {
        let mut timers = self.locked();
        let is_first = timers.peek().is_none_or(|Reverse(first)| at_ns < first.at_ns);
        timers.push(Reverse(Timer { at_ns, waker }));
        is_first
    }

    /// Wakes the tasks whose time has come. Returns the time of the next one.
    pub(crate) fn ring_due(&self, now_ns: u64) -> Option<u64> {
        loop {
            let waker = {
                let mut timers = self.locked();
                match timers.peek() {
                    None => return None,
                    Some(Reverse(first)) if first.at_ns > now_ns => return Some(first.at_ns),
                    Some(_) => timers.pop().map(|Reverse(timer)| timer.waker),
                }
            };
            if let Some(waker) = waker {
                waker.request_run();
            }
        }
    }

    /// Drops all timers.
    pub(crate) fn clear(&self) {
        self.locked().clear();
    }
}
