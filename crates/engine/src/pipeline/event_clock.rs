//! Event time of a source: where it stands in a run, and how far it has come.

use penstock_memory::{Physical, Run, SlotId, SourceColumns, Values};
use penstock_progress::BoundedDelay;
use penstock_progress::watermark::min_max;

use super::screen::good_rows;
use super::source::{Ticking, TimeFrom};
use super::times::{place_time, widen};
use crate::replay::Replaying;

/// Event time of a source.
#[derive(Clone)]
pub(super) struct Clock {
    /// The name of the time column.
    pub(super) name: String,
    pub(super) from: TimeFrom,
    pub(super) ticking: Option<Ticking>,
    /// Where times stand as 64 bits: the column's own slot, or another when they are narrower.
    pub(super) slot: SlotId,
    /// Where the watermark before each row is put, in runs that may hold a late row.
    pub(super) watermark_slot: SlotId,
    pub(super) progress: BoundedDelay,
    /// Whether somebody else says how far event time has come, and not the rows.
    pub(super) is_told: bool,
    /// How far ahead of the watermark a time may be.
    pub(super) max_ahead: Option<i64>,
}

impl Clock {
    /// The columns of the batch that it reads.
    pub(super) fn columns(&self) -> impl Iterator<Item = usize> {
        let (time, marks) = match self.from {
            TimeFrom::Columns { time, marks, .. } => (Some(time), marks),
            TimeFrom::Marked { time } => (Some(time), None),
            TimeFrom::Wall(_) => (None, None),
        };
        time.into_iter().chain(marks.map(|(column, _)| column))
    }
}

impl Clock {
    /// Gives all rows of the run that time.
    pub(super) fn stamp(&mut self, run: &mut Run, rows: usize, time: i64) {
        let mut times = run.scratch(Physical::I64);
        times.refill::<i64>().resize(rows, time);
        run.put(self.slot, times);
        self.progress.raise(time);
        run.note_range(self.slot, (time, time));
    }

    pub(super) fn observe(
        &mut self,
        run: &mut Run,
        column: usize,
        offset: i64,
        wide: &mut Vec<i64>,
        before: &mut Vec<i64>,
    ) {
        place_time(run, column, self.slot, (offset, self.from.is_end()));
        if let TimeFrom::Columns { marks: Some((marks, _)), .. } = self.from {
            run.ready(&[marks]);
        }
        let times = run.column(self.slot).fixed::<i64>();
        let Some(range) = min_max(times) else { return };
        let behind = match self.from {
            // All rows of the batch are judged by what was said of those before it.
            from if self.is_told || matches!(from, TimeFrom::Marked { .. }) => {
                run.note_range(self.slot, range);
                run.note_watermark(self.progress.watermark());
                return;
            }
            TimeFrom::Columns { marks: Some((column, stands)), .. } => {
                let marks = run.column(column);
                wide.clear();
                widen(marks, wide);
                wide.iter_mut().for_each(|mark| *mark = mark.saturating_add(offset));
                let is_valid = |row| marks.is_valid(row);
                self.progress.observe_marks((times, range), (wide, stands), is_valid, before)
            }
            _ => self.progress.observe(times, range, before),
        };
        run.note_range(self.slot, range);
        if behind {
            let mut marks = run.scratch(Physical::I64);
            std::mem::swap(marks.refill(), before);
            run.put(self.watermark_slot, marks);
        }
    }

    /// The time from the beginning of one round to that of the next: that of the data, and a tick.
    pub(super) fn round_ticks(&self, columns: &SourceColumns, replaying: &Replaying) -> i64 {
        let (TimeFrom::Columns { time: column, .. } | TimeFrom::Marked { time: column }) = self.from else {
            return 0;
        };
        let mut range: Option<(i64, i64)> = None;
        let mut clock = self.clone();
        let mut run = Run::new();
        for field in columns.schema().fields() {
            run.add_slot(Physical::of(field.data_type()).expect("types are checked when the plan is built"));
        }
        for batch in replaying.batches() {
            // A batch that does not fit is refused when its turn comes.
            if run.open(columns, batch).is_err() {
                continue;
            }
            let rows = batch.num_rows();
            run.begin(columns, 0, rows);
            // Rows that the source is going to reject do not say how long a round is.
            let bad = clock.screen(&mut run, column, (0, rows), 0);
            if !bad.is_empty() {
                let good = good_rows(&mut run, &bad);
                run.select(good);
            }
            run.ready(&[column]);
            if let Values::I64(times) = run.column(column).values
                && let Some((low, high)) = min_max(times)
            {
                clock.progress.raise(high);
                range = Some(range.map_or((low, high), |(least, most)| (least.min(low), most.max(high))));
            }
        }
        range.map_or(0, |(low, high)| high.saturating_sub(low).saturating_add(1))
    }
}
