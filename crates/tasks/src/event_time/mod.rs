//! Event time of a source: where the time of a row comes from, and how far the watermark has advanced.
//!
//! - `screen`: rows that a source does not take because of their time
//! - `times`: times of rows as 64 bits, whatever their column has

pub mod screen;
pub mod times;

use penstock_memory::{Physical, Run, SlotId, SourceColumns, Values};
use penstock_plan::Arrival;
use penstock_progress::watermark::min_max;
use penstock_progress::{BoundedDelay, WatermarkSide, Windows};

use arrow_array::RecordBatch;

use screen::good_rows;
use times::{place_time, widen};

/// Where the time of a row comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeFrom {
    /// A column of the batch.
    Columns {
        /// The column.
        time: usize,
        /// A column that watermarks are taken from, and what it says.
        marks: Option<(usize, WatermarkSide)>,
        /// Whether times are ends of windows, and rows a tick earlier.
        is_end: bool,
    },
    /// A column of the batch, while a function gives the watermark after each batch.
    Marked {
        /// The column.
        time: usize,
    },
    /// The wall clock.
    Wall(Arrival),
}

impl TimeFrom {
    /// Returns true if times are ends of windows, and rows a tick earlier.
    pub fn is_end(self) -> bool {
        matches!(self, Self::Columns { is_end: true, .. })
    }
}

/// How event time by arrival goes on by itself when no rows arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticking {
    /// The windows that close by it.
    pub windows: Vec<Windows>,
    /// For how long after the last row: then every window has closed.
    pub linger_us: i64,
}

impl Ticking {
    /// Returns the next time at which a window may close, after `watermark`; the last row came at `last`.
    pub fn next(&self, watermark: i64, last: i64) -> i64 {
        let of_windows = |windows: &Windows| match *windows {
            Windows::Aligned(windows) => windows.bounds(windows.first_window(watermark)).1,
            Windows::Session { gap } => last.saturating_add(gap).saturating_add(gap),
        };
        self.windows.iter().map(of_windows).min().unwrap_or(i64::MAX)
    }
}

/// Event time of a source.
#[derive(Clone)]
pub struct EventClock {
    /// The name of the time column.
    pub name: String,
    /// Where times come from.
    pub from: TimeFrom,
    /// How they go on without rows, if they do.
    pub ticking: Option<Ticking>,
    /// The slot of times as 64 bits: the column's own, or another when the column is narrower.
    pub slot: SlotId,
    /// The slot of the watermark before each row, in runs that may hold a late row.
    pub watermark_slot: SlotId,
    /// The watermark so far.
    pub progress: BoundedDelay,
    /// Whether the caller imposes the watermark, and the rows do not move it.
    pub is_imposed: bool,
    /// How far ahead of the watermark a time may be.
    pub max_ahead: Option<i64>,
}

/// Where event time goes in the runs of a lane.
#[derive(Clone, Copy)]
pub struct LaneClock {
    /// Where times come from.
    pub from: TimeFrom,
    /// The slot of times.
    pub slot: SlotId,
    /// The slot of the watermark before each row.
    pub watermark_slot: SlotId,
}

impl EventClock {
    /// Returns the columns of the batch that it reads.
    pub fn columns(&self) -> impl Iterator<Item = usize> {
        let (time, marks) = match self.from {
            TimeFrom::Columns { time, marks, .. } => (Some(time), marks),
            TimeFrom::Marked { time } => (Some(time), None),
            TimeFrom::Wall(_) => (None, None),
        };
        time.into_iter().chain(marks.map(|(column, _)| column))
    }

    /// Returns the part of it that a lane needs.
    pub fn of_lane(&self) -> LaneClock {
        LaneClock { from: self.from, slot: self.slot, watermark_slot: self.watermark_slot }
    }

    /// Gives all rows of the run that time.
    pub fn stamp(&mut self, run: &mut Run, rows: usize, time: i64) {
        let mut times = run.scratch(Physical::I64);
        times.refill::<i64>().resize(rows, time);
        run.put(self.slot, times);
        self.progress.raise(time);
        run.note_range(self.slot, (time, time));
    }

    /// Reads the times of a run, and advances the watermark by them.
    pub fn observe(
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
        let may_be_late = match self.from {
            // All rows of the batch are judged by the watermark after those before it.
            from if self.is_imposed || matches!(from, TimeFrom::Marked { .. }) => {
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
        if may_be_late {
            let mut marks = run.scratch(Physical::I64);
            std::mem::swap(marks.refill(), before);
            run.put(self.watermark_slot, marks);
        }
    }

    /// Returns the time from the beginning of one round of a replay to that of the next: the range of times in
    /// `batches`, and a tick.
    pub fn round_ticks(&self, columns: &SourceColumns, batches: &[RecordBatch]) -> i64 {
        let (TimeFrom::Columns { time: column, .. } | TimeFrom::Marked { time: column }) = self.from else {
            return 0;
        };
        let mut range: Option<(i64, i64)> = None;
        let mut clock = self.clone();
        let mut run = Run::new();
        for field in columns.schema().fields() {
            run.add_slot(Physical::of(field.data_type()).expect("types are checked when the plan is built"));
        }
        for batch in batches {
            // A batch that does not fit is refused when its turn comes.
            if run.open(columns, batch).is_err() {
                continue;
            }
            let rows = batch.num_rows();
            run.begin(columns, 0, rows);
            // Rows that the source is going to reject do not count.
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

#[cfg(test)]
mod tests {
    use penstock_progress::NEVER;

    use super::*;

    fn clock(from: TimeFrom) -> EventClock {
        EventClock {
            name: "t".to_owned(),
            from,
            ticking: None,
            slot: 0,
            watermark_slot: 1,
            progress: BoundedDelay::new(5),
            is_imposed: false,
            max_ahead: None,
        }
    }

    fn run() -> Run {
        let mut run = Run::new();
        run.add_slot(Physical::I64);
        run.add_slot(Physical::I64);
        run
    }

    #[test]
    fn stamped_rows_have_one_time_and_move_the_watermark() {
        let (mut clock, mut run) = (clock(TimeFrom::Wall(Arrival::Processing)), run());
        assert_eq!(clock.progress.watermark(), NEVER);
        run.begin_owned(3);
        clock.stamp(&mut run, 3, 40);
        assert_eq!(run.column(0).fixed::<i64>(), [40; 3]);
        assert_eq!(clock.progress.watermark(), 35);
    }

    #[test]
    fn windows_that_may_close_next_say_when_time_goes_on() {
        let windows = vec![Windows::Session { gap: 10 }];
        let ticking = Ticking { windows, linger_us: 100 };
        assert_eq!(ticking.next(0, 7), 27);
        assert_eq!(Ticking { windows: Vec::new(), linger_us: 0 }.next(0, 7), i64::MAX);
    }

    #[test]
    fn a_round_is_as_long_as_its_times_and_a_tick() {
        use std::sync::Arc;

        use arrow_array::Int64Array;

        let batch = |times: Vec<i64>| {
            RecordBatch::try_from_iter([("t", Arc::new(Int64Array::from(times)) as _)]).unwrap()
        };
        let batches = [batch(vec![3, 9]), batch(vec![5, 1])];
        let columns = SourceColumns::new(batches[0].schema(), vec![true]);
        let from = TimeFrom::Columns { time: 0, marks: None, is_end: false };
        assert_eq!(clock(from).round_ticks(&columns, &batches), 9);
        assert_eq!(clock(TimeFrom::Wall(Arrival::Ingestion)).round_ticks(&columns, &batches), 0);
    }
}
