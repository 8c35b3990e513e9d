//! Where rows come in: batches are cut into runs, and event time is read off them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::RecordBatch;
use penstock_memory::{Run, Signal, SourceColumns};
use penstock_progress::{Stands, Windows};
use penstock_scheduler::Profile;

use super::event_clock::Clock;
use super::parallel::{LaneClock, Piece};
use super::rejects::Rejects;
use super::screen::{good_rows, reject, reject_batch};
use super::waiting::{Replayed, Waiting};
use crate::clock::{Timepiece, Until, now_ns};
use crate::engine::bell::Bell;
use crate::error::RunError;
use crate::feed::{Fed, FeedEnd};
use crate::plan::Arrival;
use crate::query::account::SourceCounts;
use crate::query::state::State;
use crate::replay::{Pacer, Replaying};
use crate::standing::Part;

/// Time between two latency markers.
const MARKER_NS: u64 = 50_000_000;
/// Time between two arrival marks.
const ARRIVAL_NS: u64 = 1_000_000;

/// Where the time of a row comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeFrom {
    /// A column of the batch, which may be the end of a window, and perhaps one that watermarks are taken from.
    Columns { time: usize, marks: Option<(usize, Stands)>, is_end: bool },
    /// A column of the batch, while a function says how far event time has come behind each batch.
    Marked { time: usize },
    /// The clock on the wall.
    Wall(Arrival),
}

impl TimeFrom {
    /// Whether times are ends of windows, and rows a tick earlier.
    pub(super) fn is_end(self) -> bool {
        matches!(self, Self::Columns { is_end: true, .. })
    }
}

/// The clock on the wall is looked at this often at least, since people may set it.
const LONGEST_TICK_NS: u64 = 1_000_000_000;

/// How far event time of arrival goes on by itself when nothing arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ticking {
    /// The windows that close by it.
    pub(super) windows: Vec<Windows>,
    /// For how long behind the last row: then every window has closed.
    pub(super) linger_us: i64,
}

impl Ticking {
    /// The next time at which a window may close, once event time has come to `watermark`; the last row came at `last`.
    fn next(&self, watermark: i64, last: i64) -> i64 {
        let of_windows = |windows: &Windows| match *windows {
            Windows::Aligned(windows) => windows.bounds(windows.first_window(watermark)).1,
            Windows::Session { gap } => last.saturating_add(gap).saturating_add(gap),
        };
        self.windows.iter().map(of_windows).min().unwrap_or(i64::MAX)
    }
}

/// What a source that has no rows does as time goes by.
pub(super) enum Quiet {
    /// Nothing.
    Nothing,
    /// Nothing before that time.
    Until(Until),
    /// Event time has come so far.
    Watermark(i64),
    /// It is not to be waited for.
    Rest,
}

/// Where batches come from.
pub(crate) enum Intake {
    /// Somebody pushes them.
    Feed(FeedEnd),
    /// They are in memory.
    Replay(Replaying),
}

/// What a source has.
pub(super) enum Poll {
    /// Rows, for [`Source::next_run`].
    Rows,
    /// No rows, but event time has come further.
    Watermark,
    /// No rows: a batch that does not fit was rejected.
    Rejected,
    /// Nothing now: whoever brings a batch wakes the task.
    Nothing,
    /// Nothing before that time.
    Until(Until),
    /// Nothing now or ever.
    Ended,
}

/// The head of the first task.
pub(super) struct Source {
    columns: SourceColumns,
    clock: Option<Clock>,
    rows_per_run: usize,
    intake: Intake,
    pacer: Option<Pacer>,
    /// Set once the source may begin.
    begin: Arc<AtomicBool>,
    /// The batch at hand.
    current: Option<RecordBatch>,
    /// The part of the input that this is, and the number of the stream.
    part: Option<(Part, usize)>,
    batches: u64,
    rows: u64,
    /// Rows of the batch at hand that are still to come, from here, and how many of them now.
    next: usize,
    end: usize,
    due: usize,
    /// What is added to the times of the batch.
    offset: i64,
    arrived_ns: u64,
    /// When the first row of the last run arrived.
    first_ns: u64,
    /// The same by the clock on the wall.
    arrived_us: i64,
    /// Rows that were given out and are not done with.
    taken: u64,
    /// What waits for a replay.
    waiting: Arc<Waiting>,
    counts: Arc<SourceCounts>,
    pub(super) profile: Arc<Profile>,
    before: Vec<i64>,
    marks: Vec<i64>,
    /// The rows of the last run that were taken, if some were not.
    good: Vec<u32>,
    /// How far event time has come behind the batch at hand, if a function has said so.
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
    pub(super) fn new(
        columns: SourceColumns,
        (clock, idle_after_ns): (Option<Clock>, Option<u64>),
        rows_per_run: usize,
        mut intake: Intake,
        begin: Arc<AtomicBool>,
    ) -> Self {
        let (mut pacer, mut waiting) = (None, Waiting::default());
        if let Intake::Replay(replaying) = &mut intake {
            pacer = replaying.pacer();
            let due = pacer.as_ref().map(|pacer| Arc::clone(pacer.shown()));
            waiting = Waiting::new(replaying.rows_ahead(), due);
            replaying.round_ticks = clock.as_ref().map_or(0, |clock| clock.round_ticks(&columns, replaying));
        }
        Self {
            columns,
            clock,
            rows_per_run,
            intake,
            pacer,
            begin,
            current: None,
            part: None,
            batches: 0,
            rows: 0,
            next: 0,
            end: 0,
            due: 0,
            offset: 0,
            arrived_ns: 0,
            first_ns: 0,
            arrived_us: 0,
            taken: 0,
            waiting: Arc::new(waiting),
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

    /// Says whom to wake when a batch comes, and where to look for pending rows.
    pub(super) fn hang(&self, bell: &Arc<Bell>) {
        match &self.intake {
            Intake::Feed(feed) => {
                feed.hang(bell);
                bell.row.set_pending(feed.pending());
            }
            Intake::Replay(_) => bell.row.set_pending(Box::new(Replayed(Arc::clone(&self.waiting)))),
        }
    }

    /// How far event time has come.
    pub(super) fn watermark(&self) -> i64 {
        self.clock.as_ref().map_or(penstock_progress::NEVER, |clock| clock.progress.watermark())
    }

    /// Goes on where the part of the input before this one has ended. It is the stream of that number.
    pub(super) fn resume(&mut self, part: &Part, number: usize) {
        if let Some(clock) = &mut self.clock {
            if let Some(latest) = part.seen(number) {
                clock.progress.raise(latest);
            }
            clock.is_told = part.told(number).is_some();
        }
        self.part = Some((part.clone(), number));
    }

    /// Notes where it has ended.
    pub(super) fn note_seen(&self) {
        if let (Some(clock), Some((part, number))) = (&self.clock, &self.part) {
            part.note_seen(*number, clock.progress.latest());
        }
    }

    /// When the rows of the last run arrived.
    pub(super) fn arrived_ns(&self) -> u64 {
        self.arrived_ns
    }

    /// When the first of them did.
    pub(super) fn first_ns(&self) -> u64 {
        self.first_ns
    }

    /// Whoever has the rows that were given out is done with them: until then they wait.
    pub(super) fn release(&mut self) {
        self.release_rows(self.taken);
    }

    /// The same for so many of them.
    pub(super) fn release_rows(&mut self, rows: u64) {
        self.taken -= rows;
        match &self.intake {
            Intake::Feed(feed) => feed.done(rows),
            Intake::Replay(_) => self.waiting.done(rows),
        }
    }

    /// What it counts.
    pub(super) fn counts(&self) -> &Arc<SourceCounts> {
        &self.counts
    }

    /// Takes a batch in. Whether it fits the declared schema: one that does not is an error, or goes where `rejects` says.
    fn open(
        &mut self,
        run: &mut Run,
        batch: &RecordBatch,
        rejects: Option<&mut Rejects>,
    ) -> Result<bool, RunError> {
        let rows = batch.num_rows();
        let opened = run.open(&self.columns, batch);
        let number = self.batches;
        self.batches += 1;
        self.counts.batches.add(1);
        if let Err(error) = opened {
            let Some(rejects) = rejects else { return Err(RunError::Batch { number, error }) };
            reject_batch(rejects, batch, &format!("batch {number}: {error}"))?;
            self.mark = None;
            self.rows += rows as u64;
            self.profile.record(rows, 0, 0);
            self.counts.rejected.add(rows as u64);
            match &self.intake {
                Intake::Feed(feed) => feed.done(rows as u64),
                Intake::Replay(_) => self.waiting.skip(rows as u64),
            }
            return Ok(false);
        }
        self.current = Some(batch.clone());
        (self.next, self.end, self.due) = (0, rows, rows);
        Ok(true)
    }

    /// Looks for rows, in the batch at hand and behind it.
    pub(super) fn poll(
        &mut self,
        run: &mut Run,
        query: &State,
        mut rejects: Option<&mut Rejects>,
    ) -> Result<Poll, RunError> {
        if !self.begin.load(Ordering::Acquire) && !query.is_draining() {
            return Ok(Poll::Nothing);
        }
        loop {
            if self.next < self.end {
                return Ok(self.pace(query));
            }
            // A batch without rows may still say how far event time has come.
            if self.raise_mark() {
                return Ok(Poll::Watermark);
            }
            // What was borrowed from the batch is let go of before anybody waits for the next one.
            run.close();
            self.current = None;
            match &mut self.intake {
                Intake::Feed(feed) => match feed.take() {
                    Fed::Batch(arrived) => {
                        self.arrived_ns = arrived.arrived_ns;
                        self.arrived_us = arrived_us(&query.clock, arrived.arrived_ns);
                        self.mark = arrived.watermark;
                        if !self.open(run, &arrived.batch, rejects.as_deref_mut())? {
                            return Ok(Poll::Rejected);
                        }
                    }
                    Fed::Nothing => return Ok(Poll::Nothing),
                    Fed::Ended if self.advance_as_told() => return Ok(Poll::Watermark),
                    Fed::Ended => return Ok(Poll::Ended),
                    Fed::Failed(error) => return Err(RunError::Outside { what: "source", error }),
                },
                Intake::Replay(replaying) => match replaying.next() {
                    Some((batch, offset)) if !query.is_draining() => {
                        self.offset = offset;
                        self.arrived_ns = now_ns();
                        self.arrived_us = query.clock.wall_us();
                        self.mark = replaying.last_mark();
                        let rows = batch.num_rows() as u64 + replaying.rows_ahead() + self.taken;
                        self.waiting.open(rows, replaying.is_last(), self.arrived_ns);
                        if !self.open(run, &batch, rejects.as_deref_mut())? {
                            return Ok(Poll::Rejected);
                        }
                    }
                    _ => return Ok(Poll::Ended),
                },
            }
        }
    }

    /// How many rows of the batch at hand are due.
    fn pace(&mut self, query: &State) -> Poll {
        let left = self.end - self.next;
        // What was pushed is processed; a replay ends where it stands.
        if query.is_draining() && matches!(self.intake, Intake::Replay(_)) {
            return Poll::Ended;
        }
        let Some(pacer) = &mut self.pacer else { return Poll::Rows };
        let due = pacer.due(now_ns());
        self.counts.backlog_rows.set(due);
        self.counts.slipped_ns.set(pacer.slipped_ns());
        let worth = pacer.slice_rows().min(left as u64);
        self.due = left.min(usize::try_from(due).unwrap_or(usize::MAX));
        if due < worth { Poll::Until(Until::system(pacer.due_ns(worth))) } else { Poll::Rows }
    }

    /// Behind a batch, event time has come as far as the function has said, if there is one. Whether it has risen.
    fn raise_mark(&mut self) -> bool {
        let Some(clock) = &mut self.clock else { return false };
        let before = clock.progress.watermark();
        if let Some(mark) = self.mark.take() {
            clock.progress.raise(mark.saturating_add(self.offset));
        }
        clock.progress.watermark() > before
    }

    /// Behind all rows, event time comes as far as was told for this part. Whether it has risen.
    fn advance_as_told(&mut self) -> bool {
        let told = self.part.as_ref().and_then(|(part, number)| part.told(*number));
        let (Some(clock), Some(told)) = (&mut self.clock, told) else { return false };
        let has_risen = told > clock.progress.watermark();
        if has_risen {
            clock.progress.advance_to(told);
        }
        has_risen
    }

    /// What becomes of it as time goes by, when there are no rows.
    pub(super) fn quiet(&mut self, clock: &Timepiece) -> Quiet {
        let now_ns = clock.now_ns();
        let mut until: Option<u64> = None;
        if let Some(event_time) = &mut self.clock
            && let Some(ticking) = &event_time.ticking
            && event_time.progress.latest() < self.last_us.saturating_add(ticking.linger_us)
            && self.last_us > i64::MIN
        {
            // The watermark stays behind the clock by the delay.
            let (watermark, wall_us) = (event_time.progress.watermark(), clock.wall_us());
            let delay = event_time.progress.latest().saturating_sub(watermark);
            let next_us = ticking.next(watermark, self.last_us).saturating_add(delay);
            if wall_us >= next_us {
                event_time.progress.raise(wall_us);
                return Quiet::Watermark(event_time.progress.watermark());
            }
            let left_ns =
                u64::try_from(next_us.saturating_sub(wall_us)).unwrap_or(u64::MAX).saturating_mul(1000);
            until = Some(now_ns + left_ns.min(LONGEST_TICK_NS));
        }
        if let Some(idle_after_ns) = self.idle_after_ns.filter(|_| !self.is_idle) {
            let idle_ns = self.spoke_ns.get_or_insert(now_ns).saturating_add(idle_after_ns);
            if now_ns >= idle_ns {
                self.is_idle = true;
                self.counts.idles.add(1);
                self.counts.is_idle.set(1);
                return Quiet::Rest;
            }
            until = Some(until.map_or(idle_ns, |until| until.min(idle_ns)));
        }
        until.map_or(Quiet::Nothing, |ns| Quiet::Until(Until::clock(ns)))
    }

    /// Cuts the next run off the batch, of at most `limit` rows, for somebody else to begin.
    pub(super) fn next_piece(
        &mut self,
        run: &mut Run,
        limit: usize,
        time: &Timepiece,
        rejects: Option<&mut Rejects>,
    ) -> Result<Piece, RunError> {
        let start = self.next;
        let len = self.next_run(run, limit, time, rejects)?;
        let good = (run.len() < len).then(|| self.good.clone());
        let Some(clock) = &self.clock else {
            return Ok(Piece { start, len, good, range: None, watermark: None, before: None, stamp: None });
        };
        let range = run.range_of(clock.slot);
        let before = run.holds(clock.watermark_slot).then(|| {
            run.ready(&[clock.watermark_slot]);
            run.column(clock.watermark_slot).fixed::<i64>().to_vec()
        });
        let stamp = matches!(clock.from, TimeFrom::Wall(_)).then_some(self.last_us);
        Ok(Piece { start, len, good, range, watermark: run.watermark(), before, stamp })
    }

    /// Whether there is more of the batch at hand to be cut off now.
    pub(super) fn has_more_due(&self) -> bool {
        self.next < self.end && self.due > 0
    }

    /// The batch at hand, and what is added to its times.
    pub(super) fn batch(&self) -> (RecordBatch, i64) {
        (self.current.clone().expect("rows are cut off a batch"), self.offset)
    }

    /// Where its rows get their time from, and the slots that it goes to.
    pub(super) fn lane_clock(&self) -> Option<LaneClock> {
        let clock = self.clock.as_ref()?;
        Some(LaneClock { from: clock.from, slot: clock.slot, watermark_slot: clock.watermark_slot })
    }

    /// Begins the next run of the batch, of at most `limit` rows. How many it is of, before rows were rejected: these
    /// are an error, or go where `rejects` says.
    pub(super) fn next_run(
        &mut self,
        run: &mut Run,
        limit: usize,
        time: &Timepiece,
        rejects: Option<&mut Rejects>,
    ) -> Result<usize, RunError> {
        let started = now_ns();
        let (start, len) = (self.next, self.rows_per_run.min(self.end - self.next).min(self.due).min(limit));
        self.next += len;
        self.taken += len as u64;
        run.begin(&self.columns, start, len);
        if let Some(clock) = &mut self.clock {
            match clock.from {
                TimeFrom::Columns { time, .. } | TimeFrom::Marked { time } => {
                    let bad = clock.screen(run, time, (start, len), self.offset);
                    if let Some(first) = bad.first() {
                        let schema = self.columns.schema();
                        let Some(rejects) = rejects else {
                            return Err(first.error(schema, clock, self.rows));
                        };
                        let batch = self.current.as_ref().expect("rows are cut off a batch");
                        reject(rejects, (batch, start), (schema, clock), &bad)?;
                        self.counts.rejected.add(bad.len() as u64);
                        let good = good_rows(run, &bad);
                        self.good.clone_from(&good);
                        run.select(good);
                    }
                    clock.observe(run, time, self.offset, &mut self.marks, &mut self.before);
                }
                TimeFrom::Wall(arrival) => {
                    let wall_us = match arrival {
                        Arrival::Processing => time.wall_us(),
                        Arrival::Ingestion => self.arrived_us,
                    };
                    // People may set the clock back; event time never goes back for that.
                    self.last_us = self.last_us.max(wall_us).max(clock.progress.latest());
                    clock.stamp(run, len, self.last_us);
                }
            }
        }
        if self.idle_after_ns.is_some() {
            self.spoke_ns = Some(time.now_ns());
            self.is_idle = false;
            self.counts.is_idle.set(0);
        }
        if self.next == self.end {
            self.raise_mark();
        }
        self.first_ns = self.arrived_ns;
        if let Some(pacer) = &mut self.pacer {
            self.due -= len;
            self.first_ns = pacer.due_ns(0);
            self.arrived_ns = pacer.due_ns(len as u64);
            pacer.take(len as u64);
        }
        self.rows += len as u64;
        self.profile.record(len, run.len(), now_ns() - started);
        Ok(len)
    }

    /// The signals that belong behind the rows up to now: a latency marker and an arrival mark, each now and then.
    pub(super) fn marks(&mut self) -> (Option<Signal>, Option<Signal>) {
        let is_due = |next: &mut u64, now_ns: u64, every: u64| {
            let due = now_ns >= *next;
            if due {
                *next = now_ns + every;
            }
            due
        };
        let arrival = is_due(&mut self.next_arrival_ns, self.arrived_ns, ARRIVAL_NS);
        let marker = is_due(&mut self.next_marker_ns, now_ns(), MARKER_NS);
        let arrival = arrival.then_some(Signal::Arrival { at_ns: self.arrived_ns });
        (arrival, marker.then_some(Signal::Marker { sent_ns: self.arrived_ns }))
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.waiting.leave();
    }
}

/// When a batch arrived, by the clock on the wall.
fn arrived_us(clock: &Timepiece, arrived_ns: u64) -> i64 {
    match clock {
        Timepiece::System => {
            let ago_us = now_ns().saturating_sub(arrived_ns) / 1000;
            clock.wall_us().saturating_sub(i64::try_from(ago_us).unwrap_or(i64::MAX))
        }
        // Whoever moves the hands knows nothing of the time that goes by meanwhile.
        Timepiece::Manual(_) => clock.wall_us(),
    }
}
