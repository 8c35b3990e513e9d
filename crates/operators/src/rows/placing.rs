//! Assigns the rows of a run to windows, and finds late rows.
//!
//! PLACING-1. A row belongs to the windows that contain its time, except those that are over by the watermark of its
//!     own source just before it, and those that were closed. A row without any window left is late.
//! PLACING-2. Usually all rows of a run lie in the same windows; then the run is not cut, and its times are read only
//!     where the source has not stored their range.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use penstock_memory::{Run, SlotId};
use penstock_progress::aligned::WindowNumber;
use penstock_progress::watermark::{NEVER, min_max};
use penstock_progress::{Aligned, law};

use crate::contract::Late;

/// Rows of a run that go into the same windows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowRange {
    /// The first of the windows.
    pub(crate) first: WindowNumber,
    /// The last of them.
    pub(crate) last: WindowNumber,
    from: usize,
    to: usize,
}

/// A run, cut into ranges of rows that go into the same windows.
#[derive(Default)]
pub(crate) struct Placed {
    /// The ranges.
    pub(crate) spans: Vec<WindowRange>,
    /// The rows of all ranges, one range after the other; empty when one range has all rows.
    order: Vec<u32>,
    cut: bool,
}

impl Placed {
    /// Returns the rows of a range; `None` for all rows of the run.
    pub(crate) fn rows(&self, span: WindowRange) -> Option<&[u32]> {
        self.cut.then(|| &self.order[span.from..span.to])
    }

    /// Sorts rows by range; `to` holds the counts of the ranges.
    fn sort(&mut self, of_row: &[u32]) {
        let mut end = 0;
        for span in &mut self.spans {
            (span.from, end) = (end, end + span.to);
            span.to = span.from;
        }
        self.order.resize(end, 0);
        for (row, &span) in of_row.iter().enumerate().filter(|(_, span)| **span != LATE) {
            let span = &mut self.spans[span as usize];
            self.order[span.to] = row as u32;
            span.to += 1;
        }
        self.cut = true;
    }

    /// Keeps only the rows for which `keep` returns true.
    pub(crate) fn retain(&mut self, rows: usize, keep: impl Fn(usize) -> bool) {
        if !self.cut {
            self.cut = true;
            self.order.clear();
            self.order.extend(0..rows as u32);
        }
        let mut kept = 0;
        for span in &mut self.spans {
            let start = kept;
            for place in span.from..span.to {
                let row = self.order[place];
                self.order[kept] = row;
                kept += usize::from(keep(row as usize));
            }
            (span.from, span.to) = (start, kept);
        }
        self.order.truncate(kept);
        self.spans.retain(|span| span.from < span.to);
    }
}

/// The windows of an operator, and which of them are closed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placing {
    windows: Aligned,
    /// Windows below this number are closed.
    closed_below: WindowNumber,
    /// The watermark with the same effect.
    closed_by: i64,
    /// A lower bound of the watermark after the operator (CONTRACT-4). Only kept where laws are checked.
    left: i64,
}

/// The range of a late row.
const LATE: u32 = u32::MAX;

impl Placing {
    /// Starts with all windows open.
    pub(crate) fn new(windows: Aligned) -> Self {
        Self { windows, closed_below: WindowNumber::MIN, closed_by: NEVER, left: NEVER }
    }

    /// Returns the number below which windows are closed.
    pub(crate) fn closed_below(&self) -> WindowNumber {
        self.closed_below
    }

    /// Returns the watermark with the same effect.
    pub(crate) fn closed_by(&self) -> i64 {
        self.closed_by
    }

    /// Stores the watermark after the operator, before it advances: no result waits to leave.
    pub(crate) fn note_left(&mut self) {
        self.left = self.closed_by;
    }

    /// Checks that results of that window may leave now.
    pub(crate) fn check_result(&self, window: WindowNumber) {
        let time = self.windows.last_tick(window);
        law!(time >= self.left, "a window of {time} comes after the watermark {}", self.left); // CONTRACT-4
    }

    /// Closes the windows that are over by that watermark.
    pub(crate) fn advance(&mut self, watermark: i64) {
        law!(watermark >= self.closed_by, "windows go back from {} to {watermark}", self.closed_by); // CONTRACT-4
        self.close_below(self.windows.first_window(watermark), watermark);
    }

    /// Closes the windows up to and including `last`; returns the watermark with the same effect.
    pub(crate) fn close_through(&mut self, last: WindowNumber) -> i64 {
        let watermark = self.windows.bounds(last).1;
        self.close_below(last + 1, watermark);
        watermark
    }

    /// Closes the windows below that number, with the effect of `watermark`.
    pub(crate) fn close_below(&mut self, number: WindowNumber, watermark: i64) {
        self.closed_below = self.closed_below.max(number);
        self.closed_by = self.closed_by.max(watermark);
    }

    /// Returns true if no window was closed yet.
    pub(crate) fn is_fresh(&self) -> bool {
        self.closed_below == WindowNumber::MIN
    }

    /// Cuts a run by window (PLACING-1, PLACING-2). The late rows are in no range.
    pub(crate) fn place(&self, run: &mut Run, time: SlotId, watermark: SlotId, placed: &mut Placed) -> Late {
        placed.spans.clear();
        placed.order.clear();
        placed.cut = false;
        if run.is_empty() {
            return Late::default();
        }
        let floor = self.floor(run, watermark);
        if let Some((first, last)) = self.common_windows(run, time, floor) {
            placed.spans.push(WindowRange { first, last, from: 0, to: run.len() });
            return Late::default();
        }
        self.cut(run, time, watermark, placed)
    }

    /// Lists the late rows of a run.
    pub(crate) fn late_rows(&self, run: &mut Run, time: SlotId, watermark: SlotId, rows: &mut Vec<u32>) {
        rows.clear();
        let mut placed = Placed::default();
        self.place(run, time, watermark, &mut placed);
        if placed.cut {
            let mut on_time = vec![false; run.len()];
            placed.order.iter().for_each(|&row| on_time[row as usize] = true);
            rows.extend((0..run.len() as u32).filter(|&row| !on_time[row as usize]));
        }
    }

    /// Returns the first window that is neither over nor closed for some row.
    fn floor(&self, run: &mut Run, watermark: SlotId) -> WindowNumber {
        let highest = if run.holds(watermark) {
            run.ready(&[watermark]);
            min_max(run.column(watermark).fixed()).map(|(_, highest)| highest)
        } else {
            run.watermark()
        };
        highest.map_or(self.closed_below, |mark| self.closed_below.max(self.windows.first_window(mark)))
    }

    /// Returns the windows that every row of the run belongs to, if they are the same.
    fn common_windows(
        &self,
        run: &mut Run,
        time: SlotId,
        floor: WindowNumber,
    ) -> Option<(WindowNumber, WindowNumber)> {
        let windows = self.windows;
        let of_range = |(earliest, latest): (i64, i64)| {
            let (first, last) = (windows.first_window(earliest), windows.last_window(earliest));
            let common = (first, last) == (windows.first_window(latest), windows.last_window(latest));
            (common && first >= floor).then_some((first, last))
        };
        run.range_of(time).and_then(of_range).or_else(|| {
            run.ready(&[time]);
            min_max(run.column(time).fixed()).and_then(of_range)
        })
    }

    fn cut(&self, run: &Run, time: SlotId, watermark: SlotId, placed: &mut Placed) -> Late {
        let times = run.column(time).fixed::<i64>();
        let marks: Option<&[i64]> = run.holds(watermark).then(|| run.column(watermark).fixed());
        let mark = |row: usize| marks.map_or(run.watermark(), |marks| Some(marks[row]));
        let mut panes = Vec::new();
        self.windows.panes(times, &mut panes);
        let mut mark_panes = Vec::new();
        match (marks, run.watermark()) {
            (Some(marks), _) => self.windows.panes(marks, &mut mark_panes),
            // A pane's number represents its times here; without a watermark all rows share one number.
            (None, mark) => mark_panes.resize(times.len(), mark.map_or(0, |mark| self.windows.pane(mark))),
        }
        let mut late = Late::default();
        let mut numbers: HashMap<(WindowNumber, WindowNumber), u32, RandomState> = HashMap::default();
        let mut of_row = Vec::with_capacity(times.len());
        let mut previous = None;
        for row in 0..times.len() {
            let here = (panes[row], mark_panes[row]);
            let span = match previous {
                Some((same, span)) if same == here => span,
                _ => {
                    let (first, last) = self.windows.windows_of(here.0);
                    let over = mark(row).map_or(WindowNumber::MIN, |_| self.windows.windows_of(here.1).0);
                    let first = first.max(over).max(self.closed_below);
                    if first > last {
                        LATE
                    } else {
                        *numbers.entry((first, last)).or_insert_with(|| {
                            placed.spans.push(WindowRange { first, last, from: 0, to: 0 });
                            placed.spans.len() as u32 - 1
                        })
                    }
                }
            };
            previous = Some((here, span));
            of_row.push(span);
            if span == LATE {
                late.rows += 1;
                let by = mark(row).map_or(self.closed_by, |mark| mark.max(self.closed_by));
                late.by = late.by.max(Some(by.abs_diff(times[row])));
            } else {
                placed.spans[span as usize].to += 1;
            }
        }
        placed.sort(&of_row);
        late
    }
}

impl Late {
    /// Adds other late rows.
    pub(crate) fn add(&mut self, other: Self) {
        self.rows = self.rows.saturating_add(other.rows);
        self.by = self.by.max(other.by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_twenty() -> Placing {
        let mut placing = Placing::new(Aligned::tumbling(10, 0).expect("a size"));
        placing.advance(20);
        placing.note_left();
        placing
    }

    #[test]
    #[cfg_attr(debug_assertions, should_panic(expected = "windows go back from 20 to 19"))]
    fn windows_do_not_go_back() {
        at_twenty().advance(19);
    }

    #[test]
    #[cfg_attr(debug_assertions, should_panic(expected = "a window of 19 comes after the watermark 20"))]
    fn a_window_emitted_too_late_is_detected() {
        at_twenty().check_result(2);
        at_twenty().check_result(1);
    }
}
