//! Where rows come in: batches are cut into runs, and event time is read off them.

use arrow_array::RecordBatch;
use penstock_memory::{Column, Physical, Run, SlotId, SourceColumns, Values};
use penstock_progress::BoundedDelay;
use penstock_progress::watermark::min_max;
use penstock_scheduler::Profile;

use crate::error::RunError;

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

/// The head of the first chain.
pub(super) struct Source {
    columns: SourceColumns,
    clock: Option<Clock>,
    rows_per_run: usize,
    batches: u64,
    rows: u64,
    pub(super) profile: Profile,
    before: Vec<i64>,
}

/// What is left of a batch.
pub(super) struct Runs {
    next: usize,
    rows: usize,
}

impl Source {
    pub(super) fn new(columns: SourceColumns, clock: Option<Clock>, rows_per_run: usize) -> Self {
        Self {
            columns,
            clock,
            rows_per_run,
            batches: 0,
            rows: 0,
            profile: Profile::default(),
            before: Vec::new(),
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
    pub(super) fn open(&mut self, run: &mut Run, batch: &RecordBatch) -> Result<Runs, RunError> {
        run.open(&self.columns, batch).map_err(|error| RunError::Batch { number: self.batches, error })?;
        self.batches += 1;
        Ok(Runs { next: 0, rows: batch.num_rows() })
    }

    /// Begins the next run of the batch; false when none is left.
    pub(super) fn next_run(&mut self, run: &mut Run, runs: &mut Runs) -> Result<bool, RunError> {
        let (start, len) = (runs.next, self.rows_per_run.min(runs.rows - runs.next));
        if len == 0 {
            return Ok(false);
        }
        runs.next += len;
        run.begin(&self.columns, start, len);
        if let Some(clock) = &mut self.clock {
            if let Some(null) = run.batch().first_null(clock.column, start, len) {
                return Err(RunError::NullTime { column: clock.name.clone(), row: self.rows + null as u64 });
            }
            clock.observe(run, &mut self.before);
        }
        self.rows += len as u64;
        Ok(true)
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
