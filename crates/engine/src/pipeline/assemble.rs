//! From operators to tasks: which ones run together, and the edges between them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use arrow_schema::SchemaRef;
use penstock_memory::shape::ShapeOptions;
use penstock_memory::{
    Coordinator, EdgeReader, EdgeWriter, Exporter, Layout, LogOptions, OpenError, Run, SlotId,
};
use penstock_operators::WindowAggregate;
use penstock_queue::wake::Wake;
use penstock_scheduler::{Profile, rows_per_run};

use super::chain::{Chain, Link};
use super::compile::{Compiled, Op, Segment};
use super::outlet::{Marks, Outlet, Reader};
use super::sink::{Deliver, Sink};
use super::task::{Inlet, Input, Task, Window};
use crate::error::StartError;
use crate::options::{Chaining, RunOptions};
use crate::output::Latency;

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

/// Makes tasks.
pub(super) struct Assembler<'a> {
    pub(super) options: &'a RunOptions,
    pub(super) coordinator: &'a Coordinator,
    pub(super) wake: Arc<dyn Wake>,
    pub(super) started: Instant,
}

/// Puts operators into groups; those of each segment are taken out of it.
fn group(segments: &mut [Segment], windows: Vec<WindowAggregate>, chain: Chaining) -> Vec<Group> {
    let mut windows = windows.into_iter();
    // The source stands alone when nothing is chained.
    let mut groups = vec![Group::default()];
    let mut open = chain == Chaining::Auto;
    for (number, segment) in segments.iter_mut().enumerate() {
        for (index, op) in std::mem::take(&mut segment.ops).into_iter().enumerate() {
            if !open {
                groups.push(Group { segment: number, ..Group::default() });
            }
            open = chain == Chaining::Auto || op.prepares;
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
            open = chain == Chaining::Auto;
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
        Ok(Link { name: op.name, stage: op.stage, profile: Profile::default(), _table: table })
    }

    fn edge(&self, layout: Layout, is_result: bool) -> Result<(EdgeWriter, EdgeReader), OpenError> {
        let chosen = self.options.shape;
        // Nobody reads results back through a cache: long blocks make long batches, handed out as they stand.
        let shape = if is_result && chosen == ShapeOptions::default() {
            ShapeOptions::for_export(&layout)
        } else {
            chosen
        };
        let options = LogOptions { shape, ..LogOptions::default() };
        let wake = Arc::clone(&self.wake);
        let mut writer = EdgeWriter::new(self.options.memory, layout, &options, self.coordinator, wake)?;
        let reader = writer.join(Arc::clone(&self.wake))?;
        Ok((writer, reader))
    }

    /// Tasks in the order in which rows pass them, and the sink behind them.
    pub(super) fn assemble(
        &self,
        compiled: Compiled,
        schema: &SchemaRef,
        deliver: Box<dyn Deliver>,
    ) -> Result<(Vec<Task>, Sink), StartError> {
        let Compiled { source, mut segments, windows, clock } = compiled;
        let chained = self.options.chain == Chaining::Auto;
        let live: Vec<Vec<Vec<SlotId>>> = segments
            .iter()
            .map(|segment| segment.live(|done| !chained || done == segment.ops.len()))
            .collect();
        let has_window = !windows.is_empty();
        let groups = group(&mut segments, windows, self.options.chain);
        let mut input = Input::Source(source);
        let (mut tasks, mut last) = (Vec::new(), None);
        let (count, mut segment) = (groups.len(), 0);
        for (number, group) in groups.into_iter().enumerate() {
            let head = self.chain(segments[segment].run(), group.head)?;
            let window = match group.window {
                None => None,
                Some(operator) => {
                    let results = &segments[group.segment];
                    let rows = self.options.rows_per_run.unwrap_or_else(|| rows_per_run(results.row_bytes()));
                    let tail = self.chain(results.run(), group.tail)?;
                    let state = self.coordinator.state_account();
                    let profile = Profile::default();
                    Some(Box::new(Window { operator, profile, state, tail, rows_per_run: rows.max(1) }))
                }
            };
            let slots = live[group.segment][group.done].clone();
            let layout = Layout::new(segments[group.segment].kinds_of(&slots));
            let is_last = number + 1 == count;
            let (edge, reader) = self.edge(layout, is_last)?;
            // Whether a row is late is decided behind the next edges, if a window stands there.
            let decides = matches!(input, Input::Source(_)) && window.is_none() && has_window;
            let marks = clock.filter(|_| decides).map(|(time, watermark)| Marks { time, watermark });
            let reader_is = if is_last { Reader::Sink } else { Reader::Task };
            let outlet = Outlet::new(edge, slots.clone(), marks, reader_is);
            segment = group.segment;
            let next = Input::Edge(Inlet { reader, slots: slots.clone(), taken: 0 });
            tasks.push(Task { input: std::mem::replace(&mut input, next), head, window, outlet });
            last = Some(slots);
        }
        let Input::Edge(Inlet { reader, .. }) = input else {
            unreachable!("there is a task before the sink")
        };
        let slots = last.expect("there is a task before the sink");
        let results = segments.last().expect("a plan has a segment");
        let place = |slot: &SlotId| slots.binary_search(slot).expect("the result is read");
        let sink = Sink {
            reader,
            run: results.run(),
            columns: results.slots.iter().map(place).collect(),
            slots,
            exporter: Exporter::new(Arc::clone(schema)),
            deliver,
            waiting: VecDeque::new(),
            profile: Profile::default(),
            latency: Latency::default(),
            started: self.started,
            ended: false,
        };
        Ok((tasks, sink))
    }
}
