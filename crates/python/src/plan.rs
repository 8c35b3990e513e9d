//! Plans.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use penstock_border::guarded;
use penstock_engine::Plan as Inner;
use penstock_engine::options::choose;
use penstock_engine::plan::{
    Aggregate as PlanAggregate, Arrival, Function, StreamOptions, Watermarks, WindowSpan, join_kind,
    lookup_kind,
};
use penstock_expr::Expr as Tree;
use penstock_types::{PlanError, Span};
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};

use crate::arrow::one_batch;
use crate::errors::plan_error;
use crate::expr::{Aggregate, Expr};
use crate::function::{PyFunction, PyWatermarks, own_slots};
use crate::schema::Schema;
use crate::slot::with_plan;

/// An immutable pipeline.
#[pyclass(frozen, module = "penstock._penstock")]
pub struct Plan {
    pub(crate) inner: Inner,
}

/// Reads a duration: text with a unit, or a whole number of ticks.
fn span(py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Span> {
    if let Ok(text) = value.extract::<&str>() {
        return text.parse().map_err(|error| plan_error(py, error));
    }
    value.extract::<i64>().map(Span::Ticks).map_err(|_| {
        let reason = "it does not fit 64 bits".to_owned();
        plan_error(py, PlanError::Duration { text: value.to_string(), reason })
    })
}

fn trees(exprs: &[Bound<'_, Expr>]) -> Vec<Tree> {
    exprs.iter().map(|expr| expr.get().tree.clone()).collect()
}

fn chosen(aggregates: &[Bound<'_, Aggregate>]) -> Vec<PlanAggregate> {
    aggregates.iter().map(|aggregate| aggregate.get().inner.clone()).collect()
}

/// A way to cut time into windows.
#[pyclass(frozen, module = "penstock._penstock")]
pub struct Window {
    inner: WindowSpan,
}

#[guarded]
#[pymethods]
impl Window {
    #[staticmethod]
    fn tumbling(py: Python<'_>, size: &Bound<'_, PyAny>, offset: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self { inner: WindowSpan::Tumbling { size: span(py, size)?, offset: span(py, offset)? } })
    }

    #[staticmethod]
    fn sliding(
        py: Python<'_>,
        size: &Bound<'_, PyAny>,
        slide: &Bound<'_, PyAny>,
        offset: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let (size, slide, offset) = (span(py, size)?, span(py, slide)?, span(py, offset)?);
        Ok(Self { inner: WindowSpan::Sliding { size, slide, offset } })
    }

    #[staticmethod]
    fn session(py: Python<'_>, gap: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self { inner: WindowSpan::Session { gap: span(py, gap)? } })
    }
}

/// The text of a plan, and the functions that it calls with their names.
pub(crate) type PlanParts<'py> = (String, Vec<(String, Bound<'py, PyAny>)>);

/// Converts a plan that was written as text, with the functions that it calls.
pub(crate) fn parts<'py>(
    py: Python<'py>,
    written: Result<(String, Vec<Function>), PlanError>,
) -> PyResult<PlanParts<'py>> {
    let (text, functions) = written.map_err(|error| plan_error(py, error))?;
    Ok((text, functions.iter().filter_map(|function| PyFunction::unwrap(py, function)).collect()))
}

pub(crate) fn wrapped(functions: Vec<(String, Bound<'_, PyAny>)>) -> Vec<Function> {
    functions.into_iter().map(|(name, function)| PyFunction::wrap(name, &function)).collect()
}

impl Plan {
    fn wrap(py: Python<'_>, plan: Result<Inner, PlanError>) -> PyResult<Self> {
        plan.map(|inner| Self { inner }).map_err(|error| plan_error(py, error))
    }
}

#[guarded]
#[pymethods]
impl Plan {
    #[staticmethod]
    #[pyo3(signature = (schema, *, name, time, delay, arrival, watermark, idle_after, max_ahead))]
    #[allow(clippy::too_many_arguments, reason = "how a stream is declared, by keyword")]
    fn stream(
        py: Python<'_>,
        schema: &Bound<'_, Schema>,
        name: Option<&str>,
        time: Option<&str>,
        delay: &Bound<'_, PyAny>,
        arrival: Option<&str>,
        watermark: Option<&Bound<'_, PyAny>>,
        idle_after: Option<&Bound<'_, PyAny>>,
        max_ahead: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        // A column, or a function with its name.
        let watermark = match watermark {
            None => None,
            Some(given) => Some(match given.extract::<String>() {
                Ok(column) => Watermarks::Column(column),
                Err(_) => {
                    let (name, function) = given.extract::<(String, Bound<'_, PyAny>)>()?;
                    PyWatermarks::wrap(name, &function)
                }
            }),
        };
        let arrival = arrival.map(|name| choose("time", name, &Arrival::NAMES)).transpose();
        let options = StreamOptions {
            name,
            time,
            delay: Some(span(py, delay)?),
            arrival: arrival.map_err(|error| plan_error(py, error))?,
            watermark: watermark.as_ref(),
            idle_after: idle_after.map(|after| span(py, after)).transpose()?,
            max_ahead: max_ahead.map(|most| span(py, most)).transpose()?,
            is_end: false,
        };
        Self::wrap(py, Inner::declare(&schema.get().inner, options))
    }

    /// Shows the collector the functions that no other plan has.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        own_slots(|own| self.inner.visit_own(own)).iter().try_for_each(|slot| slot.visit(&visit))
    }

    fn __clear__(&self) {
        own_slots(|own| self.inner.visit_own(own)).iter().for_each(|slot| slot.let_go());
    }

    /// Returns the declared stream with a bound on how far ahead of the watermark a time may be.
    fn with_max_ahead(&self, py: Python<'_>, max_ahead: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::wrap(py, self.inner.with_max_ahead(span(py, max_ahead)?))
    }

    #[staticmethod]
    fn union(py: Python<'_>, plans: Vec<Bound<'_, Self>>) -> PyResult<Self> {
        let plans: Vec<Inner> = plans.iter().map(|plan| plan.get().inner.clone()).collect();
        Self::wrap(py, Inner::union(&plans))
    }

    fn filter(&self, py: Python<'_>, predicate: &Bound<'_, Expr>) -> PyResult<Self> {
        Self::wrap(py, self.inner.filter(predicate.get().tree.clone()))
    }

    fn select(&self, py: Python<'_>, exprs: Vec<Bound<'_, Expr>>) -> PyResult<Self> {
        Self::wrap(py, self.inner.select(trees(&exprs)))
    }

    fn with_columns(&self, py: Python<'_>, exprs: Vec<Bound<'_, Expr>>) -> PyResult<Self> {
        Self::wrap(py, self.inner.with_columns(trees(&exprs)))
    }

    fn lookup(
        &self,
        py: Python<'_>,
        table: &Bound<'_, PyAny>,
        on: Vec<String>,
        how: &str,
        name: Option<String>,
    ) -> PyResult<Self> {
        let kind = lookup_kind(how).map_err(|error| plan_error(py, error))?;
        let table = one_batch(table, "a lookup table")?;
        let plan = with_plan(py, &self.inner, || self.inner.named_lookup(&table, on, kind, name));
        Self::wrap(py, plan)
    }

    /// Calls a function with batches of rows.
    fn map_batches(
        &self,
        py: Python<'_>,
        name: String,
        function: &Bound<'_, PyAny>,
        schema: &Bound<'_, Schema>,
    ) -> PyResult<Self> {
        Self::wrap(py, self.inner.map_batches(PyFunction::wrap(name, function), &schema.get().inner))
    }

    /// Returns the plan as JSON, and the functions that it calls with their names.
    fn to_parts<'py>(&self, py: Python<'py>) -> PyResult<PlanParts<'py>> {
        parts(py, self.inner.to_parts())
    }

    #[staticmethod]
    fn from_parts(py: Python<'_>, text: &str, functions: Vec<(String, Bound<'_, PyAny>)>) -> PyResult<Self> {
        Self::wrap(py, Inner::from_parts(text, &wrapped(functions)))
    }

    fn check_window(
        &self,
        py: Python<'_>,
        window: &Bound<'_, Window>,
        by: Vec<Bound<'_, Expr>>,
    ) -> PyResult<()> {
        let checked = self.inner.check_window(window.get().inner, &trees(&by));
        checked.map(|_| ()).map_err(|error| plan_error(py, error))
    }

    #[pyo3(signature = (window, by, aggregates, allowed_lateness, close_after))]
    fn window(
        &self,
        py: Python<'_>,
        window: &Bound<'_, Window>,
        by: Vec<Bound<'_, Expr>>,
        aggregates: Vec<Bound<'_, Aggregate>>,
        allowed_lateness: &Bound<'_, PyAny>,
        close_after: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let lateness = span(py, allowed_lateness)?;
        let close_after = close_after.map(|after| span(py, after)).transpose()?;
        let window = window.get().inner;
        Self::wrap(py, self.inner.window(window, trees(&by), chosen(&aggregates), lateness, close_after))
    }

    fn late(&self, py: Python<'_>) -> PyResult<Self> {
        Self::wrap(py, self.inner.late())
    }

    fn cogroup(
        &self,
        py: Python<'_>,
        other: &Bound<'_, Self>,
        window: &Bound<'_, Window>,
        by: [Vec<Bound<'_, Expr>>; 2],
        aggregates: [Vec<Bound<'_, Aggregate>>; 2],
    ) -> PyResult<Self> {
        let by = [trees(&by[0]), trees(&by[1])];
        let aggregates = [chosen(&aggregates[0]), chosen(&aggregates[1])];
        let window = window.get().inner;
        Self::wrap(py, self.inner.cogroup(&other.get().inner, window, by, aggregates))
    }

    fn join(
        &self,
        py: Python<'_>,
        other: &Bound<'_, Self>,
        window: &Bound<'_, Window>,
        on: [Vec<String>; 2],
        how: &str,
        suffix: &str,
    ) -> PyResult<Self> {
        let kind = join_kind(how).map_err(|error| plan_error(py, error))?;
        let window = window.get().inner;
        Self::wrap(py, self.inner.join(&other.get().inner, window, on, kind, suffix))
    }

    fn top_k(
        &self,
        py: Python<'_>,
        window: &Bound<'_, Window>,
        by: Vec<Bound<'_, Expr>>,
        k: usize,
        order: &Bound<'_, Expr>,
        largest: bool,
    ) -> PyResult<Self> {
        let order = order.get().tree.clone();
        Self::wrap(py, self.inner.top_k(window.get().inner, trees(&by), k, order, largest))
    }

    /// Returns the names of its streams.
    #[getter]
    fn streams(&self) -> Vec<String> {
        self.inner.streams()
    }

    #[getter]
    fn schema(&self) -> Schema {
        Schema { inner: Arc::clone(self.inner.schema()) }
    }

    #[getter]
    fn time(&self) -> Option<&str> {
        self.inner.time()
    }

    /// Returns true if it is only declared: no step follows.
    #[getter]
    fn is_declaration(&self) -> bool {
        self.inner.as_stream().is_some()
    }

    fn explain(&self) -> String {
        self.inner.explain()
    }

    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        with_plan(py, &self.inner, || self.inner.to_json()).map_err(|error| plan_error(py, error))
    }

    #[staticmethod]
    fn from_json(py: Python<'_>, text: &str) -> PyResult<Self> {
        Self::wrap(py, Inner::from_json(text))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.inner == other.get().inner)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.inner.hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        self.inner.explain()
    }
}
