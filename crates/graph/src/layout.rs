//! What each edge carries, who reads it, and which slots it fills.

use std::collections::{BTreeMap, BTreeSet};

use penstock_memory::SlotId;
use penstock_memory::batch::decoded;
use penstock_plan::scope::{TIME_KIND, kind};

use crate::chain::{DraftInput, Drafts, EdgeKey};
use crate::request::SharedLog;
use crate::strands::{Need, StrandId, Strands};

/// What reads an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeUser {
    /// An input of a draft: its place among all inputs of the draft.
    Draft {
        /// The draft.
        draft: usize,
        /// The input.
        input: usize,
    },
    /// An output.
    Output(usize),
}

/// An edge that is laid out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EdgeDraft {
    /// The slots of the writer that it carries.
    pub slots: Vec<SlotId>,
    /// What reads it, and the slots that its columns fill there.
    pub users: Vec<(EdgeUser, Vec<SlotId>)>,
}

/// The edges of a query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EdgeLayout {
    /// By where they begin.
    pub edges: BTreeMap<EdgeKey, EdgeDraft>,
    /// The slots that the columns of a shared stream fill, for each stream that is one.
    pub shared: Vec<Option<Vec<SlotId>>>,
}

/// Lays out all edges. A reader that does not read a column of an edge gets a slot for it that nothing else reads.
pub fn lay_out(strands: &mut Strands, drafts: &Drafts, shared: &[Option<SharedLog>]) -> EdgeLayout {
    let mut layout = EdgeLayout::default();
    for (number, draft) in drafts.drafts.iter().enumerate() {
        for (input, (from, _)) in draft.inputs().into_iter().enumerate() {
            if let DraftInput::Edge(key) = from {
                let user = (EdgeUser::Draft { draft: number, input }, Vec::new());
                layout.edges.entry(key).or_default().users.push(user);
            }
        }
    }
    for (output, &key) in drafts.outputs.iter().enumerate() {
        layout.edges.entry(key).or_default().users.push((EdgeUser::Output(output), Vec::new()));
    }
    let live: Vec<Vec<Vec<SlotId>>> = strands.strands.iter().map(|strand| strand.segment.live()).collect();
    for (&key, edge) in &mut layout.edges {
        if !carry_live(strands, drafts, &live, key, edge) {
            carry_needs(strands, drafts, key, edge);
        }
    }
    for (stream, shared) in shared.iter().enumerate() {
        layout.shared.push(shared.as_ref().map(|shared| shared_slots(strands, stream, shared)));
    }
    layout
}

/// The strand whose rows an edge carries.
pub(crate) fn strand_of(strands: &Strands, key: EdgeKey) -> StrandId {
    match key {
        EdgeKey::Strand(strand, _) | EdgeKey::Part(strand, _) => strand,
        EdgeKey::Late(operator, _) => strands.port_strand(operator, 0),
    }
}

fn reader_of(drafts: &Drafts, user: EdgeUser) -> Option<StrandId> {
    match user {
        EdgeUser::Draft { draft, input } => Some(drafts.drafts[draft].port_of(input).strand),
        EdgeUser::Output(_) => None,
    }
}

/// Lays out an edge inside a strand, where slots are the same on both sides: those that are still read. Returns whether
/// it is one.
fn carry_live(
    strands: &Strands,
    drafts: &Drafts,
    live: &[Vec<Vec<SlotId>>],
    key: EdgeKey,
    edge: &mut EdgeDraft,
) -> bool {
    let (strand, done) = match key {
        EdgeKey::Strand(strand, done) => (strand, done),
        EdgeKey::Part(strand, _) => (strand, 0),
        EdgeKey::Late(..) => return false,
    };
    debug_assert!(done <= strands.strands[strand].segment.stages.len(), "a strand has so many stages");
    if !edge.users.iter().all(|(user, _)| reader_of(drafts, *user) == Some(strand)) {
        return false;
    }
    edge.slots = live[strand][done].clone();
    edge.users.iter_mut().for_each(|(_, fills)| fills.clone_from(&edge.slots));
    true
}

/// Lays out an edge between strands: readers have slots of their own, by the columns of the strand that they read.
fn carry_needs(strands: &mut Strands, drafts: &Drafts, key: EdgeKey, edge: &mut EdgeDraft) {
    let writer = strand_of(strands, key);
    let mut needs: BTreeSet<Need> = BTreeSet::new();
    for (user, _) in &edge.users {
        match reader_of(drafts, *user) {
            Some(reader) => needs.extend(strands.strands[reader].needs()),
            None => {
                needs.extend((0..strands.strands[writer].segment.scope.slots().len()).map(Need::Column));
            }
        }
    }
    edge.slots = needs.iter().map(|&need| strands.strands[writer].slot_at_end(need)).collect();
    for (user, fills) in &mut edge.users {
        *fills = match reader_of(drafts, *user) {
            Some(reader) => slots_of_reader(strands, reader, &needs, writer),
            // An output has a run of its own, with a slot for each column of the edge.
            None => (0..edge.slots.len()).collect(),
        };
    }
}

/// Returns the slots of a strand that the columns of an edge fill.
fn slots_of_reader(
    strands: &mut Strands,
    reader: StrandId,
    needs: &BTreeSet<Need>,
    writer: StrandId,
) -> Vec<SlotId> {
    let own = strands.strands[reader].needs();
    let mut slots = Vec::new();
    for &need in needs {
        let slot = if own.contains(&need) {
            strands.strands[reader].slot_at_begin(need)
        } else {
            let from = &strands.strands[writer];
            let kind = from.segment.scope.kinds_of(&[from.slot_at_end(need)])[0];
            strands.strands[reader].segment.scope.add_slot(kind)
        };
        slots.push(slot);
    }
    slots
}

/// Returns the slots that the columns of a shared stream fill.
fn shared_slots(strands: &mut Strands, stream: usize, shared: &SharedLog) -> Vec<SlotId> {
    let stream = &strands.streams[stream];
    let (schema, time) = (stream.node.0.schema().clone(), stream.clock.map(|clock| clock.time));
    let scope = &mut strands.strands[stream.strand].segment.scope;
    let mut slots: Vec<SlotId> = Vec::new();
    for field in shared.schema.fields() {
        slots.push(match schema.fields().find(field.name()) {
            Some((column, _)) => column,
            None => scope.add_slot(kind(decoded(field.data_type()), field.is_nullable())),
        });
    }
    if shared.has_wide_time {
        slots.push(time.unwrap_or_else(|| scope.add_slot(TIME_KIND)));
    }
    slots
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_schema::{DataType, Field, Schema};
    use penstock_plan::Plan;

    use super::*;
    use crate::chain::chain;
    use crate::options::{Chaining, Spreading};
    use crate::samples::{counted, events, outputs, positive};
    use crate::spread::Spread;

    fn laid_out(plan: &Plan, chaining: Chaining, shared: Option<SharedLog>) -> (Strands, EdgeLayout) {
        let mut strands = Strands::of(&outputs(plan), false).unwrap();
        let alone = vec![Spread::Alone("a test"); strands.operators.len()];
        let is_shared = [shared.is_some()];
        let drafts = chain(&strands, 1, chaining, &is_shared, (&alone, Spreading::ALONE));
        let layout = lay_out(&mut strands, &drafts, &[shared]);
        (strands, layout)
    }

    #[test]
    fn inside_a_strand_an_edge_carries_the_slots_that_are_still_read() {
        let (_, layout) = laid_out(&counted(&positive(&events("a"), "v")), Chaining::Off, None);
        let before = &layout.edges[&EdgeKey::Strand(0, 0)];
        let after = &layout.edges[&EdgeKey::Strand(0, 1)];
        assert_eq!((before.slots.clone(), after.slots.clone()), (vec![0, 1, 2], vec![0, 1]));
        assert_eq!(after.users, [(EdgeUser::Draft { draft: 2, input: 0 }, vec![0, 1])]);
    }

    #[test]
    fn an_output_gets_all_columns_in_order() {
        let (_, layout) = laid_out(&events("a"), Chaining::Auto, None);
        let edge = &layout.edges[&EdgeKey::Strand(0, 0)];
        assert_eq!(
            (edge.slots.clone(), edge.users.clone()),
            (vec![0, 1, 2], vec![(EdgeUser::Output(0), vec![0, 1, 2])])
        );
    }

    #[test]
    fn readers_of_one_edge_get_spare_slots_for_columns_that_others_read() {
        let stream = events("a");
        let both = Plan::union(&[
            stream.select(vec![penstock_expr::Expr::column("v")]).unwrap(),
            stream.select(vec![penstock_expr::Expr::column("k").alias("v").unwrap()]).unwrap(),
        ]);
        let (strands, layout) = laid_out(&both.unwrap(), Chaining::Auto, None);
        let edge = &layout.edges[&EdgeKey::Strand(0, 0)];
        assert_eq!(edge.slots, [1, 2]);
        let spare = 4;
        assert_eq!(edge.users[0].1, [spare, 2]);
        assert_eq!(edge.users[1].1, [1, spare]);
        assert_eq!(
            strands.strands[1].segment.scope.kinds_of(&[spare]),
            strands.strands[0].segment.scope.kinds_of(&[1])
        );
    }

    #[test]
    fn columns_of_a_shared_log_that_are_not_declared_fill_spare_slots() {
        let field = |name| Field::new(name, DataType::Int64, false);
        let schema = Arc::new(Schema::new(vec![field("x"), field("t"), field("k"), field("v")]));
        let log = SharedLog { source: 7, schema, has_wide_time: false };
        let (_, layout) = laid_out(&counted(&events("a")), Chaining::Auto, Some(log));
        assert_eq!(layout.shared, [Some(vec![4, 0, 1, 2])]);
    }
}
