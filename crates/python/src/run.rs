//! Feeds Python data to a job.
//!
//! The calling thread iterates and watches for signals; it never waits with the interpreter held,
//! and never for longer than [`GLANCE`]. An Arrow stream is pulled on a thread of its own: its
//! producer may block for as long as it likes, and Ctrl-C still comes through.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::ArrowError;
use penstock_engine::job::Pushed;
use penstock_engine::{Feed, Job, Pipeline, Plan, RunOptions};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::{PyRecordBatch, PyRecordBatchReader};

use crate::errors::{consumed_error, input_error, run_error, start_error, system_error};
use crate::foreign;
use crate::output::Output;

/// How long the calling thread goes without a look at signals.
const GLANCE: Duration = Duration::from_millis(20);

type Reader = Box<dyn RecordBatchReader + Send>;

/// Whether more input is wanted.
#[derive(Clone, Copy, PartialEq)]
enum Fed {
    More,
    /// The job has ended on its own; its result says why.
    Ended,
}

/// Pushes a batch from the calling thread.
fn push(py: Python<'_>, feed: &mut Feed, batch: RecordBatch) -> PyResult<Fed> {
    let mut waiting = batch;
    loop {
        match py.detach(|| feed.push(waiting, GLANCE)) {
            Pushed::Taken => return Ok(Fed::More),
            Pushed::Ended => return Ok(Fed::Ended),
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
                Pushed::Ended => return (feed, Ok(Fed::Ended)),
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
    let puller = thread::Builder::new()
        .name("penstock-source".to_owned())
        .spawn(move || {
            // Nobody listens any more when the caller was interrupted.
            let _ = done.send(pull(reader, feed, &theirs));
        })
        .map_err(|error| system_error(format!("cannot start a thread: {error}"), &error))?;
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
                let _ = py.detach(|| puller.join());
                let fed =
                    ended.map_err(|error| input_error(py, format!("the input stream failed: {error}")))?;
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

fn has(object: &Bound<'_, PyAny>, name: &str) -> bool {
    object.hasattr(name).unwrap_or(false)
}

/// Pushes one Arrow object. `None` when it is none.
fn push_arrow(
    py: Python<'_>,
    mut feed: Feed,
    data: &Bound<'_, PyAny>,
) -> PyResult<Result<(Feed, Fed), Feed>> {
    if has(data, "__arrow_c_array__") {
        let capsules = foreign::call(&data.getattr("__arrow_c_array__")?)?;
        let (schema, array) = capsules.extract::<(Bound<'_, PyCapsule>, Bound<'_, PyCapsule>)>()?;
        let batch = PyRecordBatch::from_arrow_pycapsule(&schema, &array)?.into_inner();
        let fed = push(py, &mut feed, batch)?;
        return Ok(Ok((feed, fed)));
    }
    if has(data, "__arrow_c_stream__") {
        let reader = data.extract::<PyRecordBatchReader>().map_err(|error| {
            if error.to_string().contains("already released") { consumed_error(py) } else { error }
        })?;
        return push_stream(py, feed, reader.into_reader()?).map(Ok);
    }
    Ok(Err(feed))
}

fn feed_all(py: Python<'_>, feed: Feed, data: &Bound<'_, PyAny>) -> PyResult<()> {
    let mut feed = match push_arrow(py, feed, data)? {
        Ok(_) => return Ok(()),
        Err(feed) => feed,
    };
    let items = data.try_iter()?;
    while let Some(item) = foreign::next(&items) {
        py.check_signals()?;
        let item = item?;
        match push_arrow(py, feed, &item)? {
            Ok((_, Fed::Ended)) => return Ok(()),
            Ok((back, Fed::More)) => feed = back,
            Err(_) => {
                return Err(PyTypeError::new_err(format!(
                    "the input yields {}, which is no Arrow data; yield objects with __arrow_c_array__ or __arrow_c_stream__, such as record batches or tables",
                    item.get_type().name()?
                )));
            }
        }
    }
    Ok(())
}

/// Runs a plan over all of `data`.
pub(crate) fn run(
    py: Python<'_>,
    plan: &Plan,
    data: &Bound<'_, PyAny>,
    options: &RunOptions,
) -> PyResult<Output> {
    let started = Instant::now();
    let pipeline =
        py.detach(|| Pipeline::with_options(plan, options)).map_err(|error| start_error(py, error))?;
    let (feed, job) = py
        .detach(|| Job::start(pipeline))
        .map_err(|error| system_error(format!("cannot start a worker: {error}"), &error))?;
    let ended = feed_all(py, feed, data).and_then(|()| {
        while !py.detach(|| job.wait(GLANCE)) {
            py.check_signals()?;
        }
        Ok(())
    });
    match ended {
        Ok(()) => match py.detach(|| job.join()) {
            Ok(output) => Ok(Output::new(output, started.elapsed())),
            Err(error) => Err(run_error(py, error)),
        },
        Err(error) => {
            py.detach(|| drop(job)); // stops the worker and waits for it
            Err(error)
        }
    }
}
