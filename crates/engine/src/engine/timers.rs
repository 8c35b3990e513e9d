//! Who is to be woken when.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::bell::Bell;

struct Timer {
    at_ns: u64,
    bell: Arc<Bell>,
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

    /// Rings the bell at that time. Whether no other one rings before.
    pub(crate) fn set(&self, at_ns: u64, bell: &Arc<Bell>) -> bool {
        let mut timers = self.locked();
        let is_first = timers.peek().is_none_or(|Reverse(first)| at_ns < first.at_ns);
        timers.push(Reverse(Timer { at_ns, bell: Arc::clone(bell) }));
        is_first
    }

    /// Rings the bells whose time has come. When the next one's does.
    pub(crate) fn ring_due(&self, now_ns: u64) -> Option<u64> {
        loop {
            let bell = {
                let mut timers = self.locked();
                match timers.peek() {
                    None => return None,
                    Some(Reverse(first)) if first.at_ns > now_ns => return Some(first.at_ns),
                    Some(_) => timers.pop().map(|Reverse(timer)| timer.bell),
                }
            };
            if let Some(bell) = bell {
                bell.call();
            }
        }
    }

    /// Forgets all.
    pub(crate) fn clear(&self) {
        self.locked().clear();
    }
}
