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
//!
//! - `bytes`: how it is written and read

mod bytes;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use bytes::StandingError;

use penstock_operators::{Snapshot, Stateful};
use penstock_progress::NEVER;
use penstock_types::PlanError;

use crate::plan::Outputs;

/// Where an operator with state stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stood {
    /// How far event time had come.
    pub(crate) watermark: i64,
    pub(crate) snapshot: Snapshot,
}

/// Where a query stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// The mark of its plan (S3).
    plan: u64,
    /// The largest time that each source has seen.
    sources: Vec<i64>,
    /// Those operators that have state.
    operators: Vec<Option<Stood>>,
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
    from: Option<Standing>,
    is_last: bool,
    to: Mutex<Standing>,
}

impl Part {
    /// A part of the input of these plans, behind what `from` has seen. The last one closes everything.
    ///
    /// # Errors
    /// State of another plan (S3).
    pub fn new(outputs: &Outputs, from: Option<Standing>, is_last: bool) -> Result<Self, PlanError> {
        let plan = mark(outputs)?;
        if from.as_ref().is_some_and(|from| from.plan != plan) {
            return Err(PlanError::Invalid(
                "the state belongs to another plan: go on with the plan that it came from, or begin anew without it"
                    .to_owned(),
            ));
        }
        let to = Standing { plan, sources: Vec::new(), operators: Vec::new() };
        Ok(Self(Arc::new(Inner { from, is_last, to: Mutex::new(to) })))
    }

    /// Where the query stands, once its run has ended.
    pub fn standing(&self) -> Standing {
        self.to().clone()
    }

    fn to(&self) -> MutexGuard<'_, Standing> {
        self.0.to.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether what is open stays open at the end.
    pub(crate) fn pauses(&self) -> bool {
        !self.0.is_last
    }

    /// The largest time that a source has seen before.
    pub(crate) fn seen(&self, source: usize) -> Option<i64> {
        let seen = self.0.from.as_ref()?.sources.get(source).copied()?;
        (seen > NEVER).then_some(seen)
    }

    /// A source has seen times up to this.
    pub(crate) fn note_seen(&self, source: usize, latest: i64) {
        put(&mut self.to().sources, source, NEVER, latest);
    }

    /// Puts an operator where it stood before; how far event time had come there.
    pub(crate) fn resume(&self, number: usize, operator: &mut dyn Stateful) -> Result<i64, PlanError> {
        let stood = self.0.from.as_ref().and_then(|from| from.operators.get(number)?.as_ref());
        let Some(stood) = stood else { return Ok(NEVER) };
        let refused = |error| PlanError::Invalid(format!("the state cannot be used: {error}"));
        operator.restore(&stood.snapshot).map_err(refused)?;
        Ok(stood.watermark)
    }

    /// An operator stands there.
    pub(crate) fn note_operator(&self, number: usize, watermark: i64, snapshot: Snapshot) {
        put(&mut self.to().operators, number, None, Some(Stood { watermark, snapshot }));
    }
}
