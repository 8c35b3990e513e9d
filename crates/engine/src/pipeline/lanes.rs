//! The tasks of an operator that runs on several workers by merging.

use std::sync::Arc;

use penstock_plan::Made;
use penstock_scheduler::Profile;

use super::assemble::{Assembly, Installed};
use super::drafts::DraftInput;
use super::opening;
use super::origin::Origin;
use crate::error::StartError;
use crate::executors::bell::Bell;
use penstock_tasks::account::{LateCount, LateRows};
use penstock_tasks::chain::Chain;
use penstock_tasks::charge::Load;
use penstock_tasks::inputs::Input;
use penstock_tasks::parallel::{
    Handover, Item, Lane, LaneParts, PORTION_ROWS, Splitter, WayIn, WayOut, WayPending, way,
};
use penstock_tasks::share::ShareGauge;
use penstock_tasks::task::OperatorTask;
use penstock_tasks::waker::Waker;

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

/// The queues between the splitter, a lane and the merging task.
struct Ways {
    bell: Arc<Bell>,
    items_in: WayIn<Item>,
    items_out: WayOut<Item>,
    parts_in: WayIn<Handover>,
    parts_out: WayOut<Handover>,
}

fn waker(bell: &Arc<Bell>) -> Arc<dyn Waker> {
    Arc::clone(bell) as _
}

impl Assembly<'_> {
    /// Makes a task that merges the state of several lanes; the lanes, and the splitter before them, come along.
    pub(super) fn merged(
        &mut self,
        number: usize,
        origins: &mut [Option<Box<dyn Origin>>],
        sink_bells: &[Arc<Bell>],
    ) -> Result<Installed, StartError> {
        let (draft, count) = (self.drafts[number].clone(), self.spreading.parallelism);
        let (operator, tail) = draft.operator.clone().expect("lanes have an operator");
        let port = &draft.ports[0];
        let [DraftInput::Stream(stream)] = port.inputs[..] else { unreachable!("lanes read a source") };
        let name = self.name(&draft);

        // The source wakes the splitter, not the merging task.
        let (merger, splitter) = (Arc::clone(&self.bells[number]), self.by.bell()?);
        let origin = origins[stream].take().expect("a stream is read once");
        let columns = opening::columns(&self.strands.streams[stream]);
        let source = self.stream(stream, (number, &splitter), origin, &mut Vec::new())?;
        splitter.row.set_pending(source.pending());

        let budget = self.by.coordinator.options().budget_bytes / count;
        let most_load = (budget / LOAD_SHARE).clamp(LEAST_LOAD_BYTES, MOST_LOAD_BYTES);
        let portion_rows = (budget / (PORTION_SHARE * KEY_BYTES)).clamp(LEAST_PORTION_ROWS, PORTION_ROWS);
        let ways = (0..count)
            .map(|_| {
                let bell = self.by.bell()?;
                let [from, lane, to] = [&splitter, &bell, &merger].map(waker);
                let (items_in, items_out) = way(LANE_ITEMS, &from, &lane);
                let (parts_in, parts_out) = way(PART_ITEMS, &lane, &to);
                Ok(Ways { bell, items_in, items_out, parts_in, parts_out })
            })
            .collect::<Result<Vec<Ways>, StartError>>()?;
        // The splitter, then the lanes.
        let first = self.drafts.len() + sink_bells.len() + self.extras + 1;
        self.extras += 1 + count;
        let mut lanes = Vec::new();
        let (mut inputs, mut outs, mut profiles) = (Vec::new(), Vec::new(), Vec::new());
        let base = self.account.operators.len();
        let step_name = self.strands.operators[operator].node.step().name();
        for (lane, ways) in ways.into_iter().enumerate() {
            let chain = if lane == 0 {
                self.chain(port.strand, port.ops.clone())?
            } else {
                self.chain_again(port.strand, port.ops.clone(), base)?
            };
            let Made::Operator(made) = self.strands.make(operator, &self.resources)? else {
                unreachable!("lanes have an operator with state")
            };
            let (profile, entered, late): (Arc<Profile>, _, Arc<LateCount>) = Default::default();
            profiles.push(Arc::clone(&profile));
            self.account.entered.push(Arc::clone(&entered));
            // An operator that late rows leave is not merged.
            self.account.late.push(LateRows { count: Arc::clone(&late), is_raw: true, is_read: false });
            ways.bell.row.set_pending(Box::new(WayPending::of(&[&ways.items_out])));
            let parts = LaneParts {
                name: step_name,
                items: ways.items_out,
                out: ways.parts_in,
                columns: columns.clone(),
                clock: source.lane_clock(),
                chain,
                operator: made,
                profile,
                entered,
                late,
                state: self.by.coordinator.state_account(),
                load: Load::new(most_load, &waker(&ways.bell)),
                rejects: self.rejects(&ways.bell),
            };
            lanes.push(Installed {
                name: format!("{name} {}/{count}", lane + 1),
                body: Box::new(Lane::new(parts)),
                bell: ways.bell,
                readers: vec![number],
                is_source: false,
                // A row goes to one of the lanes, whichever has least to do: each has as many as the others.
                part: Some((lane, Arc::new(ShareGauge::new(count)))),
            });
            inputs.push(ways.items_in);
            outs.push(ways.parts_out);
        }
        let run = self.strands.strands[port.strand].segment.scope.run();
        let rejects = self.rejects(&splitter);
        self.extra.push(Installed {
            name: "stream".to_owned(),
            body: Box::new(Splitter::new(source, run, inputs, rejects, portion_rows)),
            bell: splitter,
            readers: (first..first + count).collect(),
            is_source: true,
            part: None,
        });
        self.extra.append(&mut lanes);
        merger.row.set_pending(Box::new(WayPending::of(&outs.iter().collect::<Vec<_>>())));

        let at = self.account.operators.len();
        let mut readers = Vec::new();
        let keyed = self.keyed(number, operator, tail, sink_bells, &mut readers)?;
        self.account.operators[at].profiles.extend(profiles);
        let judging = self.judging(&draft, &[]);
        let (outlet, more) = self.outlet((draft.out_key(), number), judging, sink_bells)?;
        let inputs = outs.into_iter().map(|out| (Input::Parts(out), 0)).collect();
        let rejects = self.rejects(&merger);
        let task = OperatorTask::new(inputs, Vec::new(), Some(keyed), outlet, rejects);
        Ok(Installed {
            name,
            body: Box::new(task),
            bell: merger,
            readers: more,
            is_source: false,
            part: None,
        })
    }

    /// The operators of a lane but the first: they count together with those of the first.
    fn chain_again(
        &mut self,
        strand: usize,
        ops: std::ops::Range<usize>,
        base: usize,
    ) -> Result<Chain, StartError> {
        let mut links = Vec::new();
        let ops = self.strands.strands[strand].segment.ops[ops].to_vec();
        for (number, op) in ops.iter().enumerate() {
            let link = self.link(op)?;
            self.account.operators[base + number].profiles.push(Arc::clone(&link.profile));
            links.push(link);
        }
        let rejected = Arc::default();
        self.account.rejected.push(Arc::clone(&rejected));
        Ok(Chain { run: self.strands.strands[strand].segment.scope.run(), links, rejected })
    }
}
