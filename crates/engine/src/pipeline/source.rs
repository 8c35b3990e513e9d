//! Where rows come in: batches are cut into runs, and event time is read off them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::RecordBatch;
use penstock_memory::{Column, Physical, Run, Signal, SlotId, SourceColumns, Values};
use penstock_progress::BoundedDelay;
use penstock_progress::watermark::min_max;
use penstock_queue::log::Work;
use penstock_scheduler::Profile;
use penstock_scheduler::profile::Counter;
use penstock_scheduler::table::Pending;

use crate::clock::now_ns;
use crate::engine::bell::Bell;
use crate::error::RunError;
use crate::feed::{Fed, FeedEnd};
use crate::query::state::State;
use crate::replay::{Pacer, Replaying};

/// Time between two latency markers.
const MARKER_NS: u64 = 50_000_000;
/// Time between two arrival marks.
const ARRIVAL_NS: u64 = 1_000_000;

/// Event time of a source.
pub(super) struct Clock {
    /// The time column: its name and number in the schema.
    pub(super) name: String,
    pub(super) column: usize,
    /// Where times stand as 64 bits: the column's own slot, or another when they are narrower.
    pub(super) slot: SlotId,
    /// Where the watermark before each row is put, in runs that may hold a late row.
    pub(super) watermark_slot: SlotId,
    pub(super) progress: BoundedDelay,
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
    /// Nothing now: whoever brings a batch wakes the task.
    Nothing,
    /// Nothing before that time.
    Until(u64),
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
    batches: u64,
    rows: u64,
    /// Rows of the batch at hand that are still to come, from here, and how many of them now.
    next: usize,
    end: usize,
    due: usize,
    /// What is added to the times of the batch.
    offset: i64,
    arrived_ns: u64,
    /// Rows of a replay that are due.
    waiting: Arc<Counter>,
    pub(super) profile: Arc<Profile>,
    before: Vec<i64>,
    next_marker_ns: u64,
    next_arrival_ns: u64,
}

impl Source {
    pub(super) fn new(
        columns: SourceColumns,
        clock: Option<Clock>,
        rows_per_run: usize,
        mut intake: Intake,
        begin: Arc<AtomicBool>,
    ) -> Self {
        let mut pacer = None;
        if let Intake::Replay(replaying) = &mut intake {
            pacer = replaying.pacer();
            replaying.round_ticks = clock.as_ref().map_or(0, |clock| clock.round_ticks(&columns, replaying));
        }
        Self {
            columns,
            clock,
            rows_per_run,
            intake,
            pacer,
            begin,
            batches: 0,
            rows: 0,
            next: 0,
            end: 0,
            due: 0,
            offset: 0,
            arrived_ns: 0,
            waiting: Arc::default(),
            profile: Arc::default(),
            before: Vec::new(),
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

    /// When the rows of the last run arrived.
    pub(super) fn arrived_ns(&self) -> u64 {
        self.arrived_ns
    }

    fn open(&mut self, run: &mut Run, batch: &RecordBatch, query: &State) -> Result<(), RunError> {
        run.open(&self.columns, batch).map_err(|error| RunError::Batch { number: self.batches, error })?;
        self.batches += 1;
        query.account.batches.add(1);
        (self.next, self.end, self.due) = (0, batch.num_rows(), batch.num_rows());
        Ok(())
    }

    /// Looks for rows, in the batch at hand and behind it.
    pub(super) fn poll(&mut self, run: &mut Run, query: &State) -> Result<Poll, RunError> {
        if !self.begin.load(Ordering::Acquire) {
            return Ok(if query.is_draining() { Poll::Ended } else { Poll::Nothing });
        }
        loop {
            if self.next < self.end {
                return Ok(self.pace(query));
            }
            // What was borrowed from the batch is let go of before anybody waits for the next one.
            run.close();
            match &mut self.intake {
                Intake::Feed(feed) => match feed.take() {
                    Fed::Batch(arrived) => {
                        self.arrived_ns = arrived.arrived_ns;
                        self.open(run, &arrived.batch, query)?;
                    }
                    Fed::Nothing if query.is_draining() => return Ok(Poll::Ended),
                    Fed::Nothing => return Ok(Poll::Nothing),
                    Fed::Ended => return Ok(Poll::Ended),
                    Fed::Failed(error) => return Err(RunError::Outside { what: "source", error }),
                },
                Intake::Replay(replaying) => match replaying.next() {
                    Some((batch, offset)) if !query.is_draining() => {
                        self.offset = offset;
                        self.arrived_ns = now_ns();
                        self.open(run, &batch, query)?;
                    }
                    _ => return Ok(Poll::Ended),
                },
            }
        }
    }

    /// How many rows of the batch at hand are due.
    fn pace(&mut self, query: &State) -> Poll {
        let left = self.end - self.next;
        self.waiting.set(left as u64);
        let Some(pacer) = &mut self.pacer else { return Poll::Rows };
        if query.is_draining() {
            return Poll::Ended;
        }
        let due = pacer.due(now_ns());
        self.waiting.set(due);
        query.account.backlog_rows.set(due);
        query.account.slipped_ns.set(pacer.slipped_ns());
        let worth = pacer.slice_rows().min(left as u64);
        self.due = left.min(usize::try_from(due).unwrap_or(usize::MAX));
        if due < worth { Poll::Until(pacer.due_ns(worth)) } else { Poll::Rows }
    }

    /// Begins the next run of the batch, of at most `limit` rows. How many it has.
    pub(super) fn next_run(&mut self, run: &mut Run, limit: usize) -> Result<usize, RunError> {
        let started = now_ns();
        let (start, len) = (self.next, self.rows_per_run.min(self.end - self.next).min(self.due).min(limit));
        self.next += len;
        run.begin(&self.columns, start, len);
        if let Some(clock) = &mut self.clock {
            if let Some(null) = run.batch().first_null(clock.column, start, len) {
                return Err(RunError::NullTime { column: clock.name.clone(), row: self.rows + null as u64 });
            }
            clock.observe(run, self.offset, &mut self.before);
        }
        if let Some(pacer) = &mut self.pacer {
            self.due -= len;
            self.arrived_ns = pacer.due_ns(len as u64);
            pacer.take(len as u64);
        }
        self.rows += len as u64;
        self.profile.record(len, len, now_ns() - started);
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
        let latest = self.clock.as_ref().map_or(penstock_progress::NEVER, |clock| clock.progress.latest());
        let arrival = arrival.then_some(Signal::Arrival { at_ns: self.arrived_ns, latest });
        (arrival, marker.then_some(Signal::Marker { sent_ns: self.arrived_ns }))
    }
}

/// Rows of a replay that were due when it was looked at last; a timer wakes the task for the next ones.
struct Replayed(Arc<Counter>);

impl Pending for Replayed {
    fn work(&self) -> Work {
        Work { rows: self.0.get(), signals: 0 }
    }
}

impl Clock {
    fn observe(&mut self, run: &mut Run, offset: i64, before: &mut Vec<i64>) {
        run.ready(&[self.column]);
        if offset != 0 {
            let mut moved = run.scratch(Physical::I64);
            let times = run.column(self.column).fixed::<i64>();
            moved.refill().extend(times.iter().map(|time| time.saturating_add(offset)));
            run.put(self.column, moved);
        }
        if self.slot != self.column {
            let mut wide = run.scratch(Physical::I64);
            widen(run.column(self.column), wide.refill());
            run.put(self.slot, wide);
        }
        let times = run.column(self.slot).fixed::<i64>();
        let Some(range) = min_max(times) else { return };
        let behind = self.progress.observe(times, range, before);
        run.note_range(self.slot, range);
        if behind {
            let mut marks = run.scratch(Physical::I64);
            std::mem::swap(marks.refill(), before);
            run.put(self.watermark_slot, marks);
        }
    }

    /// The time from the beginning of one round to that of the next: that of the data, and a tick.
    fn round_ticks(&self, columns: &SourceColumns, replaying: &Replaying) -> i64 {
        let mut range: Option<(i64, i64)> = None;
        let mut run = Run::new();
        for field in columns.schema().fields() {
            run.add_slot(Physical::of(field.data_type()).expect("types are checked when the plan is built"));
        }
        for batch in replaying.batches() {
            // A batch that does not fit is refused when its turn comes.
            if run.open(columns, batch).is_err() {
                continue;
            }
            run.begin(columns, 0, batch.num_rows());
            run.ready(&[self.column]);
            if let Values::I64(times) = run.column(self.column).values
                && let Some((low, high)) = min_max(times)
            {
                range = Some(range.map_or((low, high), |(least, most)| (least.min(low), most.max(high))));
            }
        }
        range.map_or(0, |(low, high)| high.saturating_sub(low).saturating_add(1))
    }
}

fn widen(column: Column<'_>, to: &mut Vec<i64>) {
    match column.values {
        Values::I8(times) => to.extend(times.iter().map(|&time| i64::from(time))),
        Values::I16(times) => to.extend(times.iter().map(|&time| i64::from(time))),
        Values::I32(times) => to.extend(times.iter().map(|&time| i64::from(time))),
        Values::U8(times) => to.extend(times.iter().map(|&time| i64::from(time))),
        Values::U16(times) => to.extend(times.iter().map(|&time| i64::from(time))),
        Values::U32(times) => to.extend(times.iter().map(|&time| i64::from(time))),
        _ => unreachable!("a time column is an integer of at most 64 bits"),
    }
}
