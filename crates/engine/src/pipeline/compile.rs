//! From a plan to chains: columns to slots, steps to operators.

use std::sync::Arc;

use arrow_schema::{DataType, Schema, SchemaRef};
use penstock_expr::{Expr, Expression, Scope, compile as compile_expr};
use penstock_memory::batch::decoded;
use penstock_memory::{Exporter, Physical, Run, SlotId, SourceColumns};
use penstock_operators::aggregates::AccumulatorFactory;
use penstock_operators::{Filter, Lookup, Project, Stage, WindowAggregate, WindowColumns};
use penstock_progress::{BoundedDelay, Tumbling};
use penstock_scheduler::{Profile, rows_per_run};
use penstock_types::PlanError;

use super::Pipeline;
use super::chain::{Chain, End, Link, Sink, WindowEnd};
use super::source::{Clock, Source};
use crate::plan::{Aggregate, Plan, Step, TableStep};

/// A chain under construction.
struct Building {
    run: Run,
    links: Vec<Link>,
    /// The columns in scope, and the slot of each.
    schema: Schema,
    slots: Vec<SlotId>,
    /// Slots that some operator reads.
    read: Vec<SlotId>,
}

fn physical(data_type: &DataType) -> Physical {
    Physical::of(data_type).expect("types are checked when the plan is built")
}

impl Building {
    /// A chain whose first slots hold the columns of `schema`.
    fn new(schema: Schema) -> Self {
        let mut run = Run::new();
        let slots = schema.fields().iter().map(|field| run.add_slot(physical(field.data_type()))).collect();
        Self { run, links: Vec::new(), schema, slots, read: Vec::new() }
    }

    fn compile(&mut self, expr: &Expr) -> Result<Expression, PlanError> {
        let compiled = compile_expr(expr, Scope { schema: &self.schema, slots: &self.slots })?;
        self.read.extend_from_slice(compiled.slots());
        Ok(compiled)
    }

    fn link(&mut self, name: &'static str, stage: impl Stage + 'static) {
        self.links.push(Link { name, stage: Box::new(stage), profile: Profile::default() });
    }

    /// The slots that hold the values of `exprs`, once the computed ones among them have run.
    fn project(&mut self, name: &'static str, exprs: &[Expr]) -> Result<Vec<(SlotId, DataType)>, PlanError> {
        let mut computed = Vec::new();
        let mut places = Vec::new();
        for expr in exprs {
            let compiled = self.compile(expr)?;
            let data_type = compiled.data_type.clone();
            let slot = match compiled.as_slot() {
                Some(slot) => slot,
                None => {
                    let slot = self.run.add_slot(compiled.physical());
                    computed.push((compiled, slot));
                    slot
                }
            };
            places.push((slot, data_type));
        }
        if !computed.is_empty() {
            self.link(name, Project::new(computed));
        }
        Ok(places)
    }

    fn lookup(&mut self, table: &TableStep) {
        let slot_of = |name: &String| {
            let (column, _) =
                self.schema.fields().find(name).expect("keys are checked when the plan is built");
            self.slots[column]
        };
        let keys: Vec<SlotId> = table.on().iter().map(slot_of).collect();
        self.read.extend_from_slice(&keys);
        let fill: Vec<(usize, SlotId)> = table
            .added()
            .iter()
            .enumerate()
            .map(|(number, field)| (number, self.run.add_slot(physical(field.data_type()))))
            .collect();
        self.slots.extend(fill.iter().map(|(_, slot)| *slot));
        self.link("lookup", Lookup::new(table.indexed(), table.kind(), keys, fill));
    }

    fn finish(self, end: End, room: usize) -> Chain {
        Chain { run: self.run, room, links: self.links, end }
    }
}

struct Compiler {
    done: Vec<Building>,
    ends: Vec<End>,
    now: Building,
    clock: Option<Clock>,
}

impl Compiler {
    fn step(&mut self, step: &Step, schema: SchemaRef) -> Result<(), PlanError> {
        let now = &mut self.now;
        match step {
            Step::Stream { .. } => unreachable!("the stream is the first step"),
            Step::Filter(predicate) => {
                let predicate = now.compile(predicate)?;
                now.link("filter", Filter::new(predicate));
            }
            Step::Select(exprs) => {
                let places = now.project("select", exprs)?;
                now.slots = places.into_iter().map(|(slot, _)| slot).collect();
            }
            Step::WithColumns(exprs) => {
                let places = now.project("with_columns", exprs)?;
                for (expr, (slot, _)) in exprs.iter().zip(places) {
                    match now.schema.fields().find(&expr.output_name()) {
                        Some((column, _)) => now.slots[column] = slot,
                        None => now.slots.push(slot),
                    }
                }
            }
            Step::Lookup(table) => now.lookup(table),
            Step::Tumbling { size, by, aggregates } => return self.window(*size, by, aggregates, &schema),
        }
        self.now.schema = schema.as_ref().clone();
        debug_assert_eq!(self.now.schema.fields().len(), self.now.slots.len());
        Ok(())
    }

    fn window(
        &mut self,
        size: i64,
        by: &[Expr],
        aggregates: &[Aggregate],
        schema: &SchemaRef,
    ) -> Result<(), PlanError> {
        let now = &mut self.now;
        let keys = now.project("window keys", by)?;
        let inputs: Vec<Expr> = aggregates.iter().filter_map(|aggregate| aggregate.input.clone()).collect();
        let mut computed = now.project("window inputs", &inputs)?.into_iter();
        let mut slots = Vec::new();
        let mut factories = Vec::new();
        for aggregate in aggregates {
            let input = aggregate.input.as_ref().and_then(|_| computed.next());
            let data_type = input.as_ref().map(|(_, data_type)| data_type.clone());
            factories.push(AccumulatorFactory::new(aggregate.kind, data_type, aggregate.to_string())?);
            slots.push(input.map(|(slot, _)| slot));
        }
        let clock = self.clock.as_ref().expect("windows are refused without event time");
        let columns = WindowColumns {
            time: clock.slot,
            watermark: clock.watermark_slot,
            keys: keys.iter().map(|(slot, data_type)| (*slot, physical(data_type))).collect(),
            inputs: slots,
            bounds: physical(schema.field(0).data_type()),
        };
        let windows = Tumbling::new(size).expect("sizes are checked when the plan is built");
        let operator = WindowAggregate::new(windows, columns, factories);
        now.read.extend_from_slice(operator.reads());
        self.ends.push(End::Window(Box::new(WindowEnd { operator, profile: Profile::default() })));
        let results = Building::new(schema.as_ref().clone());
        self.done.push(std::mem::replace(&mut self.now, results));
        Ok(())
    }
}

/// `rows` is the number of rows per run; without it the width of the rows decides.
pub(super) fn compile(plan: &Plan, rows: Option<usize>) -> Result<Pipeline, PlanError> {
    let (first, steps) = plan.steps().split_first().expect("a plan starts with a stream");
    let Step::Stream { schema, time, delay } = &**first else {
        unreachable!("a plan starts with a stream");
    };
    let downstream: Vec<_> = schema
        .fields()
        .iter()
        .map(|field| field.as_ref().clone().with_data_type(decoded(field.data_type()).clone()))
        .collect();
    let mut now = Building::new(Schema::new(downstream));
    let clock = time.as_ref().map(|name| {
        let (column, field) = schema.fields().find(name).expect("the time column is in the schema");
        let narrow = physical(field.data_type()) != Physical::I64;
        let slot = if narrow { now.run.add_slot(Physical::I64) } else { now.slots[column] };
        let watermark_slot = now.run.add_slot(Physical::I64);
        now.read.push(now.slots[column]);
        Clock { name: name.clone(), column, slot, watermark_slot, progress: BoundedDelay::new(*delay) }
    });

    let mut compiler = Compiler { done: Vec::new(), ends: Vec::new(), now, clock };
    for (step, schema) in steps.iter().zip(plan.schemas().iter().skip(1)) {
        compiler.step(step, Arc::clone(schema))?;
    }
    let Compiler { mut done, mut ends, mut now, clock } = compiler;
    now.read.extend_from_slice(&now.slots);
    let sink = Sink {
        exporter: Exporter::new(Arc::clone(plan.schema())),
        slots: now.slots.clone(),
        profile: Profile::default(),
    };
    done.push(now);
    ends.push(End::Sink(sink));

    // Column pruning: a column of the source that nobody reads is never converted.
    let read = (0..schema.fields().len()).map(|column| done[0].read.contains(&column)).collect();
    let columns = SourceColumns::new(Arc::clone(schema), read);
    let room = |width: usize| rows.unwrap_or_else(|| rows_per_run(width));
    let source_rows = room(columns.row_width());
    let source = Source::new(columns, clock, source_rows);
    let chains = done
        .into_iter()
        .zip(ends)
        .map(|(building, end)| {
            let width =
                building.schema.fields().iter().map(|field| physical(field.data_type()).width()).sum();
            building.finish(end, room(width))
        })
        .collect();
    Ok(Pipeline { source, chains, tick: plan.tick(), schema: Arc::clone(plan.schema()) })
}
