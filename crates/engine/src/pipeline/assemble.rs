//! From operators to tasks: which ones run together, and the edges between them.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use penstock_memory::edge::EdgeGauge;
use penstock_memory::shape::ShapeOptions;
use penstock_memory::{
    Coordinator, EdgeReader, EdgeWriter, Exporter, Layout, LogOptions, MemoryKind, OpenError, Physical, Run,
    SlotId,
};
use penstock_operators::WindowAggregate;
use penstock_queue::log::Work;
use penstock_queue::wake::Wake;
use penstock_queue::wanted::Wanted;
use penstock_scheduler::table::Pending;
use penstock_scheduler::{Profile, rows_per_run};
use penstock_types::PlanError;

use super::Body;
use super::chain::{Chain, Link};
use super::compile::{Compiled, Op, Segment, compile};
use super::outlet::{Marks, Outlet, Reader};
use super::shared::{SharedStream, inlet_slots};
use super::sink::{Deliver, Press, Sink, Taker};
use super::source::{Intake, Source};
use super::task::{Inlet, Input, SharedInlet, Task, Window};
use crate::engine::bell::Bell;
use crate::error::StartError;
use crate::options::{Chaining, RunOptions};
use crate::plan::Plan;
use crate::query::account::{Account, Operator, Role};
use crate::results::Results;
use crate::share::{Joins, Lag};

/// Rows that are worth handing out to a result that is kept whole.
const WORTH_COLLECTING: u64 = 4096;

/// Where the rows of a query come from.
pub(crate) enum Origin {
    /// Its own source.
    Intake(Intake),
    /// A source that it shares with others: its first task has that bell.
    Shared { reader: EdgeReader, stream: Arc<SharedStream>, lag: Arc<Lag>, bell: Arc<Bell> },
}

/// Where the results of a query go.
pub(crate) enum Destination {
    Collected(Arc<Mutex<Vec<RecordBatch>>>),
    Results(Results),
    Deliver(Box<dyn Deliver>, super::Doorbell),
    Nobody,
}

/// A task and its bell.
pub(crate) struct Installed {
    pub(crate) name: String,
    pub(crate) body: Body,
    pub(crate) bell: Arc<Bell>,
}

/// The tasks of a query, in the order in which rows pass them, and its account.
pub(crate) struct Assembled {
    pub(crate) tasks: Vec<Installed>,
    pub(crate) account: Account,
}

/// The operators of one task.
#[derive(Default)]
struct Group {
    head: Vec<Op>,
    window: Option<WindowAggregate>,
    tail: Vec<Op>,
    /// The segment that its rows leave in, and how many operators of that segment are done by then.
    segment: usize,
    done: usize,
}

impl Group {
    /// What people call it: by the last of its operators.
    fn name(&self, is_first: bool) -> &'static str {
        let last = self.tail.last().map(|op| op.name).or(self.window.as_ref().map(|_| "window"));
        last.or(self.head.last().map(|op| op.name)).unwrap_or(if is_first { "stream" } else { "pass" })
    }
}

/// Makes tasks.
pub(crate) struct Assembler<'a> {
    pub(crate) options: &'a RunOptions,
    pub(crate) coordinator: &'a Coordinator,
}

/// Looks up what waits in an edge.
struct EdgePending(EdgeGauge);

impl Pending for EdgePending {
    fn work(&self) -> Work {
        self.0.work()
    }
}

/// Puts operators into groups; those of each segment are taken out of it.
fn group(segments: &mut [Segment], windows: Vec<WindowAggregate>, chain: bool) -> Vec<Group> {
    let mut windows = windows.into_iter();
    // The source stands alone when nothing is chained.
    let mut groups = vec![Group::default()];
    let mut open = chain;
    for (number, segment) in segments.iter_mut().enumerate() {
        for (index, op) in std::mem::take(&mut segment.ops).into_iter().enumerate() {
            if !open {
                groups.push(Group { segment: number, ..Group::default() });
            }
            open = chain || op.prepares;
            let group = groups.last_mut().expect("there is a group");
            if group.window.is_some() {
                group.tail.push(op)
            } else {
                group.head.push(op)
            }
            group.done = index + 1;
        }
        if let Some(window) = windows.next() {
            if !open {
                groups.push(Group::default());
            }
            open = chain;
            let group = groups.last_mut().expect("there is a group");
            debug_assert!(group.window.is_none(), "a window over a window is refused when the plan is built");
            (group.window, group.segment, group.done) = (Some(window), number + 1, 0);
        }
    }
    groups
}

impl Assembler<'_> {
    fn chain(&self, run: Run, ops: Vec<Op>) -> Result<Chain, StartError> {
        let links = ops.into_iter().map(|op| self.link(op)).collect::<Result<_, _>>()?;
        Ok(Chain { run, links })
    }

    fn link(&self, op: Op) -> Result<Link, StartError> {
        let mut table = self.coordinator.state_account();
        table.set(op.table_bytes).map_err(|limit| StartError::Table {
            operator: op.name.to_owned(),
            bytes: op.table_bytes,
            limit,
        })?;
        Ok(Link { name: op.name, stage: op.stage, profile: Arc::new(Profile::default()), _table: table })
    }

    fn window(
        &self,
        operator: WindowAggregate,
        tail: Vec<Op>,
        results: &Segment,
    ) -> Result<Window, StartError> {
        let rows = self.options.rows_per_run.unwrap_or_else(|| rows_per_run(results.row_bytes()));
        Ok(Window {
            operator,
            profile: Arc::default(),
            state: self.coordinator.state_account(),
            tail: self.chain(results.run(), tail)?,
            rows_per_run: rows.max(1),
            due_ns: None,
        })
    }

    fn writer(&self, layout: Layout, is_result: bool, wake: Arc<dyn Wake>) -> Result<EdgeWriter, OpenError> {
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

    /// The tasks of a query.
    pub(crate) fn query(
        &self,
        plan: &Plan,
        origin: Origin,
        destination: Destination,
    ) -> Result<Assembled, StartError> {
        let Compiled { columns, clock, rows_per_run, mut segments, windows } = compile(plan, self.options)?;
        let event_time = clock.as_ref().map(|clock| (clock.slot, clock.watermark_slot));
        let (mut input, mut bell) = match origin {
            Origin::Intake(intake) => {
                check_replay(&intake, plan)?;
                let source =
                    Source::new(columns, clock, rows_per_run, intake, Arc::new(AtomicBool::new(true)));
                let bell = Bell::new();
                source.hang(&bell);
                (Input::Source(source), bell)
            }
            Origin::Shared { reader, stream, lag, bell } => {
                let slots =
                    inlet_slots(plan, &stream, clock.as_ref().map(|clock| clock.slot), &mut segments[0])?;
                bell.row.set_pending(Box::new(EdgePending(reader.gauge())));
                let shared = Some(SharedInlet { profile: Arc::default(), lag });
                (Input::Edge(Inlet { reader, slots, taken: 0, shared }), bell)
            }
        };
        let chained = self.options.chain == Chaining::Auto;
        let live: Vec<Vec<Vec<SlotId>>> = segments
            .iter()
            .map(|segment| segment.live(|done| !chained || done == segment.ops.len()))
            .collect();
        let has_window = !windows.is_empty();
        let mut groups = group(&mut segments, windows, chained);
        if matches!(input, Input::Edge(_)) && groups.len() > 1 && groups[0].head.is_empty() {
            // Rows come from a log already: there is no source to stand alone.
            groups.remove(0);
        }
        let mut tasks: Vec<Installed> = Vec::new();
        let mut operators: Vec<Operator> = Vec::new();
        let (count, mut segment, mut behind_window) = (groups.len(), 0, false);
        let sink_bell = match &destination {
            Destination::Collected(_) if self.options.memory == MemoryKind::Blocks => {
                Bell::for_rows(WORTH_COLLECTING)
            }
            _ => Bell::new(),
        };
        let press = Arc::new(Press::new(Arc::clone(&sink_bell)));
        let mut last_slots = Vec::new();
        for (number, group) in groups.into_iter().enumerate() {
            let name = group.name(number == 0).to_owned();
            let is_last = number + 1 == count;
            let next_bell = if is_last { Arc::clone(&sink_bell) } else { Bell::new() };
            let head = self.chain(segments[segment].run(), group.head)?;
            let window = match group.window {
                None => None,
                Some(operator) => {
                    Some(Box::new(self.window(operator, group.tail, &segments[group.segment])?))
                }
            };
            let slots = live[group.segment][group.done].clone();
            let layout = Layout::new(segments[group.segment].kinds_of(&slots));
            let room = Arc::new(Wanted::new(Arc::clone(&bell) as _));
            let mut writer = self.writer(layout, is_last, Arc::clone(&room) as _)?;
            let reader = writer.join(Arc::clone(&next_bell) as _)?;
            next_bell.row.set_pending(Box::new(EdgePending(reader.gauge())));
            // Whether a row is late is decided behind the next edges, if a window stands there.
            let decides = matches!(input, Input::Source(_)) && window.is_none() && has_window;
            let marks = event_time.filter(|_| decides).map(|(time, watermark)| Marks { time, watermark });
            let read_by = if is_last { Reader::Sink(Arc::clone(&press)) } else { Reader::Task };
            let outlet = Outlet::new((writer, room), slots.clone(), marks, read_by);
            segment = group.segment;
            let next = Input::Edge(Inlet { reader, slots: slots.clone(), taken: 0, shared: None });
            let input = std::mem::replace(&mut input, next);
            let task = Task { input, head, window, outlet, ended: false, rows: 0, arrived_ns: 0 };
            operators.extend(task.operators(behind_window));
            behind_window |= task.has_window();
            let bell = std::mem::replace(&mut bell, next_bell);
            tasks.push(Installed { name, body: Body::Task(Box::new(task)), bell });
            last_slots = slots;
        }
        let Input::Edge(Inlet { reader, .. }) = input else {
            unreachable!("there is a task before the sink")
        };
        let results = segments.last().expect("a plan has a segment");
        let place = |slot: &SlotId| last_slots.binary_search(slot).expect("the result is read");
        let sink = Sink {
            gauge: reader.gauge(),
            reader,
            run: results.run(),
            columns: results.slots.iter().map(place).collect(),
            slots: last_slots.clone(),
            exporter: Exporter::new(Arc::clone(plan.schema())),
            taker: taker(destination, &sink_bell),
            press,
            waiting: VecDeque::new(),
            profile: Arc::default(),
            ended: false,
        };
        let profile = Arc::clone(&sink.profile);
        operators.push(Operator { name: "sink".to_owned(), role: Role::Sink, profile });
        tasks.push(Installed { name: "sink".to_owned(), body: Body::Sink(Box::new(sink)), bell });
        Ok(Assembled { tasks, account: Account { operators, tick: plan.tick(), ..Account::default() } })
    }

    /// The task of a source that queries share, and what they have to know of it.
    pub(crate) fn shared(
        &self,
        plan: &Plan,
        intake: Intake,
        begin: Arc<AtomicBool>,
        joins: Joins,
    ) -> Result<(Assembled, SharedStream), StartError> {
        check_replay(&intake, plan)?;
        let Compiled { columns, clock, rows_per_run, segments, .. } = compile(plan, self.options)?;
        let mut slots = segments[0].slots.clone();
        let marks = clock.as_ref().map(|clock| Marks { time: clock.slot, watermark: clock.watermark_slot });
        let wide_time = clock.as_ref().map(|clock| clock.slot).filter(|slot| !slots.contains(slot));
        slots.extend(wide_time);
        let stream = SharedStream::new(plan, wide_time.is_some());
        let source = Source::new(columns, clock, rows_per_run, intake, begin);
        let bell = Bell::new();
        source.hang(&bell);
        let layout = Layout::new(segments[0].kinds_of(&slots));
        let room = Arc::new(Wanted::new(Arc::clone(&bell) as _));
        let writer = self.writer(layout, false, Arc::clone(&room) as _)?;
        let head = self.chain(segments[0].run(), Vec::new())?;
        let outlet = Outlet::new((writer, room), slots, marks, Reader::Task);
        let (input, window) = (Input::Source(source), None);
        let task = Task { input, head, window, outlet, ended: false, rows: 0, arrived_ns: 0 };
        let operators = task.operators(false);
        let body = Body::Shared(Box::new(task), joins);
        let account = Account { operators, tick: plan.tick(), ..Account::default() };
        Ok((Assembled { tasks: vec![Installed { name: "stream".to_owned(), body, bell }], account }, stream))
    }
}

fn taker(destination: Destination, bell: &Arc<Bell>) -> Taker {
    match destination {
        Destination::Collected(batches) => Taker::Collected(batches),
        Destination::Results(results) => {
            results.hang(bell);
            Taker::Results(results)
        }
        Destination::Deliver(deliver, doorbell) => {
            doorbell.hang(bell);
            Taker::Deliver(deliver)
        }
        Destination::Nobody => Taker::Nobody,
    }
}

/// Refuses a replay whose times cannot be moved from round to round.
fn check_replay(intake: &Intake, plan: &Plan) -> Result<(), StartError> {
    let Intake::Replay(replaying) = intake else { return Ok(()) };
    let Some((name, data_type)) = plan.source_time() else { return Ok(()) };
    if replaying.repeats() && Physical::of(data_type) != Some(Physical::I64) {
        return Err(StartError::Plan(PlanError::Invalid(format!(
            "data that is replayed more than once needs times of 64 bits, to be moved on from round to round; \"{name}\" is {}",
            penstock_types::TypeName(data_type)
        ))));
    }
    Ok(())
}
