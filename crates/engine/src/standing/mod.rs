//! Where a query stands between two parts of its input, so that another run goes on there.
//!
//! A run that *pauses* takes its input to the end and gives out what event time has closed; what is still open it does
//! not close, but writes down. The next run over the same plan begins with that. So the results of all parts together
//! are those of one run over everything.
//!
//! S1. A part begins with the watermarks that the part before it has ended with, at its sources and at its operators: what
//!     is late does not depend on where the input was cut.
//! S2. In a run that pauses, an input that has ended is still waited for: its watermark stays where it is.
//! S3. State belongs to one plan. That of another is refused.
//! S4. Parts that ran side by side are put together when event time has come equally far in all of them: then none has
//!     closed what another still has open. So it does where the caller says how far it comes, and the rows do not.
//!
//! - `bytes`: how it is written and read

mod bytes;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use bytes::StandingError;

use penstock_operators::Stateful;
use penstock_progress::NEVER;
use penstock_types::{KeyGroups, PlanError};

use crate::plan::Outputs;
use crate::tasks::checkpoint::{OperatorState, StateStore};

/// Where a query stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// The mark of its plan (S3).
    plan: u64,
    /// The largest time that each source has seen.
    sources: Vec<i64>,
    /// Those operators that have state.
    operators: Vec<Option<OperatorState>>,
    /// How far event time has come behind each output.
    outputs: Vec<i64>,
}

/// How a part of the input is run.
#[derive(Clone, Debug, Default)]
pub struct PartOptions {
    /// Where the part before this one has ended; several, if there were several side by side (S4).
    pub from: Vec<Standing>,
    /// Whether everything is closed at the end.
    pub is_last: bool,
    /// How far event time comes with this part, for each stream that it comes further for: all of its rows are judged by
    /// how far it had come before. Without it, rows say so themselves.
    pub told: Option<HashMap<String, i64>>,
}

/// The mark of some plans: equal for equal ones.
fn mark(outputs: &Outputs) -> Result<u64, PlanError> {
    Ok(bytes::hash(outputs.to_parts()?.0.as_bytes()))
}

/// Sets `list[number]`, which may lie behind its end.
fn put<T: Clone>(list: &mut Vec<T>, number: usize, nothing: T, value: T) {
    if list.len() <= number {
        list.resize(number + 1, nothing);
    }
    list[number] = value;
}

/// A run over one part of the input. Clones speak of the same one.
#[derive(Clone, Debug)]
pub struct Part(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    from: Vec<Standing>,
    is_last: bool,
    /// For each stream by its number.
    told: Option<Vec<i64>>,
    to: Mutex<Standing>,
}

fn refused(reason: impl Into<String>) -> PlanError {
    PlanError::Invalid(reason.into())
}

/// Whether event time has come equally far in both (S4).
fn are_level(one: &Standing, other: &Standing) -> bool {
    let watermarks = |standing: &Standing| {
        let operators = standing.operators.iter().flatten();
        operators.map(|stood| stood.watermark).collect::<Vec<_>>()
    };
    one.sources == other.sources && watermarks(one) == watermarks(other)
}

impl Part {
    /// A part of the input of these plans.
    ///
    /// # Errors
    /// A plan that goes by the clock, which does not go on between parts; state of another plan (S3); states that have not come equally far (S4); a stream that there is not.
    pub fn new(outputs: &Outputs, options: PartOptions) -> Result<Self, PlanError> {
        let PartOptions { from, is_last, told } = options;
        check_clock(outputs)?;
        let plan = mark(outputs)?;
        if from.iter().any(|from| from.plan != plan) {
            return Err(refused(
                "the state belongs to another plan: go on with the plan that it came from, or begin anew without it",
            ));
        }
        if from.windows(2).any(|pair| !are_level(&pair[0], &pair[1])) {
            return Err(refused(
                "the states have not come equally far, and one may have closed what another has open: put states together \
                 of parts that were told how far event time comes",
            ));
        }
        let told = told.map(|told| by_number(outputs, told)).transpose()?;
        let to = Standing { plan, sources: Vec::new(), operators: Vec::new(), outputs: Vec::new() };
        Ok(Self(Arc::new(Inner { from, is_last, told, to: Mutex::new(to) })))
    }

    /// How far event time has come behind each output, once the run has ended.
    pub fn behind(&self) -> Vec<i64> {
        self.to().outputs.clone()
    }

    /// Where the query stands, once its run has ended.
    pub fn standing(&self) -> Standing {
        self.to().clone()
    }

    fn to(&self) -> MutexGuard<'_, Standing> {
        self.0.to.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StateStore for Part {
    fn pauses(&self) -> bool {
        !self.0.is_last
    }

    fn latest_of(&self, source: usize) -> Option<i64> {
        let latest = self.0.from.first()?.sources.get(source).copied()?;
        (latest > NEVER).then_some(latest)
    }

    fn imposed_watermark(&self, source: usize) -> Option<i64> {
        self.0.told.as_ref().map(|told| told[source])
    }

    fn keep_latest(&self, source: usize, latest: i64) {
        put(&mut self.to().sources, source, NEVER, latest);
    }

    fn restore_operator(&self, number: usize, operator: &mut dyn Stateful) -> Result<i64, PlanError> {
        let mut all = self.0.from.iter().filter_map(|from| from.operators.get(number)?.as_ref());
        let Some(first) = all.next() else { return Ok(NEVER) };
        let unusable = |error| refused(format!("the state cannot be used: {error}"));
        operator.restore(&first.snapshot).map_err(unusable)?;
        for other in all {
            let mut beside = operator.extract(KeyGroups::NONE);
            beside.restore(&other.snapshot).map_err(unusable)?;
            operator.merge(beside);
        }
        Ok(first.watermark)
    }

    fn keep_operator(&self, number: usize, state: OperatorState) {
        put(&mut self.to().operators, number, None, Some(state));
    }

    fn keep_output(&self, number: usize, watermark: i64) {
        let before = self.0.from.first().and_then(|from| from.outputs.get(number).copied());
        put(&mut self.to().outputs, number, NEVER, before.map_or(watermark, |before| before.max(watermark)));
    }
}

/// The times for all streams, in their order; [`NEVER`] for those that are not named.
fn by_number(outputs: &Outputs, mut told: HashMap<String, i64>) -> Result<Vec<i64>, PlanError> {
    let graph = outputs.graph();
    let streams = graph.nodes().iter().filter_map(|node| node.step().stream_name());
    let times = streams.map(|stream| told.remove(stream).unwrap_or(NEVER)).collect();
    match told.into_keys().next() {
        Some(unknown) => Err(refused(format!("there is no stream {unknown:?} to tell of event time"))),
        None => Ok(times),
    }
}

/// Refuses what happens as time goes by while nothing comes: between two parts nobody is there to see it.
fn check_clock(outputs: &Outputs) -> Result<(), PlanError> {
    for node in outputs.graph().nodes() {
        let Some(what) = node.step().why_no_pause() else { continue };
        return Err(refused(format!(
            "{what}: that goes by the clock, which does not go on between parts; leave it out, or run the pipeline on an engine"
        )));
    }
    Ok(())
}
