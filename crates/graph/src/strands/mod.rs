//! From a plan to strands: what rows pass one after the other, without coming together or apart.
//!
//! STRAND-1. A strand begins at a stream, at an operator, or where several strands are read, and ends where its rows go into
//!     an operator, are read by several, or leave.
//! STRAND-2. Strands are numbered so that one that reads another has the larger number.
//!
//! - [`cut`]: where a plan is cut; [`live`]: which columns each strand has to carry; [`segment`]: what runs in one

mod cut;
mod live;
mod segment;

use std::collections::BTreeSet;
use std::sync::Arc;

use penstock_memory::SlotId;
use penstock_plan::{Bound, ClockSlots, Made, Node, Outputs, Resources, StreamStep};
use penstock_progress::Windows;
use penstock_types::PlanError;

pub use segment::{StageSpec, StrandSegment};

/// The number of a strand.
pub type StrandId = usize;
/// The number of an operator, in the order of the plan: accounts, parts and checkpoints know it by that, and it is the same
/// for every graph of the plan.
pub type OperatorId = usize;

/// Where the rows of a strand come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begin {
    /// From outside: the number of the stream.
    Stream(usize),
    /// From other strands, as they are.
    Strands(Vec<StrandId>),
    /// Results of an operator.
    Results(OperatorId),
    /// The rows that an operator found late.
    Late(OperatorId),
}

/// Where the rows of a strand go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goes {
    /// Into an operator, by that port.
    Port(OperatorId, usize),
    /// To another strand.
    Strand(StrandId),
    /// Out, as that output.
    Output(usize),
}

/// Rows on their way.
#[derive(Clone, Debug, PartialEq)]
pub struct Strand {
    /// Where they come from.
    pub begin: Begin,
    /// What they pass.
    pub segment: StrandSegment,
    /// Where they go.
    pub goes: Vec<Goes>,
    /// Whether all of its rows came in from outside as they are, changed and filtered at most.
    pub is_raw: bool,
    /// Slots that are read at its beginning, once that is known.
    live: Vec<SlotId>,
}

/// A column that the reader of a strand needs: one of those in scope, or the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Need {
    /// That column.
    Column(usize),
    /// The time of the row.
    Time,
}

impl Strand {
    /// What this strand reads of those that it begins with.
    pub(crate) fn needs(&self) -> BTreeSet<Need> {
        let columns = self.segment.scope.begin_columns();
        let need = |&slot: &SlotId| {
            if slot < columns {
                return Need::Column(slot);
            }
            let time = self.segment.scope.clock().map(|clock| clock.time);
            debug_assert_eq!(Some(slot), time, "SCOPE-2: only the time is left");
            Need::Time
        };
        self.live.iter().map(need).collect()
    }

    /// The slot at its beginning that a need is about.
    pub(crate) fn slot_at_begin(&self, need: Need) -> SlotId {
        match need {
            Need::Column(column) => column,
            Need::Time => self.time(),
        }
    }

    /// The slot at its end that a need of its reader is about.
    pub(crate) fn slot_at_end(&self, need: Need) -> SlotId {
        match need {
            Need::Column(column) => self.segment.scope.slots()[column],
            Need::Time => self.time(),
        }
    }

    fn time(&self) -> SlotId {
        self.segment.scope.clock().expect("time is read only where it is known").time
    }
}

/// The windows that the wall clock closes, and for how long after the last row it goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticks {
    /// The windows.
    pub windows: Vec<Windows>,
    /// For how long after the last row: then every window has closed.
    pub linger_us: i64,
}

/// A node of the plan that is run; two are equal if their steps are.
#[derive(Clone, Debug)]
pub struct PlannedNode(pub Arc<Node>);

impl PartialEq for PlannedNode {
    fn eq(&self, other: &Self) -> bool {
        self.0.step().is_same(other.0.step()) && self.0.schema() == other.0.schema()
    }
}

/// A stream, and how its batches are read.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// Its declaration.
    pub node: PlannedNode,
    /// The strand that it begins.
    pub strand: StrandId,
    /// Which columns of a batch are read.
    pub reads: Vec<bool>,
    /// Where event time goes, if the stream has one.
    pub clock: Option<ClockSlots>,
    /// What the wall clock closes, where the time of arrival is event time.
    pub ticks: Option<Ticks>,
}

impl Stream {
    /// Its declaration.
    pub fn step(&self) -> &StreamStep {
        self.node.0.step().as_stream().expect("it was made of a stream")
    }
}

/// An operator that takes runs in and gives others out.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedOperator {
    /// The step.
    pub node: PlannedNode,
    /// What it reads of each of its inputs.
    pub ports: Vec<Bound>,
    /// The strand of its results.
    pub results: StrandId,
    /// The strand of the rows that it finds late, if they are read.
    pub late: Option<StrandId>,
}

impl PlannedOperator {
    /// What it is called in reports.
    pub fn name(&self) -> &'static str {
        self.node.0.step().name()
    }

    /// Whether it calls a function with the rows: what that returns is judged as the rows were.
    pub fn calls_function(&self) -> bool {
        self.node.0.step().function().is_some()
    }

    /// Makes an instance of it.
    pub fn make(&self, resources: &Resources) -> Result<Made, PlanError> {
        self.node.0.step().make(&self.ports, resources)
    }
}

/// A plan in strands: what does not depend on how it is run.
#[derive(Clone, Debug, PartialEq)]
pub struct Strands {
    /// The strands (STRAND-2).
    pub strands: Vec<Strand>,
    /// The streams, in the order of the plan.
    pub streams: Vec<Stream>,
    /// The operators, in the order of the plan.
    pub operators: Vec<PlannedOperator>,
}

impl Strands {
    /// Cuts plans into strands. With `keeps_sight`, stages keep what rows were, to hand out those that they reject.
    pub fn of(outputs: &Outputs, keeps_sight: bool) -> Result<Self, PlanError> {
        let mut strands = cut::cut(outputs, keeps_sight)?;
        strands.settle();
        strands.set_ticks();
        Ok(strands)
    }

    /// The strand whose rows a port of an operator takes in.
    pub fn port_strand(&self, operator: OperatorId, port: usize) -> StrandId {
        let is_it = |strand: &Strand| strand.goes.contains(&Goes::Port(operator, port));
        self.strands.iter().position(is_it).expect("every port reads a strand")
    }

    /// Lets the strands before these operators compute the key group of each row, by which rows are exchanged.
    pub(crate) fn exchange(&mut self, is_exchanged: impl Fn(OperatorId) -> bool) {
        let mut changed = false;
        for strand in &mut self.strands {
            if let [Goes::Port(operator, port)] = strand.goes[..]
                && is_exchanged(operator)
            {
                let bound = &mut self.operators[operator].ports[port];
                let groups = bound.prepare_groups(&mut strand.segment.scope);
                strand.segment.prepare(groups);
                changed = true;
            }
        }
        if changed {
            self.settle();
        }
    }
}
