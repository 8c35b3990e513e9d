//! How an operator with state is spread over workers, and why.
//!
//! - *Merged*: each worker aggregates the rows that it gets, and the parts are put together when a window closes (see
//!   `parallel`). Nothing is sent around, but the state must merge, and its rows must come straight from a source.
//! - *Exchanged*: each worker owns some of the 256 key groups. The task before writes the key group beside each row into
//!   one log, which all of them read; each takes the rows of its own groups, and has their state to itself.

use std::sync::Arc;

use penstock_types::{KEY_GROUPS, PlanError};

use super::strands::{Begin, Goes, Operator, Strands};
use crate::options::Strategy;
use crate::plan::{Node, Outputs, Step};

/// How an operator runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spread {
    /// On one worker, for that reason.
    Alone(&'static str),
    /// On several, which merge what they have come to.
    Merged,
    /// On several, each with its own keys.
    Exchanged,
}

/// What may be spread, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spreading {
    /// Workers that one operator may take.
    pub(crate) parallelism: usize,
    pub(crate) strategy: Strategy,
}

impl Spreading {
    /// How each operator runs. Streams that others read, too, cannot be split for one of them.
    pub(super) fn of(self, strands: &Strands, chain: bool, is_shared: &[bool]) -> Vec<Spread> {
        let spread = |(number, operator): (usize, &Operator)| {
            let splits = chain && reads_source(strands, number, is_shared);
            self.one(operator, splits)
        };
        strands.operators.iter().enumerate().map(spread).collect()
    }

    /// The number of parts that the keys of an operator are spread over.
    pub(super) fn parts(self) -> usize {
        self.parallelism.clamp(1, KEY_GROUPS)
    }

    fn one(self, operator: &Operator, splits_source: bool) -> Spread {
        if self.parallelism <= 1 {
            return Spread::Alone("there is no other");
        }
        let step = operator.node.step();
        if let Some(reason) = step.why_one_worker() {
            return Spread::Alone(reason);
        }
        let whole = why_not_merged(step, operator.late.is_some());
        let merges = whole.is_none() && splits_source;
        match (self.strategy, operator.ports[0].has_keys()) {
            (Strategy::Auto | Strategy::Merge, _) if merges => Spread::Merged,
            (Strategy::Auto | Strategy::Exchange, true) => Spread::Exchanged,
            (Strategy::Merge, _) => Spread::Alone(whole.unwrap_or("its rows come from other operators")),
            (_, false) => Spread::Alone("it has no key that rows could be spread by"),
        }
    }
}

/// Why the partial states of several workers cannot be merged, if so.
fn why_not_merged(step: &dyn Step, has_late: bool) -> Option<&'static str> {
    if has_late { Some("late rows leave it") } else { step.why_not_merged() }
}

/// Whether the rows of an operator come straight from a source of its own.
fn reads_source(strands: &Strands, operator: usize, is_shared: &[bool]) -> bool {
    let mut ports = strands.strands.iter().filter(|strand| {
        let is_it = |goes: &Goes| matches!(goes, Goes::Port(to, _) if *to == operator);
        strand.goes.iter().any(is_it)
    });
    let is_own = |begin: &Begin| matches!(begin, Begin::Stream(stream) if !is_shared[*stream]);
    ports.all(|strand| is_own(&strand.begin))
}

/// Explains plans, and how each operator runs when it may take so many workers.
pub fn explain(outputs: &Outputs, workers: usize, strategy: Strategy) -> Result<String, PlanError> {
    let spreading = Spreading { parallelism: workers, strategy };
    Ok(outputs.explain_with(&strategies(outputs, spreading)?))
}

/// Says how each operator runs, in words.
fn strategies(outputs: &Outputs, spreading: Spreading) -> Result<Vec<(Arc<Node>, String)>, PlanError> {
    let strands = Strands::of(outputs, false)?;
    let no_stream_is_shared = vec![false; strands.streams.len()];
    let spreads = spreading.of(&strands, true, &no_stream_is_shared);
    let workers = spreading.parallelism;
    let words = |(operator, spread): (&Operator, Spread)| {
        let words = match spread {
            Spread::Alone(reason) => format!("on one worker: {reason}"),
            Spread::Merged => {
                format!("on {workers} workers, merged: its state can be put together when a window closes")
            }
            Spread::Exchanged => {
                let step = operator.node.step();
                let reason = why_not_merged(step, operator.late.is_some());
                let reason =
                    if spreading.strategy == Strategy::Exchange { Some("as asked for") } else { reason };
                let reason = reason.unwrap_or("its rows come from other operators");
                format!("on {} workers, exchanged by key: {reason}", spreading.parts())
            }
        };
        (Arc::clone(&operator.node), words)
    };
    Ok(strands.operators.iter().zip(spreads).map(words).collect())
}
