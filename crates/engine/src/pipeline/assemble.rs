//! From drafts to tasks: edges between them, bells, and the account of the query.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use penstock_memory::coordinator::StateAccount;
use penstock_memory::shape::ShapeOptions;
use penstock_memory::{
    Coordinator, EdgeReader, EdgeWriter, Layout, LogOptions, MemoryKind, OpenError, SlotId,
};
use penstock_operators::LookupTable;
use penstock_plan::{KeyedTable, Made, Resources};
use penstock_queue::wake::Wake;
use penstock_scheduler::table::Pending;
use penstock_scheduler::{Arrivals, Profile, rows_per_run};

use super::drafts::{Draft, DraftInput, Drafts, EdgeKey};
use super::edges::{EdgePlan, SinkReader};
use super::opening;
use super::order::in_order;
use super::origin::{Origin, StreamHead};
use super::segment::Op;
use super::shared::inlet_slots;
use super::spreading::{Spread, Spreading};
use super::strands::{OperatorId, StrandId, Strands};
use crate::checkpoint::InputPart;
use crate::error::StartError;
use crate::executors::Executor;
pub(super) use crate::executors::NewTask as Installed;
use crate::executors::bell::Bell;
use crate::options::{Chaining, RunOptions};
use crate::plan::{Function, Outputs};
use crate::query::tables::LiveTable;
use penstock_tasks::account::{self, Account, LateRows, Role};
use penstock_tasks::chain::{Chain, Link};
use penstock_tasks::inputs::{Inlet, Input};
use penstock_tasks::operator::{Inside, Keyed, KeyedCounts, LateWay, MappedTime, Mapper};
use penstock_tasks::outlet::{FlushRequest, Judging};
use penstock_tasks::pending::{EdgeLook, EdgesPending, InputsPending};
use penstock_tasks::rejects::{OnError, Rejects, Sight};
use penstock_tasks::results::Results;
use penstock_tasks::share::{Share, ShareGauge};
use penstock_tasks::source::Source;
use penstock_tasks::task::OperatorTask;
use penstock_tasks::waker::Waker;
use penstock_tasks::writers::SinkWriter;

/// The tasks of a query, in the order in which rows pass them, and its account.
pub(crate) struct Assembled {
    pub(crate) tasks: Vec<Installed>,
    pub(crate) account: Account,
    /// The shared sources that are read, by their number, and the task that reads each.
    pub(crate) reads: Vec<(u64, usize)>,
    /// The tables that rows are looked up in.
    pub(crate) tables: Vec<LiveTable>,
}

/// How a query is to run.
pub(crate) struct Ways<'a> {
    pub(crate) on_error: OnError,
    /// Where rejected rows go, if somebody reads them.
    pub(crate) letters: Option<&'a Results>,
    /// Workers that one operator may take, and how.
    pub(crate) spreading: Spreading,
    /// The part of the input that it runs over, if that is not all.
    pub(crate) part: Option<&'a InputPart>,
    /// Functions of the plan, each with the one that is called in its place.
    pub(crate) functions: &'a [(Function, Function)],
}

/// What a table is charged, for as long as a task looks rows up in it.
type Charge = Arc<Mutex<StateAccount>>;

/// Makes tasks.
pub(crate) struct Assembler<'a> {
    pub(crate) options: &'a RunOptions,
    pub(crate) coordinator: &'a Coordinator,
    pub(crate) executor: &'a dyn Executor,
}

/// Everything that is known of a query while its tasks are made.
pub(super) struct Assembly<'a> {
    pub(super) by: &'a Assembler<'a>,
    pub(super) strands: Strands,
    pub(super) drafts: Vec<Draft>,
    /// The slots that are read behind each number of operators of each strand.
    pub(super) live: Vec<Vec<Vec<SlotId>>>,
    pub(super) edges: HashMap<EdgeKey, EdgePlan>,
    /// The slots that each input of each task fills.
    pub(super) filled: HashMap<(usize, usize), Vec<SlotId>>,
    /// Readers of edges that were made, by task and input.
    pub(super) readers: HashMap<(usize, usize), (EdgeReader, Arc<Arrivals>)>,
    /// The reader of each output, and how the columns of its edge are stored.
    pub(super) sink_readers: HashMap<usize, SinkReader>,
    /// The bell of each draft, settled before anything is told whom to wake.
    pub(super) bells: Vec<Arc<Bell>>,
    pub(super) flushes: Vec<Arc<FlushRequest>>,
    /// Whether rows of several sources come by an edge.
    pub(super) mixed: HashMap<EdgeKey, bool>,
    pub(super) account: Account,
    pub(super) tables: Vec<LiveTable>,
    pub(super) on_error: OnError,
    pub(super) letters: Option<Results>,
    pub(super) part: Option<&'a InputPart>,
    /// What all instances of its operators share.
    pub(super) resources: Resources,
    /// The charge for each table that rows are looked up in.
    charges: Vec<(Arc<LookupTable>, Charge)>,
    /// How each operator runs on several workers.
    pub(super) spreading: Spreading,
    spreads: Vec<Spread>,
    /// Where each operator with state stands in the account.
    counted: HashMap<OperatorId, usize>,
    /// Tasks besides those of the drafts and the sinks that come before the one that is made.
    pub(super) extra: Vec<Installed>,
    /// How many of them there were so far.
    pub(super) extras: usize,
}

impl Assembler<'_> {
    pub(super) fn writer(
        &self,
        layout: Layout,
        is_result: bool,
        wake: Arc<dyn Wake>,
    ) -> Result<EdgeWriter, OpenError> {
        let chosen = self.options.shape;
        // Nobody reads results back through a cache: long blocks make long batches, handed out as they stand.
        let shape = if is_result && chosen == ShapeOptions::default() {
            ShapeOptions::for_export(&layout)
        } else {
            chosen
        };
        let options = LogOptions { shape, ..LogOptions::default() };
        EdgeWriter::new(self.options.memory, layout, &options, self.coordinator, wake)
    }

    pub(super) fn rows_per_run(&self, row_bytes: usize) -> usize {
        self.options.rows_per_run.unwrap_or_else(|| rows_per_run(row_bytes)).max(1)
    }

    /// The tasks of a query. Streams and outputs are in the order of the plan.
    pub(crate) fn query(
        &self,
        outputs: &Outputs,
        origins: Vec<Box<dyn Origin>>,
        writers: Vec<Box<dyn SinkWriter>>,
        ways: Ways<'_>,
    ) -> Result<Assembled, StartError> {
        let Ways { on_error, letters, spreading, part, functions } = ways;
        let mut strands = Strands::of(outputs, letters.is_some())?;
        for (stream, origin) in strands.streams.iter().zip(&origins) {
            origin.check(stream.step())?;
        }
        let is_shared: Vec<bool> = origins.iter().map(|origin| origin.shared().is_some()).collect();
        let chain = self.options.chain == Chaining::Auto;
        let spreads = spreading.of(&strands, chain, &is_shared);
        strands.exchange(&spreads);
        let parts = (&spreads[..], spreading.parts());
        let drafts = Drafts::of(&strands, outputs.plans().len(), chain, &is_shared, parts);
        let live = strands.strands.iter().map(|strand| strand.segment.live(|_| true)).collect();
        let count = drafts.drafts.len();
        let mut assembly = Assembly {
            by: self,
            strands,
            live,
            edges: HashMap::new(),
            filled: HashMap::new(),
            readers: HashMap::new(),
            sink_readers: HashMap::new(),
            bells: self.executor.reserve(&vec![1; count])?,
            flushes: Vec::new(),
            mixed: HashMap::new(),
            account: Account { tick: outputs.tick(), ..Account::default() },
            tables: Vec::new(),
            on_error,
            letters: letters.cloned(),
            part,
            resources: Resources::new(functions),
            charges: Vec::new(),
            spreading,
            spreads,
            counted: HashMap::new(),
            extra: Vec::new(),
            extras: 0,
            drafts: drafts.drafts,
        };
        let worthwhile: Vec<u64> = writers.iter().map(|writer| self.worthwhile_rows(&**writer)).collect();
        let sink_bells = self.executor.reserve(&worthwhile)?;
        assembly.flushes =
            sink_bells.iter().map(|bell| Arc::new(FlushRequest::new(Arc::clone(bell) as _))).collect();
        assembly.plan_edges(&drafts.outputs);
        let mut origins: Vec<Option<Box<dyn Origin>>> = origins.into_iter().map(Some).collect();
        let mut tasks = Vec::new();
        let mut reads = Vec::new();
        for number in 0..count {
            let (outputs, first) = (sink_bells.len(), assembly.extras);
            let task = assembly.task(number, &mut origins, &sink_bells, &mut reads)?;
            // Whoever it reads stands before it, and has a number behind those of the drafts and the sinks.
            tasks.extend(
                assembly.extra.drain(..).enumerate().map(|(at, extra)| (count + outputs + first + at, extra)),
            );
            tasks.push((number, task));
        }
        for (output, writer) in writers.into_iter().enumerate() {
            let bell = Arc::clone(&sink_bells[output]);
            tasks.push((count + output, assembly.sink(output, outputs, writer, bell)));
        }
        let tasks = in_order(tasks, &mut reads);
        Ok(Assembled { tasks, account: assembly.account, reads, tables: assembly.tables })
    }

    /// Returns how many rows are worth a wake-up of a sink.
    fn worthwhile_rows(&self, writer: &dyn SinkWriter) -> u64 {
        match self.options.memory {
            MemoryKind::Blocks => writer.worthwhile_rows(),
            MemoryKind::Queue => 1,
        }
    }

    /// Reserves the bell of one more task.
    pub(super) fn bell(&self) -> Result<Arc<Bell>, StartError> {
        let reserved = self.executor.reserve(&[1])?;
        Ok(reserved.into_iter().next().expect("one bell was asked for"))
    }
}

pub(super) fn named(name: &str, role: Role, profile: &Arc<Profile>) -> account::Operator {
    account::Operator { name: name.to_owned(), role, profiles: vec![Arc::clone(profile)] }
}

impl Assembly<'_> {
    /// The operators `ops` of a strand, over a run of its slots.
    pub(super) fn chain(
        &mut self,
        strand: StrandId,
        ops: std::ops::Range<usize>,
    ) -> Result<Chain, StartError> {
        let role = if self.strands.strands[strand].is_raw { Role::Stage } else { Role::Tail };
        let mut links = Vec::new();
        let ops = self.strands.strands[strand].segment.ops[ops].to_vec();
        for op in &ops {
            let link = self.link(op)?;
            self.account.operators.push(named(link.name, role, &link.profile));
            links.push(link);
        }
        let (run, rejected) = (self.strands.strands[strand].segment.scope.run(), Arc::default());
        self.account.count_rejected(role, &rejected);
        Ok(Chain { run, links, rejected })
    }

    /// Makes an instance of a stateless operator.
    pub(super) fn link(&mut self, op: &Op) -> Result<Link, StartError> {
        let charged = op.table().map(|table| self.charge(op, table)).transpose()?;
        let stage = op.make(&self.resources)?;
        let sight = op.sight().map(|columns| Sight::new(&columns.schema, &columns.slots));
        Ok(Link { name: op.name, stage, profile: Arc::new(Profile::default()), sight, table_charge: charged })
    }

    /// Charges the budget for a table, once for all instances that look rows up in it.
    fn charge(&mut self, op: &Op, table: &KeyedTable) -> Result<Charge, StartError> {
        let indexed = table.indexed();
        if let Some((_, charge)) = self.charges.iter().find(|(known, _)| Arc::ptr_eq(known, indexed)) {
            return Ok(Arc::clone(charge));
        }
        let (mut account, bytes) = (self.by.coordinator.state_account(), indexed.bytes());
        account.set(bytes).map_err(|limit| StartError::Table {
            operator: op.name.to_owned(),
            bytes,
            limit,
        })?;
        let charge = Arc::new(Mutex::new(account));
        self.charges.push((Arc::clone(indexed), Arc::clone(&charge)));
        let place = self.resources.open_table(indexed);
        let stream = Arc::clone(&op.columns().schema);
        self.tables.push(LiveTable::new(table.clone(), stream, place, &charge));
        Ok(charge)
    }

    fn input(
        &mut self,
        task: usize,
        (number, input): (usize, DraftInput),
        origins: &mut [Option<Box<dyn Origin>>],
        reads: &mut Vec<(u64, usize)>,
        (sources, edges): (&mut Vec<Box<dyn Pending>>, &mut Vec<EdgeLook>),
    ) -> Result<Input, StartError> {
        match input {
            DraftInput::Stream(stream) => {
                let origin = origins[stream].take().expect("a stream is read once");
                let bell = Arc::clone(&self.bells[task]);
                let source = self.stream(stream, (task, &bell), origin, reads)?;
                sources.push(source.pending());
                Ok(Input::Source(Box::new(source)))
            }
            DraftInput::Edge(key) => {
                let reader = self.readers.remove(&(task, number)).expect("whoever writes it came before");
                let slots = self.filled.remove(&(task, number)).expect("every edge was planned");
                edges.push((reader.0.gauge(), Arc::clone(&reader.1)));
                Ok(Input::Edge(Box::new(Inlet::new(reader, slots, self.mixed[&key]))))
            }
        }
    }

    /// Makes the source of a stream, in the task of that number; it wakes the one of that bell.
    pub(super) fn stream(
        &mut self,
        number: usize,
        (task, bell): (usize, &Arc<Bell>),
        origin: Box<dyn Origin>,
        reads: &mut Vec<(u64, usize)>,
    ) -> Result<Source, StartError> {
        let stream = &self.strands.streams[number];
        reads.extend(origin.shared().map(|source| (source, task)));
        let (step, schema) = (stream.step().clone(), Arc::clone(stream.node.schema()));
        let time = stream.clock.map(|clock| clock.time);
        let columns = opening::columns(stream);
        let (clock, rows_per_run) = (opening::clock(stream), self.by.rows_per_run(columns.row_width()));
        let segment = &mut self.strands.strands[stream.strand].segment;
        let head = StreamHead {
            columns,
            clock,
            idle_after_ns: step.idle_after_ns,
            rows_per_run,
            begin: Arc::new(AtomicBool::new(true)),
            slots: &mut |shared| inlet_slots((&step, &schema), shared, time, segment),
        };
        let mut source = origin.open(head)?;
        if let Some(part) = self.part {
            source.restore(part, number);
        }
        source.connect(&(Arc::clone(bell) as Arc<dyn Waker>));
        self.account.sources.push(Arc::clone(source.counts()));
        self.account.operators.push(named("stream", Role::Source, source.profile()));
        Ok(source)
    }

    fn task(
        &mut self,
        number: usize,
        origins: &mut [Option<Box<dyn Origin>>],
        sink_bells: &[Arc<Bell>],
        reads: &mut Vec<(u64, usize)>,
    ) -> Result<Installed, StartError> {
        let draft = self.drafts[number].clone();
        if draft.operator.as_ref().is_some_and(|(operator, _)| self.spreads[*operator] == Spread::Merged) {
            return self.merged(number, origins, sink_bells);
        }
        let inputs = self.inputs_of(number);
        let name = self.name(&draft);
        let (mut sources, mut edges) = (Vec::new(), Vec::new());
        let share = draft.part.map(|(_, parts)| Arc::new(ShareGauge::new(parts)));
        let mut made = Vec::new();
        for (place, &(input, port)) in inputs.iter().enumerate() {
            let waits = (&mut sources, &mut edges);
            let mut made_one = self.input(number, (place, input), origins, reads, waits)?;
            if let (Input::Edge(inlet), Some(part), Some((operator, _)), Some(gauge)) =
                (&mut made_one, draft.part, &draft.operator, &share)
            {
                let slot = self.strands.operators[*operator].ports[port].group;
                inlet.share = slot.map(|slot| Box::new(Share::new(slot, part, gauge)));
            }
            made.push((made_one, port));
        }
        let mut ports = Vec::new();
        for port in &draft.ports {
            ports.push(self.chain(port.strand, port.ops.clone())?);
        }
        if !edges.is_empty() {
            sources.push(Box::new(EdgesPending::new(edges, share.clone())));
        }
        if !sources.is_empty() {
            self.bells[number].row.set_pending(InputsPending::of(sources));
        }
        let mut readers = Vec::new();
        let keyed = match &draft.operator {
            None => None,
            Some((operator, tail)) => {
                Some(self.keyed(number, *operator, tail.clone(), sink_bells, &mut readers)?)
            }
        };
        let judging = self.judging(&draft, &inputs);
        let (outlet, mut more) = self.outlet((draft.out_key(), number), judging, sink_bells)?;
        more.append(&mut readers);
        let is_source = inputs.iter().any(|(input, _)| matches!(input, DraftInput::Stream(_)));
        let bell = Arc::clone(&self.bells[number]);
        let rejects = self.rejects(&bell);
        let mut task = OperatorTask::new(made, ports, keyed, outlet, rejects);
        if let Some(part) = self.part {
            task.restore(part);
        }
        let (body, part) = (Box::new(task), share.map(|share| (draft.part_number(), share)));
        Ok(Installed { name, body, bell, readers: more, is_source, part })
    }

    /// How a task deals with rows that its operators have no answer for, if the query does not fail with them.
    pub(super) fn rejects(&self, bell: &Arc<Bell>) -> Option<Rejects> {
        if self.on_error == OnError::Fail {
            return None;
        }
        if let Some(letters) = &self.letters {
            letters.connect(&(Arc::clone(bell) as Arc<dyn Waker>));
        }
        Some(Rejects::new(self.letters.clone()))
    }

    /// What people call a task: by the last of its operators.
    pub(super) fn name(&self, draft: &Draft) -> String {
        let last = |strand: StrandId, ops: &std::ops::Range<usize>| {
            self.strands.strands[strand].segment.ops[ops.clone()].last().map(|op| op.name)
        };
        let name = match &draft.operator {
            Some((operator, tail)) => {
                last(draft.out.0, tail).unwrap_or(self.strands.operators[*operator].node.step().name())
            }
            None => {
                last(draft.ports[0].strand, &draft.ports[0].ops).unwrap_or(match draft.ports[0].inputs[..] {
                    [DraftInput::Stream(_)] => "stream",
                    [_] => "pass",
                    _ => "union",
                })
            }
        };
        match draft.part {
            Some((part, parts)) => format!("{name} {}/{parts}", part + 1),
            None => name.to_owned(),
        }
    }

    /// How those behind a task learn which watermark a row is judged by, if they ask.
    pub(super) fn judging(&self, draft: &Draft, inputs: &[(DraftInput, usize)]) -> Judging {
        let (strand, _) = draft.out;
        let Some(clock) = self.strands.strands[strand].segment.scope.clock() else {
            return Judging::AsItStands;
        };
        let carries_time =
            self.edges.get(&draft.out_key()).is_some_and(|edge| edge.slots.contains(&clock.time));
        let calls = |(operator, _): &(usize, _)| self.strands.operators[*operator].calls_function();
        let makes_results = draft.operator.as_ref().is_some_and(|operator| !calls(operator));
        if !carries_time {
            return Judging::AsItStands;
        }
        if makes_results {
            return Judging::Results { time: clock.time }; // they are judged by the watermark between them
        }
        match inputs {
            [(DraftInput::Stream(_), _)] => Judging::Exact { time: clock.time, watermark: clock.watermark },
            [(DraftInput::Edge(key), _)] if !self.mixed[key] => Judging::AsItStands,
            _ => Judging::Said { time: clock.time },
        }
    }

    pub(super) fn keyed(
        &mut self,
        task: usize,
        operator: usize,
        tail: std::ops::Range<usize>,
        sink_bells: &[Arc<Bell>],
        readers: &mut Vec<usize>,
    ) -> Result<Keyed, StartError> {
        let (results, late) =
            (self.strands.operators[operator].results, self.strands.operators[operator].late);
        let name = self.strands.operators[operator].node.step().name();
        let ports: Vec<StrandId> = self.drafts[task].ports.iter().map(|port| port.strand).collect();
        let made = self.inside(task, operator)?;
        let counts = KeyedCounts {
            profile: Arc::default(),
            port_rows: ports.iter().map(|_| Arc::default()).collect(),
            late: ports.iter().map(|_| Arc::default()).collect(),
            rejected: Arc::default(),
            closings: Arc::default(),
        };
        self.account.closings.push(Arc::clone(&counts.closings));
        // Its parts count together.
        let at = *self.counted.entry(operator).or_insert(self.account.operators.len());
        match self.account.operators.get_mut(at) {
            Some(counted) => counted.profiles.push(Arc::clone(&counts.profile)),
            None => self.account.operators.push(named(name, Role::Keyed, &counts.profile)),
        }
        for ((port, rows), count) in ports.iter().zip(&counts.port_rows).zip(&counts.late) {
            let (is_raw, is_read) = (self.strands.strands[*port].is_raw, late.is_some());
            self.account.count_port(rows, LateRows { count: Arc::clone(count), is_raw, is_read });
        }
        // Only a function rejects rows itself, and it has one port.
        self.account.count_rejected_outside(self.strands.strands[ports[0]].is_raw, &counts.rejected);
        let late = match late {
            None => None,
            Some(_) => {
                let key = EdgeKey::Late(operator, self.drafts[task].part_number());
                let from = self.edges.get(&key).map_or_else(Vec::new, |edge| edge.slots.clone());
                let kinds = self.strands.strands[ports[0]].segment.scope.kinds_of(&from);
                let (mut outlet, mut tasks) = self.outlet((key, task), Judging::AsItStands, sink_bells)?;
                readers.append(&mut tasks);
                let mut run = penstock_memory::Run::new();
                let slots = kinds.iter().map(|kind| run.add_slot(kind.physical)).collect();
                outlet.set_slots(slots);
                Some(LateWay::new(outlet, from, run))
            }
        };
        let close_after_ns = self.strands.operators[operator].node.step().closes_after_ns();
        let row_bytes = self.strands.strands[results].segment.scope.row_bytes();
        let chain = self.chain(results, tail)?;
        let state = self.by.coordinator.state_account();
        let rows_per_run = self.by.rows_per_run(row_bytes);
        let mut keyed = Keyed::new((name, made), counts, state, chain, rows_per_run, (late, close_after_ns));
        if let Some(part) = self.part {
            keyed.restore(part, operator)?;
        }
        Ok(keyed)
    }

    /// What takes runs in and gives others out.
    fn inside(&self, task: usize, operator: usize) -> Result<Inside, StartError> {
        let called = match self.strands.make(operator, &self.resources)? {
            Made::Function(called) => called,
            Made::Operator(made) => return Ok(Inside::Stateful(made)),
            other => unreachable!("an operator is not {other:?}"),
        };
        let sight = Sight::new(&called.columns.schema, &called.columns.slots);
        let time =
            called.time.map(|time| MappedTime { column: time.column, slot: time.slot, is_end: time.is_end });
        let waker: Arc<dyn Waker> = Arc::clone(&self.bells[task]) as _;
        Ok(Inside::Map(Box::new(Mapper::new(called.function, sight, &called.returns, time, waker))))
    }
}
