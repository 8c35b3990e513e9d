//! Where rows come in: batches are cut into runs, and event time is read off them.

use std::time::Instant;

use arrow_array::RecordBatch;
use penstock_memory::{Column, Physical, Run, Signal, SlotId, SourceColumns, Values};
use penstock_progress::BoundedDelay;
use penstock_progress::watermark::min_max;
use penstock_scheduler::Profile;

use super::chain::elapsed_ns;
use crate::error::RunError;

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

/// The head of the first task.
pub(super) struct Source {
    columns: SourceColumns,
    clock: Option<Clock>,
    rows_per_run: usize,
    batches: u64,
    rows: u64,
    /// Rows of the batch at hand that are still to come, from here.
    next: usize,
    end: usize,
    ended: bool,
    pub(super) profile: Profile,
    before: Vec<i64>,
    started: Instant,
    next_marker_ns: u64,
    next_arrival_ns: u64,
}

impl Source {
    pub(super) fn new(
        columns: SourceColumns,
        clock: Option<Clock>,
        rows_per_run: usize,
        started: Instant,
    ) -> Self {
        Self {
            columns,
            clock,
            rows_per_run,
            batches: 0,
            rows: 0,
            next: 0,
            end: 0,
            ended: false,
            profile: Profile::default(),
            before: Vec::new(),
            started,
            next_marker_ns: 0,
            next_arrival_ns: 0,
        }
    }

    /// Batches taken in.
    pub(super) fn batches(&self) -> u64 {
        self.batches
    }

    /// How far event time has come.
    pub(super) fn watermark(&self) -> i64 {
        self.clock.as_ref().map_or(penstock_progress::NEVER, |clock| clock.progress.watermark())
    }

    /// Takes a batch in.
    pub(super) fn open(&mut self, run: &mut Run, batch: &RecordBatch) -> Result<(), RunError> {
        debug_assert!(!self.has_rows(), "one batch at a time");
        run.open(&self.columns, batch).map_err(|error| RunError::Batch { number: self.batches, error })?;
        self.batches += 1;
        (self.next, self.end) = (0, batch.num_rows());
        Ok(())
    }

    /// Whether rows of a batch are still to come.
    pub(super) fn has_rows(&self) -> bool {
        self.next < self.end
    }

    /// Says that no batch follows.
    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    /// Whether the input has just ended: true once.
    pub(super) fn take_end(&mut self) -> bool {
        std::mem::take(&mut self.ended)
    }

    /// Begins the next run of the batch, of at most `limit` rows; false when none is left.
    pub(super) fn next_run(&mut self, run: &mut Run, limit: usize) -> Result<bool, RunError> {
        if !self.has_rows() {
            return Ok(false);
        }
        let started = Instant::now();
        let (start, len) = (self.next, self.rows_per_run.min(self.end - self.next).min(limit));
        self.next += len;
        run.begin(&self.columns, start, len);
        if let Some(clock) = &mut self.clock {
            if let Some(null) = run.batch().first_null(clock.column, start, len) {
                return Err(RunError::NullTime { column: clock.name.clone(), row: self.rows + null as u64 });
            }
            clock.observe(run, &mut self.before);
        }
        self.rows += len as u64;
        self.profile.record(len, len, elapsed_ns(started));
        Ok(true)
    }

    /// The signals that belong behind the rows up to now: a latency marker and an arrival mark, each now and then.
    pub(super) fn marks(&mut self) -> impl Iterator<Item = Signal> + use<> {
        let now_ns = elapsed_ns(self.started);
        let is_due = |next: &mut u64, every: u64| {
            let due = now_ns >= *next;
            if due {
                *next = now_ns + every;
            }
            due
        };
        let arrival = is_due(&mut self.next_arrival_ns, ARRIVAL_NS);
        let marker = is_due(&mut self.next_marker_ns, MARKER_NS);
        let latest = self.clock.as_ref().map_or(penstock_progress::NEVER, |clock| clock.progress.latest());
        let arrival = arrival.then_some(Signal::Arrival { at_ns: now_ns, latest });
        let marker = marker.then_some(Signal::Marker { sent_ns: now_ns });
        arrival.into_iter().chain(marker)
    }
}

impl Clock {
    fn observe(&mut self, run: &mut Run, before: &mut Vec<i64>) {
        run.ready(&[self.column]);
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
