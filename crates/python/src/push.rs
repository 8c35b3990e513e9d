//! Sources to which the user pushes batches, from any thread.
//!
//! PUSH-1. The feed is in its slot or owned by one thread that pushes. `close` does not wait for that thread: it sets a
//!     flag, and the thread that returns the feed drops it.

use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use penstock_border::guarded;
use penstock_engine::{Feed, FeedEnd, FeedHandle, Pushed, feed};
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};

use crate::arrow::one_batch;
use crate::errors::{
    closed_error, consumed, ended_error, marking_error, pushes_to_itself, run_error, unfit_error,
    waits_for_itself,
};
use crate::process::Here;
use crate::query::Query;
use crate::shared::SharedSource;
use crate::wait::{GLANCE, timeout};

/// How long a push waits for a query that takes no more rows, to learn why.
const PATIENCE: Duration = Duration::from_secs(1);

/// The query or shared source that takes the rows.
pub(crate) enum Taker {
    Query(Py<Query>),
    Source(Py<SharedSource>),
}

struct FeedSlot {
    feed: Option<Feed>,
    is_closed: bool,
}

struct PushState {
    handle: FeedHandle,
    slot: Mutex<FeedSlot>,
    /// Notified when the feed is back, or the source is closed.
    returned: Condvar,
    /// The end that a query reads, until one has started; lent while one is being started (see [`Loan`]).
    end: Mutex<Option<FeedEnd>>,
    taker: OnceLock<Taker>,
}

/// A source that is pushed to.
#[pyclass(frozen, module = "penstock._penstock")]
pub struct PushSource {
    inner: Here<PushState>,
}

impl Taker {
    fn describe(&self) -> Option<String> {
        Some(match self {
            Self::Query(query) => format!("the query \"{}\"", query.get().running()?.name()),
            Self::Source(source) => format!("the shared source \"{}\"", source.get().running()?.name()),
        })
    }

    /// Returns true if this thread runs tasks of its engine.
    fn is_run_here(&self) -> bool {
        match self {
            Self::Query(query) => query.get().running().is_some_and(|query| query.is_run_here()),
            Self::Source(source) => source.get().running().is_some_and(|source| source.is_run_here()),
        }
    }

    /// Waits until it has ended, and returns a message that says so.
    fn ended(&self) -> Option<String> {
        match self {
            Self::Query(query) => {
                let query = query.get().running()?;
                query.wait(PATIENCE);
            }
            Self::Source(source) => {
                let source = source.get().running()?;
                source.wait(PATIENCE);
            }
        }
        Some(format!("{} has ended: it takes no more rows", self.describe()?))
    }

    /// Returns the error that it has failed with, if any.
    fn cause(&self, py: Python<'_>) -> Option<PyErr> {
        match self {
            Self::Query(query) => query.get().cause(py),
            Self::Source(source) => source.get().cause(py),
        }
    }
}

impl PushState {
    fn locked(&self) -> MutexGuard<'_, FeedSlot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) -> MutexGuard<'_, Option<FeedEnd>> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the feed, waiting while other threads own it: `Some(None)` when time is over. `None` when it is closed.
    fn take_feed(&self, until: Instant) -> Option<Option<Feed>> {
        let mut slot = self.locked();
        loop {
            if slot.is_closed {
                return None;
            }
            if let Some(feed) = slot.feed.take() {
                return Some(Some(feed));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Some(None);
            }
            slot = self.returned.wait_timeout(slot, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn give_back(&self, feed: Feed) {
        let mut slot = self.locked();
        if !slot.is_closed {
            slot.feed = Some(feed);
        } // else PUSH-1: it is dropped here, which ends the input
        drop(slot);
        self.returned.notify_one();
    }

    /// Pushes a batch, waiting up to `slice`. `None` when the source is closed.
    fn try_push(&self, batch: RecordBatch, slice: Duration) -> Option<Pushed> {
        if self.handle.is_asking_here() {
            return Some(Pushed::Itself); // this thread may have the feed, further up
        }
        let until = Instant::now() + slice;
        let Some(mut feed) = self.take_feed(until)? else { return Some(Pushed::Full(batch)) };
        let pushed = feed.push(batch, until.saturating_duration_since(Instant::now()));
        self.give_back(feed);
        Some(pushed)
    }
}

/// The end of a `PushSource`, lent to a query that is being started. If the query does not start, the source is as
/// before.
pub(crate) struct Loan<'py> {
    source: Bound<'py, PushSource>,
    /// `None` only once the query has started.
    end: Option<FeedEnd>,
}

impl<'py> Loan<'py> {
    /// Borrows the end that one query reads.
    pub(crate) fn new(source: &Bound<'py, PushSource>) -> PyResult<Self> {
        let py = source.py();
        let inner = source.get().inner.get(py)?;
        let Some(end) = py.detach(|| inner.end().take()) else {
            let text = "this PushSource was submitted before, and can be read only once; make another one, or share it with engine.source(...)";
            return Err(consumed(py, text));
        };
        Ok(Self { source: source.clone(), end: Some(end) })
    }

    /// Lends the end to the engine. Batches must have the columns of `schema`, also those that were pushed before.
    pub(crate) fn lend(&self, schema: Option<&SchemaRef>) -> PyResult<FeedEnd> {
        let py = self.source.py();
        let end = self.end.as_ref().expect("a loan has its end until it is kept").lend();
        let expected = schema.map_or(Ok(()), |schema| py.detach(|| end.expect(schema)));
        expected.map(|()| end).map_err(|error| run_error(py, &error))
    }

    /// Notes that the query has started, and that it takes the rows.
    pub(crate) fn keep(mut self, taker: Taker) -> PyResult<()> {
        self.end = None;
        // It is set once: only one could take the end.
        let _ = self.source.get().inner.get(self.source.py())?.taker.set(taker);
        Ok(())
    }
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        let (Some(end), Some(inner)) = (self.end.take(), self.source.get().inner.here()) else { return };
        self.source.py().detach(|| {
            if end.take_back() {
                *inner.end() = Some(end);
            }
        });
    }
}

#[guarded]
#[pymethods]
impl PushSource {
    #[new]
    fn new(capacity: usize) -> Self {
        let (feed, end) = feed(capacity);
        let inner = PushState {
            handle: feed.handle(),
            slot: Mutex::new(FeedSlot { feed: Some(feed), is_closed: false }),
            returned: Condvar::new(),
            end: Mutex::new(Some(end)),
            taker: OnceLock::new(),
        };
        Self { inner: Here::new(inner) }
    }

    /// Pushes rows; returns true if they were taken in time.
    #[pyo3(signature = (data, timeout=None))]
    fn push(&self, py: Python<'_>, data: &Bound<'_, PyAny>, timeout: Option<f64>) -> PyResult<bool> {
        let inner = self.inner.get(py)?;
        let timeout = self::timeout(timeout)?;
        let mut waiting = one_batch(data, "data")?;
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            match py.detach(|| inner.try_push(waiting, left.unwrap_or(GLANCE).min(GLANCE))) {
                None => return Err(closed_error(py)),
                Some(Pushed::Taken) => return Ok(true),
                Some(Pushed::Failed(error)) => return Err(marking_error(py, &error)),
                Some(Pushed::Unfit(error)) => return Err(unfit_error(py, &error)),
                Some(Pushed::Ended) => {
                    let taker = inner.taker.get();
                    let message = py.detach(|| taker.and_then(Taker::ended));
                    let message =
                        message.unwrap_or_else(|| "the query has ended: it takes no more rows".to_owned());
                    return Err(ended_error(py, message, taker.and_then(|taker| taker.cause(py))));
                }
                Some(Pushed::Cut) => {
                    let what = inner.taker.get().and_then(Taker::describe);
                    let what = what.unwrap_or_else(|| "the query".to_owned());
                    let message = format!("{what} is coming to its end: it takes no more rows");
                    return Err(ended_error(py, message, None));
                }
                Some(Pushed::Itself) => return Err(pushes_to_itself(py)),
                Some(Pushed::Full(back)) => waiting = back,
            }
            // With only so many workers, room may never come while one of them waits for it.
            if deadline.is_none() && inner.taker.get().is_some_and(Taker::is_run_here) {
                return Err(waits_for_itself(py, true));
            }
            py.check_signals()?;
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(false);
            }
        }
    }

    /// Shows the collector the taker of the rows.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.inner.here().and_then(|inner| inner.taker.get()) {
            Some(Taker::Query(query)) => visit.call(query),
            Some(Taker::Source(source)) => visit.call(source),
            None => Ok(()),
        }
    }

    /// Ends the input. Does nothing if it was closed before.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let inner = self.inner.get(py)?;
        py.detach(|| {
            let mut slot = inner.locked();
            slot.is_closed = true;
            let feed = slot.feed.take();
            drop(slot);
            drop(feed);
            inner.returned.notify_all();
        });
        Ok(())
    }

    #[getter]
    fn is_closed(&self, py: Python<'_>) -> PyResult<bool> {
        let inner = self.inner.get(py)?;
        Ok(py.detach(|| inner.locked().is_closed))
    }
}
