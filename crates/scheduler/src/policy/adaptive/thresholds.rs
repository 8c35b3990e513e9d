//! How much must wait for a task, or how long, before it is worth a run.
//!
//! While the latency of a query rises its thresholds rise: longer runs, fewer switches. While it falls they fall.
//! A step is as large as the gradient says, so that by themselves the thresholds follow the mean latency.
//!
//! THRESHOLDS-1. A threshold is within its bounds, and changes by no more than its step at a time.
//! THRESHOLDS-2. A step is taken back at the end of the next period if latency then rises, and faster than when it was taken.
//!     A gradient that only comes back from below zero takes nothing back: after every burst latency falls, then
//!     stays, and the thresholds would keep what the burst had raised, burst upon burst.

/// Where a threshold starts, between which it stays, and by how much it changes at most.
struct Range {
    start: f64,
    least: f64,
    most: f64,
    step: f64,
}

/// Rows that make a run worth it. Runs have 512 to 8192 rows: from a start of twice the shortest up to the longest,
/// and down to where the fixed cost of a run is that of its rows (a quarter of that of 512: see `rows_per_run`).
const EVENT_ROWS: Range = Range { start: 1024.0, least: 128.0, most: 8192.0, step: 1024.0 };

/// Time after which any row makes a run worth it. Epochs last 1 ms, so less cannot be told; markers come every
/// 50 ms, and waiting longer than that would show in each of them.
const IDLE_NS: Range = Range { start: 5e6, least: 1e6, most: 50e6, step: 5e6 };

/// A smaller gradient is taken for noise: if markers scatter by 15 %, means of ten of them scatter by 5 %.
const STEADY: f64 = 0.05;

impl Range {
    fn moved(&self, from: f64, gradient: f64) -> f64 {
        (from + (gradient * from).clamp(-self.step, self.step)).clamp(self.least, self.most)
    }
}

/// Event threshold and idle threshold of one query.
#[derive(Clone, Debug, PartialEq)]
pub struct Thresholds {
    now: Levels,
    /// The last step, if the last period had one.
    step: Option<LevelStep>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Levels {
    event_rows: f64,
    idle_ns: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct LevelStep {
    from: Levels,
    gradient: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { now: Levels { event_rows: EVENT_ROWS.start, idle_ns: IDLE_NS.start }, step: None }
    }
}

impl Thresholds {
    /// Makes thresholds to begin with, outside the bounds if need be.
    pub fn starting_at(event_rows: u64, idle_ns: u64) -> Self {
        Self { now: Levels { event_rows: event_rows as f64, idle_ns: idle_ns as f64 }, step: None }
    }

    /// Takes a step at the end of a period, or takes the last one back (THRESHOLDS-2).
    pub fn adjust(&mut self, gradient: f64) {
        if let Some(step) = self.step.take()
            && gradient > STEADY
            && gradient > step.gradient
        {
            self.now = step.from;
        } else if gradient.abs() > STEADY {
            self.step = Some(LevelStep { from: self.now, gradient });
            self.now.event_rows = EVENT_ROWS.moved(self.now.event_rows, gradient);
            self.now.idle_ns = IDLE_NS.moved(self.now.idle_ns, gradient);
        }
    }

    /// Returns the rows that make a run worth it.
    pub fn event_rows(&self) -> u64 {
        self.now.event_rows as u64
    }

    /// Returns the time without a run after which any row makes one worth it.
    pub fn idle_ns(&self) -> u64 {
        self.now.idle_ns as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_follow_the_gradient() {
        let mut thresholds = Thresholds::default();
        thresholds.adjust(0.5);
        assert_eq!((thresholds.event_rows(), thresholds.idle_ns()), (1536, 7_500_000));
        thresholds.adjust(-0.25);
        assert_eq!((thresholds.event_rows(), thresholds.idle_ns()), (1152, 5_625_000));
        thresholds.adjust(STEADY);
        assert_eq!((thresholds.event_rows(), thresholds.idle_ns()), (1152, 5_625_000));
    }

    #[test]
    fn a_step_that_made_it_worse_is_taken_back_once() {
        let mut thresholds = Thresholds::default();
        let start = thresholds.now;
        thresholds.adjust(0.2);
        assert_ne!(thresholds.now, start);
        thresholds.adjust(0.3);
        assert_eq!(thresholds, Thresholds::default(), "taken back, with nothing left to take back");
        thresholds.adjust(0.4);
        assert!(thresholds.now.event_rows > start.event_rows, "the next period may try again");
    }

    #[test]
    fn a_fall_that_is_followed_by_a_rise_is_taken_back() {
        let mut thresholds = Thresholds::default();
        thresholds.adjust(-0.5);
        thresholds.adjust(0.1);
        assert_eq!(thresholds, Thresholds::default());
    }

    #[test]
    fn a_step_is_remembered_for_one_period() {
        let mut thresholds = Thresholds::default();
        thresholds.adjust(0.2);
        let stepped = thresholds.now;
        thresholds.adjust(0.0);
        thresholds.adjust(0.3);
        assert!(thresholds.now.event_rows > stepped.event_rows, "a steady period lies between");
    }

    #[test]
    fn bursts_leave_no_mark() {
        let mut thresholds = Thresholds::default();
        for _ in 0..50 {
            // Latency doubles, comes back, and stays.
            for gradient in [1.0, -0.5, 0.0, 0.0] {
                thresholds.adjust(gradient);
            }
        }
        assert_eq!(thresholds, Thresholds::default());
    }

    #[test]
    fn a_rise_without_end_stops_at_the_bounds_and_so_does_a_fall() {
        let mut thresholds = Thresholds::default();
        for _ in 0..100 {
            thresholds.adjust(1.0);
        }
        assert_eq!((thresholds.event_rows(), thresholds.idle_ns()), (8192, 50_000_000));
        for _ in 0..100 {
            thresholds.adjust(-1.0);
        }
        assert_eq!((thresholds.event_rows(), thresholds.idle_ns()), (128, 1_000_000));
    }
}

/// The models do without proptest.
#[cfg(all(test, not(any(loom, shuttle))))]
mod laws {
    use proptest::prelude::*;

    use super::*;

    fn is_within(range: &Range, from: f64, to: f64) -> bool {
        (range.least..=range.most).contains(&to) && (to - from).abs() <= range.step * (1.0 + 1e-9)
    }

    proptest! {
        #[test]
        fn thresholds_stay_in_bounds_and_step_by_step(gradients in prop::collection::vec(-1.0..=1.0, 1..60)) {
            let mut thresholds = Thresholds::default();
            for gradient in gradients {
                let before = thresholds.now;
                thresholds.adjust(gradient);
                let now = thresholds.now;
                prop_assert!(is_within(&EVENT_ROWS, before.event_rows, now.event_rows), "{before:?} {now:?}");
                prop_assert!(is_within(&IDLE_NS, before.idle_ns, now.idle_ns), "{before:?} {now:?}");
            }
        }

        #[test]
        fn worse_takes_back_and_better_does_not(
            history in prop::collection::vec(-1.0..=1.0, 0..20),
            first in -1.0..=1.0,
            second in -1.0..=1.0,
        ) {
            let mut thresholds = Thresholds::default();
            history.into_iter().for_each(|gradient: f64| thresholds.adjust(gradient));
            thresholds.adjust(0.0);
            let before = thresholds.now;
            thresholds.adjust(first);
            let stepped = thresholds.now;
            thresholds.adjust(second);
            let has_stepped = first.abs() > STEADY;
            if has_stepped && second > first && second > STEADY {
                prop_assert_eq!(thresholds.now, before);
                prop_assert_eq!(thresholds.step, None);
            } else if second.abs() > STEADY {
                prop_assert_eq!(thresholds.step, Some(LevelStep { from: stepped, gradient: second }));
            } else {
                prop_assert_eq!(thresholds.now, stepped);
            }
        }
    }
}
