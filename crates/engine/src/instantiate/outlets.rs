//! Where the rows of a task leave: the log that it writes, and the readers of that.

use std::sync::Arc;

use penstock_graph::{EdgeId, EdgeJudging, TaskKind};
use penstock_memory::{EdgeReader, Layout, Physical};
use penstock_queue::wanted::Wanted;
use penstock_scheduler::Arrivals;
use penstock_tasks::account::Exit;
use penstock_tasks::outlet::{Judging, Outlet, Readers};
use penstock_tasks::pending::EdgeLook;

use super::assembly::Assembly;
use crate::error::StartError;

/// A sink that reads an edge: how rows are stored there, and how the task that writes it learns of room.
pub(super) struct SinkReader {
    pub(super) reader: EdgeReader,
    /// What waits for it.
    pub(super) waits: EdgeLook,
    pub(super) stored: Vec<Physical>,
    pub(super) room: Arc<Wanted>,
}

/// The same, as outlets know it.
fn judging(judging: EdgeJudging) -> Judging {
    match judging {
        EdgeJudging::AsItStands => Judging::AsItStands,
        EdgeJudging::Results { time } => Judging::Results { time },
        EdgeJudging::Exact { time, watermark } => Judging::Exact { time, watermark },
        EdgeJudging::Said { time } => Judging::Said { time },
    }
}

impl Assembly<'_> {
    /// Makes a log, its readers, and the outlet of the task that writes it.
    pub(super) fn outlet(&mut self, edge: EdgeId) -> Result<Outlet, StartError> {
        let graph = self.graph;
        let edge = &graph.edges[edge];
        let stored: Vec<Physical> = edge.kinds.iter().map(|kind| kind.physical).collect();
        let task = edge.writer.expect("TASKGRAPH-2: a task of the graph writes it");
        let room = Arc::new(Wanted::new(Arc::clone(&self.bells[task]) as _));
        let sink = |task: usize| match &graph.tasks[task].kind {
            TaskKind::Sink(sink) => Some(sink.output),
            TaskKind::Operator(_) | TaskKind::Splitter(_) | TaskKind::Lane(_) => None,
        };
        let has_tasks = edge.readers.iter().any(|reader| sink(reader.task).is_none());
        let layout = Layout::new(edge.kinds.clone());
        let mut writer = self.by.writer(layout, !has_tasks, Arc::clone(&room) as _)?;
        let mut readers = Readers { has_tasks, sinks: Vec::new() };
        let arrivals: Arc<Arrivals> = Arc::default();
        for place in &edge.readers {
            let waker = Arc::clone(self.input_waker(place.task, place.input));
            let reader = writer.join(waker)?;
            let Some(output) = sink(place.task) else {
                self.readers.insert((place.task, place.input), (reader, Arc::clone(&arrivals)));
                continue;
            };
            let (stored, room) = (stored.clone(), Arc::clone(&room));
            let waits = (reader.gauge(), Arc::clone(&arrivals));
            self.sink_readers.insert(output, SinkReader { reader, waits, stored, room });
            readers.sinks.push(Arc::clone(&self.flushes[output]));
        }
        let outlet =
            Outlet::new((writer, room), edge.slots.clone(), judging(edge.judging), readers, arrivals);
        if let Some(exit) = edge.exit {
            let (copies, contributes) = (exit.copies, exit.contributes);
            self.account.exits.push(Exit { rows: outlet.counter(), copies, contributes });
        }
        Ok(outlet)
    }
}
