//! From a plan to tasks: columns to slots, steps to operators, operators to tasks with edges between them.
//!
//! A plan is cut into *segments* at its windows. Slots are numbered through a segment, and each is filled once, so a
//! column has the same slot in every task of the segment, and an edge carries those that somebody behind it reads.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_schema::{DataType, Schema, SchemaRef};
use penstock_expr::{Expr, Expression, Scope, compile as compile_expr};
use penstock_memory::batch::decoded;
use penstock_memory::{ColumnKind, Physical, Run, SlotId, SourceColumns};
use penstock_operators::aggregates::AccumulatorFactory;
use penstock_operators::{Filter, Lookup, Project, Stage, WindowAggregate, WindowColumns};
use penstock_progress::{BoundedDelay, Tumbling};
use penstock_scheduler::rows_per_run;
use penstock_types::PlanError;

use super::source::Clock;
use crate::options::RunOptions;
use crate::plan::{Aggregate, Plan, Step, TableStep};

/// A stateless operator before it stands in a task.
pub(super) struct Op {
    pub(super) name: &'static str,
    pub(super) stage: Box<dyn Stage>,
    reads: Vec<SlotId>,
    fills: Vec<SlotId>,
    /// Bytes of the table that it looks rows up in.
    pub(super) table_bytes: usize,
    /// Whether it only prepares what the next operator reads, and so never stands alone.
    pub(super) prepares: bool,
}

/// What lies between two windows, or between a window and one end of the plan.
pub(super) struct Segment {
    kinds: Vec<ColumnKind>,
    pub(super) ops: Vec<Op>,
    /// The columns in scope, and the slot of each.
    schema: Schema,
    pub(super) slots: Vec<SlotId>,
    /// What the window or the result at the end reads.
    end_reads: Vec<SlotId>,
}

/// A plan, compiled as far as it does not matter how it is run.
pub(super) struct Compiled {
    pub(super) columns: SourceColumns,
    pub(super) clock: Option<Clock>,
    pub(super) rows_per_run: usize,
    pub(super) segments: Vec<Segment>,
    /// The window behind each segment but the last.
    pub(super) windows: Vec<WindowAggregate>,
}

pub(super) fn kind(data_type: &DataType, nullable: bool) -> ColumnKind {
    ColumnKind::of(data_type, nullable).expect("types are checked when the plan is built")
}

fn physical(data_type: &DataType) -> Physical {
    kind(data_type, false).physical
}

impl Segment {
    /// A segment whose first slots hold the columns of `schema`.
    fn new(schema: Schema) -> Self {
        let kinds: Vec<ColumnKind> =
            schema.fields().iter().map(|field| kind(field.data_type(), field.is_nullable())).collect();
        let slots = (0..kinds.len()).collect();
        Self { kinds, ops: Vec::new(), schema, slots, end_reads: Vec::new() }
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

    /// Bytes of a row of the columns in scope.
    pub(super) fn row_bytes(&self) -> usize {
        self.slots.iter().map(|&slot| self.kinds[slot].physical.width()).sum()
    }

    fn compile(&self, expr: &Expr) -> Result<Expression, PlanError> {
        compile_expr(expr, Scope { schema: &self.schema, slots: &self.slots })
    }

    fn push(
        &mut self,
        name: &'static str,
        stage: impl Stage + 'static,
        reads: Vec<SlotId>,
        fills: Vec<SlotId>,
    ) {
        self.ops.push(Op { name, stage: Box::new(stage), reads, fills, table_bytes: 0, prepares: false });
    }

    fn filter(&mut self, predicate: &Expr) -> Result<(), PlanError> {
        let predicate = self.compile(predicate)?;
        let reads = predicate.slots().to_vec();
        self.push("filter", Filter::new(predicate), reads, Vec::new());
        Ok(())
    }

    /// The slots that hold the values of `exprs`, once the computed ones among them have run.
    fn project(&mut self, name: &'static str, exprs: &[Expr]) -> Result<Vec<(SlotId, DataType)>, PlanError> {
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
        self.slots.extend_from_slice(&fills);
        let table_bytes = table.indexed().bytes();
        let stage = Lookup::new(table.indexed(), table.kind(), keys.clone(), fill);
        self.push("lookup", stage, keys, fills);
        self.ops.last_mut().expect("just pushed").table_bytes = table_bytes;
    }

    fn step(&mut self, step: &Step, schema: &SchemaRef) -> Result<(), PlanError> {
        match step {
            Step::Stream { .. } | Step::Tumbling { .. } => unreachable!("segments lie between these"),
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
        }
        self.schema = schema.as_ref().clone();
        debug_assert_eq!(self.schema.fields().len(), self.slots.len());
        Ok(())
    }

    /// Ends the segment with a window over its columns.
    fn window(
        &mut self,
        (size, by, aggregates): (i64, &[Expr], &[Aggregate]),
        clock: (SlotId, SlotId),
        results: &Schema,
    ) -> Result<WindowAggregate, PlanError> {
        let prepared = self.ops.len();
        let keys = self.project("window keys", by)?;
        let inputs: Vec<Expr> = aggregates.iter().filter_map(|aggregate| aggregate.input.clone()).collect();
        let mut computed = self.project("window inputs", &inputs)?.into_iter();
        self.ops[prepared..].iter_mut().for_each(|op| op.prepares = true);
        let mut slots = Vec::new();
        let mut factories = Vec::new();
        for aggregate in aggregates {
            let input = aggregate.input.as_ref().and_then(|_| computed.next());
            let data_type = input.as_ref().map(|(_, data_type)| data_type.clone());
            factories.push(AccumulatorFactory::new(aggregate.kind, data_type, aggregate.to_string())?);
            slots.push(input.map(|(slot, _)| slot));
        }
        let (time, watermark) = clock;
        let columns = WindowColumns {
            time,
            watermark,
            keys: keys.iter().map(|(slot, data_type)| (*slot, physical(data_type))).collect(),
            inputs: slots,
            bounds: physical(results.field(0).data_type()),
        };
        let windows = Tumbling::new(size).expect("sizes are checked when the plan is built");
        let operator = WindowAggregate::new(windows, columns, factories);
        self.end_reads.extend_from_slice(operator.reads());
        self.end_reads.push(time);
        Ok(operator)
    }
}

/// Compiles a plan.
pub(super) fn compile(plan: &Plan, options: &RunOptions) -> Result<Compiled, PlanError> {
    let (first, steps) = plan.steps().split_first().expect("a plan starts with a stream");
    let Step::Stream { schema, time, delay } = &**first else {
        unreachable!("a plan starts with a stream");
    };
    let downstream: Vec<_> = schema
        .fields()
        .iter()
        .map(|field| field.as_ref().clone().with_data_type(decoded(field.data_type()).clone()))
        .collect();
    let mut now = Segment::new(Schema::new(downstream));
    let clock = time.as_ref().map(|name| {
        let (column, field) = schema.fields().find(name).expect("the time column is in the schema");
        let wide = ColumnKind { physical: Physical::I64, nullable: false };
        let narrow = physical(field.data_type()) != Physical::I64;
        let slot = if narrow { now.add_slot(wide) } else { column };
        let watermark_slot = now.add_slot(wide);
        Clock { name: name.clone(), column, slot, watermark_slot, progress: BoundedDelay::new(*delay) }
    });
    let event_time = clock.as_ref().map(|clock| (clock.slot, clock.watermark_slot));
    let time_column = clock.as_ref().map(|clock| clock.column);

    let (mut segments, mut windows) = (Vec::new(), Vec::new());
    for (step, schema) in steps.iter().zip(plan.schemas().iter().skip(1)) {
        if let Step::Tumbling { size, by, aggregates } = &**step {
            let clock = event_time.expect("windows are refused without event time");
            windows.push(now.window((*size, by, aggregates), clock, schema)?);
            segments.push(std::mem::replace(&mut now, Segment::new(schema.as_ref().clone())));
        } else {
            now.step(step, schema)?;
        }
    }
    now.end_reads.extend_from_slice(&now.slots);
    segments.push(now);

    // Column pruning: a column of the source that nobody reads is never converted.
    let live = segments[0].live(|done| done == 0);
    let mut read = vec![false; schema.fields().len()];
    for &slot in live[0].iter().chain(&time_column) {
        if let Some(column) = read.get_mut(slot) {
            *column = true;
        }
    }
    let columns = SourceColumns::new(Arc::clone(schema), read);
    let rows = options.rows_per_run.unwrap_or_else(|| rows_per_run(columns.row_width())).max(1);
    Ok(Compiled { columns, clock, rows_per_run: rows, segments, windows })
}
