//! What runs over one set of slots: the columns in scope, where they stand, and the operators that change them.
//!
//! Slots are numbered through a segment, and each is filled once, so a column has the same slot in every task that runs a
//! part of it, and an edge carries those that somebody behind it reads.
//!
//! G1. An operator reads slots that were filled before it, never one that it fills: so the slots that are read at a place
//!     are filled there.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_schema::{DataType, Schema, SchemaRef};
use penstock_expr::{Expr, Expression, Scope, compile as compile_expr};
use penstock_memory::{ColumnKind, Physical, Run, SlotId};
use penstock_operators::{Filter, Grouping, Lookup, LookupPlace, Project, Stateless};
use penstock_types::PlanError;

use crate::plan::{EventTime, Step, TableStep};
use crate::tasks::rejects::Sight;

/// How times and watermarks are stored.
const WIDE: ColumnKind = ColumnKind { physical: Physical::I64, nullable: false };
/// How key groups are stored.
const GROUP: ColumnKind = ColumnKind { physical: Physical::U8, nullable: false };

/// A table that rows are looked up in: as it was written, the columns of the rows, and where it stands.
#[derive(Clone)]
pub(crate) struct Table {
    pub(crate) step: TableStep,
    pub(crate) stream: Schema,
    pub(crate) place: LookupPlace,
}

/// Where event time stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockSlots {
    /// The time of each row, 64 bits wide.
    pub(super) time: SlotId,
    /// The watermark just before each row, in runs that may hold a late one.
    pub(super) watermark: SlotId,
}

/// A stateless operator before it stands in a task.
pub(super) struct Op {
    pub(super) name: &'static str,
    /// There until it stands in a task.
    pub(super) stage: Option<Box<dyn Stateless>>,
    pub(super) reads: Vec<SlotId>,
    pub(super) fills: Vec<SlotId>,
    /// The columns that it sees, where rows that it rejects are handed out.
    pub(super) sight: Option<Arc<Sight>>,
    /// The table that it looks rows up in.
    pub(super) table: Option<Table>,
    /// Whether it only prepares what the next operator reads, and so never stands alone.
    pub(super) prepares: bool,
}

/// Columns and operators between two places where rows come together or apart.
pub(super) struct Segment {
    kinds: Vec<ColumnKind>,
    pub(super) ops: Vec<Op>,
    /// The columns in scope, and the slot of each.
    pub(super) schema: Schema,
    pub(super) slots: Vec<SlotId>,
    pub(super) clock: Option<ClockSlots>,
    /// Number of columns at its beginning.
    pub(super) begin_columns: usize,
    /// Whether operators keep all columns that they see, to hand out rows that they reject.
    keeps_sight: bool,
    /// What is read at its end.
    pub(super) end_reads: Vec<SlotId>,
}

pub(super) fn kind(data_type: &DataType, nullable: bool) -> ColumnKind {
    ColumnKind::of(data_type, nullable).expect("types are checked when the plan is built")
}

pub(super) fn physical(data_type: &DataType) -> Physical {
    kind(data_type, false).physical
}

impl Segment {
    /// A segment whose first slots hold the columns of `schema`, and whose rows have that event time.
    pub(super) fn new(schema: Schema, time: Option<&EventTime>, keeps_sight: bool) -> Self {
        let kinds: Vec<ColumnKind> =
            schema.fields().iter().map(|field| kind(field.data_type(), field.is_nullable())).collect();
        let begin_columns = kinds.len();
        let mut segment = Self {
            kinds,
            ops: Vec::new(),
            schema,
            slots: (0..begin_columns).collect(),
            clock: None,
            begin_columns,
            keeps_sight,
            end_reads: Vec::new(),
        };
        segment.clock = time.map(|time| {
            let (column, field) = segment.schema.fields().find(&time.column).expect("P1: the time is there");
            let is_itself = !time.is_end && physical(field.data_type()) == Physical::I64;
            let slot = if is_itself { column } else { segment.add_slot(WIDE) };
            ClockSlots { time: slot, watermark: segment.add_slot(WIDE) }
        });
        segment
    }

    /// Lets columns be null that are so in `schema`: before anything has been done.
    pub(super) fn widen(&mut self, schema: &Schema) {
        for (column, field) in schema.fields().iter().enumerate() {
            self.kinds[column] = kind(field.data_type(), field.is_nullable());
        }
        self.schema = schema.clone();
    }

    pub(super) fn add_slot(&mut self, kind: ColumnKind) -> SlotId {
        self.kinds.push(kind);
        self.kinds.len() - 1
    }

    /// How the columns in these slots are stored.
    pub(super) fn kinds_of(&self, slots: &[SlotId]) -> Vec<ColumnKind> {
        slots.iter().map(|&slot| self.kinds[slot]).collect()
    }

    /// A run with the slots of this segment.
    pub(super) fn run(&self) -> Run {
        let mut run = Run::new();
        for kind in &self.kinds {
            run.add_slot(kind.physical);
        }
        run
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

    /// Whether the columns at its end are those at its beginning, in the same order.
    pub(super) fn is_as_read(&self) -> bool {
        self.slots.len() == self.begin_columns && self.slots.iter().copied().eq(0..self.begin_columns)
    }

    /// Bytes of a row of the columns in scope.
    pub(super) fn row_bytes(&self) -> usize {
        self.slots.iter().map(|&slot| self.kinds[slot].physical.width()).sum()
    }

    pub(super) fn compile(&self, expr: &Expr) -> Result<Expression, PlanError> {
        compile_expr(expr, Scope { schema: &self.schema, slots: &self.slots })
    }

    fn push(
        &mut self,
        name: &'static str,
        stage: impl Stateless + 'static,
        mut reads: Vec<SlotId>,
        fills: Vec<SlotId>,
    ) {
        let sight = self.keeps_sight.then(|| Sight::new(&self.schema, &self.slots));
        if sight.is_some() {
            reads.extend_from_slice(&self.slots);
        }
        debug_assert!(fills.iter().all(|slot| !reads.contains(slot)), "G1: {name} reads what it fills");
        self.ops.push(Op {
            name,
            stage: Some(Box::new(stage)),
            reads,
            fills,
            sight,
            table: None,
            prepares: false,
        });
    }

    fn filter(&mut self, predicate: &Expr) -> Result<(), PlanError> {
        let predicate = self.compile(predicate)?;
        let reads = predicate.slots().to_vec();
        self.push("filter", Filter::new(predicate), reads, Vec::new());
        Ok(())
    }

    /// The slots that hold the values of `exprs`, once the computed ones among them have run.
    pub(super) fn project(
        &mut self,
        name: &'static str,
        exprs: &[Expr],
    ) -> Result<Vec<(SlotId, DataType)>, PlanError> {
        let (mut computed, mut places, mut reads, mut fills) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for expr in exprs {
            let compiled = self.compile(expr)?;
            let data_type = compiled.data_type.clone();
            let slot = match compiled.as_slot() {
                Some(slot) => slot,
                None => {
                    let slot = self.add_slot(kind(&data_type, compiled.nullable));
                    reads.extend_from_slice(compiled.slots());
                    fills.push(slot);
                    computed.push((compiled, slot));
                    slot
                }
            };
            places.push((slot, data_type));
        }
        if !computed.is_empty() {
            self.push(name, Project::new(computed), reads, fills);
        }
        Ok(places)
    }

    fn lookup(&mut self, table: &TableStep, schema: &Schema) {
        let slot_of = |name: &String| {
            let (column, _) =
                self.schema.fields().find(name).expect("keys are checked when the plan is built");
            self.slots[column]
        };
        let keys: Vec<SlotId> = table.on().iter().map(slot_of).collect();
        // The fields behind the step say whether a missing match makes them null.
        let added = &schema.fields()[self.slots.len()..];
        let fill: Vec<(usize, SlotId)> = added
            .iter()
            .enumerate()
            .map(|(number, field)| (number, self.add_slot(kind(field.data_type(), field.is_nullable()))))
            .collect();
        let fills: Vec<SlotId> = fill.iter().map(|(_, slot)| *slot).collect();
        let place = LookupPlace::new(table.indexed());
        let stage = Lookup::new(place.clone(), table.kind(), keys.clone(), fill);
        self.push("lookup", stage, keys, fills.clone());
        // Only now: an operator never reads a column that it fills itself (G1).
        self.slots.extend(fills);
        let stream = self.schema.clone();
        self.ops.last_mut().expect("just pushed").table = Some(Table { step: table.clone(), stream, place });
    }

    pub(super) fn step(&mut self, step: &Step, schema: &SchemaRef) -> Result<(), PlanError> {
        match step {
            Step::Filter(predicate) => self.filter(predicate)?,
            Step::Select(exprs) => {
                let places = self.project("select", exprs)?;
                self.slots = places.into_iter().map(|(slot, _)| slot).collect();
            }
            Step::WithColumns(exprs) => {
                let places = self.project("with_columns", exprs)?;
                for (expr, (slot, _)) in exprs.iter().zip(places) {
                    match self.schema.fields().find(&expr.output_name()) {
                        Some((column, _)) => self.slots[column] = slot,
                        None => self.slots.push(slot),
                    }
                }
            }
            Step::Lookup(table) => self.lookup(table, schema),
            _ => unreachable!("segments lie between such steps"),
        }
        self.schema = schema.as_ref().clone();
        debug_assert_eq!(self.schema.fields().len(), self.slots.len());
        Ok(())
    }

    /// Writes down the group of the key in these slots, and says where.
    pub(super) fn write_groups(&mut self, keys: &[(SlotId, DataType)]) -> SlotId {
        let (first, slot) = (self.ops.len(), self.add_slot(GROUP));
        let reads = keys.iter().map(|(slot, _)| *slot).collect();
        self.push("key groups", Grouping::new(keys, slot), reads, vec![slot]);
        self.prepare_from(first);
        slot
    }

    /// Marks the operators from that one on as preparing what the next operator reads.
    pub(super) fn prepare_from(&mut self, first: usize) {
        self.ops[first..].iter_mut().for_each(|op| op.prepares = true);
    }
}
