//! Reads Python data for a query: an Arrow object or an iterable of them, on a thread of its own.
//!
//! An iterable may have two more methods. `ready(seconds)` waits for the next item, so that its reader is not blocked
//! in it when the query has ended; `close()` says that it is not read any further. A reading thread waits with its
//! `waiter`, which has a `ready` of its own: so the thread does not refer to the iterable meanwhile (SLOT-2).

use std::sync::Arc;
use std::time::Duration;

use penstock_engine::{Demand, Feed, GiveError, OutsideError, Puller, RefusedBatch};
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyIterator};

use crate::arrow::{Data, open, open_item};
use crate::border::caught_as_raised;
use crate::raised::Raised;
use crate::slot::Slot;
use crate::{foreign, threads};

/// How long a push waits before it checks for a stop. The end of the query wakes it anyway.
const SLICE: Duration = Duration::from_millis(250);

/// Data that is pulled.
pub(crate) enum Pulled {
    Data(Data),
    Items(Arc<Slot>),
}

/// Opens Arrow data, or an iterable of it. Nothing of an iterable is read yet.
pub(crate) fn open_all(data: &Bound<'_, PyAny>) -> PyResult<Pulled> {
    match open(data)? {
        Some(data) => Ok(Pulled::Data(data)),
        None => Ok(Pulled::Items(Slot::shared(&data.try_iter()?.into_any()))),
    }
}

/// Gives data to a query, and reads an Arrow stream to its end.
fn give_data(puller: &mut Puller, data: Data) -> Result<Demand, OutsideError> {
    match data {
        Data::Batch(batch) => puller.give(batch, SLICE, || true).map_err(RefusedBatch::into_outside),
        Data::Stream(reader) => puller.give_all(reader, SLICE, || true).map_err(GiveError::into_outside),
    }
}

/// Waits for the next item, or the end, of an iterable that can be waited for. False when `is_over` is true before
/// that.
pub(crate) fn await_item(
    items: &Bound<'_, PyIterator>,
    slice: Duration,
    is_over: impl FnMut() -> PyResult<bool>,
) -> PyResult<bool> {
    let Ok(ready) = items.getattr("ready") else { return Ok(true) };
    is_ready(&ready, slice, is_over)
}

/// Calls `ready` until it returns true; returns false if `is_over` is true before that.
fn is_ready(
    ready: &Bound<'_, PyAny>,
    slice: Duration,
    mut is_over: impl FnMut() -> PyResult<bool>,
) -> PyResult<bool> {
    let seconds = PyFloat::new(ready.py(), slice.as_secs_f64());
    while !foreign::call_with(ready, &seconds)?.is_truthy()? {
        if is_over()? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Calls the `close` of an iterable that has one.
pub(crate) fn close(items: &Bound<'_, PyIterator>) {
    if let Ok(close) = items.getattr("close")
        && let Err(error) = foreign::call(&close)
    {
        error.write_unraisable(items.py(), Some(items));
    }
}

/// Returns the next item of an iterator; `None` when there is none, none is wanted, or the collector has cleared it.
fn next_item(py: Python<'_>, puller: &mut Puller, items: &Slot) -> PyResult<Option<Data>> {
    // An item that is never asked for is not lost.
    if puller.is_cut() {
        return Ok(None);
    }
    let waiter = items.get(py).and_then(|items| items.getattr("waiter").ok());
    if let Some(waiter) = waiter {
        let ready = waiter.getattr("ready")?;
        // An item that is ready comes at once: it is promised before it is taken, or is not taken. Of other iterables
        // it is not known how long they take, and a drain must not wait for them.
        if !is_ready(&ready, SLICE, || Ok(puller.has_ended()))? || !puller.promise() {
            return Ok(None);
        }
    }
    let Some(items) = items.get(py) else { return Ok(None) };
    let items = items.cast_into::<PyIterator>()?;
    let Some(item) = foreign::next(&items).transpose()? else { return Ok(None) };
    // Its batches have not been produced yet, and a drain must not wait for them either.
    if item.hasattr("read_next_batch")? {
        puller.release();
    }
    open_item(&item).map(Some)
}

fn give_each(py: Python<'_>, puller: &mut Puller, items: &Slot) -> Result<(), OutsideError> {
    let raised = |error| Box::new(Raised::new(py, error)) as OutsideError;
    // Between two items this thread has no reference to the iterator (SLOT-2).
    while let Some(data) = next_item(py, puller, items).map_err(raised)? {
        if py.detach(|| give_data(puller, data))? == Demand::Nothing {
            break;
        }
        puller.release(); // a stream without batches was promised for nothing
    }
    Ok(())
}

fn give_items(py: Python<'_>, puller: &mut Puller, items: &Slot) -> Result<(), OutsideError> {
    let given = give_each(py, puller, items);
    if let Some(Ok(items)) = items.get(py).map(|items| items.cast_into::<PyIterator>()) {
        close(&items);
    }
    items.let_go();
    given
}

/// Reads the data into the feed, on a thread of its own, until it ends or no more is wanted.
pub(crate) fn pull(data: Pulled, feed: Feed) -> std::io::Result<()> {
    threads::start("penstock-source", move || {
        let mut puller = Puller::new(feed);
        puller.note_thread();
        let give = || match data {
            Pulled::Data(data) => give_data(&mut puller, data).map(|_| ()),
            // Without an interpreter there is nothing to read.
            Pulled::Items(items) => {
                Python::try_attach(|py| give_items(py, &mut puller, &items)).unwrap_or(Ok(()))
            }
        };
        // A feed that is only dropped has ended without an error: a panic must not look like that.
        let given = caught_as_raised(give).unwrap_or_else(|panic| {
            Err(panic.map_or_else(|| "the interpreter has ended".into(), |raised| Box::new(raised) as _))
        });
        if let Err(error) = given {
            // With the interpreter: the error may be dropped at once, and with it an exception and its frames.
            let mut failing = Some((puller, error));
            let mut fail = || failing.take().into_iter().for_each(|(puller, error)| puller.fail(error));
            if Python::try_attach(|_| fail()).is_none() {
                fail();
            }
        }
    })
}
