//! The state of a query between two parts of its input, so that another run goes on from there.
//!
//! A run that *pauses* takes its input to the end and gives out what event time has closed; what is still open it does
//! not close, but keeps. The next run over the same plan begins with that. So the results of all parts together
//! are those of one run over everything.
//!
//! CHECKPOINT-1. A part begins with the watermarks that the part before it has ended with, at its sources and at its
//!     operators: what is late does not depend on where the input was cut.
//! CHECKPOINT-2. In a run that pauses, an input that has ended is still waited for: its watermark stays where it is.
//! CHECKPOINT-3. State belongs to one plan. That of another is refused.
//! CHECKPOINT-4. Parts that ran side by side are put together if their watermarks are equal: then none has closed what
//!     another still has open. They are equal where the caller imposes them, instead of the rows.
//!
//! - `bytes`: its form in bytes

mod bytes;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use bytes::CheckpointError;

use penstock_operators::Stateful;
use penstock_progress::NEVER;
use penstock_tasks::checkpoint::{OperatorState, StateStore};
use penstock_types::{KeyGroups, PlanError};

use penstock_plan::Outputs;

/// The state of a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// The mark of its plan (CHECKPOINT-3).
    plan: u64,
    /// The largest time that each source has seen.
    sources: Vec<i64>,
    /// The operators that have state.
    operators: Vec<Option<OperatorState>>,
    /// The watermark of each output.
    outputs: Vec<i64>,
}

/// How a part of the input is run.
#[derive(Clone, Debug, Default)]
pub struct PartOptions {
    /// The state at the end of the part before this one; several, if several ran side by side (CHECKPOINT-4).
    pub from: Vec<Checkpoint>,
    /// Whether everything is closed at the end.
    pub is_last: bool,
    /// The watermark that each stream reaches with this part, for each that advances: all of its rows are judged by the
    /// watermark before. Without it, watermarks are read off the rows.
    pub imposed: Option<HashMap<String, i64>>,
}

/// Returns the mark of some plans: equal for equal ones.
fn mark(outputs: &Outputs) -> Result<u64, PlanError> {
    Ok(bytes::hash(outputs.to_parts()?.0.as_bytes()))
}

/// Sets `list[number]`, which may lie beyond its end.
fn put<T: Clone>(list: &mut Vec<T>, number: usize, nothing: T, value: T) {
    if list.len() <= number {
        list.resize(number + 1, nothing);
    }
    list[number] = value;
}

/// A run over one part of the input. Clones refer to the same one.
#[derive(Clone, Debug)]
pub struct InputPart(Arc<PartState>);

#[derive(Debug)]
struct PartState {
    from: Vec<Checkpoint>,
    is_last: bool,
    /// For each stream by its number.
    imposed: Option<Vec<i64>>,
    to: Mutex<Checkpoint>,
}

fn refused(reason: impl Into<String>) -> PlanError {
    PlanError::Invalid(reason.into())
}

/// Returns true if all watermarks are equal in both (CHECKPOINT-4).
fn are_level(one: &Checkpoint, other: &Checkpoint) -> bool {
    let watermarks = |checkpoint: &Checkpoint| {
        let operators = checkpoint.operators.iter().flatten();
        operators.map(|stood| stood.watermark).collect::<Vec<_>>()
    };
    one.sources == other.sources && watermarks(one) == watermarks(other)
}

impl InputPart {
    /// A part of the input of these plans.
    ///
    /// # Errors
    /// A plan that goes by the clock, which does not go on between parts; state of another plan (CHECKPOINT-3); states with
    /// unequal watermarks (CHECKPOINT-4); an unknown stream.
    pub fn new(outputs: &Outputs, options: PartOptions) -> Result<Self, PlanError> {
        let PartOptions { from, is_last, imposed } = options;
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
        let imposed = imposed.map(|imposed| by_number(outputs, imposed)).transpose()?;
        let to = Checkpoint { plan, sources: Vec::new(), operators: Vec::new(), outputs: Vec::new() };
        Ok(Self(Arc::new(PartState { from, is_last, imposed, to: Mutex::new(to) })))
    }

    /// Returns the watermark of each output, once the run has ended.
    pub fn behind(&self) -> Vec<i64> {
        self.to().outputs.clone()
    }

    /// Returns the state of the query, once its run has ended.
    pub fn checkpoint(&self) -> Checkpoint {
        self.to().clone()
    }

    fn to(&self) -> MutexGuard<'_, Checkpoint> {
        self.0.to.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StateStore for InputPart {
    fn pauses(&self) -> bool {
        !self.0.is_last
    }

    fn latest_of(&self, source: usize) -> Option<i64> {
        let latest = self.0.from.first()?.sources.get(source).copied()?;
        (latest > NEVER).then_some(latest)
    }

    fn imposed_watermark(&self, source: usize) -> Option<i64> {
        self.0.imposed.as_ref().map(|imposed| imposed[source])
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

/// Returns the watermarks of all streams, in their order; [`NEVER`] for those that are not named.
fn by_number(outputs: &Outputs, mut imposed: HashMap<String, i64>) -> Result<Vec<i64>, PlanError> {
    let graph = outputs.graph();
    let streams = graph.nodes().iter().filter_map(|node| node.step().stream_name());
    let times = streams.map(|stream| imposed.remove(stream).unwrap_or(NEVER)).collect();
    match imposed.into_keys().next() {
        Some(unknown) => Err(refused(format!("there is no stream {unknown:?} to tell of event time"))),
        None => Ok(times),
    }
}

/// Refuses what happens as time goes by without rows: between two parts no run is there to see it.
fn check_clock(outputs: &Outputs) -> Result<(), PlanError> {
    for node in outputs.graph().nodes() {
        let Some(what) = node.step().why_no_pause() else { continue };
        return Err(refused(format!(
            "{what}: that goes by the clock, which does not go on between parts; leave it out, or run the pipeline on an engine"
        )));
    }
    Ok(())
}
