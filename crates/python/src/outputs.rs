//! Several plans that run as one query.

use std::collections::HashMap;

use penstock_border::guarded;
use penstock_engine::plan::Outputs as Inner;
use penstock_engine::plan::stages::{Distribution, StageOrigin, Stages};
use penstock_engine::{Checkpoint, CheckpointError, InputPart, PartOptions, explain, explain_physical};
use penstock_types::PlanError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pyo3::{PyTraverseError, PyVisit};

use crate::errors::plan_error;
use crate::function::own_slots;
use crate::options::{EngineOptions, SpreadingSetting, read_strategy};
use crate::output::Output;
use crate::plan::{Plan, PlanParts, parts, wrapped};
use crate::run::run;
use crate::schema::Schema;
use crate::slot::with_plan;

/// An input of a stage: the name of the stream in its plans; the stage that its rows come from, if any, and their name
/// there; how rows are partitioned, and by which columns; their time, and all columns.
type StageInputGiven = (String, Option<usize>, String, &'static str, Vec<String>, StageTime, Schema);
/// The time column, the delay of the watermark, and the column with the watermark before each row.
type StageTime = (Option<String>, i64, Option<String>);
type StageParts = (Vec<StageInputGiven>, Outputs);
/// All stages, and for each output its stage and its name there.
type StagesGiven = (Vec<StageParts>, Vec<(usize, String)>);
/// Whether it is the last part, and the watermark of each stream, if it is imposed rather than read from the rows.
type Going = (bool, Option<HashMap<String, i64>>);
/// The result of each output, the checkpoint, and the watermark after each output.
type PartGiven<'py> = (Vec<Output>, Option<Bound<'py, PyBytes>>, Vec<i64>);

/// Plans by name.
#[pyclass(frozen, module = "penstock._penstock")]
pub struct Outputs {
    pub(crate) inner: Inner,
}

#[guarded]
#[pymethods]
impl Outputs {
    #[new]
    fn new(py: Python<'_>, plans: Vec<(String, Bound<'_, Plan>)>) -> PyResult<Self> {
        let plans = plans.into_iter().map(|(name, plan)| (name, plan.get().inner.clone())).collect();
        Ok(Self { inner: Inner::new(plans).map_err(|error| plan_error(py, error))? })
    }

    /// Shows the collector the functions that no other plan has.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        own_slots(|own| self.inner.visit_own(own)).iter().try_for_each(|slot| slot.visit(&visit))
    }

    fn __clear__(&self) {
        own_slots(|own| self.inner.visit_own(own)).iter().for_each(|slot| slot.let_go());
    }

    #[getter]
    fn names(&self) -> Vec<&str> {
        self.inner.plans().iter().map(|(name, _)| name.as_str()).collect()
    }

    #[getter]
    fn plans(&self) -> Vec<Plan> {
        self.inner.plans().iter().map(|(_, plan)| Plan { inner: plan.clone() }).collect()
    }

    /// Returns the names of all streams.
    #[getter]
    fn streams(&self) -> Vec<String> {
        let graph = self.inner.graph();
        graph.nodes().iter().filter_map(|node| node.step().stream_name().map(str::to_owned)).collect()
    }

    #[pyo3(signature = (spreading=(None, None)))]
    fn explain(&self, py: Python<'_>, spreading: SpreadingSetting) -> PyResult<String> {
        let (workers, strategy) = spreading;
        let strategy = read_strategy(py, strategy)?;
        match workers {
            None => Ok(self.inner.explain()),
            Some(workers) => explain(&self.inner, workers, strategy).map_err(|error| plan_error(py, error)),
        }
    }

    /// Explains the tasks that the plans become with these options.
    fn explain_physical(
        &self,
        py: Python<'_>,
        options: &Bound<'_, EngineOptions>,
        spreading: SpreadingSetting,
    ) -> PyResult<String> {
        let (workers, strategy) = spreading;
        let (options, strategy) = (&options.get().inner, read_strategy(py, strategy)?);
        let workers = workers.unwrap_or_else(|| options.worker_count());
        let explained = explain_physical(&self.inner, options.run.chain, workers, strategy);
        explained.map_err(|error| plan_error(py, error))
    }

    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        with_plan(py, &self.inner, || self.inner.to_json()).map_err(|error| plan_error(py, error))
    }

    #[staticmethod]
    fn from_json(py: Python<'_>, text: &str) -> PyResult<Self> {
        Ok(Self { inner: Inner::from_json(text).map_err(|error| plan_error(py, error))? })
    }

    /// Returns the plans as JSON, and the functions that they call with their names.
    fn to_parts<'py>(&self, py: Python<'py>) -> PyResult<PlanParts<'py>> {
        parts(py, self.inner.to_parts())
    }

    #[staticmethod]
    fn from_parts(py: Python<'_>, text: &str, functions: Vec<(String, Bound<'_, PyAny>)>) -> PyResult<Self> {
        let inner = Inner::from_parts(text, &wrapped(functions));
        Ok(Self { inner: inner.map_err(|error| plan_error(py, error))? })
    }

    /// Cuts the plans into stages: the inputs of each, the plans that it runs, and the stage of each output.
    fn stages(&self, py: Python<'_>, ordered: bool) -> PyResult<StagesGiven> {
        let Stages { stages, results } = self.inner.stages(ordered).map_err(|error| plan_error(py, error))?;
        let parts = stages.into_iter().map(|stage| {
            let inputs = stage.inputs.into_iter().map(|input| {
                let (from, name) = match input.origin {
                    StageOrigin::Stream(name) => (None, name),
                    StageOrigin::Stage(number, name) => (Some(number), name),
                };
                let (spread, keys) = match input.spread {
                    Distribution::Unpartitioned => ("anyhow", Vec::new()),
                    Distribution::ByKey(keys) => ("by_key", keys),
                    Distribution::Together => ("together", Vec::new()),
                };
                let time = (input.time, input.delay, input.watermark);
                (input.stream, from, name, spread, keys, time, Schema { inner: input.schema })
            });
            (inputs.collect(), Self { inner: stage.outputs })
        });
        Ok((parts.collect(), results))
    }

    /// Runs the plans over data for each stream, to the end, and returns the result of each output.
    #[pyo3(signature = (data, options, on_error, spreading))]
    fn run(
        &self,
        py: Python<'_>,
        data: Vec<(String, Bound<'_, PyAny>)>,
        options: &Bound<'_, EngineOptions>,
        on_error: &Bound<'_, PyAny>,
        spreading: SpreadingSetting,
    ) -> PyResult<Vec<Output>> {
        run(py, &self.inner, data, &options.get().inner, (on_error, spreading), None)
    }

    /// Runs the plans over the next part of the data for each stream, continuing from the checkpoints `states`. Returns
    /// the result of each output, and the next checkpoint, unless it was the last part. `going` says which part this
    /// is.
    #[pyo3(signature = (data, options, on_error, states, going))]
    fn run_part<'py>(
        &self,
        py: Python<'py>,
        data: Vec<(String, Bound<'py, PyAny>)>,
        options: &Bound<'py, EngineOptions>,
        on_error: &Bound<'py, PyAny>,
        states: Vec<Vec<u8>>,
        going: Going,
    ) -> PyResult<PartGiven<'py>> {
        let refused = |error: CheckpointError| plan_error(py, PlanError::Invalid(error.to_string()));
        let (is_last, imposed) = going;
        let read = |state: &Vec<u8>| Checkpoint::from_bytes(state);
        let from = py.detach(|| states.iter().map(read).collect::<Result<_, _>>()).map_err(refused)?;
        let options_of_part = PartOptions { from, is_last, imposed };
        let part = InputPart::new(&self.inner, options_of_part).map_err(|error| plan_error(py, error))?;
        let one_worker = (Some(1), None);
        let given = run(py, &self.inner, data, &options.get().inner, (on_error, one_worker), Some(&part))?;
        if is_last {
            return Ok((given, None, part.behind()));
        }
        let bytes = py.detach(|| part.checkpoint().to_bytes()).map_err(refused)?;
        Ok((given, Some(PyBytes::new(py, &bytes)), part.behind()))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.inner == other.get().inner)
    }
}
