//! Tumbling windows: half-open, aligned to the epoch, floor division below zero.
//!
//! Windows are known by their index, `floor(time / size)`, not by their bounds: an index never
//! overflows, and a window is over iff its index lies below that of the watermark.

/// Windows of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tumbling {
    size: i64,
}

impl Tumbling {
    /// Windows of `size` ticks; `None` unless `size` is positive.
    pub fn new(size: i64) -> Option<Self> {
        (size > 0).then_some(Self { size })
    }

    /// Ticks of one window.
    pub fn size(self) -> i64 {
        self.size
    }

    /// The window that `time` belongs to.
    #[inline]
    pub fn index(self, time: i64) -> i64 {
        time.div_euclid(self.size)
    }

    /// Start and end of a window. A bound that no time can reach is given as the last time there is.
    pub fn bounds(self, index: i64) -> (i64, i64) {
        let start = i128::from(index) * i128::from(self.size);
        let clamp = |time: i128| time.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
        (clamp(start), clamp(start + i128::from(self.size)))
    }

    /// Whether the watermark has reached the end of the window.
    #[inline]
    pub fn is_over(self, index: i64, watermark: i64) -> bool {
        index < self.index(watermark)
    }

    /// Writes the window of each time. Neighbours mostly share one, so few are divided.
    pub fn indices(self, times: &[i64], out: &mut Vec<i64>) {
        out.clear();
        let mut index = 0;
        let (mut start, mut last) = (i64::MAX, i64::MIN); // no time lies in between yet
        out.extend(times.iter().map(|&time| {
            if time < start || time > last {
                index = self.index(time);
                let (from, to) = self.bounds(index);
                // The last time of a window; at the upper limit the clamped end is itself a member.
                let whole = i128::from(index) * i128::from(self.size) + i128::from(self.size);
                (start, last) = (from, if whole > i128::from(i64::MAX) { i64::MAX } else { to - 1 });
            }
            index
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn edges() {
        let windows = Tumbling::new(10).unwrap();
        for (time, start) in [(0, 0), (9, 0), (10, 10), (-1, -10), (-10, -10), (-11, -20)] {
            assert_eq!(windows.bounds(windows.index(time)), (start, start + 10), "time {time}");
        }
        assert!(!windows.is_over(0, 9));
        assert!(windows.is_over(0, 10));
        assert_eq!(windows.bounds(windows.index(i64::MAX)).1, i64::MAX);
        assert_eq!(windows.bounds(windows.index(i64::MIN)).0, i64::MIN);
        assert_eq!(Tumbling::new(0), None);
    }

    fn any_time() -> impl Strategy<Value = i64> {
        prop_oneof![any::<i64>(), -50_i64..50, Just(i64::MAX), Just(i64::MIN), i64::MAX - 20..=i64::MAX]
    }

    proptest! {
        #[test]
        fn every_time_lies_in_its_window(time in any_time(), size in prop_oneof![1_i64..100, 1..=i64::MAX]) {
            let windows = Tumbling::new(size).unwrap();
            let index = i128::from(windows.index(time));
            let start = index * i128::from(size);
            prop_assert!(start <= i128::from(time) && i128::from(time) < start + i128::from(size));
        }

        #[test]
        fn over_means_the_watermark_reached_the_end(time in any_time(), mark in any_time(), size in 1_i64..1000) {
            let windows = Tumbling::new(size).unwrap();
            let index = windows.index(time);
            let end = i128::from(index) * i128::from(size) + i128::from(size);
            prop_assert_eq!(windows.is_over(index, mark), end <= i128::from(mark));
        }

        #[test]
        fn indices_of_many_are_those_of_each(
            times in prop::collection::vec(any_time(), 0..50),
            size in prop_oneof![1_i64..100, 1..=i64::MAX],
        ) {
            let windows = Tumbling::new(size).unwrap();
            let mut indices = Vec::new();
            windows.indices(&times, &mut indices);
            let each: Vec<i64> = times.iter().map(|&time| windows.index(time)).collect();
            prop_assert_eq!(indices, each);
        }
    }
}
