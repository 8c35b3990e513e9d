//! Python functions that take results, called on a thread of their own.
//!
//! CALLBACK-1. The thread reads the results of its query like any reader. A query has ended for its user when the
//!     thread has, too: after the last batch, or soon after the query was stopped or failed.
//! CALLBACK-2. The function is held in a [`Slot`], which the query shows to the collector.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use penstock_engine::results::Next;
use penstock_engine::{Query, Results, RunError, Status};
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};

use crate::batch::Batch;
use crate::border::caught_as_raised;
use crate::errors::thread_error;
use crate::raised::Raised;
use crate::slot::Slot;
use crate::{foreign, threads};

/// Where the results of an output go.
#[derive(Clone)]
pub(crate) enum Destination {
    Results,
    Collected,
    Nowhere,
    Function(Arc<Callback>),
}

/// How long the thread waits before it checks for a stop. The end of the query wakes it anyway.
const SLICE: Duration = Duration::from_millis(250);

#[derive(Default)]
struct Outcome {
    /// Its duration, once it has ended.
    seconds: Option<f64>,
    failure: Option<Raised>,
    /// True if it was stopped before it had taken all results.
    gave_up: bool,
}

/// A function that receives results.
pub(crate) struct Callback {
    /// The function, until the thread has ended or the collector has taken it (CALLBACK-2).
    function: Slot,
    started: Instant,
    outcome: Mutex<Outcome>,
    changed: Condvar,
    thread: OnceLock<ThreadId>,
    /// Set when the query is stopped: no further call.
    is_stopping: AtomicBool,
}

/// Ends the callback with its thread, however that ends.
struct EndingCallback(Arc<Callback>);

impl Drop for EndingCallback {
    fn drop(&mut self) {
        let seconds = self.0.started.elapsed().as_secs_f64();
        self.0.locked().seconds = Some(seconds);
        self.0.changed.notify_all();
    }
}

/// The outcome of a call.
enum Called {
    Well,
    Raised(Raised),
    /// The function is gone.
    Gone,
}

impl Callback {
    fn locked(&self) -> MutexGuard<'_, Outcome> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls the function with each batch, until there are no more.
    pub(crate) fn start(function: Slot, query: Query, results: Results) -> std::io::Result<Arc<Self>> {
        let callback = Arc::new(Self {
            function,
            started: Instant::now(),
            outcome: Mutex::default(),
            changed: Condvar::new(),
            thread: OnceLock::new(),
            is_stopping: AtomicBool::new(false),
        });
        let ending = EndingCallback(Arc::clone(&callback));
        threads::start("penstock-sink", move || {
            let ending = ending;
            let _ = ending.0.thread.set(thread::current().id());
            let worked = caught_as_raised(|| ending.0.work(&query, &results));
            if let Err(Some(raised)) = worked {
                ending.0.fail(&query, raised);
            }
            Python::try_attach(|_| ending.0.let_go());
        })?;
        Ok(callback)
    }

    /// Shows the function to the collector.
    pub(crate) fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.function.visit(visit)
    }

    /// Releases the function: there is no further call.
    pub(crate) fn let_go(&self) {
        self.function.let_go();
    }

    fn call(&self, batch: RecordBatch) -> Called {
        let called = Python::try_attach(|py| {
            let Some(function) = self.function.get(py) else { return Called::Gone };
            let batch = Bound::new(py, Batch::new(batch));
            match batch.and_then(|batch| foreign::call_with(&function, &batch)) {
                Ok(_) => Called::Well,
                Err(error) => Called::Raised(Raised::new(py, error)),
            }
        });
        called.unwrap_or(Called::Gone)
    }

    fn work(&self, query: &Query, results: &Results) {
        loop {
            results.wait(SLICE);
            let is_over = matches!(query.status(), Status::Stopped | Status::Failed);
            if is_over || self.is_stopping.load(Ordering::Acquire) {
                self.locked().gave_up = results.rows() > 0;
                return;
            }
            let batch = match results.take_for_function() {
                Next::Batch(batch) => batch,
                Next::Nothing => continue,
                Next::Ended => return,
            };
            match self.call(batch) {
                Called::Well => results.note_handed_over(),
                Called::Raised(raised) => return self.fail(query, raised),
                Called::Gone => return query.stop(),
            }
        }
    }

    /// Fails the query with the exception that the function has raised.
    fn fail(&self, query: &Query, raised: Raised) {
        query.fail(RunError::Outside { what: "sink", error: Box::new(raised.clone()) });
        self.locked().failure = Some(raised);
    }

    /// Ends it after the current call.
    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
    }

    /// Returns true on its thread.
    pub(crate) fn is_this_thread(&self) -> bool {
        self.thread.get() == Some(&thread::current().id())
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.locked().seconds.is_some()
    }

    /// Returns how long it has been running, or ran.
    pub(crate) fn seconds(&self) -> f64 {
        let ended = self.locked().seconds;
        ended.unwrap_or_else(|| self.started.elapsed().as_secs_f64())
    }

    /// Returns the exception that the function has raised, if any.
    pub(crate) fn failure(&self) -> Option<Raised> {
        self.locked().failure.clone()
    }

    /// Returns true if the query was stopped before it had taken all results.
    pub(crate) fn gave_up(&self) -> bool {
        self.locked().gave_up
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.locked().failure.is_some()
    }

    /// Waits until it has ended, or `timeout` is over; returns true if it has ended.
    pub(crate) fn wait(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let mut outcome = self.locked();
        while outcome.seconds.is_none() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            outcome = self.changed.wait_timeout(outcome, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

/// Calls a function with each batch of these results, on a thread of its own.
pub(crate) fn call_back(
    py: Python<'_>,
    function: &Bound<'_, PyAny>,
    query: &Query,
    results: &Results,
) -> PyResult<Arc<Callback>> {
    let (function, running, results) = (Slot::new(function), query.clone(), results.clone());
    match py.detach(|| Callback::start(function, running, results)) {
        Ok(callback) => Ok(callback),
        Err(error) => {
            query.stop();
            Err(thread_error(&error))
        }
    }
}
