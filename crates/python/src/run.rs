//! Runs a plan over Python data, to its end, on an engine of its own.
//!
//! The calling thread iterates and watches for signals; it never waits with the interpreter held,
//! and never longer than [`GLANCE`]. An Arrow stream is pulled on a thread of its own: its
//! producer may block for any time, and Ctrl-C still interrupts the call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use penstock_engine::plan::Outputs;
use penstock_engine::{
    Demand, Engine, EngineOptions, FEED_BATCHES, Feed, GiveError, Input, InputPart, Puller, Query,
    QueryOptions, RefusedBatch, Sink, feed,
};
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyIterator};

use crate::arrow::{ArrowReader, Data, open, open_item};
use crate::errors::{input_error, marking_error, run_error, start_error, thread_error, unfit_error};
use crate::options::{SpreadingSetting, read_on_error, read_strategy};
use crate::output::Output;
use crate::raised::Raised;
use crate::sink::{Callback, call_back};
use crate::slot::with_plan;
use crate::source::{await_item, close, open_all, pull as pull_all};
use crate::wait::{GLANCE, wait};
use crate::{foreign, threads};

/// Converts the reason why a batch was not taken.
fn refused(py: Python<'_>, refused: &RefusedBatch) -> PyErr {
    match refused {
        RefusedBatch::Failed(error) => marking_error(py, error),
        RefusedBatch::Unfit(error) => unfit_error(py, error),
    }
}

/// Gives a batch to a query from the calling thread.
fn give(py: Python<'_>, puller: &mut Puller, batch: RecordBatch) -> PyResult<Demand> {
    let mut raised = None;
    let given = py.detach(|| {
        puller.give(batch, GLANCE, || {
            raised = Python::attach(|py| py.check_signals()).err();
            raised.is_none()
        })
    });
    match raised {
        Some(raised) => Err(raised),
        None => given.map_err(|error| refused(py, &error)),
    }
}

/// What the pulling thread returns: the puller, and how the stream ended.
type GivenStream = (Puller, Result<Demand, GiveError<ArrowError>>);

/// Pushes every batch of an Arrow stream, pulled on a thread of its own.
fn give_stream(py: Python<'_>, mut puller: Puller, reader: ArrowReader) -> PyResult<(Puller, Demand)> {
    let stop = Arc::new(AtomicBool::new(false));
    let (done, result) = mpsc::channel::<GivenStream>();
    let theirs = Arc::clone(&stop);
    threads::start("penstock-source", move || {
        let given = puller.give_all(reader, GLANCE, || !theirs.load(Ordering::Relaxed));
        // An interrupted caller has dropped the receiver.
        let _ = done.send((puller, given));
    })
    .map_err(|error| thread_error(&error))?;
    // `Receiver` is not Sync, so it moves into the closure while the interpreter is released.
    let mut result = result;
    loop {
        let (back, received) = py.detach(move || {
            let received = result.recv_timeout(GLANCE);
            (result, received)
        });
        result = back;
        match received {
            Ok((puller, given)) => {
                return given.map(|wanted| (puller, wanted)).map_err(|error| stream_error(py, error));
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

/// Converts the reason why a stream was not read to its end.
fn stream_error(py: Python<'_>, error: GiveError<ArrowError>) -> PyErr {
    let error: ArrowError = match error {
        GiveError::Input(error) => error,
        GiveError::Refused(refused) => ArrowError::ExternalError(refused.into_outside()),
    };
    match error {
        ArrowError::ExternalError(error) if error.is::<Raised>() => marking_error(py, &error),
        error => input_error(py, format!("the input stream failed: {error}")),
    }
}

fn give_data(py: Python<'_>, mut puller: Puller, data: Data) -> PyResult<(Puller, Demand)> {
    match data {
        Data::Batch(batch) => {
            let wanted = give(py, &mut puller, batch)?;
            Ok((puller, wanted))
        }
        Data::Stream(reader) => give_stream(py, puller, reader),
    }
}

fn give_all(py: Python<'_>, puller: Puller, data: &Bound<'_, PyAny>) -> PyResult<()> {
    if let Some(data) = open(data)? {
        return give_data(py, puller, data).map(|_| ());
    }
    let items = data.try_iter()?;
    let given = give_items(py, puller, &items);
    close(&items);
    given
}

fn give_items(py: Python<'_>, mut puller: Puller, items: &Bound<'_, PyIterator>) -> PyResult<()> {
    loop {
        let is_over = || py.check_signals().map(|()| puller.has_ended());
        if !await_item(items, GLANCE, is_over)? {
            return Ok(());
        }
        let Some(item) = foreign::next(items) else { return Ok(()) };
        py.check_signals()?;
        match give_data(py, puller, open_item(&item?)?)? {
            (_, Demand::Nothing) => return Ok(()),
            (back, Demand::More) => puller = back,
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
    (on_error, (parallelism, strategy)): (&Bound<'_, PyAny>, SpreadingSetting),
    part: Option<&InputPart>,
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
        inputs.push((name, Input::feed(end)));
        feeds.push((feed, data));
    }
    let engine = py.detach(|| Engine::start(options.clone())).map_err(|error| start_error(py, error))?;
    let sinks = outputs.plans().iter().map(|_| Sink::collect()).collect();
    let submitted = with_plan(py, outputs, || engine.submit_all(outputs, inputs, sinks, query_options));
    let answer = submitted.map_err(|error| start_error(py, error)).and_then(|query| {
        let letters = query.letters().map(|letters| call_back(py, on_error, &query, letters)).transpose()?;
        feed_each(py, feeds)?;
        answer(py, &query, letters.as_deref(), started)
    });
    py.detach(|| drop(engine)); // stops the queries, and waits for the threads
    answer
}

/// Feeds one stream from this thread, or several from a thread each: none waits for another.
fn feed_each(py: Python<'_>, mut feeds: Vec<(Feed, Bound<'_, PyAny>)>) -> PyResult<()> {
    if feeds.len() == 1
        && let Some((feed, data)) = feeds.pop()
    {
        return give_all(py, Puller::new(feed), &data);
    }
    for (_, data) in &feeds {
        // A query that this thread cannot wait for raises an error here: the thread that pulls it would never return.
        if let Ok(ready) = data.getattr("ready") {
            foreign::call_with(&ready, &PyFloat::new(py, 0.0))?;
        }
    }
    for (feed, data) in feeds {
        pull_all(open_all(&data)?, feed).map_err(|error| thread_error(&error))?;
    }
    Ok(())
}
