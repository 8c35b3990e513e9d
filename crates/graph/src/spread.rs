//! How an operator is spread over workers, and why.
//!
//! - *Merged*: each worker aggregates the rows that it gets, and the states are merged when a window closes. Nothing is sent
//!   around by key, but every key of every worker passes the one task that merges; the state must merge, and its rows must
//!   come straight from a source.
//! - *Exchanged*: each worker owns some of the 256 key groups. The task before writes the key group beside each row into
//!   one log, which all of them read; each takes the rows of its own groups, and has their state to itself.
//!
//! SPREAD-1. A row has one owner, and watermarks and signals reach all of them. So a part knows everything about its keys,
//!     and its results are final.

use penstock_plan::Step;

use crate::options::{Spreading, Strategy};
use crate::strands::{Begin, Goes, OperatorId, PlannedOperator, Strands};

/// How an operator runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// On one worker, for that reason.
    Alone(&'static str),
    /// On several, which merge their states.
    Merged,
    /// On several, each with its own keys.
    Exchanged,
}

/// Decides how each operator runs. A stream that other queries read, too, cannot be split for one of them.
pub fn spread(strands: &Strands, spreading: Spreading, chain: bool, is_shared: &[bool]) -> Vec<Spread> {
    let decide = |(number, operator): (usize, &PlannedOperator)| {
        let splits = chain && reads_source(strands, number, is_shared);
        one(operator, spreading, splits)
    };
    strands.operators.iter().enumerate().map(decide).collect()
}

fn one(operator: &PlannedOperator, spreading: Spreading, splits_source: bool) -> Spread {
    if spreading.parallelism <= 1 {
        return Spread::Alone("there is no other");
    }
    if let Some(reason) = operator.node.0.step().why_one_worker() {
        return Spread::Alone(reason);
    }
    let whole = why_not_merged(operator);
    let merges = whole.is_none() && splits_source;
    match (spreading.strategy, operator.ports[0].has_keys()) {
        (Strategy::Auto | Strategy::Merge, _) if merges => Spread::Merged,
        (Strategy::Auto | Strategy::Exchange, true) => Spread::Exchanged,
        (Strategy::Merge, _) => Spread::Alone(whole.unwrap_or("its rows come from other operators")),
        (_, false) => Spread::Alone("it has no key that rows could be spread by"),
    }
}

/// Why the states of several workers cannot be merged, if so.
fn why_not_merged(operator: &PlannedOperator) -> Option<&'static str> {
    let step: &dyn Step = operator.node.0.step();
    if operator.late.is_some() { Some("late rows leave it") } else { step.why_not_merged() }
}

/// Whether the rows of an operator come straight from a source of its own.
fn reads_source(strands: &Strands, operator: OperatorId, is_shared: &[bool]) -> bool {
    let mut ports = strands.strands.iter().filter(|strand| {
        let is_it = |goes: &Goes| matches!(goes, Goes::Port(to, _) if *to == operator);
        strand.goes.iter().any(is_it)
    });
    let is_own = |begin: &Begin| matches!(begin, Begin::Stream(stream) if !is_shared[*stream]);
    ports.all(|strand| is_own(&strand.begin))
}

/// Says how an operator runs, and why.
pub(crate) fn describe(operator: &PlannedOperator, spread: Spread, spreading: Spreading) -> String {
    match spread {
        Spread::Alone(reason) => format!("on one worker: {reason}"),
        Spread::Merged => {
            let workers = spreading.parallelism;
            format!("on {workers} workers, merged: its state can be put together when a window closes")
        }
        Spread::Exchanged => {
            let asked = (spreading.strategy == Strategy::Exchange).then_some("as asked for");
            let reason = asked.or_else(|| why_not_merged(operator));
            let reason = reason.unwrap_or("its rows come from other operators");
            format!("on {} workers, exchanged by key: {reason}", spreading.parts())
        }
    }
}

#[cfg(test)]
mod tests {
    use penstock_plan::Plan;
    use penstock_types::Span;

    use super::*;
    use crate::samples::{count, counted, events, joined, outputs};

    fn decided(plan: &Plan, strategy: Strategy, is_shared: bool) -> Vec<Spread> {
        let strands = Strands::of(&outputs(plan), false).unwrap();
        let shared = vec![is_shared; strands.streams.len()];
        spread(&strands, Spreading { parallelism: 2, strategy }, true, &shared)
    }

    #[test]
    fn windows_of_a_source_merge_and_others_are_exchanged() {
        let windows = counted(&events("a"));
        assert_eq!(decided(&windows, Strategy::Auto, false), [Spread::Merged]);
        assert_eq!(
            decided(&windows, Strategy::Auto, true),
            [Spread::Exchanged],
            "a shared source is not split"
        );
        assert_eq!(decided(&windows, Strategy::Exchange, false), [Spread::Exchanged]);
        let two = joined(&events("a"), &events("b"));
        assert_eq!(decided(&two, Strategy::Auto, false), [Spread::Exchanged]);
        assert_eq!(decided(&two, Strategy::Merge, false), [Spread::Alone("it reads two streams")]);
    }

    #[test]
    fn without_a_key_or_another_worker_an_operator_is_alone() {
        let total = events("a").tumbling(Span::Ticks(10), vec![], count()).unwrap();
        assert_eq!(decided(&total, Strategy::Auto, false), [Spread::Merged], "sums merge");
        let why = Spread::Alone("it has no key that rows could be spread by");
        assert_eq!(decided(&total, Strategy::Auto, true), [why]);
        let strands = Strands::of(&outputs(&total), false).unwrap();
        assert_eq!(spread(&strands, Spreading::ALONE, true, &[false]), [Spread::Alone("there is no other")]);
    }

    #[test]
    fn late_rows_keep_an_operator_whole() {
        let late = counted(&events("a")).late().unwrap();
        assert_eq!(decided(&late, Strategy::Merge, false), [Spread::Alone("late rows leave it")]);
    }
}
