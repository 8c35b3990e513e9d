//! The watermark of a source.
//!
//! The watermark is the largest time seen minus the delay. Lateness belongs to a row and its source: a row is judged
//! by the watermark just before it, whatever its run or batch. A run whose smallest time is not below the watermark at
//! its end cannot hold a late row, and pays for a minimum and a maximum only.
//!
//! WATERMARK-1. The watermark never falls.
//! WATERMARK-2. It is the largest time, or mark, so far minus the delay; no row advances it beyond that.
//! WATERMARK-3. A run reported as free of late rows has none.

use crate::{law, laws};

/// The watermark before any row: no window is over.
pub const NEVER: i64 = i64::MIN;

/// Whether the watermark that a row carries applies to the row itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatermarkSide {
    /// After the row, which is not judged by it.
    After,
    /// Before the row, which is judged by it.
    Before,
}

/// A watermark that follows the largest time by a fixed delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundedDelay {
    delay: i64,
    largest: Option<i64>,
}

impl BoundedDelay {
    /// Creates a source without rows. `delay` is in ticks and not negative.
    pub fn new(delay: i64) -> Self {
        law!(delay >= 0, "a watermark is ahead of time by {}", delay.saturating_neg());
        Self { delay, largest: None }
    }

    /// Returns the watermark after all rows so far.
    pub fn watermark(&self) -> i64 {
        self.largest.map_or(NEVER, |largest| largest.saturating_sub(self.delay))
    }

    /// Returns the largest time so far.
    pub fn latest(&self) -> i64 {
        self.largest.unwrap_or(NEVER)
    }

    /// Observes a run of rows that carry watermarks, in arrival order: the largest so far, minus the delay, is the
    /// watermark, before or after its row. `range` is the smallest and the largest of the times; `is_valid` tells
    /// which rows carry one.
    ///
    /// Returns what [`BoundedDelay::observe`] returns.
    pub fn observe_marks(
        &mut self,
        (times, range): (&[i64], (i64, i64)),
        (marks, stands): (&[i64], WatermarkSide),
        is_valid: impl Fn(usize) -> bool,
        before: &mut Vec<i64>,
    ) -> bool {
        law!(is_range_of(range, times), "{range:?} is not the range of the times of a run");
        let earlier = *self;
        for (row, &mark) in marks.iter().enumerate() {
            if is_valid(row) {
                self.raise(mark);
            }
        }
        if laws::are_checked() {
            self.check(earlier, times, |row| is_valid(row).then(|| marks[row]), range.0 >= self.watermark());
        }
        if range.0 >= self.watermark() {
            return false; // WATERMARK-3
        }
        before.clear();
        let mut source = earlier;
        let mut behind = false;
        for (row, &time) in times.iter().enumerate() {
            let stood = source.watermark();
            if is_valid(row) {
                source.raise(marks[row]);
            }
            let watermark = if stands == WatermarkSide::Before { source.watermark() } else { stood };
            behind |= time < watermark;
            before.push(watermark);
        }
        behind
    }

    /// Returns the rows, by number, whose time or mark lies more than `most` ahead of the watermark just before them,
    /// each with that watermark. Such a row does not move the watermark. Before the first watermark no row is ahead of
    /// it.
    ///
    /// `rows` are the times in arrival order, each with the mark that it advances the watermark to, if any.
    pub fn rows_ahead(
        &self,
        rows: impl Iterator<Item = (usize, i64, Option<i64>)>,
        most: i64,
    ) -> Vec<(usize, i64)> {
        let mut source = *self;
        let mut ahead = Vec::new();
        for (row, time, mark) in rows {
            let watermark = source.watermark();
            let is_ahead = |time: i64| source.largest.is_some() && time > watermark.saturating_add(most);
            if is_ahead(time) || mark.is_some_and(is_ahead) {
                ahead.push((row, watermark));
            } else if let Some(mark) = mark {
                source.raise(mark);
            }
        }
        ahead
    }

    /// Raises the watermark to at least this value, whatever the rows were.
    pub fn advance_to(&mut self, watermark: i64) {
        self.raise(watermark.saturating_add(self.delay));
    }

    /// Raises the largest time to at least this value.
    pub fn raise(&mut self, largest: i64) {
        let earlier = *self;
        self.largest = Some(self.largest.map_or(largest, |seen| seen.max(largest)));
        if laws::are_checked() {
            self.check(earlier, &[largest], |_| Some(largest), false);
        }
    }

    /// Observes the times of a run, in arrival order; `range` is their smallest and largest.
    ///
    /// When some row lies below the watermark just before it, fills `before` with that watermark for every row and
    /// returns true. Otherwise no row of the run can be late.
    pub fn observe(&mut self, times: &[i64], range: (i64, i64), before: &mut Vec<i64>) -> bool {
        law!(is_range_of(range, times), "{range:?} is not the range of the times of a run");
        let (smallest, largest) = range;
        let earlier = *self;
        self.largest = Some(self.largest.map_or(largest, |seen| seen.max(largest)));
        if laws::are_checked() {
            self.check(earlier, times, |row| Some(times[row]), smallest >= self.watermark());
        }
        if smallest >= self.watermark() {
            return false; // WATERMARK-3
        }
        let after = |watermark: i64, time: i64| watermark.max(time.saturating_sub(self.delay));
        let first = earlier.watermark();
        // Rows are mostly in order, or nearly so: then the watermark before each of them is not needed.
        if smallest >= first && times.is_sorted() {
            return false;
        }
        let (_, behind) = times.iter().fold((first, false), |(watermark, behind), &time| {
            (after(watermark, time), behind | (time < watermark))
        });
        if behind {
            before.clear();
            let mut watermark = first;
            before.extend(times.iter().map(|&time| {
                let next = after(watermark, time);
                std::mem::replace(&mut watermark, next)
            }));
        }
        behind
    }

    /// Checks the laws row by row: `mark` is the watermark that each row carries, and `on_time` claims that no row is
    /// below the watermark just before it.
    fn check(&self, earlier: Self, times: &[i64], mark: impl Fn(usize) -> Option<i64>, on_time: bool) {
        let behind = |largest: Option<i64>| match largest {
            None => NEVER,
            Some(largest) => {
                let allowed = i128::from(largest) - i128::from(self.delay);
                allowed.max(i128::from(NEVER)) as i64
            }
        };
        let mut largest = earlier.largest;
        for (row, &time) in times.iter().enumerate() {
            let watermark = behind(largest);
            law!(
                !on_time || time >= watermark,
                "a row of {time} counts as on time after the watermark {watermark}"
            ); // WATERMARK-3
            largest = largest.max(mark(row));
        }
        let (before, after, allowed) = (earlier.watermark(), self.watermark(), behind(largest));
        law!(after >= before, "the watermark of a source falls from {before} to {after}"); // WATERMARK-1
        law!(
            after == allowed,
            "rows advance the watermark of a source to {after}, its delay allows {allowed}"
        ); // WATERMARK-2
    }
}

/// Returns true if no time lies outside the range, and there is a row at both ends of it.
fn is_range_of((smallest, largest): (i64, i64), times: &[i64]) -> bool {
    times.iter().min() == Some(&smallest) && times.iter().max() == Some(&largest)
}

/// Returns the smallest and the largest of the times.
pub fn min_max(times: &[i64]) -> Option<(i64, i64)> {
    // Several pairs in parallel: a single pair would be one dependency chain through all rows.
    const LANES: usize = 8;
    let first = *times.first()?;
    let (mut smallest, mut largest) = ([first; LANES], [first; LANES]);
    let chunks = times.chunks_exact(LANES);
    for &time in chunks.remainder() {
        (smallest[0], largest[0]) = (smallest[0].min(time), largest[0].max(time));
    }
    for chunk in chunks {
        for lane in 0..LANES {
            smallest[lane] = smallest[lane].min(chunk[lane]);
            largest[lane] = largest[lane].max(chunk[lane]);
        }
    }
    smallest.into_iter().min().zip(largest.into_iter().max())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_time() -> impl Strategy<Value = i64> {
        prop_oneof![4 => -100_i64..100, 1 => any::<i64>(), 1 => Just(i64::MIN), 1 => Just(i64::MAX)]
    }

    /// Creates a source with a delay of 2 that has seen a row of 10.
    fn at_ten() -> BoundedDelay {
        BoundedDelay { delay: 2, largest: Some(10) }
    }

    #[test]
    #[cfg_attr(debug_assertions, should_panic(expected = "the watermark of a source falls from 8 to 5"))]
    fn a_watermark_that_falls_is_found_out() {
        BoundedDelay { largest: Some(7), ..at_ten() }.check(at_ten(), &[], |_| None, false);
    }

    #[test]
    #[cfg_attr(
        debug_assertions,
        should_panic(expected = "the watermark of a source to 9, its delay allows 8")
    )]
    fn a_watermark_that_is_ahead_of_its_delay_is_found_out() {
        BoundedDelay { largest: Some(11), ..at_ten() }.check(at_ten(), &[9], |_| Some(9), true);
    }

    #[test]
    #[cfg_attr(
        debug_assertions,
        should_panic(expected = "a row of 9 counts as on time after the watermark 10")
    )]
    fn a_row_that_was_passed_is_found_out() {
        BoundedDelay { largest: Some(12), ..at_ten() }.check(
            at_ten(),
            &[12, 9],
            |row| Some([12, 9][row]),
            true,
        );
    }

    #[test]
    #[cfg_attr(debug_assertions, should_panic(expected = "(3, 4) is not the range of the times of a run"))]
    fn a_range_that_is_too_narrow_is_found_out() {
        BoundedDelay::new(0).observe(&[3, 5, 4], (3, 4), &mut Vec::new());
    }

    #[test]
    #[cfg_attr(debug_assertions, should_panic(expected = "ahead of time by 1"))]
    fn a_delay_below_nothing_is_found_out() {
        BoundedDelay::new(-1);
    }

    #[test]
    fn a_row_that_is_too_far_ahead_is_found_and_moves_nothing() {
        let times =
            |times: &'static [i64]| times.iter().enumerate().map(|(row, &time)| (row, time, Some(time)));
        // The watermark is 8, so 18 is the limit.
        assert_eq!(at_ten().rows_ahead(times(&[18, 27, 25, 100]), 10), [(1, 16), (3, 23)]);
        assert_eq!(at_ten().rows_ahead(times(&[19, 18]), 10), [(0, 8)]);
        // The first row defines where time begins.
        assert_eq!(BoundedDelay::new(2).rows_ahead(times(&[1_000, 1_009, 1_008]), 10), [(1, 998)]);
        // A mark that is too far ahead is treated like such a time.
        let marks = [(0, 9, Some(30)), (1, 30, None), (2, 9, None)].into_iter();
        assert_eq!(at_ten().rows_ahead(marks, 10), [(0, 8), (1, 8)]);
    }

    #[test]
    fn an_imposed_watermark_is_reached_and_not_passed() {
        let mut source = at_ten();
        source.advance_to(5);
        assert_eq!(source.watermark(), 8);
        source.advance_to(20);
        assert_eq!((source.watermark(), source.latest()), (20, 22));
    }

    proptest! {
        /// A carried watermark before its row judges that row; one after it judges the next.
        #[test]
        fn a_mark_applies_before_or_after_its_row(
            rows in prop::collection::vec((any_time(), prop::option::of(-100_i64..100)), 1..40),
            first in prop::option::of(-100_i64..100),
            delay in 0_i64..5,
        ) {
            let (times, marks): (Vec<i64>, Vec<i64>) =
                rows.iter().map(|&(time, mark)| (time, mark.unwrap_or(7))).unzip();
            let range = min_max(&times).expect("there are rows");
            for stands in [WatermarkSide::Before, WatermarkSide::After] {
                let mut source = BoundedDelay { delay, largest: first };
                let mut before = Vec::new();
                let is_valid = |row: usize| rows[row].1.is_some();
                let behind = source.observe_marks((&times, range), (&marks, stands), is_valid, &mut before);
                let mut largest = first;
                let mut judges = Vec::new();
                for &(_, mark) in &rows {
                    let stood = largest;
                    largest = largest.max(mark);
                    let judge = if stands == WatermarkSide::Before { largest } else { stood };
                    judges.push(judge.map_or(NEVER, |judge| judge - delay));
                }
                prop_assert_eq!(source.largest, largest);
                let is_late = times.iter().zip(&judges).any(|(time, judge)| time < judge);
                prop_assert_eq!(behind, is_late);
                if behind {
                    prop_assert_eq!(before, judges);
                }
            }
        }

        #[test]
        fn extremes_are_those_of_the_iterator(times in prop::collection::vec(any_time(), 0..40)) {
            prop_assert_eq!(min_max(&times), times.iter().copied().min().zip(times.iter().copied().max()));
        }

        /// Cutting the same rows differently changes neither the watermark nor which rows may be late.
        #[test]
        fn batches_do_not_matter(
            times in prop::collection::vec(any_time(), 0..60),
            cuts in prop::collection::vec(0_usize..60, 0..8),
            delay in prop_oneof![Just(0_i64), 1_i64..50, Just(i64::MAX)],
        ) {
            let mut expected = Vec::new();
            let mut largest: Option<i64> = None;
            for &time in &times {
                expected.push(largest.map_or(NEVER, |largest| largest.saturating_sub(delay)));
                largest = Some(largest.map_or(time, |seen| seen.max(time)));
            }

            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(times.len())).collect();
            cuts.extend([0, times.len()]);
            cuts.sort_unstable();
            let mut source = BoundedDelay::new(delay);
            for piece in cuts.windows(2) {
                let range = piece[0]..piece[1];
                let mut before = Vec::new();
                let Some(extremes) = min_max(&times[range.clone()]) else { continue };
                if source.observe(&times[range.clone()], extremes, &mut before) {
                    prop_assert_eq!(&before, &expected[range]);
                } else {
                    for row in range {
                        prop_assert!(times[row] >= expected[row], "a row below its watermark was missed");
                    }
                }
            }
            prop_assert_eq!(source.watermark(), largest.map_or(NEVER, |largest| largest.saturating_sub(delay)));
        }
    }
}
