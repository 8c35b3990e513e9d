//! Windows on a grid: tumbling and sliding, half-open, with an offset from the epoch, floor division below zero.
//!
//! Window `k` is `[offset + k * slide, offset + k * slide + size)`. Windows are identified by their number, not by
//! their bounds, and numbers are wide enough for every time. Time is cut into *panes*, the longest intervals of which
//! every window contains all or nothing; a tumbling window is one pane.

/// The number of a window.
pub type WindowNumber = i128;

/// Windows of one size, one every `slide` ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aligned {
    size: i64,
    slide: i64,
    /// At least 0, below `slide`.
    offset: i64,
    pane: i64,
    /// Start of a pane, at least 0 and below `pane`: 64 bits hold the number of every pane that contains a time.
    pane_offset: i64,
}

fn greatest_common_divisor(mut a: i64, mut b: i64) -> i64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

fn clamp(time: i128) -> i64 {
    time.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

impl Aligned {
    /// Creates windows of `size` ticks, one every `slide` ticks, shifted by `offset`; `None` unless `0 < slide <=
    /// size`.
    pub fn new(size: i64, slide: i64, offset: i64) -> Option<Self> {
        if slide <= 0 || slide > size {
            return None;
        }
        let (offset, pane) = (offset.rem_euclid(slide), greatest_common_divisor(size, slide));
        Some(Self { size, slide, offset, pane, pane_offset: offset % pane })
    }

    /// Creates adjacent windows.
    pub fn tumbling(size: i64, offset: i64) -> Option<Self> {
        Self::new(size, size, offset)
    }

    /// Returns true if each time is in one window only.
    pub fn is_tumbling(self) -> bool {
        self.size == self.slide
    }

    /// Returns the ticks of one window.
    pub fn size(self) -> i64 {
        self.size
    }

    /// Returns the ticks from one window to the next.
    pub fn slide(self) -> i64 {
        self.slide
    }

    /// Returns the offset from the epoch to the first window at or after it.
    pub fn offset(self) -> i64 {
        self.offset
    }

    /// Returns the panes of one window.
    pub fn panes_per_window(self) -> i64 {
        self.size / self.pane
    }

    /// Returns the panes from one window to the next.
    pub fn panes_per_slide(self) -> i64 {
        self.slide / self.pane
    }

    fn since_origin(self, time: i64) -> i128 {
        i128::from(time) - i128::from(self.offset)
    }

    /// Returns the last window that contains `time`.
    #[inline]
    pub fn last_window(self, time: i64) -> WindowNumber {
        self.since_origin(time).div_euclid(i128::from(self.slide))
    }

    /// Returns the first window that contains `time`; also the first that is not over at watermark `time`.
    #[inline]
    pub fn first_window(self, time: i64) -> WindowNumber {
        (self.since_origin(time) - i128::from(self.size)).div_euclid(i128::from(self.slide)) + 1
    }

    /// Returns true if the watermark has reached the end of the window.
    #[inline]
    pub fn is_over(self, window: WindowNumber, watermark: i64) -> bool {
        window < self.first_window(watermark)
    }

    fn start_of(self, window: WindowNumber) -> i128 {
        i128::from(self.offset) + window * i128::from(self.slide)
    }

    /// Returns the first tick after the window, whether a time can reach it or not.
    pub fn end_of(self, window: WindowNumber) -> i128 {
        self.start_of(window) + i128::from(self.size)
    }

    /// Returns start and end of a window. A bound that no time can reach is given as the last representable time.
    pub fn bounds(self, window: WindowNumber) -> (i64, i64) {
        let start = self.start_of(window);
        (clamp(start), clamp(self.end_of(window)))
    }

    /// Returns the last time in the window.
    pub fn last_tick(self, window: WindowNumber) -> i64 {
        clamp(self.end_of(window) - 1)
    }

    /// Returns the pane that contains `time`.
    #[inline]
    pub fn pane(self, time: i64) -> i64 {
        match self.pane_offset {
            0 => time.div_euclid(self.pane),
            offset => (i128::from(time) - i128::from(offset)).div_euclid(i128::from(self.pane)) as i64,
        }
    }

    /// Returns the number of panes between the origin of panes and that of windows.
    fn panes_before(self) -> i128 {
        i128::from((self.offset - self.pane_offset) / self.pane)
    }

    /// Returns the first and the last pane of a window, of those that can contain a time.
    pub fn panes_of(self, window: WindowNumber) -> (i64, i64) {
        let first = self.panes_before() + window * i128::from(self.panes_per_slide());
        (clamp(first), clamp(first + i128::from(self.panes_per_window()) - 1))
    }

    /// Returns the first and the last window that a pane belongs to.
    pub fn windows_of(self, pane: i64) -> (WindowNumber, WindowNumber) {
        let pane = i128::from(pane) - self.panes_before();
        let per_slide = i128::from(self.panes_per_slide());
        let first = (pane - i128::from(self.panes_per_window())).div_euclid(per_slide) + 1;
        (first, pane.div_euclid(per_slide))
    }

    /// Writes the pane of each time. Neighbours mostly share one, so few are divided.
    pub fn panes(self, times: &[i64], out: &mut Vec<i64>) {
        out.clear();
        let mut pane = 0;
        let (mut first, mut last) = (i64::MAX, i64::MIN); // no time lies in between yet
        out.extend(times.iter().map(|&time| {
            if time < first || time > last {
                pane = self.pane(time);
                let start = i128::from(self.pane_offset) + i128::from(pane) * i128::from(self.pane);
                (first, last) = (clamp(start), clamp(start + i128::from(self.pane) - 1));
            }
            pane
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_time() -> impl Strategy<Value = i64> {
        prop_oneof![any::<i64>(), -50_i64..50, Just(i64::MAX), Just(i64::MIN), i64::MAX - 20..=i64::MAX]
    }

    fn any_windows() -> impl Strategy<Value = Aligned> {
        let sizes = prop_oneof![1_i64..40, 1..=i64::MAX];
        (sizes, 1_i64..=i64::MAX, prop_oneof![-50_i64..50, any::<i64>()])
            .prop_map(|(size, slide, offset)| Aligned::new(size, (slide - 1) % size + 1, offset).unwrap())
    }

    fn holds(windows: Aligned, window: WindowNumber, time: i64) -> bool {
        let start = i128::from(windows.offset()) + window * i128::from(windows.slide());
        start <= i128::from(time) && i128::from(time) < start + i128::from(windows.size())
    }

    #[test]
    fn edges() {
        let windows = Aligned::tumbling(10, 0).unwrap();
        for (time, start) in [(0, 0), (9, 0), (10, 10), (-1, -10), (-10, -10), (-11, -20)] {
            assert_eq!(windows.bounds(windows.last_window(time)), (start, start + 10), "time {time}");
        }
        assert!(!windows.is_over(0, 9));
        assert!(windows.is_over(0, 10));
        assert_eq!(windows.bounds(windows.last_window(i64::MAX)).1, i64::MAX);
        assert_eq!(windows.bounds(windows.last_window(i64::MIN)).0, i64::MIN);
        assert_eq!((Aligned::new(0, 0, 0), Aligned::new(5, 6, 0)), (None, None));
        let sliding = Aligned::new(60, 25, -5).unwrap();
        assert_eq!((sliding.offset(), sliding.panes_per_window(), sliding.panes_per_slide()), (20, 12, 5));
        assert_eq!((sliding.first_window(20), sliding.last_window(20)), (-2, 0));
        assert_eq!(sliding.bounds(-2), (-30, 30));
    }

    proptest! {
        #[test]
        fn first_and_last_window_hold_the_time_and_their_neighbours_do_not(time in any_time(), windows in any_windows()) {
            let (first, last) = (windows.first_window(time), windows.last_window(time));
            prop_assert!(first <= last);
            prop_assert!(holds(windows, first, time) && holds(windows, last, time));
            prop_assert!(!holds(windows, first - 1, time) && !holds(windows, last + 1, time));
        }

        #[test]
        fn over_means_the_watermark_reached_the_end(time in any_time(), mark in any_time(), windows in any_windows()) {
            let window = windows.last_window(time);
            let end = i128::from(windows.offset()) + window * i128::from(windows.slide())
                + i128::from(windows.size());
            prop_assert_eq!(windows.is_over(window, mark), end <= i128::from(mark));
        }

        #[test]
        fn a_window_has_its_panes_and_no_others(time in any_time(), windows in any_windows()) {
            let pane = windows.pane(time);
            let (first, last) = windows.windows_of(pane);
            prop_assert_eq!((first, last), (windows.first_window(time), windows.last_window(time)));
            for window in [first - 1, first, (first + last) / 2, last, last + 1] {
                let ((from, to), start) = (windows.panes_of(window), windows.start_of(window));
                if start > i128::from(i64::MAX) || start + i128::from(windows.size()) <= i128::from(i64::MIN) {
                    continue; // it holds no time
                }
                prop_assert_eq!((from..=to).contains(&pane), holds(windows, window, time));
            }
        }

        #[test]
        fn panes_of_many_are_those_of_each(times in prop::collection::vec(any_time(), 0..50), windows in any_windows()) {
            let mut panes = Vec::new();
            windows.panes(&times, &mut panes);
            let each: Vec<i64> = times.iter().map(|&time| windows.pane(time)).collect();
            prop_assert_eq!(panes, each);
        }
    }
}
