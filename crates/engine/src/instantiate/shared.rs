//! A stream that several queries read: which plans fit it, and where its columns go.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arrow_schema::{DataType, SchemaRef};
use penstock_graph::{SharedLog, Strands};
use penstock_memory::Layout;
use penstock_memory::batch::decoded;
use penstock_plan::{Outputs, Plan, StreamStep};
use penstock_queue::wanted::Wanted;
use penstock_scheduler::Arrivals;
use penstock_types::{PlanError, TypeName};

use super::assembly::named;
use super::opening;
use super::origin::{Origin, StreamHead};
use super::{Assembled, Assembler};
use crate::error::StartError;
use crate::executors::{NewTask, TaskWakers};
use penstock_tasks::account::{Account, Role};
use penstock_tasks::chain::Chain;
use penstock_tasks::inputs::Input;
use penstock_tasks::outlet::{Judging, Outlet, Readers};
use penstock_tasks::rejects::Rejects;
use penstock_tasks::results::Results;
use penstock_tasks::shared::Joins;
use penstock_tasks::task::{OperatorTask, SharedTask};
use penstock_tasks::waker::Waker;

/// What queries need to know of a source that they share.
pub(crate) struct SharedStream {
    declared: StreamStep,
    /// The columns of its log.
    schema: SchemaRef,
    /// Whether its log holds times once more, as 64 bits.
    has_wide_time: bool,
    /// When its rows arrived.
    arrivals: Arc<Arrivals>,
}

impl SharedStream {
    pub(super) fn new(declared: &StreamStep, schema: &SchemaRef, has_wide_time: bool) -> Self {
        let (declared, schema) = (declared.clone(), schema.clone());
        Self { declared, schema, has_wide_time, arrivals: Arc::default() }
    }

    /// Returns its log, as the graph of a query knows it; the number is that of the source.
    pub(super) fn log(&self, source: u64) -> SharedLog {
        SharedLog { source, schema: self.schema.clone(), has_wide_time: self.has_wide_time }
    }

    /// When its rows arrived.
    pub(super) fn arrivals(&self) -> &Arc<Arrivals> {
        &self.arrivals
    }

    /// Refuses a plan with such a stream, whose rows have that schema, if it cannot read this one.
    pub(crate) fn check(&self, declared: &StreamStep, schema: &SchemaRef) -> Result<(), PlanError> {
        for field in schema.fields() {
            let Some((_, there)) = self.schema.fields().find(field.name()) else {
                let names = self.schema.fields().iter().map(|field| field.name().as_str());
                return Err(PlanError::unknown_column(field.name(), names));
            };
            let types = (decoded(field.data_type()), decoded(there.data_type()));
            if types.0 != types.1 || (there.is_nullable() && !field.is_nullable()) {
                let what = |data_type: &DataType, nullable: bool| {
                    format!("{}{}", TypeName(data_type), if nullable { "" } else { " not null" })
                };
                return Err(PlanError::mismatch(
                    format!("column \"{}\"", field.name()),
                    format!(
                        "the plan declares {}, the shared source {}",
                        what(types.0, field.is_nullable()),
                        what(types.1, there.is_nullable())
                    ),
                ));
            }
        }
        // Lateness is decided once, where rows come in.
        let time = |stream: &StreamStep| {
            (
                stream.time.clone(),
                stream.delay,
                stream.arrival,
                stream.watermark.clone(),
                stream.idle_after_ns,
            )
        };
        if declared.time.is_some() && time(declared) != time(&self.declared) {
            let say = |stream: &StreamStep| match &stream.time {
                Some(time) => {
                    let marks = stream
                        .watermark
                        .as_ref()
                        .map_or(String::new(), |from| format!(", watermarks of {from:?}"));
                    format!("time=\"{time}\" with a delay of {}{marks}", stream.delay)
                }
                None => "no time column".to_owned(),
            };
            return Err(PlanError::Invalid(format!(
                "the plan has {}, the shared source {}; lateness is decided by the source: declare both alike, or build the plan on source.stream",
                say(declared),
                say(&self.declared)
            )));
        }
        if declared.max_ahead.is_some() && declared.max_ahead != self.declared.max_ahead {
            return Err(PlanError::Invalid(
                "the plan has another max_ahead= than the shared source, which decides what rows it takes: build the plan on source.stream".to_owned(),
            ));
        }
        Ok(())
    }
}

impl Assembler<'_> {
    /// Makes the task of a source that queries share. Returns it with what those queries need to know. Rows that the source
    /// rejects fail it without `rejects`; otherwise they are left out, and handed out if there are results for them.
    pub(crate) fn shared(
        &self,
        plan: &Plan,
        origin: Box<dyn Origin>,
        begin: Arc<AtomicBool>,
        joins: Joins,
        rejects: Option<Option<Results>>,
    ) -> Result<(Assembled, SharedStream), StartError> {
        let mut strands = Strands::of(&Outputs::from(plan), false)?;
        let stream = strands.streams.pop().expect("a shared source is a stream");
        origin.check(stream.step())?;
        let columns = opening::columns(&stream);
        let head = StreamHead {
            rows_per_run: self.rows_per_run(columns.row_width()),
            columns,
            clock: opening::clock(&stream),
            idle_after_ns: stream.step().idle_after_ns,
            begin,
            fills: Vec::new(),
        };
        let mut source = origin.open(head)?;
        let segment = &strands.strands[stream.strand].segment;
        let mut slots = segment.scope.slots().to_vec();
        let clock = segment.scope.clock();
        let wide_time = clock.map(|clock| clock.time).filter(|slot| !slots.contains(slot));
        slots.extend(wide_time);
        let shared = SharedStream::new(stream.step(), plan.schema(), wide_time.is_some());
        let TaskWakers { bell, inputs } = self.wakers()?;
        let waker: Arc<dyn Waker> = Arc::clone(&bell) as _;
        source.connect(&inputs[0]);
        waker.set_pending(source.pending());
        let layout = Layout::new(segment.scope.kinds_of(&slots));
        let room = Arc::new(Wanted::new(Arc::clone(&bell) as _));
        let writer = self.writer(layout, false, Arc::clone(&room) as _)?;
        let head = Chain { run: segment.scope.run(), links: Vec::new(), rejected: Arc::default() };
        let judging = clock.map_or(Judging::AsItStands, |clock| Judging::Exact {
            time: clock.time,
            watermark: clock.watermark,
        });
        let readers = Readers { has_tasks: true, sinks: Vec::new() };
        let arrivals = Arc::clone(&shared.arrivals);
        let outlet = Outlet::new((writer, room), slots, judging, readers, arrivals);
        let mut account = Account { tick: plan.root().time().map(|time| time.tick), ..Account::default() };
        account.sources.push(Arc::clone(source.counts()));
        account.operators.push(named("stream", Role::Source, source.profile()));
        if let Some(Some(letters)) = &rejects {
            letters.connect(&waker);
        }
        let inputs = vec![(Input::Source(Box::new(source)), 0)];
        let task = OperatorTask::new(inputs, vec![head], None, outlet, rejects.map(Rejects::new));
        let body = Box::new(SharedTask::new(task, joins));
        let (name, readers) = ("stream".to_owned(), Vec::new());
        let installed = NewTask { name, body, bell, readers, is_source: true, part: None };
        let (reads, tables, physical) = Default::default();
        let assembled = Assembled { tasks: vec![installed], account, reads, tables, physical };
        Ok((assembled, shared))
    }
}
