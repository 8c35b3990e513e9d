//! Plans.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use penstock_engine::Plan as Inner;
use penstock_engine::plan::lookup_kind;
use penstock_expr::Expr as Tree;
use penstock_types::{PlanError, Span};
use pyo3::prelude::*;

use crate::arrow::one_batch;
use crate::errors::plan_error;
use crate::expr::{Aggregate, Expr};
use crate::options::EngineOptions;
use crate::output::Output;
use crate::run::run;
use crate::schema::Schema;

/// An immutable pipeline.
#[pyclass(frozen, module = "penstock._penstock")]
pub struct Plan {
    pub(crate) inner: Inner,
}

/// A duration: text with a unit, or a whole number of ticks.
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

impl Plan {
    fn wrap(py: Python<'_>, plan: Result<Inner, PlanError>) -> PyResult<Self> {
        plan.map(|inner| Self { inner }).map_err(|error| plan_error(py, error))
    }
}

#[pymethods]
impl Plan {
    #[staticmethod]
    #[pyo3(signature = (schema, time, delay))]
    fn stream(
        py: Python<'_>,
        schema: &Bound<'_, Schema>,
        time: Option<&str>,
        delay: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let delay = span(py, delay)?;
        Self::wrap(py, Inner::stream(&schema.get().inner, time, delay))
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

    fn lookup(&self, py: Python<'_>, table: &Bound<'_, PyAny>, on: Vec<String>, how: &str) -> PyResult<Self> {
        let kind = lookup_kind(how).map_err(|error| plan_error(py, error))?;
        let table = one_batch(table, "a lookup table")?;
        let plan = py.detach(|| self.inner.lookup(&table, on, kind));
        Self::wrap(py, plan)
    }

    fn check_window(
        &self,
        py: Python<'_>,
        size: &Bound<'_, PyAny>,
        by: Vec<Bound<'_, Expr>>,
    ) -> PyResult<()> {
        let size = span(py, size)?;
        self.inner.check_window(size, &trees(&by)).map(|_| ()).map_err(|error| plan_error(py, error))
    }

    fn tumbling(
        &self,
        py: Python<'_>,
        size: &Bound<'_, PyAny>,
        by: Vec<Bound<'_, Expr>>,
        aggregates: Vec<Bound<'_, Aggregate>>,
    ) -> PyResult<Self> {
        let aggregates = aggregates.iter().map(|aggregate| aggregate.get().inner.clone()).collect();
        Self::wrap(py, self.inner.tumbling(span(py, size)?, trees(&by), aggregates))
    }

    #[getter]
    fn schema(&self) -> Schema {
        Schema { inner: Arc::clone(self.inner.schema()) }
    }

    #[getter]
    fn time(&self) -> Option<&str> {
        self.inner.time()
    }

    /// Whether it is only declared: no step follows.
    #[getter]
    fn is_declaration(&self) -> bool {
        self.inner == self.inner.declaration()
    }

    fn explain(&self) -> String {
        self.inner.explain()
    }

    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.inner.to_json()).map_err(|error| plan_error(py, error))
    }

    #[staticmethod]
    fn from_json(py: Python<'_>, text: &str) -> PyResult<Self> {
        Self::wrap(py, Inner::from_json(text))
    }

    fn run(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        options: &Bound<'_, EngineOptions>,
    ) -> PyResult<Output> {
        run(py, &self.inner, data, &options.get().inner)
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
