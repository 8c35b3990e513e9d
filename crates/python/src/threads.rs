//! Threads for code that runs Python: iterators, Arrow streams, sinks. None of it runs on a worker.
//!
//! USER_THREADS-1. Such a thread may never return from the user's code, so it is not joined: the exit of the process
//!     waits for it a little, so that most of them end before the interpreter does.

use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::process::PerProcess;

#[derive(Default)]
struct RunningThreads {
    threads: Mutex<usize>,
    changed: Condvar,
}

static RUNNING: PerProcess<RunningThreads> = PerProcess::new();

impl RunningThreads {
    fn locked(&self) -> MutexGuard<'_, usize> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a thread for as long as it runs.
struct Counted(&'static RunningThreads);

impl Drop for Counted {
    fn drop(&mut self) {
        *self.0.locked() -= 1;
        self.0.changed.notify_all();
    }
}

/// Starts a thread that may run Python code.
pub(crate) fn start(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let running = RUNNING.get_or_make();
    *running.locked() += 1;
    let counted = Counted(running);
    let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
        let _counted = counted;
        work();
    });
    thread.map(|_| ())
}

/// Waits until all of these threads have ended, or `timeout` is over.
pub(crate) fn wait_for_all(timeout: Duration) {
    let Some(running) = RUNNING.get() else { return };
    let deadline = Instant::now() + timeout;
    let mut threads = running.locked();
    while *threads > 0 {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        threads = running.changed.wait_timeout(threads, left).unwrap_or_else(PoisonError::into_inner).0;
    }
}
