//! Reads the options of an engine and of a query.
//!
//! Each setting comes with its name, that of an argument or of an environment variable, so that
//! an error can say where a bad value was given.

use penstock_border::guarded;
use penstock_engine::clock::Timepiece;
use penstock_engine::options::choose;
use penstock_engine::{Chaining, EngineOptions as Inner, Mode, OnError, PolicyKind, RunOptions, Strategy};
use penstock_memory::MemoryKind;
use penstock_memory::layout::MAX_ROWS;
use penstock_memory::platform::Platform;
use penstock_types::{ByteSize, PlanError};
use pyo3::prelude::*;

use crate::clock::ManualClock;
use crate::errors::{plan_error, size_error};

/// Most blocks of a chunk: far more than is useful, and few enough that their bytes do not overflow.
const MOST_BLOCKS: usize = 64 * 1024;

/// Most workers of an engine.
const MOST_WORKERS: usize = 64;

const PLATFORMS: [(&str, Platform); 2] = [("native", Platform::native()), ("portable", Platform::Portable)];

/// A setting: the name that the user gave it, and its value.
pub(crate) type Setting<T> = Option<(String, T)>;

/// On how many workers one operator may run, and how it is spread over them.
pub(crate) type SpreadingSetting = (Option<usize>, Setting<String>);

/// Reads the strategy that was chosen.
pub(crate) fn read_strategy(py: Python<'_>, setting: Setting<String>) -> PyResult<Strategy> {
    Ok(chosen(py, setting, &Strategy::NAMES)?.unwrap_or_default())
}

/// Reads what becomes of rows that operators reject: a name, or a function that takes them.
pub(crate) fn read_on_error(py: Python<'_>, on_error: &Bound<'_, PyAny>) -> PyResult<OnError> {
    let Ok(text) = on_error.extract::<String>() else { return Ok(OnError::Letters) };
    let names = [("fail", OnError::Fail), ("skip", OnError::Skip)];
    choose("on_error", &text, &names).map_err(|error| plan_error(py, error))
}

/// The options of an engine.
#[pyclass(frozen, module = "penstock._penstock")]
pub struct EngineOptions {
    pub(crate) inner: Inner,
}

fn chosen<T: Copy>(
    py: Python<'_>,
    setting: Setting<String>,
    names: &[(&'static str, T)],
) -> PyResult<Option<T>> {
    let choice = setting.map(|(named, text)| choose(&named, &text, names)).transpose();
    choice.map_err(|error| plan_error(py, error))
}

/// Returns the name of a choice.
fn name_of<T: Copy + PartialEq>(choice: T, names: &[(&'static str, T)]) -> &'static str {
    names.iter().find(|(_, named)| *named == choice).map_or("", |(name, _)| name)
}

/// Formats a number with digits in groups of three.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).expect("digits are text"))
        .collect();
    groups.join(",")
}

fn count(
    py: Python<'_>,
    setting: Setting<Bound<'_, PyAny>>,
    what: &str,
    most: usize,
) -> PyResult<Option<usize>> {
    let Some((named, value)) = setting else { return Ok(None) };
    // A number that does not fit the type is out of range too.
    match value.extract::<usize>().ok().filter(|count| (1..=most).contains(count)) {
        Some(count) => Ok(Some(count)),
        None => {
            let text = format!("{named} is from 1 to {} {what}, not {value}", grouped(most));
            Err(plan_error(py, PlanError::Invalid(text)))
        }
    }
}

fn size(py: Python<'_>, setting: Setting<String>) -> PyResult<Option<usize>> {
    let Some((named, text)) = setting else { return Ok(None) };
    let ByteSize(bytes) = text.parse().map_err(|error| size_error(py, &named, &error))?;
    Ok(Some(usize::try_from(bytes).unwrap_or(usize::MAX)))
}

#[guarded]
#[pymethods]
impl EngineOptions {
    #[new]
    #[pyo3(signature = (*, workers=None, policy=None, mode=None, memory=None, chain=None, budget=None, block_rows=None, chunk_blocks=None, platform=None, clock=None))]
    #[allow(clippy::too_many_arguments, reason = "the options of an engine, by keyword")]
    fn new(
        py: Python<'_>,
        workers: Setting<Bound<'_, PyAny>>,
        policy: Setting<String>,
        mode: Setting<String>,
        memory: Setting<String>,
        chain: Setting<String>,
        budget: Setting<String>,
        block_rows: Setting<Bound<'_, PyAny>>,
        chunk_blocks: Setting<Bound<'_, PyAny>>,
        platform: Setting<String>,
        clock: Option<&Bound<'_, ManualClock>>,
    ) -> PyResult<Self> {
        let usual = Inner::default();
        let mut run = RunOptions {
            memory: chosen(py, memory, &MemoryKind::NAMES)?.unwrap_or(usual.run.memory),
            chain: chosen(py, chain, &Chaining::NAMES)?.unwrap_or(usual.run.chain),
            budget_bytes: size(py, budget)?,
            platform: chosen(py, platform, &PLATFORMS)?,
            ..usual.run
        };
        run.shape.block_rows = count(py, block_rows, "rows", MAX_ROWS)?;
        run.shape.chunk_blocks = count(py, chunk_blocks, "blocks", MOST_BLOCKS)?;
        let inner = Inner {
            workers: count(py, workers, "workers", MOST_WORKERS)?,
            policy: chosen(py, policy, &PolicyKind::NAMES)?.unwrap_or(usual.policy),
            mode: chosen(py, mode, &Mode::NAMES)?.unwrap_or(usual.mode),
            run,
            clock: clock.map_or(Timepiece::System, |clock| Timepiece::Manual(clock.get().inner.clone())),
        };
        Ok(Self { inner })
    }

    #[getter]
    fn workers(&self) -> usize {
        self.inner.worker_count()
    }

    #[getter]
    fn policy(&self) -> &'static str {
        name_of(self.inner.policy, &PolicyKind::NAMES)
    }

    #[getter]
    fn mode(&self) -> &'static str {
        name_of(self.inner.mode, &Mode::NAMES)
    }
}
