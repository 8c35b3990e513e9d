//! How the latency of a query changes from one period to the next.
//!
//! The gradient is the relative change of the mean between two periods: a number without a unit, 0.5 for half as
//! much again.

use crate::views::QueryView;

/// The least time between two means: ten markers, one every 50 ms. Short enough to follow a burst of seconds.
const PERIOD_NS: u64 = 500_000_000;

/// The fewest markers that make a mean. With fewer, the period goes on.
const LEAST_MARKERS: u64 = 5;

/// A period that has lasted so long with too few markers says nothing about now, nor does the one before it.
const LONGEST_PERIOD_NS: u64 = 10 * PERIOD_NS;

/// What the gradient does to a priority at most: a tenth, up or down. Enough to choose between like queries; too
/// little to put work that costs much more in front.
const WEIGHT_SHARE: f64 = 0.1;

/// The mean latency of a query, period by period.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latency {
    /// When the period began, and the counters then.
    began: Option<Began>,
    /// The mean of the period before.
    mean_ns: Option<f64>,
    gradient: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Began {
    at_ns: u64,
    sum_ns: u64,
    count: u64,
}

impl Began {
    fn now(query: &QueryView, at_ns: u64) -> Self {
        Self { at_ns, sum_ns: query.latency_sum_ns, count: query.latency_count }
    }
}

impl Latency {
    /// Looks at the counters of the query. Returns the gradient when a period has ended that has one before it.
    pub fn observe(&mut self, query: &QueryView, now_ns: u64) -> Option<f64> {
        let now = Began::now(query, now_ns);
        let Some(then) = self.began else {
            self.began = Some(now);
            return None;
        };
        let lasted_ns = now_ns.saturating_sub(then.at_ns);
        if lasted_ns < PERIOD_NS {
            return None;
        }
        let markers = now.count.saturating_sub(then.count);
        if markers < LEAST_MARKERS {
            if lasted_ns >= LONGEST_PERIOD_NS {
                *self = Self { began: Some(now), ..Self::default() };
            }
            return None;
        }
        let mean_ns = now.sum_ns.saturating_sub(then.sum_ns) as f64 / markers as f64;
        self.began = Some(now);
        let before_ns = self.mean_ns.replace(mean_ns)?;
        self.gradient = relative_change(before_ns, mean_ns);
        Some(self.gradient)
    }

    /// Returns what the priorities of the query's tasks are multiplied by: more than 1 while its latency rises.
    pub fn weight(&self) -> f64 {
        1.0 + WEIGHT_SHARE * self.gradient
    }
}

/// Returns the change from `before_ns` to `now_ns` as a share of `before_ns`, between -1 and 1. Nothing takes less than a
/// nanosecond: a mean of zero would make every gradient after it infinite or NaN.
fn relative_change(before_ns: f64, now_ns: f64) -> f64 {
    let before_ns = before_ns.max(1.0);
    ((now_ns.max(1.0) - before_ns) / before_ns).clamp(-1.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A query whose markers come every 50 ms, looked at every millisecond.
    #[derive(Default)]
    struct Marked {
        latency: Latency,
        query: QueryView,
        now_ns: u64,
    }

    impl Marked {
        /// The gradients of the periods that ended during so many markers.
        fn markers(&mut self, count: usize, latency_ns: u64) -> Vec<f64> {
            let mut gradients = Vec::new();
            for _ in 0..count {
                for _ in 0..50 {
                    gradients.extend(self.latency.observe(&self.query, self.now_ns));
                    self.now_ns += 1_000_000;
                }
                self.query.latency_sum_ns += latency_ns;
                self.query.latency_count += 1;
            }
            gradients
        }
    }

    #[test]
    fn a_gradient_has_no_unit() {
        for unit in [1_000, 1_000_000, 1_000_000_000] {
            let mut query = Marked::default();
            assert_eq!(query.markers(11, 2 * unit), [], "one period has no gradient");
            let gradients = query.markers(30, 3 * unit);
            assert_eq!(gradients.len(), 3, "{gradients:?}");
            assert!((gradients[0] - 0.5).abs() < 0.06, "{gradients:?}");
            assert_eq!(gradients[2], 0.0);
        }
    }

    #[test]
    fn the_weight_follows_the_gradient_within_a_tenth() {
        let mut query = Marked::default();
        assert_eq!(query.latency.weight(), 1.0);
        query.markers(21, 1_000_000);
        assert_eq!(query.latency.weight(), 1.0);
        query.markers(10, 1_500_000);
        assert!((1.04..1.06).contains(&query.latency.weight()), "{}", query.latency.weight());
        query.markers(10, 900_000_000);
        assert_eq!(query.latency.weight(), 1.1);
        query.markers(10, 1);
        assert!((0.9..0.92).contains(&query.latency.weight()), "{}", query.latency.weight());
    }

    #[test]
    fn few_markers_make_no_mean_and_a_long_silence_ends_the_history() {
        let mut query = Marked::default();
        query.markers(21, 1_000_000);
        query.markers(10, 2_000_000);
        assert!(query.latency.weight() > 1.0);
        query.now_ns += LONGEST_PERIOD_NS;
        assert_eq!(query.latency.observe(&query.query, query.now_ns), None);
        assert_eq!(query.latency.weight(), 1.0);
        assert_eq!(query.markers(11, 9_000_000), [], "nothing from before the silence is compared with");
    }

    #[test]
    fn a_mean_of_zero_is_no_trap() {
        assert_eq!(relative_change(0.0, 0.0), 0.0);
        assert_eq!(relative_change(0.0, 5e6), 1.0);
        assert_eq!(relative_change(5e6, 0.0), -1.0 + 1.0 / 5e6);
    }
}
