//! Hands the rows of a source out to lanes.

use std::collections::VecDeque;
use std::time::Instant;

use arrow_array::RecordBatch;
use penstock_memory::{Run, Signal};
use penstock_progress::NEVER;
use penstock_queue::log::Work;

use super::way::{Carried, WayIn};
use crate::error::RunError;
use crate::pipeline::BlockedOn;
use crate::pipeline::rejects::Rejects;
use crate::pipeline::source::{Poll, Quiet, Source};
use crate::pipeline::task::Step;
use crate::query::state::State;

/// Rows that are handed out together: enough to make the hand-over cheap, few enough to keep all lanes busy.
pub(in crate::pipeline) const PORTION_ROWS: usize = 1 << 16;

/// A run of a batch, and what the source has found out about its time.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) start: usize,
    pub(crate) len: usize,
    /// The rows of the run that are taken, where some are not.
    pub(crate) good: Option<Vec<u32>>,
    /// The smallest and the largest time.
    pub(crate) range: Option<(i64, i64)>,
    /// The watermark just before all of its rows.
    pub(crate) watermark: Option<i64>,
    /// The watermark just before each row, where one may be late.
    pub(crate) before: Option<Vec<i64>>,
    /// The time of arrival, where that is the time.
    pub(crate) stamp: Option<i64>,
}

/// Rows of one batch that go to one lane.
#[derive(Debug)]
pub(crate) struct Portion {
    pub(crate) batch: RecordBatch,
    /// What is added to the times.
    pub(crate) offset: i64,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) rows: usize,
    /// When the first of them arrived.
    pub(crate) arrived_ns: u64,
}

/// What a lane gets.
#[derive(Debug)]
pub(crate) enum Item {
    Portion(Portion),
    /// Event time has come so far, by rows that arrived at that time.
    Watermark {
        watermark: i64,
        arrived_ns: u64,
    },
    Signal(Signal),
    End,
}

impl Carried for Item {
    fn work(&self) -> Work {
        match self {
            Self::Portion(portion) => Work { rows: portion.rows as u64, signals: 0 },
            _ => Work { rows: 0, signals: 1 },
        }
    }

    fn arrived_ns(&self) -> u64 {
        match self {
            Self::Portion(portion) => portion.arrived_ns,
            _ => 0,
        }
    }
}

/// The task that reads a source for several lanes.
pub(crate) struct Splitter {
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
    /// Signals that go behind the portion.
    behind: Vec<Signal>,
    watermark: i64,
    ended: bool,
    rows: u64,
    blocked_since: Option<Instant>,
    blocked_ns: u64,
}

impl Splitter {
    pub(in crate::pipeline) fn new(
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
            behind: Vec::new(),
            watermark: NEVER,
            ended: false,
            rows: 0,
            blocked_since: None,
            blocked_ns: 0,
        }
    }

    /// Does one thing.
    pub(crate) fn step(&mut self, query: &State) -> Result<Step, RunError> {
        if !self.hand_out() {
            self.blocked_since.get_or_insert_with(Instant::now);
            return Ok(Step::Blocked);
        }
        if let Some(since) = self.blocked_since.take() {
            self.blocked_ns += since.elapsed().as_nanos() as u64;
        }
        if self.ended {
            return Ok(Step::Done);
        }
        match self.source.poll(&mut self.run, query, self.rejects.as_mut())? {
            Poll::Rejected => {}
            Poll::Rows => {
                let rows = self.cut(query)?;
                self.advance();
                self.hand_out();
                return Ok(Step::Worked(rows));
            }
            Poll::Watermark => self.advance(),
            Poll::Nothing => {
                if let Some(step) = self.quiet(query) {
                    return Ok(step);
                }
            }
            Poll::Until(until) => match self.quiet(query) {
                Some(Step::Until(other)) => return Ok(Step::Until(until.or(other))),
                Some(_) => return Ok(Step::Until(until)),
                None => {}
            },
            Poll::Ended => {
                self.run.close();
                self.ended = true;
                self.due.iter_mut().for_each(|due| due.push_back(Item::End));
            }
        }
        Ok(Step::Worked(0))
    }

    /// The source has no rows: event time may go on by the clock, or without it. `None` if it does.
    fn quiet(&mut self, query: &State) -> Option<Step> {
        match self.source.quiet(&query.clock) {
            Quiet::Nothing => return Some(Step::Idle),
            Quiet::Until(until) => return Some(Step::Until(until)),
            Quiet::Watermark(_) => self.advance(),
            Quiet::Rest => {
                self.due.iter_mut().for_each(|due| due.push_back(Item::Signal(Signal::Idle)));
            }
        }
        None
    }

    /// Cuts the next portion off the batch at hand.
    fn cut(&mut self, query: &State) -> Result<usize, RunError> {
        let (mut pieces, mut rows, mut arrived_ns) = (Vec::new(), 0, u64::MAX);
        loop {
            let piece = self.source.next_piece(
                &mut self.run,
                self.portion_rows - rows,
                &query.clock,
                self.rejects.as_mut(),
            )?;
            arrived_ns = arrived_ns.min(self.source.first_ns());
            rows += piece.len;
            pieces.push(piece);
            if rows == self.portion_rows || !self.source.has_more_due() {
                break;
            }
        }
        self.rows += rows as u64;
        let (batch, offset) = self.source.batch();
        self.portion = Some(Portion { batch, offset, pieces, rows, arrived_ns });
        let (arrival, marker) = self.source.marks();
        self.behind.extend(arrival.into_iter().chain(marker));
        Ok(rows)
    }

    /// Lets the watermark follow, to all lanes. The portion at hand goes before it.
    fn advance(&mut self) {
        let watermark = self.source.watermark();
        if watermark <= self.watermark {
            return;
        }
        self.place_portion();
        self.watermark = watermark;
        let arrived_ns = self.source.arrived_ns();
        for due in &mut self.due {
            // One that was not handed out is overtaken.
            if let Some(Item::Watermark { .. }) = due.back() {
                due.pop_back();
            }
            due.push_back(Item::Watermark { watermark, arrived_ns });
        }
    }

    /// Settles which lane gets the portion: the one that has least to do.
    fn place_portion(&mut self) {
        let Some(portion) = self.portion.take() else { return };
        let waits = |lane: usize| {
            let due: u64 = self.due[lane].iter().map(|item| item.work().rows).sum();
            self.lanes[lane].waiting_rows() + due
        };
        let lane = (0..self.lanes.len()).min_by_key(|&lane| waits(lane)).expect("there are lanes");
        self.due[lane].push_back(Item::Portion(portion));
        self.due[lane].extend(self.behind.drain(..).map(Item::Signal));
    }

    /// Hands out what is due. Whether all of it has left.
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

    /// Rows taken in, and time without room.
    pub(crate) fn progress(&self) -> (u64, u64) {
        (self.rows, self.blocked_ns)
    }

    /// What it waits for, if it does.
    pub(crate) fn blocked_on(&self) -> BlockedOn {
        match &self.rejects {
            Some(rejects) if rejects.is_blocked() => BlockedOn::Letters,
            _ => BlockedOn::Room,
        }
    }

    /// Whether it waits for room.
    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked_since.is_some()
    }

    /// Whether something of what it has read is still to be handed out.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.due.iter().any(|due| !due.is_empty()) || self.rejects.as_ref().is_some_and(Rejects::is_waiting)
    }
}
