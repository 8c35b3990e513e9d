//! Several plans that run as one query.

use penstock_engine::plan::{Outputs as Inner, Step};
use pyo3::prelude::*;

use crate::errors::plan_error;
use crate::options::{EngineOptions, Spreading, read_strategy};
use crate::output::Output;
use crate::plan::{Parts, Plan, parts, wrapped};
use crate::run::run;

/// Plans by name.
#[pyclass(frozen, module = "penstock._penstock")]
pub struct Outputs {
    pub(crate) inner: Inner,
}

#[pymethods]
impl Outputs {
    #[new]
    fn new(py: Python<'_>, plans: Vec<(String, Bound<'_, Plan>)>) -> PyResult<Self> {
        let plans = plans.into_iter().map(|(name, plan)| (name, plan.get().inner.clone())).collect();
        Ok(Self { inner: Inner::new(plans).map_err(|error| plan_error(py, error))? })
    }

    #[getter]
    fn names(&self) -> Vec<&str> {
        self.inner.plans().iter().map(|(name, _)| name.as_str()).collect()
    }

    #[getter]
    fn plans(&self) -> Vec<Plan> {
        self.inner.plans().iter().map(|(_, plan)| Plan { inner: plan.clone() }).collect()
    }

    /// The names of all streams.
    #[getter]
    fn streams(&self) -> Vec<String> {
        let graph = self.inner.graph();
        graph.nodes().iter().filter_map(|node| node.step().stream_name().map(str::to_owned)).collect()
    }

    /// Whether late rows go somewhere.
    #[getter]
    fn has_late(&self) -> bool {
        self.inner.graph().nodes().iter().any(|node| matches!(node.step(), Step::Late))
    }

    #[pyo3(signature = (spreading=(None, None)))]
    fn explain(&self, py: Python<'_>, spreading: Spreading) -> PyResult<String> {
        let (workers, strategy) = spreading;
        let strategy = read_strategy(py, strategy)?;
        match workers {
            None => Ok(self.inner.explain()),
            Some(workers) => self.inner.explain_on(workers, strategy).map_err(|error| plan_error(py, error)),
        }
    }

    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.inner.to_json()).map_err(|error| plan_error(py, error))
    }

    #[staticmethod]
    fn from_json(py: Python<'_>, text: &str) -> PyResult<Self> {
        Ok(Self { inner: Inner::from_json(text).map_err(|error| plan_error(py, error))? })
    }

    /// The plans as JSON, and the functions that they call with their names.
    fn to_parts<'py>(&self, py: Python<'py>) -> PyResult<Parts<'py>> {
        parts(py, self.inner.to_parts())
    }

    #[staticmethod]
    fn from_parts(py: Python<'_>, text: &str, functions: Vec<(String, Bound<'_, PyAny>)>) -> PyResult<Self> {
        let inner = Inner::from_parts(text, &wrapped(functions));
        Ok(Self { inner: inner.map_err(|error| plan_error(py, error))? })
    }

    /// Runs the plans over data for each stream, to the end. What each output gave.
    #[pyo3(signature = (data, options, on_error, spreading))]
    fn run(
        &self,
        py: Python<'_>,
        data: Vec<(String, Bound<'_, PyAny>)>,
        options: &Bound<'_, EngineOptions>,
        on_error: &Bound<'_, PyAny>,
        spreading: Spreading,
    ) -> PyResult<Vec<Output>> {
        run(py, &self.inner, data, &options.get().inner, (on_error, spreading))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.inner == other.get().inner)
    }
}
