//! What runs over one set of slots: a scope, and the operators that change it. Plain data: operators are made of it when
//! tasks are assembled, as often as there are instances.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use penstock_memory::SlotId;
use penstock_operators::Stateless;
use penstock_plan::bound::Preparation;
use penstock_plan::{Bound, Columns, EventTime, Form, KeyedTable, Made, Node, Resources, Scope, Step};
use penstock_types::PlanError;

/// What an operator of a segment is made of.
#[derive(Clone, Debug)]
enum Work {
    /// A stateless step.
    Step(Arc<dyn Step>, Box<Bound>),
    /// What the operator with state at the end of the segment reads.
    Preparation(Preparation),
}

/// A stateless operator before it is made.
#[derive(Clone, Debug)]
pub(super) struct Op {
    pub(super) name: &'static str,
    work: Work,
    reads: Vec<SlotId>,
    fills: Vec<SlotId>,
    /// Whether it keeps all columns that it sees, to hand out rows that it rejects.
    keeps_sight: bool,
}

impl Op {
    /// Whether it only prepares what the next operator reads, and so never has a task of its own.
    pub(super) fn prepares(&self) -> bool {
        matches!(self.work, Work::Preparation(_))
    }

    /// The columns that it sees, where rows that it rejects are handed out.
    pub(super) fn sight(&self) -> Option<&Columns> {
        self.keeps_sight.then_some(self.columns())
    }

    /// The columns that it sees.
    pub(super) fn columns(&self) -> &Columns {
        match &self.work {
            Work::Step(_, bound) => &bound.columns,
            Work::Preparation(preparation) => &preparation.columns,
        }
    }

    /// The table that it looks rows up in.
    pub(super) fn table(&self) -> Option<&KeyedTable> {
        match &self.work {
            Work::Step(step, _) => step.table(),
            Work::Preparation(_) => None,
        }
    }

    /// Makes an instance of it.
    pub(super) fn make(&self, resources: &Resources) -> Result<Box<dyn Stateless>, PlanError> {
        match &self.work {
            Work::Preparation(preparation) => preparation.make(),
            Work::Step(step, bound) => match step.make(std::slice::from_ref(bound), resources)? {
                Made::Stage(stage) => Ok(stage),
                other => unreachable!("a stage is made of a stateless step, not {other:?}"),
            },
        }
    }
}

/// Columns and operators between two places where rows come together or apart.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) scope: Scope,
    pub(super) ops: Vec<Op>,
    /// Whether operators keep all columns that they see, to hand out rows that they reject.
    keeps_sight: bool,
    /// What is read at its end.
    pub(super) end_reads: Vec<SlotId>,
}

impl Segment {
    /// A segment whose first slots hold the columns of `schema`, and whose rows have that event time.
    pub(super) fn new(schema: &SchemaRef, time: Option<&EventTime>, keeps_sight: bool) -> Self {
        Self { scope: Scope::new(schema, time), ops: Vec::new(), keeps_sight, end_reads: Vec::new() }
    }

    /// Binds a step to its end, at one of the ports of the step.
    pub(super) fn bind(&mut self, node: &Node, port: usize) -> Result<Bound, PlanError> {
        let bound = node.bind(&mut self.scope, port)?;
        for preparation in &bound.preparations {
            self.prepare(preparation);
        }
        if node.step().form() == Form::Stage && !bound.is_free {
            let work = Work::Step(Arc::clone(node.shared_step()), Box::new(bound.clone()));
            self.push(node.step().name(), work, bound.reads(), bound.all_fills());
        }
        Ok(bound)
    }

    /// Adds an operator that computes what the next one reads.
    pub(super) fn prepare(&mut self, preparation: &Preparation) {
        let (reads, fills) = (preparation.reads(), preparation.fills());
        self.push(preparation.name, Work::Preparation(preparation.clone()), reads, fills);
    }

    fn push(&mut self, name: &'static str, work: Work, reads: Vec<SlotId>, fills: Vec<SlotId>) {
        let mut op = Op { name, work, reads, fills, keeps_sight: self.keeps_sight };
        if op.keeps_sight {
            let seen = op.columns().slots.clone();
            op.reads.extend(seen);
        }
        debug_assert!(
            op.fills.iter().all(|slot| !op.reads.contains(slot)),
            "SCOPE-2: {name} reads what it fills"
        );
        self.ops.push(op);
    }

    /// The slots that somebody reads once so many operators have run, in order, for each number that `wanted` asks for;
    /// empty for the others.
    pub(super) fn live(&self, wanted: impl Fn(usize) -> bool) -> Vec<Vec<SlotId>> {
        let mut live: BTreeSet<SlotId> = self.end_reads.iter().copied().collect();
        let snapshot = |done: usize, live: &BTreeSet<SlotId>| {
            if wanted(done) { live.iter().copied().collect() } else { Vec::new() }
        };
        let mut all = vec![snapshot(self.ops.len(), &live)];
        for (done, op) in self.ops.iter().enumerate().rev() {
            op.fills.iter().for_each(|slot| {
                live.remove(slot);
            });
            live.extend(&op.reads);
            all.push(snapshot(done, &live));
        }
        all.reverse();
        all
    }
}
