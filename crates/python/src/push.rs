//! Sources that the user pushes to, from any thread.
//!
//! H1. The feed is in its slot or with one thread that pushes. `close` does not wait for that thread: it leaves a note,
//!     and whoever brings the feed back drops it.

use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use penstock_engine::{Feed, FeedEnd, OutsideError, Pushed, Query, RunError, SharedSource, feed};
use pyo3::prelude::*;

use crate::arrow::one_batch;
use crate::errors::{closed_error, consumed, ended_error, marking_error, run_error};
use crate::process::Here;
use crate::wait::{GLANCE, timeout};

/// How long a query that takes no more is waited for, to know why.
const PATIENCE: Duration = Duration::from_secs(1);

/// Who takes the rows.
pub(crate) enum Taker {
    Query(Query),
    Source(SharedSource),
}

struct Slot {
    feed: Option<Feed>,
    is_closed: bool,
}

struct Inner {
    slot: Mutex<Slot>,
    /// The feed is back, or will never be.
    returned: Condvar,
    end: Mutex<Option<FeedEnd>>,
    taker: OnceLock<Taker>,
}

/// What became of a push, for the time being.
enum Tried {
    Taken,
    Full(RecordBatch),
    Ended,
    Closed,
    Failed(OutsideError),
}

/// A source that is pushed to.
#[pyclass(frozen, module = "penstock._penstock")]
pub struct PushSource {
    inner: Here<Inner>,
}

impl Taker {
    /// Why nothing is taken any more.
    fn reason(&self) -> (String, Option<std::sync::Arc<RunError>>) {
        match self {
            Self::Query(query) => {
                query.wait(PATIENCE);
                (format!("the query \"{}\" has ended: it takes no more rows", query.name()), query.error())
            }
            Self::Source(source) => {
                source.wait(PATIENCE);
                (
                    format!("the shared source \"{}\" has ended: it takes no more rows", source.name()),
                    source.error(),
                )
            }
        }
    }
}

impl Inner {
    fn locked(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the feed, waiting for as long as others have it. `None` when it is closed or the time is over.
    fn take_feed(&self, until: Instant) -> Result<Feed, Tried> {
        let mut slot = self.locked();
        loop {
            if slot.is_closed {
                return Err(Tried::Closed);
            }
            if let Some(feed) = slot.feed.take() {
                return Ok(feed);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Tried::Ended); // replaced by the caller, who has the batch
            }
            slot = self.returned.wait_timeout(slot, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn give_back(&self, feed: Feed) {
        let mut slot = self.locked();
        if !slot.is_closed {
            slot.feed = Some(feed);
        } // else H1: it is dropped here, which ends the input
        drop(slot);
        self.returned.notify_one();
    }

    fn try_push(&self, batch: RecordBatch, slice: Duration) -> Tried {
        let until = Instant::now() + slice;
        let mut feed = match self.take_feed(until) {
            Ok(feed) => feed,
            Err(Tried::Closed) => return Tried::Closed,
            Err(_) => return Tried::Full(batch),
        };
        let pushed = feed.push(batch, until.saturating_duration_since(Instant::now()));
        self.give_back(feed);
        match pushed {
            Pushed::Taken => Tried::Taken,
            Pushed::Full(back) => Tried::Full(back),
            Pushed::Ended => Tried::Ended,
            Pushed::Failed(error) => Tried::Failed(error),
        }
    }
}

impl PushSource {
    /// The end that a query reads from, once.
    pub(crate) fn take_end(&self, py: Python<'_>) -> PyResult<FeedEnd> {
        let inner = self.inner.get(py)?;
        let end = py.detach(|| inner.end.lock().unwrap_or_else(PoisonError::into_inner).take());
        end.ok_or_else(|| {
            consumed(py, "this PushSource was submitted before, and can be read only once; make another one, or share it with engine.source(...)")
        })
    }

    /// Remembers who takes the rows.
    pub(crate) fn set_taker(&self, py: Python<'_>, taker: Taker) -> PyResult<()> {
        // It is set once: only one could take the end.
        let _ = self.inner.get(py)?.taker.set(taker);
        Ok(())
    }
}

#[pymethods]
impl PushSource {
    #[new]
    fn new(capacity: usize) -> Self {
        let (feed, end) = feed(capacity);
        let inner = Inner {
            slot: Mutex::new(Slot { feed: Some(feed), is_closed: false }),
            returned: Condvar::new(),
            end: Mutex::new(Some(end)),
            taker: OnceLock::new(),
        };
        Self { inner: Here::new(inner) }
    }

    /// Hands rows over. Whether they were taken before the time was over.
    #[pyo3(signature = (data, timeout=None))]
    fn push(&self, py: Python<'_>, data: &Bound<'_, PyAny>, timeout: Option<f64>) -> PyResult<bool> {
        let inner = self.inner.get(py)?;
        let timeout = self::timeout(timeout)?;
        let mut waiting = one_batch(data, "data")?;
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            match py.detach(|| inner.try_push(waiting, left.unwrap_or(GLANCE).min(GLANCE))) {
                Tried::Taken => return Ok(true),
                Tried::Closed => return Err(closed_error(py)),
                Tried::Failed(error) => return Err(marking_error(py, &error)),
                Tried::Ended => {
                    let reason = py.detach(|| inner.taker.get().map(Taker::reason));
                    let (message, error) = reason
                        .unwrap_or_else(|| ("the query has ended: it takes no more rows".to_owned(), None));
                    let cause = error.filter(|error| !matches!(**error, RunError::Stopped));
                    return Err(ended_error(py, message, cause.map(|error| run_error(py, &error))));
                }
                Tried::Full(back) => waiting = back,
            }
            py.check_signals()?;
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(false);
            }
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
