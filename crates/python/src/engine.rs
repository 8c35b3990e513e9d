//! Engines, which run many queries at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arrow_schema::SchemaRef;
use penstock_border::guarded;
use penstock_engine::options::choose;
use penstock_engine::plan::{Function, Outputs as Plans, Watermarks};
use penstock_engine::{
    Engine as Inner, FEED_BATCHES, Feed, Input, OnLag, Query as Running, QueryOptions, ShareOptions, Sink,
    Waiting, feed,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{invalid, plan_error, start_error, thread_error, waits_for_itself};
use crate::function::{PyFunction, PyWatermarks};
use crate::options::{EngineOptions, SpreadingSetting, read_on_error, read_strategy};
use crate::outputs::Outputs;
use crate::plan::Plan;
use crate::process::Here;
use crate::push::{Loan, PushSource, Taker};
use crate::query::Query;
use crate::replay::Replay;
use crate::shared::SharedSource;
use crate::sink::{Destination, call_back};
use crate::slot::{Slot, with_plan};
use crate::source::{Pulled, open_all, pull};
use crate::wait::wait;
use crate::{metrics, release, threads};

/// How long the exit of the process waits for threads that run the user's code.
const PATIENCE: Duration = Duration::from_secs(1);

static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// An engine that is stopped, with the interpreter released, when it is dropped.
struct Stopping(Inner);

impl Drop for Stopping {
    fn drop(&mut self) {
        if Python::try_attach(|py| py.detach(|| self.0.stop())).is_none() {
            self.0.stop();
        }
    }
}

/// An engine.
#[pyclass(frozen, module = "penstock._penstock")]
pub struct Engine {
    inner: Here<Stopping>,
    number: u64,
}

/// Where rows come from, and what has to be started once the query exists.
enum Connection<'py> {
    Push(Loan<'py>),
    Pull(Pulled, Feed),
    Other,
}

/// The source of a stream, by its name, and the query whose results it yields, if any.
type Sourced<'py> = (String, Bound<'py, PyAny>, Option<Bound<'py, Query>>);

#[derive(Clone, Copy)]
enum NamedSink {
    Collected,
    Nowhere,
}

const SINKS: [(&str, NamedSink); 2] = [("collect", NamedSink::Collected), ("discard", NamedSink::Nowhere)];

impl Engine {
    fn get(&self, py: Python<'_>) -> PyResult<&Inner> {
        Ok(&self.inner.get(py)?.0)
    }

    /// Opens a source that the user has passed. Nothing is read from it before `connect`. `upstream` is
    /// the query whose results it yields, if any.
    fn open<'py>(
        &self,
        source: &Bound<'py, PyAny>,
        upstream: Option<&Query>,
        schema: Option<&SchemaRef>,
        on_lag: &str,
    ) -> PyResult<(Input, Connection<'py>)> {
        let py = source.py();
        let on_lag = choose("on_lag", on_lag, &OnLag::NAMES).map_err(|error| plan_error(py, error))?;
        if let Ok(shared) = source.cast::<SharedSource>() {
            let shared = shared.get();
            let inner = shared.get(py)?.clone();
            if shared.engine != self.number {
                return Err(invalid(
                    py,
                    format!("the source \"{}\" belongs to another engine", inner.name()),
                ));
            }
            return Ok((Input::shared(inner, on_lag), Connection::Other));
        }
        if let Ok(push) = source.cast::<PushSource>() {
            let loan = Loan::new(push)?;
            return Ok((Input::feed(loan.lend(schema)?), Connection::Push(loan)));
        }
        if let Ok(replay) = source.cast::<Replay>() {
            return Ok((Input::replay(replay.get().inner.clone()), Connection::Other));
        }
        let pulled = open_all(source)?;
        let (feed, end) = feed(FEED_BATCHES);
        let input = match upstream.and_then(Query::running) {
            Some(query) => Input::chained(end, query.clone()),
            None => Input::feed(end),
        };
        Ok((input, Connection::Pull(pulled, feed)))
    }
}

/// Starts to read a source, for a query or a shared source that has just been started.
fn connect(origin: Connection<'_>, taker: Taker) -> PyResult<()> {
    match origin {
        Connection::Push(loan) => loan.keep(taker),
        Connection::Pull(pulled, feed) => {
            let pulling = pull(pulled, feed).map_err(|error| thread_error(&error));
            if pulling.is_err() {
                match taker {
                    Taker::Query(query) => query.get().running().into_iter().for_each(|query| query.stop()),
                    Taker::Source(source) => {
                        source.get().running().into_iter().for_each(|source| source.drain());
                    }
                }
            }
            pulling
        }
        Connection::Other => Ok(()),
    }
}

/// Reads where the user wants an output to go: as the sink of the engine, and as the destination that Python keeps.
fn read_sink(py: Python<'_>, sink: Option<&Bound<'_, PyAny>>) -> PyResult<(Sink, Destination)> {
    let Some(Ok(text)) = sink.map(|sink| sink.extract::<String>()) else {
        return Ok((Sink::results(), Destination::Results));
    };
    match choose("sink", &text, &SINKS).map_err(|error| plan_error(py, error))? {
        NamedSink::Collected => Ok((Sink::collect(), Destination::Collected)),
        NamedSink::Nowhere => Ok((Sink::discard(), Destination::Nowhere)),
    }
}

#[guarded]
#[pymethods]
impl Engine {
    #[new]
    fn new(py: Python<'_>, options: &Bound<'_, EngineOptions>) -> PyResult<Self> {
        let options = options.get().inner.clone();
        let inner = py.detach(|| Inner::start(options)).map_err(|error| start_error(py, error))?;
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        Ok(Self { inner: Here::new(Stopping(inner)), number })
    }

    /// Returns true in the process that started it.
    #[getter]
    fn is_here(&self) -> bool {
        self.inner.is_here()
    }

    /// Returns true if it has been stopped.
    #[getter]
    fn is_stopped(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.get(py)?.is_stopped())
    }

    /// Raises an error in any other process.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.get(py).map(|_| ())
    }

    /// Starts a query: a source for each stream, by name, and a sink for each output.
    #[pyo3(signature = (outputs, sources, sinks, name, on_lag, on_error, spreading))]
    #[allow(clippy::too_many_arguments, reason = "everything that a query is made of")]
    fn submit(
        &self,
        py: Python<'_>,
        outputs: &Bound<'_, Outputs>,
        sources: Vec<Sourced<'_>>,
        sinks: Vec<Option<Bound<'_, PyAny>>>,
        name: Option<&str>,
        on_lag: &str,
        on_error: &Bound<'_, PyAny>,
        spreading: SpreadingSetting,
    ) -> PyResult<Py<Query>> {
        let engine = self.get(py)?;
        let (parallelism, strategy) = spreading;
        let options = QueryOptions {
            name,
            on_error: read_on_error(py, on_error)?,
            parallelism,
            strategy: read_strategy(py, strategy)?,
            part: None,
            functions: &[],
            watermarks: &[],
        };
        let read: Vec<(Sink, Destination)> =
            sinks.iter().map(|sink| read_sink(py, sink.as_ref())).collect::<PyResult<_>>()?;
        let (into, mut destinations): (Vec<Sink>, Vec<Destination>) = read.into_iter().unzip();
        // Checked before the sources are opened: a refused name must not use up a source that can be read only once.
        py.detach(|| engine.check(name)).map_err(|error| start_error(py, error))?;
        let (mut inputs, mut origins, mut shared) = (Vec::new(), Vec::new(), Vec::new());
        if on_lag != "wait" && !sources.iter().any(|(_, source, _)| source.cast::<SharedSource>().is_ok()) {
            let known = choose("on_lag", on_lag, &OnLag::NAMES).map_err(|error| plan_error(py, error));
            let what = "on_lag= is for queries that read a shared source, as made by engine.source(...)";
            return Err(known.err().unwrap_or_else(|| invalid(py, what)));
        }
        for (stream, source, upstream) in &sources {
            let schema = outputs.get().inner.stream_schema(stream);
            let upstream = upstream.as_ref().map(Bound::get);
            let (input, origin) = self.open(source, upstream, schema.as_ref(), on_lag)?;
            if let Ok(source) = source.cast::<SharedSource>() {
                shared.push(source.clone().unbind());
            }
            inputs.push((stream.clone(), input));
            origins.push(origin);
        }
        let outputs = &outputs.get().inner;
        let own = OwnFunctions::of(py, outputs);
        let options = QueryOptions { functions: &own.functions, watermarks: &own.watermarks, ..options };
        let submitted = with_plan(py, outputs, || engine.submit_all(outputs, inputs, into, options));
        let query = submitted.map_err(|error| start_error(py, error))?;
        for (output, sink) in sinks.iter().enumerate() {
            if let (Some(function), Destination::Results) = (sink, &destinations[output]) {
                let results = query.results_of(output).expect("an output with a function is read from");
                destinations[output] = Destination::Function(call_back(py, function, &query, results)?);
            }
        }
        let letters = query.letters().map(|letters| call_back(py, on_error, &query, letters)).transpose()?;
        let referred = own.referred(&origins);
        let query = Py::new(py, Query::new(query, shared, destinations, letters, referred))?;
        for origin in origins {
            connect(origin, Taker::Query(query.clone_ref(py)))?;
        }
        Ok(query)
    }

    /// Starts a shared source of data, and of the query whose results the data is, if any.
    #[pyo3(signature = (plan, data, name, hold, on_error))]
    fn share(
        &self,
        py: Python<'_>,
        plan: &Bound<'_, Plan>,
        data: (Bound<'_, PyAny>, Option<Bound<'_, Query>>),
        name: Option<&str>,
        hold: bool,
        on_error: &Bound<'_, PyAny>,
    ) -> PyResult<Py<SharedSource>> {
        let engine = self.get(py)?;
        let on_failure = read_on_error(py, on_error)?;
        py.detach(|| engine.check(name)).map_err(|error| start_error(py, error))?;
        let plan = &plan.get().inner;
        let outputs = Plans::from(plan);
        let schema = plan.streams().first().and_then(|stream| outputs.stream_schema(stream));
        let (data, upstream) = data;
        let (input, origin) = self.open(&data, upstream.as_ref().map(Bound::get), schema.as_ref(), "wait")?;
        let own = OwnFunctions::of(py, &outputs);
        let options = ShareOptions { name, held: hold, on_error: on_failure, watermarks: &own.watermarks };
        let shared = with_plan(py, plan, || engine.share(plan, input, options));
        let source = shared.map_err(|error| start_error(py, error))?;
        let (letters, query) = (source.letters().cloned(), source.as_query());
        let letters = letters.map(|letters| call_back(py, on_error, &query, &letters)).transpose()?;
        let referred = own.referred(std::slice::from_ref(&origin));
        let source = Py::new(py, SharedSource::new(source, self.number, letters, referred))?;
        connect(origin, Taker::Source(source.clone_ref(py)))?;
        Ok(source)
    }

    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let engine = self.get(py)?;
        let found = py.detach(|| engine.metrics());
        metrics::engine(py, &found)
    }

    /// Returns what is lost if it is stopped now, for each query and shared source, by name: rows, those of them that
    /// are in open windows, and open sessions. `queries` are those that run.
    fn waiting(&self, py: Python<'_>, queries: Vec<Py<Query>>) -> PyResult<Vec<(String, u64, u64, u64)>> {
        let engine = self.get(py)?;
        let beside = |query: &Running| {
            let known = queries.iter().map(Py::get).find(|known| known.is(query));
            known.map_or(0, Query::results_for_functions)
        };
        let waiting = py.detach(|| engine.waiting(beside));
        let row = |(name, found): (String, Waiting)| (name, found.rows, found.in_windows, found.sessions);
        Ok(waiting.into_iter().map(row).collect())
    }

    /// Ends the input of all queries and shared sources, and waits until all of it is processed.
    fn drain(&self, py: Python<'_>) -> PyResult<()> {
        let engine = self.get(py)?;
        if engine.is_run_here() {
            return Err(waits_for_itself(py, true));
        }
        engine.drain(|query| wait(py, None, |timeout| query.wait(timeout)).map(|_| ()))
    }

    /// Ends every query, and waits for all threads except those that run the user's code.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        let engine = self.get(py)?;
        if engine.is_run_here() {
            return Err(waits_for_itself(py, true));
        }
        py.detach(|| engine.stop());
        Ok(())
    }
}

/// Waits, before the interpreter ends, for threads that run Python code, up to a limit.
#[guarded]
#[pyfunction]
pub fn leave(py: Python<'_>) {
    py.detach(|| {
        threads::wait_for_all(PATIENCE);
        release::close();
    });
}

/// The functions of plans, each with the copy that one query or shared source calls in its place and shows to the
/// collector (see [`crate::slot`]).
#[derive(Default)]
struct OwnFunctions {
    functions: Vec<(Function, Function)>,
    watermarks: Vec<(Watermarks, Watermarks)>,
    slots: Vec<Arc<Slot>>,
}

impl OwnFunctions {
    fn of(py: Python<'_>, plans: &Plans) -> Self {
        let mut own = Self::default();
        for written in plans.functions() {
            if let Some((called, slot)) = PyFunction::for_query(py, &written) {
                own.functions.push((written, called));
                own.slots.push(slot);
            }
        }
        for written in plans.watermark_functions() {
            if let Some((called, slot)) = PyWatermarks::for_query(py, &written) {
                own.watermarks.push((written, called));
                own.slots.push(slot);
            }
        }
        own
    }

    /// Returns all Python objects that the engine may refer to: functions, and iterators that are read.
    fn referred(self, origins: &[Connection<'_>]) -> Vec<Arc<Slot>> {
        let read = origins.iter().filter_map(|origin| match origin {
            Connection::Pull(Pulled::Items(items), _) => Some(Arc::clone(items)),
            _ => None,
        });
        self.slots.into_iter().chain(read).collect()
    }
}
