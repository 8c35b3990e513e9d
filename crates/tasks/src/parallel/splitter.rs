//! Hands the rows of a source out to lanes.

use std::collections::VecDeque;

use penstock_memory::{Run, Signal};
use penstock_progress::NEVER;

use penstock_operators::HeldRows;

use super::item::{Item, Portion};
use super::way::{Carried, WayIn};
use crate::clock::{Clock, elapsed_ns};
use crate::context::Context;
use crate::error::RunError;
use crate::rejects::Rejects;
use crate::source::{Found, Quiet, Source};
use crate::step::{BlockedOn, Numbers, Step, Task};

/// The task that reads a source for several lanes.
pub struct Splitter {
    source: Box<Source>,
    run: Run,
    lanes: Vec<WayIn<Item>>,
    /// Rows that are handed out together, at most.
    portion_rows: usize,
    /// What each lane gets next, in order.
    due: Vec<VecDeque<Item>>,
    portion: Option<Portion>,
    /// Where rows go that the source does not take, unless the query fails.
    rejects: Option<Rejects>,
    /// Signals that go after the portion.
    signals: Vec<Signal>,
    watermark: i64,
    ended: bool,
    rows: u64,
    blocked_since_ns: Option<u64>,
    blocked_ns: u64,
}

impl Splitter {
    /// Reads `source` for the lanes, in portions of so many rows.
    pub fn new(
        source: Source,
        run: Run,
        lanes: Vec<WayIn<Item>>,
        rejects: Option<Rejects>,
        portion_rows: usize,
    ) -> Self {
        let due = lanes.iter().map(|_| VecDeque::new()).collect();
        Self {
            source: Box::new(source),
            run,
            lanes,
            portion_rows,
            due,
            portion: None,
            rejects,
            signals: Vec::new(),
            watermark: NEVER,
            ended: false,
            rows: 0,
            blocked_since_ns: None,
            blocked_ns: 0,
        }
    }

    fn poll(&mut self, context: &Context) -> Result<Step, RunError> {
        let clock = context.clock();
        match self.source.poll(&mut self.run, context, self.rejects.as_mut())? {
            Found::Rejected => {}
            Found::Rows => {
                let rows = self.cut(clock)?;
                self.advance();
                self.hand_out();
                return Ok(Step::Worked(rows));
            }
            Found::Watermark(_) => self.advance(),
            Found::Signal(signal) => {
                self.due.iter_mut().for_each(|due| due.push_back(Item::Signal(signal)));
            }
            Found::Nothing => {
                if let Some(step) = self.quiet(clock) {
                    return Ok(step);
                }
            }
            Found::Until(until) => match self.quiet(clock) {
                Some(Step::Until(other)) => return Ok(Step::Until(until.or(other))),
                Some(_) => return Ok(Step::Until(until)),
                None => {}
            },
            Found::Ended => {
                self.run.close();
                self.ended = true;
                self.due.iter_mut().for_each(|due| due.push_back(Item::End));
            }
        }
        Ok(Step::Worked(0))
    }

    /// Goes on without rows: event time may advance by the clock, or without this source. `None` if it does.
    fn quiet(&mut self, clock: &dyn Clock) -> Option<Step> {
        match self.source.quiet(clock) {
            Quiet::Nothing => return Some(Step::Idle),
            Quiet::Until(until) => return Some(Step::Until(until)),
            Quiet::Watermark(_) => self.advance(),
            Quiet::Idle => {
                self.due.iter_mut().for_each(|due| due.push_back(Item::Signal(Signal::Idle)));
            }
        }
        None
    }

    /// Cuts the next portion off the batch at hand.
    fn cut(&mut self, clock: &dyn Clock) -> Result<usize, RunError> {
        let (mut pieces, mut rows, mut arrived_ns) = (Vec::new(), 0, u64::MAX);
        loop {
            let piece = self.source.next_piece(
                &mut self.run,
                self.portion_rows - rows,
                clock,
                self.rejects.as_mut(),
            )?;
            let arrived = self.source.arrived().expect("rows of a batch have arrived");
            arrived_ns = arrived_ns.min(arrived.first_ns);
            rows += piece.len;
            pieces.push(piece);
            if rows == self.portion_rows || !self.source.has_more_due() {
                break;
            }
        }
        self.rows += rows as u64;
        let (batch, offset) = self.source.batch();
        self.portion = Some(Portion { batch, offset, pieces, rows, arrived_ns });
        let (arrival, marker) = self.source.marks(clock);
        self.signals.extend(arrival.into_iter().chain(marker));
        Ok(rows)
    }

    /// Sends the watermark to all lanes. The portion at hand goes before it.
    fn advance(&mut self) {
        let watermark = self.source.watermark();
        if watermark <= self.watermark {
            return;
        }
        self.place_portion();
        self.watermark = watermark;
        let arrived_ns = self.source.arrived().map_or(0, |arrived| arrived.last_ns);
        for due in &mut self.due {
            // A watermark that was not handed out is overtaken.
            if let Some(Item::Watermark { .. }) = due.back() {
                due.pop_back();
            }
            due.push_back(Item::Watermark { watermark, arrived_ns });
        }
    }

    /// Gives the portion to the lane that has least to do.
    fn place_portion(&mut self) {
        let Some(portion) = self.portion.take() else { return };
        let waits = |lane: usize| {
            let due: u64 = self.due[lane].iter().map(|item| item.work().rows).sum();
            self.lanes[lane].waiting_rows() + due
        };
        let lane = (0..self.lanes.len()).min_by_key(|&lane| waits(lane)).expect("there are lanes");
        self.due[lane].push_back(Item::Portion(portion));
        self.due[lane].extend(self.signals.drain(..).map(Item::Signal));
    }

    /// Hands out what is due. Returns true if all of it has left.
    fn hand_out(&mut self) -> bool {
        self.place_portion();
        let mut all = self.rejects.as_mut().is_none_or(Rejects::hand_out);
        for (lane, due) in self.lanes.iter_mut().zip(&mut self.due) {
            while let Some(item) = due.pop_front() {
                let rows = item.work().rows;
                if let Err(back) = lane.offer(item) {
                    due.push_front(back);
                    all = false;
                    break;
                }
                // From here on they wait for the lane.
                self.source.release_rows(rows);
            }
        }
        all
    }
}

impl Task for Splitter {
    fn step(&mut self, context: &Context) -> Result<Step, RunError> {
        if !self.hand_out() {
            self.blocked_since_ns.get_or_insert_with(|| context.clock().system_ns());
            return Ok(Step::Blocked);
        }
        if let Some(since_ns) = self.blocked_since_ns.take() {
            self.blocked_ns += elapsed_ns(context.clock(), since_ns);
        }
        if self.ended {
            return Ok(Step::Done);
        }
        self.poll(context)
    }

    fn numbers(&self, _now_ns: u64) -> Numbers {
        let blocked_on = match &self.rejects {
            Some(rejects) if rejects.is_blocked() => BlockedOn::Letters,
            _ => BlockedOn::Room,
        };
        let is_unfinished = self.due.iter().any(|due| !due.is_empty())
            || self.rejects.as_ref().is_some_and(Rejects::is_waiting);
        Numbers {
            rows_in: self.rows,
            rows_out: self.rows,
            blocked_ns: self.blocked_ns,
            is_blocked: self.blocked_since_ns.is_some(),
            blocked_on,
            is_unfinished,
            held: HeldRows::default(),
        }
    }
}
