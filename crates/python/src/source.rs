//! Python data that a query pulls: an Arrow object or an iterable of them, read on a thread of its own.

use std::time::Duration;

use arrow_array::RecordBatch;
use penstock_engine::{Feed, OutsideError, Pushed};
use pyo3::prelude::*;
use pyo3::types::PyIterator;

use crate::arrow::{Data, Reader, open, open_item};
use crate::errors::Raised;
use crate::{foreign, threads};

/// How long a push waits before it looks around. The end of the query wakes it anyway.
const SLICE: Duration = Duration::from_millis(250);

/// Data that is pulled.
pub(crate) enum Pulled {
    Data(Data),
    Items(Py<PyIterator>),
}

/// Opens Arrow data, or an iterable of it. Nothing of an iterable is read yet.
pub(crate) fn open_all(data: &Bound<'_, PyAny>) -> PyResult<Pulled> {
    match open(data)? {
        Some(data) => Ok(Pulled::Data(data)),
        None => Ok(Pulled::Items(data.try_iter()?.unbind())),
    }
}

/// Whether more input is wanted.
#[derive(Clone, Copy, PartialEq)]
enum Fed {
    More,
    Ended,
}

fn give(feed: &mut Feed, batch: RecordBatch) -> Result<Fed, OutsideError> {
    let mut waiting = batch;
    loop {
        match feed.push(waiting, SLICE) {
            Pushed::Taken => return Ok(Fed::More),
            Pushed::Ended => return Ok(Fed::Ended),
            Pushed::Failed(error) => return Err(error),
            Pushed::Full(back) => waiting = back,
        }
    }
}

fn give_stream(feed: &mut Feed, reader: Reader) -> Result<Fed, OutsideError> {
    for batch in reader {
        if give(feed, batch?)? == Fed::Ended {
            return Ok(Fed::Ended);
        }
    }
    Ok(Fed::More)
}

fn give_data(feed: &mut Feed, data: Data) -> Result<Fed, OutsideError> {
    match data {
        Data::Batch(batch) => give(feed, batch),
        Data::Stream(reader) => give_stream(feed, reader),
    }
}

fn give_items(py: Python<'_>, feed: &mut Feed, items: Py<PyIterator>) -> Result<(), OutsideError> {
    let items = items.into_bound(py);
    let raised = |error| Box::new(Raised(error)) as OutsideError;
    while let Some(item) = foreign::next(&items) {
        let data = item.and_then(|item| open_item(&item)).map_err(raised)?;
        if py.detach(|| give_data(feed, data))? == Fed::Ended {
            break;
        }
    }
    Ok(())
}

/// Reads the data into the feed, on a thread of its own, until it ends or nobody wants more.
pub(crate) fn pull(data: Pulled, mut feed: Feed) -> std::io::Result<()> {
    threads::start("penstock-source", move || {
        let given = match data {
            Pulled::Data(data) => give_data(&mut feed, data).map(|_| ()),
            // Without an interpreter there is nothing to read, and nobody to read it for.
            Pulled::Items(items) => {
                Python::try_attach(|py| give_items(py, &mut feed, items)).unwrap_or(Ok(()))
            }
        };
        if let Err(error) = given {
            feed.fail(error);
        }
    })
}
