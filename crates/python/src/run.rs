//! Runs a plan over Python data, to its end, on an engine of its own.
//!
//! The calling thread iterates and watches for signals; it never waits with the interpreter held,
//! and never for longer than [`GLANCE`]. An Arrow stream is pulled on a thread of its own: its
//! producer may block for as long as it likes, and Ctrl-C still comes through.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use penstock_engine::plan::Outputs;
use penstock_engine::{
    Engine, EngineOptions, FEED_BATCHES, Feed, Input, Part, Pushed, Query, QueryOptions, Sink, feed,
};
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyIterator};

use crate::arrow::{Data, Reader, open, open_item};
use crate::engine::{call_back, read_on_error};
use crate::errors::{input_error, marking_error, run_error, start_error, thread_error, unfit_error};
use crate::options::{Spreading, read_strategy};
use crate::output::Output;
use crate::raised::Raised;
use crate::sink::Callback;
use crate::slot::with_plan;
use crate::source::{await_item, close, open_all, pull as pull_all};
use crate::wait::{GLANCE, wait};
use crate::{foreign, threads};

/// Whether more input is wanted.
#[derive(Clone, Copy, PartialEq)]
enum Fed {
    More,
    /// The query has ended on its own; its result says why.
    Ended,
}

/// Pushes a batch from the calling thread.
fn push(py: Python<'_>, feed: &mut Feed, batch: RecordBatch) -> PyResult<Fed> {
    let mut waiting = batch;
    loop {
        match py.detach(|| feed.push(waiting, GLANCE)) {
            Pushed::Taken => return Ok(Fed::More),
            Pushed::Ended | Pushed::Cut | Pushed::Itself => return Ok(Fed::Ended),
            Pushed::Failed(error) => return Err(marking_error(py, &error)),
            Pushed::Unfit(error) => return Err(unfit_error(py, &error)),
            Pushed::Full(back) => {
                waiting = back;
                py.check_signals()?;
            }
        }
    }
}

/// What the pulling thread gives back: the feed, and how the stream ended.
type Pulled = (Feed, Result<Fed, ArrowError>);

fn pull(reader: Reader, mut feed: Feed, stop: &AtomicBool) -> Pulled {
    for batch in reader {
        let mut waiting = match batch {
            Ok(batch) => batch,
            Err(error) => return (feed, Err(error)),
        };
        loop {
            if stop.load(Ordering::Relaxed) {
                return (feed, Ok(Fed::Ended));
            }
            match feed.push(waiting, GLANCE) {
                Pushed::Taken => break,
                Pushed::Ended | Pushed::Cut | Pushed::Itself => return (feed, Ok(Fed::Ended)),
                Pushed::Failed(error) => return (feed, Err(ArrowError::ExternalError(error))),
                Pushed::Unfit(error) => return (feed, Err(ArrowError::ExternalError(error.into()))),
                Pushed::Full(back) => waiting = back,
            }
        }
    }
    (feed, Ok(Fed::More))
}

/// Pushes every batch of an Arrow stream, pulled on a thread of its own.
fn push_stream(py: Python<'_>, feed: Feed, reader: Reader) -> PyResult<(Feed, Fed)> {
    let stop = Arc::new(AtomicBool::new(false));
    let (done, result) = mpsc::channel();
    let theirs = Arc::clone(&stop);
    threads::start("penstock-source", move || {
        // Nobody listens any more when the caller was interrupted.
        let _ = done.send(pull(reader, feed, &theirs));
    })
    .map_err(|error| thread_error(&error))?;
    // `Receiver` is not Sync, so the calling thread takes it along while the interpreter is released.
    let mut result = result;
    loop {
        let (back, received) = py.detach(move || {
            let received = result.recv_timeout(GLANCE);
            (result, received)
        });
        result = back;
        match received {
            Ok((feed, ended)) => {
                let fed = ended.map_err(|error| match error {
                    ArrowError::ExternalError(error) if error.is::<Raised>() => marking_error(py, &error),
                    error => input_error(py, format!("the input stream failed: {error}")),
                })?;
                return Ok((feed, fed));
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {
                if let Err(interrupt) = py.check_signals() {
                    // The producer may be blocked in foreign code. Its thread ends at the next batch.
                    stop.store(true, Ordering::Relaxed);
                    return Err(interrupt);
                }
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                return Err(input_error(py, "the input stream panicked while it was read".to_owned()));
            }
        }
    }
}

fn push_data(py: Python<'_>, mut feed: Feed, data: Data) -> PyResult<(Feed, Fed)> {
    match data {
        Data::Batch(batch) => {
            let fed = push(py, &mut feed, batch)?;
            Ok((feed, fed))
        }
        Data::Stream(reader) => push_stream(py, feed, reader),
    }
}

fn feed_all(py: Python<'_>, feed: Feed, data: &Bound<'_, PyAny>) -> PyResult<()> {
    if let Some(data) = open(data)? {
        return push_data(py, feed, data).map(|_| ());
    }
    let items = data.try_iter()?;
    let fed = feed_items(py, feed, &items);
    close(&items);
    fed
}

fn feed_items(py: Python<'_>, mut feed: Feed, items: &Bound<'_, PyIterator>) -> PyResult<()> {
    loop {
        let is_over = || py.check_signals().map(|()| feed.is_ended());
        if !await_item(items, GLANCE, is_over)? {
            return Ok(());
        }
        let Some(item) = foreign::next(items) else { return Ok(()) };
        py.check_signals()?;
        match push_data(py, feed, open_item(&item?)?)? {
            (_, Fed::Ended) => return Ok(()),
            (back, Fed::More) => feed = back,
        }
    }
}

/// Waits for the query and for the function that takes its dead letters.
fn answer(
    py: Python<'_>,
    query: &Query,
    letters: Option<&Callback>,
    started: Instant,
) -> PyResult<Vec<Output>> {
    wait(py, None, |timeout| query.wait(timeout))?;
    let Some(output) = query.take_output() else {
        let error = query.error().expect("a query ends with an answer or an error");
        return Err(run_error(py, &error));
    };
    if let Some(letters) = letters {
        wait(py, None, |timeout| letters.wait(timeout))?;
        if let Some(error) = letters.failure().and_then(|raised| raised.again(py)) {
            return Err(error);
        }
    }
    Ok(Output::all(output, started.elapsed().as_secs_f64()))
}

/// Runs plans over all of `data`, for each stream by name, or over one part of it.
pub(crate) fn run(
    py: Python<'_>,
    outputs: &Outputs,
    data: Vec<(String, Bound<'_, PyAny>)>,
    options: &EngineOptions,
    (on_error, (parallelism, strategy)): (&Bound<'_, PyAny>, Spreading),
    part: Option<&Part>,
) -> PyResult<Vec<Output>> {
    let query_options = QueryOptions {
        name: None,
        on_error: read_on_error(py, on_error)?,
        parallelism,
        strategy: read_strategy(py, strategy)?,
        part,
        functions: &[],
        watermarks: &[],
    };
    let started = Instant::now();
    let (mut inputs, mut feeds) = (Vec::new(), Vec::new());
    for (name, data) in data {
        let (feed, end) = feed(FEED_BATCHES);
        inputs.push((name, Input::Feed(end)));
        feeds.push((feed, data));
    }
    let engine = py.detach(|| Engine::start(options.clone())).map_err(|error| start_error(py, error))?;
    let sinks = outputs.plans().iter().map(|_| Sink::Collect).collect();
    let submitted = with_plan(py, outputs, || engine.submit_all(outputs, inputs, sinks, query_options));
    let answer = submitted.map_err(|error| start_error(py, error)).and_then(|query| {
        let letters = query.letters().map(|letters| call_back(py, on_error, &query, letters)).transpose()?;
        feed_each(py, feeds)?;
        answer(py, &query, letters.as_deref(), started)
    });
    py.detach(|| drop(engine)); // ends what is left, and waits for the threads
    answer
}

/// Feeds one stream from this thread, or several from threads of their own: none waits for another.
fn feed_each(py: Python<'_>, mut feeds: Vec<(Feed, Bound<'_, PyAny>)>) -> PyResult<()> {
    if feeds.len() == 1
        && let Some((feed, data)) = feeds.pop()
    {
        return feed_all(py, feed, &data);
    }
    for (_, data) in &feeds {
        // A query that this thread cannot wait for says so here: the thread that pulls it would wait for ever.
        if let Ok(ready) = data.getattr("ready") {
            foreign::call_with(&ready, &PyFloat::new(py, 0.0))?;
        }
    }
    for (feed, data) in feeds {
        pull_all(open_all(&data)?, feed).map_err(|error| thread_error(&error))?;
    }
    Ok(())
}
