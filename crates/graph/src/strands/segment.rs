//! What runs over one set of slots: a scope, and the stages that change it.

use std::collections::BTreeSet;
use std::slice::from_ref;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use penstock_memory::SlotId;
use penstock_operators::Stateless;
use penstock_plan::bound::{Preparation, Prepared};
use penstock_plan::{Bound, Columns, EventTime, Form, KeyedTable, Made, Node, Resources, Scope, Step};
use penstock_types::PlanError;

/// What a stage is made of.
#[derive(Clone, Debug)]
enum StageWork {
    /// A stateless step.
    Step(Arc<dyn Step>, Box<Bound>),
    /// What the operator at the end of the segment reads.
    Preparation(Preparation),
}

impl PartialEq for StageWork {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Step(step, bound), Self::Step(other, others)) => step.is_same(&**other) && bound == others,
            (Self::Preparation(one), Self::Preparation(another)) => one == another,
            _ => false,
        }
    }
}

/// A stateless operator before it is made.
#[derive(Clone, Debug, PartialEq)]
pub struct StageSpec {
    /// What it is called in reports.
    pub name: &'static str,
    work: StageWork,
    reads: Vec<SlotId>,
    fills: Vec<SlotId>,
    /// Whether it keeps all columns that it sees, to hand out rows that it rejects.
    keeps_sight: bool,
}

impl StageSpec {
    /// Whether it only prepares what the next operator reads, and so never has a task of its own.
    pub fn prepares(&self) -> bool {
        matches!(self.work, StageWork::Preparation(_))
    }

    /// The columns that it sees, where rows that it rejects are handed out.
    pub fn sight(&self) -> Option<&Columns> {
        self.keeps_sight.then_some(self.columns())
    }

    /// The columns that it sees.
    pub fn columns(&self) -> &Columns {
        match &self.work {
            StageWork::Step(_, bound) => &bound.columns,
            StageWork::Preparation(preparation) => &preparation.columns,
        }
    }

    /// The table that it looks rows up in.
    pub fn table(&self) -> Option<&KeyedTable> {
        match &self.work {
            StageWork::Step(step, _) => step.table(),
            StageWork::Preparation(_) => None,
        }
    }

    /// Returns what a slot holds that it fills, as people call it.
    pub(crate) fn name_of(&self, slot: SlotId) -> Option<String> {
        let projection = match &self.work {
            StageWork::Step(_, bound) => &bound.projection,
            StageWork::Preparation(Preparation { work: Prepared::Projection(projection), .. }) => projection,
            StageWork::Preparation(Preparation { work: Prepared::Groups { slot: filled, .. }, .. }) => {
                return (*filled == slot).then(|| "key group".to_owned());
            }
        };
        let computed = projection.computed.iter().find(|(_, filled)| *filled == slot);
        computed.map(|(expr, _)| expr.output_name())
    }

    /// Makes an instance of it.
    pub fn make(&self, resources: &Resources) -> Result<Box<dyn Stateless>, PlanError> {
        match &self.work {
            StageWork::Preparation(preparation) => preparation.make(),
            StageWork::Step(step, bound) => match step.make(from_ref(bound), resources)? {
                Made::Stage(stage) => Ok(stage),
                other => unreachable!("a stage is made of a stateless step, not {other:?}"),
            },
        }
    }
}

/// Columns and stages between two places where rows come together or apart.
#[derive(Clone, Debug, PartialEq)]
pub struct StrandSegment {
    /// The columns in scope at its end, and all slots.
    pub scope: Scope,
    /// What rows pass, in order.
    pub stages: Vec<StageSpec>,
    /// Whether stages keep all columns that they see, to hand out rows that they reject.
    keeps_sight: bool,
    /// What is read at its end.
    pub(super) end_reads: Vec<SlotId>,
}

impl StrandSegment {
    /// A segment whose first slots hold the columns of `schema`, and whose rows have that event time.
    pub(super) fn new(schema: &SchemaRef, time: Option<&EventTime>, keeps_sight: bool) -> Self {
        Self { scope: Scope::new(schema, time), stages: Vec::new(), keeps_sight, end_reads: Vec::new() }
    }

    /// Binds a step to its end, at one of the ports of the step.
    pub(super) fn bind(&mut self, node: &Node, port: usize) -> Result<Bound, PlanError> {
        let bound = node.bind(&mut self.scope, port)?;
        for preparation in &bound.preparations {
            self.prepare(preparation);
        }
        if node.step().form() == Form::Stage && !bound.is_free {
            let work = StageWork::Step(Arc::clone(node.shared_step()), Box::new(bound.clone()));
            self.push(node.step().name(), work, bound.reads(), bound.all_fills());
        }
        Ok(bound)
    }

    /// Adds a stage that computes what the next operator reads.
    pub(super) fn prepare(&mut self, preparation: &Preparation) {
        let (reads, fills) = (preparation.reads(), preparation.fills());
        self.push(preparation.name, StageWork::Preparation(preparation.clone()), reads, fills);
    }

    fn push(&mut self, name: &'static str, work: StageWork, reads: Vec<SlotId>, fills: Vec<SlotId>) {
        let mut stage = StageSpec { name, work, reads, fills, keeps_sight: self.keeps_sight };
        if stage.keeps_sight {
            let seen = stage.columns().slots.clone();
            stage.reads.extend(seen);
        }
        debug_assert!(
            stage.fills.iter().all(|slot| !stage.reads.contains(slot)),
            "SCOPE-2: {name} reads what it fills"
        );
        self.stages.push(stage);
    }

    /// Lists the slots that are still read once so many stages have run, in order, for each number from none to all.
    pub(crate) fn live(&self) -> Vec<Vec<SlotId>> {
        let mut live: BTreeSet<SlotId> = self.end_reads.iter().copied().collect();
        let snapshot = |live: &BTreeSet<SlotId>| live.iter().copied().collect();
        let mut all = vec![snapshot(&live)];
        for stage in self.stages.iter().rev() {
            stage.fills.iter().for_each(|slot| {
                live.remove(slot);
            });
            live.extend(&stage.reads);
            all.push(snapshot(&live));
        }
        all.reverse();
        all
    }

    /// Lists the slots that are read at its beginning.
    pub(super) fn live_at_begin(&self) -> Vec<SlotId> {
        let mut live: BTreeSet<SlotId> = self.end_reads.iter().copied().collect();
        for stage in self.stages.iter().rev() {
            stage.fills.iter().for_each(|slot| {
                live.remove(slot);
            });
            live.extend(&stage.reads);
        }
        live.into_iter().collect()
    }

    /// The columns in scope once so many stages have run.
    pub(crate) fn columns_after(&self, stages: usize) -> &Columns {
        self.stages.get(stages).map_or(self.scope.columns(), StageSpec::columns)
    }
}
