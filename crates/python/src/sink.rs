//! Python functions that take results, called on a thread of their own.
//!
//! K1. The thread reads the results of its query like anybody else. A query has ended for its user when the thread has,
//!     too: behind the last batch, or soon after the query was stopped or failed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use penstock_engine::results::Next;
use penstock_engine::{Query, Results, RunError, Status};
use pyo3::prelude::*;

use crate::batch::Batch;
use crate::errors::Raised;
use crate::{foreign, threads};

/// How long the thread waits before it looks around. The end of the query wakes it anyway.
const SLICE: Duration = Duration::from_millis(250);

#[derive(Default)]
struct Outcome {
    has_ended: bool,
    failure: Option<PyErr>,
}

/// A function at work.
#[derive(Default)]
pub(crate) struct Callback {
    outcome: Mutex<Outcome>,
    changed: Condvar,
    thread: OnceLock<ThreadId>,
    /// Set by whoever stops the query: no further call.
    is_stopping: AtomicBool,
}

/// Ends the callback with its thread, however that ends.
struct Ending(Arc<Callback>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.locked().has_ended = true;
        self.0.changed.notify_all();
    }
}

fn call(function: &Py<PyAny>, batch: RecordBatch) -> Result<(), PyErr> {
    let called = Python::try_attach(|py| {
        let batch = Bound::new(py, Batch::new(batch))?;
        foreign::call_with(function.bind(py), &batch).map(|_| ())
    });
    // Without an interpreter there is nobody left to call.
    called.unwrap_or(Ok(()))
}

impl Callback {
    fn locked(&self) -> MutexGuard<'_, Outcome> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls the function with each batch, until there are no more.
    pub(crate) fn start(function: Py<PyAny>, query: Query, results: Results) -> std::io::Result<Arc<Self>> {
        let callback = Arc::new(Self::default());
        let ending = Ending(Arc::clone(&callback));
        threads::start("penstock-sink", move || {
            let ending = ending;
            let _ = ending.0.thread.set(thread::current().id());
            ending.0.work(&function, &query, &results);
            Python::try_attach(|_| drop(function));
        })?;
        Ok(callback)
    }

    fn work(&self, function: &Py<PyAny>, query: &Query, results: &Results) {
        loop {
            results.wait(SLICE);
            let is_over = matches!(query.status(), Status::Stopped | Status::Failed);
            if is_over || self.is_stopping.load(Ordering::Acquire) {
                return;
            }
            let batch = match results.take() {
                Next::Batch(batch) => batch,
                Next::Nothing => continue,
                Next::Ended => return,
            };
            if let Err(error) = call(function, batch) {
                let ours = Python::try_attach(|py| error.clone_ref(py));
                query.fail(RunError::Outside { what: "sink", error: Box::new(Raised(error)) });
                self.locked().failure = ours;
                return;
            }
        }
    }

    /// Makes it end, behind the call that it is in.
    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
    }

    /// Whether this is its thread.
    pub(crate) fn is_this_thread(&self) -> bool {
        self.thread.get() == Some(&thread::current().id())
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.locked().has_ended
    }

    /// What the function has raised, if it did.
    pub(crate) fn failure(&self, py: Python<'_>) -> Option<PyErr> {
        self.locked().failure.as_ref().map(|error| error.clone_ref(py))
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.locked().failure.is_some()
    }

    /// Waits until it has ended, or `timeout` is over. Whether it has ended.
    pub(crate) fn wait(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let mut outcome = self.locked();
        while !outcome.has_ended {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            outcome = self.changed.wait_timeout(outcome, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}
