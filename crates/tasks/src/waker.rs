//! How others make a task run.
//!
//! WAKER-1. The wakers of a task, one for each of its inputs, are made before the task: edges, feeds and timers refer
//!     to them, and nothing else wakes the task.
//! WAKER-2. A waker keeps wake-ups that come before the task is installed, or the installer wakes the task once.

use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, OnceLock};

use penstock_queue::wake::Wake;
use penstock_scheduler::table::Pending;

/// Wakes one task. [`Wake::wake`] announces rows, and may wait until enough of them are pending.
pub trait Waker: Wake {
    /// Wakes the task in any case: there may be room for its output again.
    fn ring(&self);

    /// Wakes the task for something that no counter shows, such as a stop or a timer.
    fn request_run(&self);

    /// Says where to look for the work that waits for the task.
    ///
    /// # Panics
    /// When it was said before.
    fn set_pending(&self, pending: Box<dyn Pending>);
}

/// The waker of a task that is not planned yet: a query that joins a shared source has to name a waker before its tasks
/// are known. It passes wake-ups on once it is connected.
#[derive(Default)]
pub struct RelayWaker(OnceLock<Arc<dyn Waker>>);

impl RelayWaker {
    /// Passes wake-ups on to the waker of a task that is not installed yet.
    ///
    /// # Panics
    /// When it was connected before.
    pub fn connect(&self, waker: &Arc<dyn Waker>) {
        assert!(self.0.set(Arc::clone(waker)).is_ok(), "a reader belongs to one task");
        fence(Ordering::SeqCst); // WAKER-2
    }

    /// Returns the connected waker. Without one, the task is installed later, and sees what led here (WAKER-2).
    fn connected(&self) -> Option<&Arc<dyn Waker>> {
        self.0.get().or_else(|| {
            fence(Ordering::SeqCst);
            self.0.get()
        })
    }

    /// Passes on [`Waker::request_run`].
    pub fn request_run(&self) {
        if let Some(waker) = self.connected() {
            waker.request_run();
        }
    }
}

impl Wake for RelayWaker {
    fn wake(&self) {
        if let Some(waker) = self.connected() {
            waker.wake();
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::AtomicU64;

    use penstock_queue::log::Work;

    use super::*;

    /// Counts wake-ups, and keeps what is pending.
    #[derive(Default)]
    pub(crate) struct Counting {
        rung: AtomicU64,
        requested: AtomicU64,
        pending: Mutex<Option<Box<dyn Pending>>>,
    }

    impl Counting {
        /// A waker, as itself and as tasks see it.
        pub fn pair() -> (Arc<Self>, Arc<dyn Waker>) {
            let waker: Arc<Self> = Arc::default();
            (Arc::clone(&waker), waker)
        }

        /// Wake-ups since the last call, requests among them.
        pub fn take(&self) -> u64 {
            self.rung.swap(0, Ordering::Relaxed)
        }

        /// Requests since the last call.
        pub fn take_requests(&self) -> u64 {
            self.requested.swap(0, Ordering::Relaxed)
        }

        pub fn work(&self) -> Work {
            self.pending.lock().unwrap().as_ref().map_or_else(Work::default, |pending| pending.work())
        }

        pub fn arrived_ns(&self) -> Option<u64> {
            self.pending.lock().unwrap().as_ref().and_then(|pending| pending.arrived_ns())
        }
    }

    impl Wake for Counting {
        fn wake(&self) {
            self.ring();
        }
    }

    impl Waker for Counting {
        fn ring(&self) {
            self.rung.fetch_add(1, Ordering::Relaxed);
        }

        fn request_run(&self) {
            self.requested.fetch_add(1, Ordering::Relaxed);
            self.ring();
        }

        fn set_pending(&self, pending: Box<dyn Pending>) {
            assert!(self.pending.lock().unwrap().replace(pending).is_none(), "it was set before");
        }
    }

    #[test]
    fn a_relay_passes_wake_ups_on_once_it_is_connected() {
        let relay = RelayWaker::default();
        relay.wake();
        relay.request_run();
        let (counting, waker) = Counting::pair();
        relay.connect(&waker);
        assert_eq!(counting.take(), 0, "whoever installs the task wakes it");
        relay.wake();
        relay.request_run();
        assert_eq!((counting.take(), counting.take_requests()), (2, 1));
    }
}
