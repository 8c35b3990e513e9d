//! Decides which rows are late, and for which of their windows.
//!
//! A row is judged by the watermark of its own source just before it, and by the closed windows. So the decision
//! depends neither on runs nor on how far the operator lags the source.

use std::sync::Arc;

use penstock_memory::{Column, Run};
use penstock_progress::aligned::WindowNumber;
use penstock_progress::watermark::{NEVER, min_max};

use super::GridWindows;
use crate::windows::keyed::KeyedState;

/// Where a row counts that is late for some of its windows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Odd {
    /// The first window that it corrects.
    from: WindowNumber,
    /// The first window that it is on time for.
    first: WindowNumber,
    pane: i64,
    row: u32,
}

impl Odd {
    fn place(self) -> (WindowNumber, WindowNumber, i64) {
        (self.from, self.first, self.pane)
    }
}

/// The watermarks of the rows of a run.
#[derive(Clone, Copy)]
enum RowWatermarks<'a> {
    Same(i64),
    Each(&'a [i64]),
}

impl RowWatermarks<'_> {
    fn of(self, row: usize) -> i64 {
        match self {
            Self::Same(mark) => mark,
            Self::Each(marks) => marks[row],
        }
    }
}

/// Calls `take` for each row whose time lies below its watermark or below `settled`: the others are on time
/// everywhere.
pub(in crate::windows) fn each_below(
    times: &[i64],
    marks: Option<Column<'_>>,
    mark: i64,
    settled: i128,
    mut take: impl FnMut(usize, i64, i64),
) {
    let marks = marks.map_or(RowWatermarks::Same(mark), |column| RowWatermarks::Each(column.fixed()));
    for (row, &time) in times.iter().enumerate() {
        let mark = marks.of(row);
        if time < mark || i128::from(time) < settled {
            take(row, time, mark);
        }
    }
}

impl GridWindows {
    /// Returns the first window that a row with that watermark is on time for, and the first that it may correct.
    fn open_to(&self, mark: i64) -> (WindowNumber, WindowNumber) {
        let first = self.windows.first_window(mark).max(self.closed);
        match self.shape.spec.allowed_lateness {
            0 => (first, first),
            lateness => {
                (first, self.windows.first_window(mark.saturating_sub(lateness)).max(self.gone).min(first))
            }
        }
    }

    /// Returns the time from which on no time lies in a closed window.
    fn settled(&self) -> i128 {
        if self.closed == WindowNumber::MAX { i128::MAX } else { self.windows.end_of(self.closed - 1) }
    }

    /// Makes times and watermarks readable; returns true if any row may be late for some window.
    fn may_be_late(&self, port: usize, run: &mut Run) -> bool {
        let columns = &self.shape.spec.ports[port];
        if run.holds(columns.watermark) {
            run.ready(&[columns.time, columns.watermark]);
            return true;
        }
        let needed = self.settled().max(i128::from(run.watermark().unwrap_or(NEVER)));
        if run.range_of(columns.time).is_some_and(|(earliest, _)| i128::from(earliest) >= needed) {
            return false;
        }
        run.ready(&[columns.time]);
        let Some(range) = min_max(run.column(columns.time).fixed()) else { return false };
        run.note_range(columns.time, range);
        i128::from(range.0) < needed
    }

    fn each_below(&self, port: usize, run: &Run, take: impl FnMut(usize, i64, i64)) {
        let columns = &self.shape.spec.ports[port];
        let marks = run.holds(columns.watermark).then(|| run.column(columns.watermark));
        let mark = run.watermark().unwrap_or(NEVER);
        each_below(run.column(columns.time).fixed(), marks, mark, self.settled(), take);
    }

    /// Lists the rows that are late for all of their windows.
    pub(super) fn list_late(&self, port: usize, run: &mut Run, rows: &mut Vec<u32>) {
        rows.clear();
        if run.is_empty() || !self.may_be_late(port, run) {
            return;
        }
        self.each_below(port, run, |row, time, mark| {
            if self.open_to(mark).1 > self.windows.last_window(time) {
                rows.push(row as u32);
            }
        });
    }

    /// Removes rows from the run that are late for any of their windows, and counts them where they belong.
    pub(super) fn set_late_apart(&mut self, port: usize, run: &mut Run) {
        if !self.may_be_late(port, run) {
            return;
        }
        let (mut odd, mut late, mut out) = (Vec::new(), self.late, Vec::new());
        self.each_below(port, run, |row, time, mark| {
            let (first, from) = self.open_to(mark);
            let own = self.windows.first_window(time);
            if first <= own {
                return;
            }
            out.push(row as u32);
            if from > self.windows.last_window(time) {
                late.rows += 1;
                late.by = late.by.max(Some(mark.max(self.watermark).abs_diff(time)));
            } else {
                let pane = self.windows.pane(time);
                odd.push(Odd { from: from.max(own), first, pane, row: row as u32 });
            }
        });
        self.late = late;
        if out.is_empty() {
            return;
        }
        if !odd.is_empty() {
            run.ready(&self.shape.reads[port]);
            odd.sort_unstable();
            self.take_odd(port, run, &odd);
        }
        let mut rest = run.selection();
        let mut out = out.into_iter().peekable();
        rest.extend((0..run.len() as u32).filter(|row| out.next_if_eq(row).is_none()));
        run.select(rest);
    }

    /// Consumes rows that count in some of their windows only.
    fn take_odd(&mut self, port: usize, run: &Run, odd: &[Odd]) {
        let shape = Arc::clone(&self.shape);
        for rows in odd.chunk_by(|left, right| left.place() == right.place()) {
            let Odd { from, first, pane, .. } = rows[0];
            let numbers: Vec<u32> = rows.iter().map(|odd| odd.row).collect();
            let gathered = shape.gather(port, run, &numbers);
            let rows = shape.gathered(port, &gathered);
            let last = self.windows.windows_of(pane).1;
            let new = || KeyedState::new(&shape);
            if first <= last {
                let state = self.sides.entry((first, pane)).or_insert_with(new);
                state.update(&shape, &rows, &mut self.ids);
                state.count(&mut self.total);
            }
            for window in from..first.min(last + 1) {
                let state = self.finals.entry(window).or_default().corrections.get_or_insert_with(new);
                state.update(&shape, &rows, &mut self.ids);
                state.count(&mut self.total);
            }
        }
    }
}
