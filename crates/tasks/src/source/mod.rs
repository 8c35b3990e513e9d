//! The head of a task that reads a stream: batches of a [`SourceReader`] are matched with the declared schema and cut into
//! runs, and event time is read off them. Rows of a shared source are in columns already, and are taken as they are.
//!
//! - `cut`: runs off the batch at hand; `quiet`: what happens as time goes by without rows
//! - `piece`: runs that other tasks begin

mod cut;
mod piece;
mod quiet;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::RecordBatch;
use penstock_memory::{Run, Signal, SourceColumns};
use penstock_progress::NEVER;
use penstock_scheduler::Profile;
use penstock_scheduler::table::Pending;

pub use piece::Piece;
pub use quiet::Quiet;

use crate::account::SourceCounts;
use crate::checkpoint::StateStore;
use crate::clock::Until;
use crate::context::Context;
use crate::error::RunError;
use crate::event_time::screen::reject_batch;
use crate::event_time::{EventClock, LaneClock};
use crate::readers::{Arrived, Available, Polled, PolledBatch, Skipped, SourceReader};
use crate::rejects::Rejects;
use crate::waker::Waker;

/// What a source has.
#[derive(Debug)]
pub enum Found {
    /// Rows, for [`Source::next_run`].
    Rows,
    /// No rows, but the watermark has advanced.
    Watermark(i64),
    /// Another signal that stands between rows.
    Signal(Signal),
    /// No rows: a batch that does not fit was rejected.
    Rejected,
    /// Nothing now: the reader wakes the task.
    Nothing,
    /// Nothing before that time.
    Until(Until),
    /// Nothing now or ever.
    Ended,
}

/// A stream as input of a task.
pub struct Source {
    columns: SourceColumns,
    clock: Option<EventClock>,
    rows_per_run: usize,
    reader: Box<dyn SourceReader>,
    /// Set once the source may begin.
    begin: Arc<AtomicBool>,
    /// The batch at hand.
    current: Option<RecordBatch>,
    /// The number of the stream, if its state is kept.
    kept: Option<usize>,
    /// The watermark that the caller imposes on this part of the input.
    imposed: Option<i64>,
    batches: u64,
    rows: u64,
    /// Rows of the batch at hand that are still to come, from here, and how many of them now.
    next: usize,
    end: usize,
    due: usize,
    /// What is added to the times of the batch.
    offset: i64,
    /// When the last run arrived, where that is known.
    arrived: Option<Arrived>,
    /// Whether the rows at hand are in columns already.
    is_in_columns: bool,
    /// When the batch arrived, by the wall clock.
    arrived_us: i64,
    /// Rows that were given out and are not done with.
    taken: u64,
    counts: Arc<SourceCounts>,
    profile: Arc<Profile>,
    before: Vec<i64>,
    marks: Vec<i64>,
    /// The rows of the last run that were taken, if some were not.
    good: Vec<u32>,
    /// The watermark after the batch at hand, if a function gives it.
    mark: Option<i64>,
    idle_after_ns: Option<u64>,
    is_idle: bool,
    /// When rows came last, and the time of arrival that they were given.
    spoke_ns: Option<u64>,
    last_us: i64,
    next_marker_ns: u64,
    next_arrival_ns: u64,
}

impl Source {
    /// Reads a stream with those columns and that event time, in runs of so many rows, from when `begin` is set. It is
    /// idle when it has had no rows for `idle_after_ns`.
    pub fn new(
        columns: SourceColumns,
        (clock, idle_after_ns): (Option<EventClock>, Option<u64>),
        rows_per_run: usize,
        mut reader: Box<dyn SourceReader>,
        begin: Arc<AtomicBool>,
    ) -> Self {
        reader.prepare(&columns, clock.as_ref());
        Self {
            columns,
            clock,
            rows_per_run,
            reader,
            begin,
            current: None,
            kept: None,
            imposed: None,
            batches: 0,
            rows: 0,
            next: 0,
            end: 0,
            due: 0,
            offset: 0,
            arrived: None,
            is_in_columns: false,
            arrived_us: 0,
            taken: 0,
            counts: Arc::default(),
            profile: Arc::default(),
            before: Vec::new(),
            marks: Vec::new(),
            good: Vec::new(),
            mark: None,
            idle_after_ns,
            is_idle: false,
            spoke_ns: None,
            last_us: i64::MIN,
            next_marker_ns: 0,
            next_arrival_ns: 0,
        }
    }

    /// Says whom to wake when there is something to read.
    pub fn connect(&mut self, waker: &Arc<dyn Waker>) {
        self.reader.connect(waker, &self.counts);
    }

    /// Returns a look at the work that waits in the input.
    pub fn pending(&self) -> Box<dyn Pending> {
        self.reader.pending()
    }

    /// Returns the watermark.
    pub fn watermark(&self) -> i64 {
        self.clock.as_ref().map_or(NEVER, |clock| clock.progress.watermark())
    }

    /// Restores the state of the stream with that number, and keeps it at the end.
    pub fn restore(&mut self, state: &dyn StateStore, number: usize) {
        self.imposed = state.imposed_watermark(number);
        if let Some(clock) = &mut self.clock {
            if let Some(latest) = state.latest_of(number) {
                clock.progress.raise(latest);
            }
            clock.is_imposed = self.imposed.is_some();
        }
        self.kept = Some(number);
    }

    /// Keeps the largest time that it has seen.
    pub fn keep(&self, context: &Context) {
        if let (Some(clock), Some(number), Some(state)) = (&self.clock, self.kept, context.state()) {
            state.keep_latest(number, clock.progress.latest());
        }
    }

    /// Returns when the rows of the last run arrived, where that is known.
    pub fn arrived(&self) -> Option<Arrived> {
        self.arrived
    }

    /// Returns true if the last run was in columns already: marks and watermarks come between rows, and need not be read
    /// off them.
    pub fn is_in_columns(&self) -> bool {
        self.is_in_columns
    }

    /// Notes that the task is done with all rows of `run`: until then they are pending (READERS-1).
    pub fn release(&mut self, run: &mut Run) {
        if self.is_in_columns {
            run.close(); // the log may take its memory back
        }
        self.release_rows(self.taken);
    }

    /// Notes that the task is done with so many of them.
    pub fn release_rows(&mut self, rows: u64) {
        self.taken -= rows;
        self.reader.acknowledge(rows);
    }

    /// Returns what it counts.
    pub fn counts(&self) -> &Arc<SourceCounts> {
        &self.counts
    }

    /// Returns the profile of its work.
    pub fn profile(&self) -> &Arc<Profile> {
        &self.profile
    }

    /// Returns the batch at hand, and what is added to its times.
    pub fn batch(&self) -> (RecordBatch, i64) {
        (self.current.clone().expect("rows are cut off a batch"), self.offset)
    }

    /// Returns what lanes need of its event time.
    pub fn lane_clock(&self) -> Option<LaneClock> {
        self.clock.as_ref().map(EventClock::of_lane)
    }

    /// Looks for rows, in the batch at hand and after it.
    ///
    /// # Errors
    /// A reader that fails; a batch that does not fit, without `rejects`.
    pub fn poll(
        &mut self,
        run: &mut Run,
        context: &Context,
        mut rejects: Option<&mut Rejects>,
    ) -> Result<Found, RunError> {
        if !self.begin.load(Ordering::Acquire) && !context.is_draining() {
            return Ok(Found::Nothing);
        }
        loop {
            if self.next < self.end {
                return Ok(match self.reader.available(self.end - self.next, context) {
                    Available::Rows(rows) => {
                        self.due = rows;
                        Found::Rows
                    }
                    Available::Until(until) => Found::Until(until),
                    Available::Ended => Found::Ended,
                });
            }
            // A batch without rows may still move the watermark.
            if self.raise_mark() {
                return Ok(Found::Watermark(self.watermark()));
            }
            // What was borrowed from the batch is let go of before the next one is waited for.
            run.close();
            self.current = None;
            match self.reader.poll(context)? {
                Polled::Batch(batch) => {
                    if !self.open(run, batch, rejects.as_deref_mut())? {
                        return Ok(Found::Rejected);
                    }
                }
                Polled::Rows => {
                    self.is_in_columns = true;
                    return Ok(Found::Rows);
                }
                Polled::Watermark(watermark) => return Ok(Found::Watermark(watermark)),
                Polled::Signal(signal) => return Ok(Found::Signal(signal)),
                Polled::Pending => return Ok(Found::Nothing),
                Polled::Ended if self.advance_as_imposed() => {
                    return Ok(Found::Watermark(self.watermark()));
                }
                Polled::Ended => return Ok(Found::Ended),
            }
        }
    }

    /// Takes a batch in. Returns whether it fits the declared schema: one that does not is an error, or goes to `rejects`.
    fn open(
        &mut self,
        run: &mut Run,
        batch: PolledBatch,
        rejects: Option<&mut Rejects>,
    ) -> Result<bool, RunError> {
        self.offset = batch.offset;
        self.is_in_columns = false;
        self.arrived = Some(Arrived { first_ns: batch.arrived_ns, last_ns: batch.arrived_ns });
        self.arrived_us = batch.arrived_us;
        self.mark = batch.watermark;
        let batch = batch.rows;
        let rows = batch.num_rows();
        let opened = run.open(&self.columns, &batch);
        let number = self.batches;
        self.batches += 1;
        self.counts.batches.add(1);
        if let Err(error) = opened {
            let Some(rejects) = rejects else { return Err(RunError::Batch { number, error }) };
            reject_batch(rejects, &batch, &format!("batch {number}: {error}"))?;
            self.mark = None;
            self.rows += rows as u64;
            self.profile.record(rows, 0, 0);
            self.counts.rejected.add(rows as u64);
            self.reader.refuse(rows as u64);
            return Ok(false);
        }
        self.current = Some(batch);
        (self.next, self.end, self.due) = (0, rows, rows);
        Ok(true)
    }

    /// Skips what waits, if the input has asked for that.
    pub fn skip_backlog(&mut self) -> Option<Skipped> {
        let skipped = self.reader.skip_backlog()?;
        self.taken = 0;
        Some(skipped)
    }

    /// Raises the watermark after a batch to what the function has said, if there is one. Returns true if it has risen.
    fn raise_mark(&mut self) -> bool {
        let Some(clock) = &mut self.clock else { return false };
        let before = clock.progress.watermark();
        if let Some(mark) = self.mark.take() {
            clock.progress.raise(mark.saturating_add(self.offset));
        }
        clock.progress.watermark() > before
    }

    /// Advances the watermark after all rows to the imposed one. Returns true if it has risen.
    fn advance_as_imposed(&mut self) -> bool {
        let (Some(clock), Some(imposed)) = (&mut self.clock, self.imposed) else { return false };
        let has_risen = imposed > clock.progress.watermark();
        if has_risen {
            clock.progress.advance_to(imposed);
        }
        has_risen
    }
}
