//! The tasks of an operator that runs on several workers by merging: a splitter, lanes, and the task that merges.

use std::collections::VecDeque;
use std::sync::Arc;

use penstock_graph::{
    EdgeId, InputPlace, LaneSpec, OperatorSpec, OperatorUse, SplitterSpec, TaskKind, TaskNumber,
};
use penstock_memory::SourceColumns;
use penstock_plan::Made;
use penstock_scheduler::Profile;
use penstock_tasks::account::{LateCount, LateRows};
use penstock_tasks::chain::Chain;
use penstock_tasks::charge::Load;
use penstock_tasks::event_time::LaneClock;
use penstock_tasks::inputs::Input;
use penstock_tasks::parallel::{
    Handover, Item, Lane, LaneParts, PORTION_ROWS, Splitter, WayIn, WayOut, WayPending, way,
};
use penstock_tasks::share::ShareGauge;
use penstock_tasks::task::OperatorTask;

use super::assembly::Assembly;
use super::opening;
use super::operators::Body;
use crate::error::StartError;

/// Portions that may wait for a lane, and parts that may wait to be merged.
const LANE_ITEMS: usize = 4;
const PART_ITEMS: usize = 8;
/// The part of the budget that may be on its way from all lanes together, within bounds.
const LOAD_SHARE: usize = 16;
const LEAST_LOAD_BYTES: usize = 64 << 10;
const MOST_LOAD_BYTES: usize = 8 << 20;
/// The part of the budget that the keys of one portion for each lane may take, if every row brings one of so many bytes.
const PORTION_SHARE: usize = 16;
const KEY_BYTES: usize = 128;
const LEAST_PORTION_ROWS: usize = 1024;

/// What the splitter of a stream leaves for its lanes, and these for the task that merges.
pub(super) struct Lanes {
    columns: SourceColumns,
    clocks: VecDeque<Option<LaneClock>>,
    /// The ends of the rings, from the first lane on.
    items: VecDeque<WayOut<Item>>,
    parts_in: VecDeque<WayIn<Handover>>,
    parts_out: Vec<WayOut<Handover>>,
    /// Where the stages of the lanes are in the account: all lanes count together.
    base: usize,
    profiles: Vec<Arc<Profile>>,
}

impl Assembly<'_> {
    /// Returns the input that reads a ring.
    fn reader_of(&self, edge: EdgeId) -> InputPlace {
        self.graph.edges[edge].readers[0]
    }

    /// Makes a splitter, and the rings of its lanes.
    pub(super) fn splitter(&mut self, task: TaskNumber, spec: &SplitterSpec) -> Result<Body, StartError> {
        let stream = &self.graph.strands.streams[spec.stream];
        let (columns, count) = (opening::columns(stream), spec.writes.len());
        // The source wakes the splitter, not the merging task.
        let source = self.source(spec.stream, (task, 0), Vec::new())?;
        self.bells[task].row.set_pending(source.pending());
        let budget = self.by.coordinator.options().budget_bytes / count;
        let portion_rows = (budget / (PORTION_SHARE * KEY_BYTES)).clamp(LEAST_PORTION_ROWS, PORTION_ROWS);
        let mut lanes = Lanes {
            columns,
            clocks: (0..count).map(|_| source.lane_clock()).collect(),
            items: VecDeque::new(),
            parts_in: VecDeque::new(),
            parts_out: Vec::new(),
            base: self.account.operators.len(),
            profiles: Vec::new(),
        };
        let mut items_in = Vec::new();
        for &edge in &spec.writes {
            let lane = self.reader_of(edge);
            let TaskKind::Lane(spec) = &self.graph.tasks[lane.task].kind else {
                unreachable!("a splitter writes to lanes")
            };
            let to = self.reader_of(spec.writes);
            let read = |place: InputPlace| self.input_waker(place.task, place.input);
            let (item_in, item_out) = way(LANE_ITEMS, &self.waker(task), read(lane));
            let (part_in, part_out) = way(PART_ITEMS, &self.waker(lane.task), read(to));
            items_in.push(item_in);
            lanes.items.push_back(item_out);
            lanes.parts_in.push_back(part_in);
            lanes.parts_out.push(part_out);
        }
        self.lanes.insert(spec.stream, lanes);
        let run = self.graph.strands.strands[spec.strand].segment.scope.run();
        let rejects = self.rejects(task);
        Ok((Box::new(Splitter::new(source, run, items_in, rejects, portion_rows)), None))
    }

    /// Makes a lane.
    pub(super) fn lane(&mut self, task: TaskNumber, spec: &LaneSpec) -> Result<Body, StartError> {
        let part = self.graph.tasks[task].part.expect("a lane is one of several");
        let mut lanes = self.lanes.remove(&spec.stream).expect("TASKGRAPH-1: its splitter came before");
        let chain = if part.number == 0 {
            self.chain(spec.strand, spec.stages.clone())?
        } else {
            self.chain_again(spec, lanes.base)?
        };
        let operator = &self.graph.strands.operators[spec.operator];
        let Made::Operator(made) = operator.make(&self.resources)? else {
            unreachable!("lanes have an operator with state")
        };
        let (profile, entered, late): (Arc<Profile>, _, Arc<LateCount>) = Default::default();
        lanes.profiles.push(Arc::clone(&profile));
        self.account.entered.push(Arc::clone(&entered));
        // An operator that late rows leave is not merged.
        self.account.late.push(LateRows { count: Arc::clone(&late), is_raw: true, is_read: false });
        let budget = self.by.coordinator.options().budget_bytes / part.of;
        let most_load = (budget / LOAD_SHARE).clamp(LEAST_LOAD_BYTES, MOST_LOAD_BYTES);
        let items = lanes.items.pop_front().expect("there is a ring for each lane");
        self.bells[task].row.set_pending(Box::new(WayPending::of(&[&items])));
        let parts = LaneParts {
            name: operator.name(),
            items,
            out: lanes.parts_in.pop_front().expect("there is a ring for each lane"),
            columns: lanes.columns.clone(),
            clock: lanes.clocks.pop_front().expect("there is a clock for each lane"),
            chain,
            operator: made,
            profile,
            entered,
            late,
            state: self.by.coordinator.state_account(),
            load: Load::new(most_load, &self.waker(task)),
            rejects: self.rejects(task),
        };
        self.lanes.insert(spec.stream, lanes);
        // A row goes to one of the lanes, whichever has least to do: each has as many as the others.
        Ok((Box::new(Lane::new(parts)), Some(Arc::new(ShareGauge::new(part.of)))))
    }

    /// Makes the task that merges the states of lanes.
    pub(super) fn merger(
        &mut self,
        task: TaskNumber,
        spec: &OperatorSpec,
        used: &OperatorUse,
    ) -> Result<Body, StartError> {
        let edge = self.graph.edges.iter().find_map(|edge| {
            let is_ours = edge.readers.iter().any(|reader| reader.task == task);
            edge.writer.filter(|_| is_ours)
        });
        let lane = edge.expect("a lane hands its state over");
        let TaskKind::Lane(LaneSpec { stream, .. }) = &self.graph.tasks[lane].kind else {
            unreachable!("only lanes hand states over")
        };
        let lanes = self.lanes.remove(stream).expect("TASKGRAPH-1: its lanes came before");
        self.bells[task]
            .row
            .set_pending(Box::new(WayPending::of(&lanes.parts_out.iter().collect::<Vec<_>>())));
        let at = self.account.operators.len();
        let keyed = self.keyed(task, spec, used)?;
        self.account.operators[at].profiles.extend(lanes.profiles);
        let outlet = self.outlet(spec.writes)?;
        let inputs = lanes.parts_out.into_iter().map(|out| (Input::Parts(out), 0)).collect();
        let made = OperatorTask::new(inputs, Vec::new(), Some(keyed), outlet, self.rejects(task));
        Ok((Box::new(made), None))
    }

    /// Makes the stages of a lane but the first: they count together with those of the first.
    fn chain_again(&mut self, spec: &LaneSpec, base: usize) -> Result<Chain, StartError> {
        let graph = self.graph;
        let segment = &graph.strands.strands[spec.strand].segment;
        let mut links = Vec::new();
        for (number, stage) in segment.stages[spec.stages.clone()].iter().enumerate() {
            let link = self.link(stage)?;
            self.account.operators[base + number].profiles.push(Arc::clone(&link.profile));
            links.push(link);
        }
        let rejected = Arc::default();
        self.account.rejected.push(Arc::clone(&rejected));
        Ok(Chain { run: segment.scope.run(), links, rejected })
    }
}
