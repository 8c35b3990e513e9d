//! How the readers of an edge learn which watermark a row is judged by.
//!
//! A row is late by its own source, whatever others have said. Where rows of several sources share an edge, and a reader
//! asks, a signal before the rows says which watermark they are judged by.

use std::collections::BTreeMap;

use penstock_memory::SlotId;

use crate::chain::{Draft, DraftInput, Drafts, EdgeKey};
use crate::layout::EdgeLayout;
use crate::strands::Strands;

/// How readers learn which watermark a row is judged by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EdgeJudging {
    /// No reader asks, or the watermark at each row is right as it is.
    #[default]
    AsItStands,
    /// The same for results, whose time no watermark passes before they have left.
    Results {
        /// The time of each row.
        time: SlotId,
    },
    /// Rows come from their source, and may lie below the watermark before them: it is placed exactly there.
    Exact {
        /// The time of each row.
        time: SlotId,
        /// The watermark just before each row, in runs that may hold a late one.
        watermark: SlotId,
    },
    /// Rows of several sources come together, each judged by its own: a signal says which, before the rows that it matters
    /// for.
    Said {
        /// The time of each row.
        time: SlotId,
    },
}

impl EdgeJudging {
    /// Whether rows of several sources come by the edge.
    pub fn is_mixed(self) -> bool {
        matches!(self, Self::Said { .. })
    }
}

/// Decides it for the edge that each draft writes. Late rows are never judged again.
pub fn judge(strands: &Strands, drafts: &Drafts, layout: &EdgeLayout) -> BTreeMap<EdgeKey, EdgeJudging> {
    let mut judged = BTreeMap::new();
    for draft in &drafts.drafts {
        let judging = one(strands, draft, layout, &judged);
        judged.insert(draft.out_key(), judging);
    }
    judged
}

fn one(
    strands: &Strands,
    draft: &Draft,
    layout: &EdgeLayout,
    judged: &BTreeMap<EdgeKey, EdgeJudging>,
) -> EdgeJudging {
    let Some(clock) = strands.strands[draft.out.0].segment.scope.clock() else {
        return EdgeJudging::AsItStands;
    };
    let edge = layout.edges.get(&draft.out_key());
    if !edge.is_some_and(|edge| edge.slots.contains(&clock.time)) {
        return EdgeJudging::AsItStands;
    }
    let calls = |operator: usize| strands.operators[operator].calls_function();
    if draft.operator.as_ref().is_some_and(|(operator, _)| !calls(*operator)) {
        return EdgeJudging::Results { time: clock.time }; // they are judged by the watermark between them
    }
    match draft.inputs()[..] {
        [(DraftInput::Stream(_), _)] => EdgeJudging::Exact { time: clock.time, watermark: clock.watermark },
        [(DraftInput::Edge(key), _)] if !judged.get(&key).is_some_and(|judging| judging.is_mixed()) => {
            EdgeJudging::AsItStands
        }
        _ => EdgeJudging::Said { time: clock.time },
    }
}

#[cfg(test)]
mod tests {
    use penstock_plan::Plan;

    use super::*;
    use crate::graph::TaskGraph;
    use crate::options::Chaining;
    use crate::request::GraphRequest;
    use crate::samples::{counted, events, outputs, positive};

    /// How the rows of each edge are judged.
    fn judged(plan: &Plan) -> Vec<EdgeJudging> {
        let request = GraphRequest { chaining: Chaining::Off, ..GraphRequest::default() };
        let graph = TaskGraph::of(&outputs(plan), &request).unwrap();
        graph.edges.iter().map(|edge| edge.judging).collect()
    }

    #[test]
    fn the_watermark_is_exact_behind_a_source_and_as_it_stands_further_on() {
        let found = judged(&counted(&positive(&events("a"), "v")));
        let exact = EdgeJudging::Exact { time: 0, watermark: 3 };
        assert_eq!(found, [exact, EdgeJudging::AsItStands, EdgeJudging::AsItStands]);
    }

    #[test]
    fn rows_of_two_sources_say_what_they_are_judged_by() {
        let both = Plan::union(&[events("a"), events("b")]).unwrap();
        let found = judged(&counted(&positive(&both, "v")));
        assert!(found[2].is_mixed() && found[..2].iter().all(|judging| !judging.is_mixed()));
    }

    #[test]
    fn results_are_judged_between_watermarks() {
        let twice =
            counted(&events("a")).tumbling(penstock_types::Span::Ticks(100), vec![], crate::samples::count());
        assert!(judged(&twice.unwrap()).iter().any(|judging| matches!(judging, EdgeJudging::Results { .. })));
    }
}
