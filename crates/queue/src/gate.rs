//! A place where one thread sleeps until another thread signals it.
//!
//! One thread waits, any number signal. The protocol needs no fence, because every step is a read-modify-write of one
//! state word, and those are totally ordered:
//!
//! GATE-1. A signaller publishes first and then swaps READY in. If the swap returns WAITING, the signaller wakes the
//!     waiter.
//! GATE-2. The waiter goes to sleep only through a compare-exchange from EMPTY to WAITING, made with the lock held.
//!     The exchange fails when READY is set, so the waiter never sleeps through an earlier signal; a later signal sees
//!     WAITING, takes the lock, and thus finds the waiter asleep.

use std::time::Duration;

use crate::sync::{AtomicU32, Condvar, Mutex, MutexGuard, Ordering, ordering, planted};

const EMPTY: u32 = 0;
const READY: u32 = 1;
const WAITING: u32 = 2;

/// A gate for one waiter.
#[derive(Debug)]
pub struct Gate {
    state: AtomicU32,
    lock: Mutex<()>,
    woken: Condvar,
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

impl Gate {
    /// Creates a gate without a signal.
    pub fn new() -> Self {
        Self { state: AtomicU32::new(EMPTY), lock: Mutex::new(()), woken: Condvar::new() }
    }

    /// Signals the waiter that something was published.
    pub fn signal(&self) {
        // AcqRel: Release hands over what was published before; it pairs with the Acquire in `take_signal`.
        if self.state.swap(READY, ordering("gate.signal", Ordering::AcqRel)) == WAITING {
            if !planted("gate.lock") {
                drop(self.locked());
            }
            if !planted("gate.notify") {
                self.woken.notify_one();
            }
        }
    }

    fn locked(&self) -> MutexGuard<'_, ()> {
        // The lock guards no data, so a panic of its holder breaks no invariant.
        self.lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn take_signal(&self) -> bool {
        let success = ordering("gate.take", Ordering::AcqRel);
        self.state.compare_exchange(READY, EMPTY, success, Ordering::Acquire).is_ok()
    }

    /// Sleeps until a signal comes or `timeout` has passed; returns true if a signal came.
    ///
    /// A signal from before the call counts. The caller checks what it waits for in either case.
    pub fn wait(&self, timeout: Duration) -> bool {
        if self.take_signal() {
            return true;
        }
        let guard = self.locked();
        if self.state.compare_exchange(EMPTY, WAITING, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return self.take_signal();
        }
        let guard = self.sleep(guard, timeout);
        drop(guard);
        // If the state is no longer WAITING, a signaller has changed it: no other thread leaves that state.
        if self.state.compare_exchange(WAITING, EMPTY, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            return false;
        }
        self.take_signal()
    }

    #[cfg(not(any(loom, shuttle)))]
    fn sleep<'a>(&self, guard: MutexGuard<'a, ()>, timeout: Duration) -> MutexGuard<'a, ()> {
        let still = |_: &mut ()| self.state.load(Ordering::Acquire) == WAITING;
        match self.woken.wait_timeout_while(guard, timeout, still) {
            Ok((guard, _)) => guard,
            Err(poisoned) => poisoned.into_inner().0,
        }
    }

    /// In a model check a sleep has no time-out, so that a lost wake-up shows as a deadlock.
    #[cfg(any(loom, shuttle))]
    fn sleep<'a>(&self, mut guard: MutexGuard<'a, ()>, _timeout: Duration) -> MutexGuard<'a, ()> {
        while self.state.load(Ordering::Acquire) == WAITING {
            guard = self.woken.wait(guard).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        guard
    }
}
