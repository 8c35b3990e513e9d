//! Where the rows of a task come in: a source, or an edge.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use penstock_graph::{EdgeKind, InputSource, TaskNumber};
use penstock_memory::SlotId;
use penstock_scheduler::table::Pending;
use penstock_tasks::account::Role;
use penstock_tasks::inputs::{Inlet, Input};
use penstock_tasks::pending::{EdgeLook, EdgesPending, InputsPending};
use penstock_tasks::share::{Share, ShareGauge};
use penstock_tasks::source::Source;

use super::assembly::{Assembly, named};
use super::opening;
use super::origin::StreamHead;
use crate::error::StartError;

/// Which part of how many a task takes of its rows, and the gauge of that.
pub(super) type TakenPart<'a> = ((usize, usize), &'a Arc<ShareGauge>);

/// Where to look for what waits for a task.
#[derive(Default)]
pub(super) struct InputLooks {
    sources: Vec<Box<dyn Pending>>,
    edges: Vec<EdgeLook>,
}

impl InputLooks {
    /// Returns all of it, if there is any; of the rows in edges, the task takes what the gauge says.
    pub(super) fn all(self, gauge: Option<&Arc<ShareGauge>>) -> Option<Box<dyn Pending>> {
        let Self { mut sources, edges } = self;
        if !edges.is_empty() {
            sources.push(Box::new(EdgesPending::new(edges, gauge.cloned())));
        }
        (!sources.is_empty()).then(|| InputsPending::of(sources))
    }
}

impl Assembly<'_> {
    /// Makes an input of a task. Where to look for what waits in it is added to `waits`.
    pub(super) fn input(
        &mut self,
        (task, number): (TaskNumber, usize),
        input: &InputSource,
        taken: Option<TakenPart<'_>>,
        waits: &mut InputLooks,
    ) -> Result<Input, StartError> {
        let (edge, fills, group) = match input {
            InputSource::Stream(stream) => return self.opened(*stream, (task, number), Vec::new(), waits),
            InputSource::Edge { edge, fills, group } => (&self.graph.edges[*edge], fills, *group),
        };
        if let EdgeKind::Shared { stream, .. } = edge.kind {
            return self.opened(stream, (task, number), fills.clone(), waits);
        }
        let reader =
            self.readers.remove(&(task, number)).expect("TASKGRAPH-1: the task that writes it came before");
        waits.edges.push((reader.0.gauge(), Arc::clone(&reader.1)));
        let mut inlet = Inlet::new(reader, fills.clone(), edge.judging.is_mixed());
        if let (Some(slot), Some((part, gauge))) = (group, taken) {
            inlet.share = Some(Box::new(Share::new(slot, part, gauge)));
        }
        Ok(Input::Edge(Box::new(inlet)))
    }

    fn opened(
        &mut self,
        stream: usize,
        place: (TaskNumber, usize),
        fills: Vec<SlotId>,
        waits: &mut InputLooks,
    ) -> Result<Input, StartError> {
        let source = self.source(stream, place, fills)?;
        waits.sources.push(source.pending());
        Ok(Input::Source(Box::new(source)))
    }

    /// Opens the source of a stream; it wakes that task for that input.
    pub(super) fn source(
        &mut self,
        number: usize,
        (task, input): (TaskNumber, usize),
        fills: Vec<SlotId>,
    ) -> Result<Source, StartError> {
        let origin = self.origins[number].take().expect("TASKGRAPH-3: a stream is read once");
        let stream = &self.graph.strands.streams[number];
        let columns = opening::columns(stream);
        let head = StreamHead {
            rows_per_run: self.by.rows_per_run(columns.row_width()),
            columns,
            clock: opening::clock(stream),
            idle_after_ns: stream.step().idle_after_ns,
            begin: Arc::new(AtomicBool::new(true)),
            fills,
        };
        let mut source = origin.open(head)?;
        if let Some(part) = self.part {
            source.restore(part, number);
        }
        source.connect(self.input_waker(task, input));
        self.account.sources.push(Arc::clone(source.counts()));
        self.account.operators.push(named("stream", Role::Source, source.profile()));
        Ok(source)
    }
}
