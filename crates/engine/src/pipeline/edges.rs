//! Edges between tasks: what each carries, who reads it, and which slots it fills.

use std::collections::BTreeSet;
use std::sync::Arc;

use penstock_memory::{EdgeReader, Layout, Physical, SlotId};
use penstock_queue::wanted::Wanted;
use penstock_scheduler::Arrivals;

use super::assemble::Assembly;
use super::drafts::{DraftInput, DraftPort, EdgeKey};
use super::strands::{Goes, Need, Strand, StrandId};
use crate::error::StartError;
use crate::executors::bell::Bell;
use penstock_tasks::account::Exit;
use penstock_tasks::outlet::{Judging, Outlet, Readers};
use penstock_tasks::pending::EdgeLook;

/// A sink that reads an edge: how rows are stored there, and how the task that writes it learns of room.
pub(super) struct SinkReader {
    pub(super) reader: EdgeReader,
    /// What waits for it.
    pub(super) waits: EdgeLook,
    pub(super) stored: Vec<Physical>,
    pub(super) room: Arc<Wanted>,
}

/// Who reads an edge, and the slot of the reader that each column of the edge fills.
pub(super) enum EdgeUser {
    /// An input of a task: its place among all inputs of the task.
    Task {
        task: usize,
        input: usize,
    },
    Sink(usize),
}

/// An edge before it is made: the slots of the writer that it carries, and who reads it.
#[derive(Default)]
pub(super) struct EdgePlan {
    pub(super) slots: Vec<SlotId>,
    users: Vec<EdgeUser>,
}

impl Assembly<'_> {
    /// The inputs of a task, each with its port.
    pub(super) fn inputs_of(&self, task: usize) -> Vec<(DraftInput, usize)> {
        let ports = self.drafts[task].ports.iter().enumerate();
        ports.flat_map(|(port, draft)| draft.inputs.iter().map(move |&input| (input, port))).collect()
    }

    /// Settles who reads each edge, what it carries, and which slots it fills.
    pub(super) fn plan_edges(&mut self, outputs: &[EdgeKey]) {
        for task in 0..self.drafts.len() {
            for (number, (input, _)) in self.inputs_of(task).into_iter().enumerate() {
                if let DraftInput::Edge(key) = input {
                    let user = EdgeUser::Task { task, input: number };
                    self.edges.entry(key).or_default().users.push(user);
                }
            }
        }
        for (output, &key) in outputs.iter().enumerate() {
            self.edges.entry(key).or_default().users.push(EdgeUser::Sink(output));
        }
        let keys: Vec<EdgeKey> = self.edges.keys().copied().collect();
        for key in keys {
            let edge = self.edges.remove(&key).expect("it is one of the keys");
            let edge = self.plan_edge(key, edge);
            self.edges.insert(key, edge);
        }
    }

    fn port_of(&self, task: usize, input: usize) -> &DraftPort {
        let (_, port) = self.inputs_of(task)[input];
        &self.drafts[task].ports[port]
    }

    fn plan_edge(&mut self, key: EdgeKey, mut edge: EdgePlan) -> EdgePlan {
        // Inside a strand, slots are the same on both sides.
        let inside = match key {
            EdgeKey::Strand(strand, done) => Some((strand, done)),
            EdgeKey::Part(strand, _) => Some((strand, 0)),
            EdgeKey::Late(..) => None,
        };
        if let Some((strand, done)) = inside
            && edge.users.iter().all(|user| match *user {
                EdgeUser::Task { task, input } => self.port_of(task, input).strand == strand,
                EdgeUser::Sink(_) => false,
            })
        {
            edge.slots = self.live[strand][done].clone();
            for user in &edge.users {
                if let EdgeUser::Task { task, input } = *user {
                    self.filled.insert((task, input), edge.slots.clone());
                }
            }
            return edge;
        }
        // Otherwise whoever reads has slots of its own, by the columns of the strand that it reads.
        let writer = self.strand_of(key);
        let mut needs: BTreeSet<Need> = BTreeSet::new();
        for user in &edge.users {
            match user {
                EdgeUser::Task { task, input } => {
                    needs.extend(self.strands.strands[self.port_of(*task, *input).strand].needs());
                }
                EdgeUser::Sink(_) => {
                    needs.extend((0..self.columns_of(key)).map(Need::Column));
                }
            }
        }
        edge.slots = needs.iter().map(|&need| self.strands.strands[writer].slot_at_end(need)).collect();
        for user in &edge.users {
            if let EdgeUser::Task { task, input } = *user {
                let reader = self.port_of(task, input).strand;
                let filled = self.slots_of_reader(reader, &needs, writer);
                self.filled.insert((task, input), filled);
            }
        }
        edge
    }

    /// The strand whose rows an operator with one port takes in.
    pub(super) fn port_strand(&self, operator: usize) -> StrandId {
        let is_it = |strand: &Strand| strand.goes.contains(&Goes::Port(operator, 0));
        self.strands.strands.iter().position(is_it).expect("an operator has a port")
    }

    /// The strand whose rows an edge carries.
    fn strand_of(&self, key: EdgeKey) -> StrandId {
        match key {
            EdgeKey::Strand(strand, _) | EdgeKey::Part(strand, _) => strand,
            EdgeKey::Late(operator, _) => self.port_strand(operator),
        }
    }

    fn columns_of(&self, key: EdgeKey) -> usize {
        self.strands.strands[self.strand_of(key)].segment.scope.slots().len()
    }

    /// How many take each row of an edge: parts of one operator take it once.
    fn takers(&self, users: &[EdgeUser]) -> u64 {
        let is_first = |user: &&EdgeUser| match user {
            EdgeUser::Task { task, .. } => self.drafts[*task].part_number() == 0,
            EdgeUser::Sink(_) => true,
        };
        users.iter().filter(is_first).count() as u64
    }

    /// The slots of a strand that the columns of an edge fill. Those that it does not read get slots that nobody does.
    fn slots_of_reader(&mut self, reader: StrandId, needs: &BTreeSet<Need>, writer: StrandId) -> Vec<SlotId> {
        let own = self.strands.strands[reader].needs();
        let mut slots = Vec::new();
        for &need in needs {
            let slot = if own.contains(&need) {
                self.strands.strands[reader].slot_at_begin(need)
            } else {
                let from = &self.strands.strands[writer];
                let kind = from.segment.scope.kinds_of(&[from.slot_at_end(need)])[0];
                self.strands.strands[reader].segment.scope.add_slot(kind)
            };
            slots.push(slot);
        }
        slots
    }

    /// Makes an edge, and the readers of it.
    pub(super) fn outlet(
        &mut self,
        (key, task): (EdgeKey, usize),
        judging: Judging,
        sink_bells: &[Arc<Bell>],
    ) -> Result<(Outlet, Vec<usize>), StartError> {
        let edge = self.edges.remove(&key).unwrap_or_default();
        let strand = self.strand_of(key);
        let kinds = self.strands.strands[strand].segment.scope.kinds_of(&edge.slots);
        let stored: Vec<Physical> = kinds.iter().map(|kind| kind.physical).collect();
        let layout = Layout::new(kinds);
        let room = Arc::new(Wanted::new(Arc::clone(&self.bells[task]) as _));
        let has_tasks = edge.users.iter().any(|user| matches!(user, EdgeUser::Task { .. }));
        let mut writer = self.by.writer(layout, !has_tasks, Arc::clone(&room) as _)?;
        let (mut readers, mut tasks) = (Readers { has_tasks, sinks: Vec::new() }, Vec::new());
        let arrivals: Arc<Arrivals> = Arc::default();
        for user in &edge.users {
            match *user {
                EdgeUser::Task { task, input } => {
                    let reader = writer.join(Arc::clone(&self.bells[task]) as _)?;
                    self.readers.insert((task, input), (reader, Arc::clone(&arrivals)));
                    tasks.push(task);
                }
                EdgeUser::Sink(output) => {
                    let reader = writer.join(Arc::clone(&sink_bells[output]) as _)?;
                    let (stored, room) = (stored.clone(), Arc::clone(&room));
                    let waits = (reader.gauge(), Arc::clone(&arrivals));
                    self.sink_readers.insert(output, SinkReader { reader, waits, stored, room });
                    readers.sinks.push(Arc::clone(&self.flushes[output]));
                    tasks.push(self.drafts.len() + output);
                }
            }
        }
        let is_mixed = matches!(judging, Judging::Said { .. });
        self.mixed.insert(key, is_mixed);
        let takers = self.takers(&edge.users);
        let outlet = Outlet::new((writer, room), edge.slots, judging, readers, arrivals);
        if self.strands.strands[strand].is_raw && matches!(key, EdgeKey::Strand(..)) {
            let contributes = |user: &&EdgeUser| match user {
                EdgeUser::Sink(_) => true,
                EdgeUser::Task { task, input } => {
                    !self.strands.strands[self.port_of(*task, *input).strand].is_raw
                }
            };
            let contributes = edge.users.iter().filter(contributes).count() as u64;
            let copies = takers.saturating_sub(1);
            self.account.exits.push(Exit { rows: outlet.counter(), copies, contributes });
        }
        tasks.sort_unstable();
        tasks.dedup();
        Ok((outlet, tasks))
    }
}
