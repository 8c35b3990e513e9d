//! One of several workers on the same operator: stateless operators, and a part of the state.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

use penstock_memory::coordinator::StateAccount;
use penstock_memory::{MemoryLimit, Physical, SourceColumns};
use penstock_operators::{HeldRows, Stateful};
use penstock_scheduler::Profile;
use penstock_scheduler::profile::Counter;

use super::handover::Handover;
use super::item::{Item, Portion};
use super::way::{Carried, WayIn, WayOut};
use crate::account::LateCount;
use crate::chain::Chain;
use crate::charge::{Charged, Load};
use crate::clock::{Clock, elapsed_ns};
use crate::context::Context;
use crate::error::RunError;
use crate::event_time::times::place_time;
use crate::event_time::{LaneClock, TimeFrom};
use crate::rejects::Rejects;
use crate::step::{BlockedOn, Numbers, Step, Task};

/// What a lane is made of.
pub struct LaneParts {
    /// The name of the operator.
    pub name: &'static str,
    /// What the splitter hands to it.
    pub items: WayOut<Item>,
    /// What it hands to the merging task.
    pub out: WayIn<Handover>,
    /// The columns of batches.
    pub columns: SourceColumns,
    /// Where event time goes.
    pub clock: Option<LaneClock>,
    /// The stateless operators.
    pub chain: Chain,
    /// The operator.
    pub operator: Box<dyn Stateful>,
    /// What it did.
    pub profile: Arc<Profile>,
    /// Rows that came to the operator.
    pub entered: Arc<Counter>,
    /// Those of them that were late.
    pub late: Arc<LateCount>,
    /// The charge of its state.
    pub state: StateAccount,
    /// The state that is on its way from it.
    pub load: Arc<Load>,
    /// Where rejected rows go, unless the query fails.
    pub rejects: Option<Rejects>,
}

/// A lane.
pub struct Lane {
    parts: LaneParts,
    /// The portion at hand, and the next of its pieces.
    at_hand: Option<(Portion, usize)>,
    due: VecDeque<Handover>,
    ended: bool,
    batches: u64,
    rows: u64,
    /// What it has handed out, by the keys in it.
    rows_out: u64,
    arrived_ns: u64,
    is_blocked: bool,
}

impl Lane {
    /// A lane made of those parts.
    pub fn new(parts: LaneParts) -> Self {
        Self {
            parts,
            at_hand: None,
            due: VecDeque::new(),
            ended: false,
            batches: 0,
            rows: 0,
            rows_out: 0,
            arrived_ns: 0,
            is_blocked: false,
        }
    }

    /// Passes the next piece of the portion to the operator.
    fn process(&mut self, clock: &dyn Clock) -> Result<Step, RunError> {
        let Some((portion, next)) = &mut self.at_hand else { return Ok(Step::Idle) };
        let parts = &mut self.parts;
        let (run, piece) = (&mut parts.chain.run, &mut portion.pieces[*next]);
        run.begin(&parts.columns, piece.start, piece.len);
        if let Some(good) = piece.good.take() {
            run.select(good);
        }
        if let Some(event_time) = parts.clock {
            match event_time.from {
                TimeFrom::Columns { time, .. } | TimeFrom::Marked { time } => {
                    place_time(run, time, event_time.slot, (portion.offset, event_time.from.is_end()));
                }
                TimeFrom::Wall(_) => {
                    let mut times = run.scratch(Physical::I64);
                    times.refill::<i64>().resize(piece.len, piece.stamp.unwrap_or_default());
                    run.put(event_time.slot, times);
                }
            }
            if let Some(range) = piece.range {
                run.note_range(event_time.slot, range);
            }
            if let Some(mut before) = piece.before.take() {
                let mut marks = run.scratch(Physical::I64);
                std::mem::swap(marks.refill(), &mut before);
                run.put(event_time.watermark_slot, marks);
            }
            if let Some(watermark) = piece.watermark {
                run.note_watermark(watermark);
            }
        }
        let rows = piece.len;
        *next += 1;
        let is_last = *next == portion.pieces.len();
        parts.chain.process(clock, parts.rejects.as_mut())?;
        let left = parts.chain.run.len();
        if left > 0 {
            let started_ns = clock.system_ns();
            let before = parts.operator.late().rows;
            let consumed = parts.operator.consume(0, &mut parts.chain.run);
            consumed.map_err(|error| RunError::Compute { operator: parts.name.to_owned(), error })?;
            parts.profile.record(left, 0, elapsed_ns(clock, started_ns));
            parts.entered.add(left as u64);
            parts.late.note(before, parts.operator.late());
        }
        self.rows += rows as u64;
        self.parts.items.done(rows as u64);
        if is_last {
            self.parts.chain.run.close();
            self.at_hand = None;
        }
        self.charge()?;
        Ok(Step::Worked(rows))
    }

    fn charge(&mut self) -> Result<(), RunError> {
        let bytes = self.parts.operator.bytes();
        self.parts.state.set(bytes).map_err(|limit| self.exceeded(bytes, limit))
    }

    fn exceeded(&self, bytes: usize, limit: MemoryLimit) -> RunError {
        RunError::MemoryLimit { operator: self.parts.name.to_owned(), bytes, limit }
    }

    /// Charges a part of so many bytes that was split off; the rest stays with the lane.
    fn split_charge(&mut self, bytes: usize, held: HeldRows) -> Result<Charged, RunError> {
        let mut account = self.parts.state.split(bytes);
        self.charge()?;
        account.set(bytes).map_err(|limit| self.exceeded(bytes, limit))?;
        Ok(Charged::new(account, held))
    }

    /// Hands out what is due. Returns true if all of it has left.
    fn hand_out(&mut self) -> bool {
        if let Some(rejects) = &mut self.parts.rejects
            && !rejects.hand_out()
        {
            return false;
        }
        while let Some(mut part) = self.due.pop_front() {
            // What has left once and came back counts already.
            if let Handover::State { charged, .. } | Handover::End { charged, .. } = &mut part
                && !charged.is_sent()
            {
                if !self.parts.load.has_room(charged.bytes()) {
                    self.due.push_front(part);
                    return false;
                }
                charged.send(&self.parts.load);
            }
            let rows = part.work().rows;
            if let Err(back) = self.parts.out.offer(part) {
                self.due.push_front(back);
                return false;
            }
            self.rows_out += rows;
        }
        true
    }
}

impl Task for Lane {
    fn step(&mut self, context: &Context) -> Result<Step, RunError> {
        self.is_blocked = !self.hand_out();
        if self.is_blocked {
            return Ok(Step::Blocked);
        }
        if self.ended {
            return Ok(Step::Done);
        }
        if self.at_hand.is_some() {
            return self.process(context.clock());
        }
        let Some(item) = self.parts.items.take() else { return Ok(Step::Idle) };
        match item {
            Item::Portion(portion) => {
                let opened = self.parts.chain.run.open(&self.parts.columns, &portion.batch);
                opened.map_err(|error| RunError::Batch { number: self.batches, error })?;
                self.batches += 1;
                self.at_hand = Some((portion, 0));
                return self.process(context.clock());
            }
            Item::Watermark { watermark, arrived_ns } => {
                self.arrived_ns = arrived_ns;
                let state = self.parts.operator.split_off(watermark);
                let charged = self.split_charge(state.bytes(), state.held())?;
                self.due.push_back(Handover::State { state, watermark, arrived_ns, charged });
            }
            Item::Signal(signal) => self.due.push_back(Handover::Signal(signal)),
            Item::End => {
                let rest = self.parts.operator.extract(penstock_types::KeyGroups::ALL);
                let charged = self.split_charge(rest.bytes(), rest.held())?;
                self.due.push_back(Handover::End { state: rest, arrived_ns: self.arrived_ns, charged });
                self.ended = true;
            }
        }
        Ok(Step::Worked(0))
    }

    fn numbers(&self, _now_ns: u64) -> Numbers {
        let rejects = self.parts.rejects.as_ref();
        let due = self.due.iter().filter_map(Handover::charged);
        Numbers {
            rows_in: self.rows,
            rows_out: self.rows_out,
            blocked_ns: 0,
            is_blocked: self.is_blocked,
            blocked_on: match rejects {
                Some(rejects) if rejects.is_blocked() => BlockedOn::Letters,
                _ => BlockedOn::Room,
            },
            is_unfinished: !self.due.is_empty() || rejects.is_some_and(Rejects::is_waiting),
            held: due.fold(self.parts.operator.held(), |sum, charged| sum + charged.unsent()),
        }
    }

    fn load(&self) -> Option<Arc<Load>> {
        Some(Arc::clone(&self.parts.load))
    }
}
