//! Cost and selectivity of a task, smoothed over what its counters said before.
//!
//! Both are quotients of two sums that fade: time over rows, rows out over rows in. So a roll-up of many rows weighs
//! more than one of few, and rows that come out late are set against all the rows they were made from.
//!
//! A window gives nothing for seconds, then everything at once. Its rows in are therefore held back until rows come
//! out, and meet the sums together with them: the selectivity is that of whole bursts, however long they take.

use crate::profile::Reading;

/// Time after which what was seen weighs half. Ten roll-ups of 50 ms: one odd roll-up moves the cost by a
/// fifteenth of its oddness, a lasting change is nine tenths known after 1.7 s.
const HALF_LIFE_NS: f64 = 500e6;

/// The least share of a processor that a roll-up believes. Below it the two clocks were not read over the same
/// runs, and a cost near zero would put the task in front of all others.
const LEAST_CPU_SHARE: f64 = 0.01;

/// What a task has cost and given of late.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rollup {
    last: Reading,
    cost: Quotient,
    selectivity: Quotient,
    /// Rows in since rows came out.
    held_rows: f64,
}

/// A quotient of two sums that fade.
#[derive(Clone, Debug, Default, PartialEq)]
struct Quotient {
    over: f64,
    under: f64,
    at_ns: u64,
}

impl Quotient {
    fn add(&mut self, over: f64, under: f64, now_ns: u64) {
        // What adds nothing below fades nothing: the tail of a burst belongs to the rows that are already there, and
        // without this a task that emits for seconds would seem to make ever more of ever fewer rows.
        if under > 0.0 {
            let age_ns = now_ns.saturating_sub(self.at_ns) as f64;
            let kept = 0.5_f64.powf(age_ns / HALF_LIFE_NS);
            self.over *= kept;
            self.under = self.under * kept + under;
            self.at_ns = now_ns;
        }
        self.over += over;
    }
}

impl Rollup {
    /// Adds what the task did since the reading before; the first one counts from zero. Time without rows changes
    /// nothing. `cpu_share` is CPU time over busy time of the threads that ran tasks; NaN, if no task ran, counts
    /// as 1.
    pub fn add(&mut self, reading: Reading, now_ns: u64, cpu_share: f64) {
        let last = std::mem::replace(&mut self.last, reading);
        let rows_in = reading.rows_in.saturating_sub(last.rows_in) as f64;
        let rows_out = reading.rows_out.saturating_sub(last.rows_out) as f64;
        let busy_ns = reading.busy_ns.saturating_sub(last.busy_ns) as f64;
        let cpu_share = if cpu_share.is_nan() { 1.0 } else { cpu_share.clamp(LEAST_CPU_SHARE, 1.0) };
        if rows_in > 0.0 {
            self.cost.add(busy_ns * cpu_share, rows_in, now_ns);
        }
        self.held_rows += rows_in;
        // What comes out of a task that has taken in nothing yet has no selectivity.
        if rows_out > 0.0 && self.held_rows + self.selectivity.under > 0.0 {
            self.selectivity.add(rows_out, self.held_rows, now_ns);
            self.held_rows = 0.0;
        }
    }

    /// Returns nanoseconds per row in; `None` before the first row.
    pub fn cost_ns(&self) -> Option<f64> {
        (self.cost.under > 0.0).then(|| self.cost.over / self.cost.under)
    }

    /// Returns rows out per row in; `None` before the first row, 0 before the first row out.
    pub fn selectivity(&self) -> Option<f64> {
        // A silence longer than all that is remembered is news: from then on it counts.
        let rows_in = self.selectivity.under.max(self.held_rows);
        (rows_in > 0.0).then(|| self.selectivity.over / rows_in)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROLLUP_NS: u64 = 50_000_000;

    /// A task whose counters the test moves, rolled up every 50 ms.
    #[derive(Default)]
    struct Driven {
        rollup: Rollup,
        reading: Reading,
        now_ns: u64,
    }

    impl Driven {
        fn step(&mut self, rows_in: u64, rows_out: u64, busy_ns: u64) {
            self.step_with_share(rows_in, rows_out, busy_ns, 1.0);
        }

        fn step_with_share(&mut self, rows_in: u64, rows_out: u64, busy_ns: u64, cpu_share: f64) {
            self.reading.rows_in += rows_in;
            self.reading.rows_out += rows_out;
            self.reading.busy_ns += busy_ns;
            self.reading.runs += 1;
            self.now_ns += ROLLUP_NS;
            self.rollup.add(self.reading, self.now_ns, cpu_share);
        }

        fn cost_ns(&self) -> f64 {
            self.rollup.cost_ns().unwrap()
        }

        fn selectivity(&self) -> f64 {
            self.rollup.selectivity().unwrap()
        }
    }

    #[test]
    fn nothing_is_known_before_the_first_row() {
        let mut task = Driven::default();
        task.step(0, 0, 1_000);
        assert_eq!((task.rollup.cost_ns(), task.rollup.selectivity()), (None, None));
        task.step(0, 10, 1_000);
        assert_eq!((task.rollup.cost_ns(), task.rollup.selectivity()), (None, None));
        task.step(100, 0, 2_000);
        assert_eq!((task.rollup.cost_ns(), task.rollup.selectivity()), (Some(20.0), Some(0.0)));
    }

    #[test]
    fn time_without_rows_changes_nothing() {
        let mut task = Driven::default();
        task.step(1_000, 300, 20_000);
        for _ in 0..100 {
            task.step(0, 0, 5_000);
        }
        assert_eq!((task.cost_ns(), task.selectivity()), (20.0, 0.3));
    }

    #[test]
    fn a_lasting_change_is_half_known_after_one_half_life() {
        let mut task = Driven::default();
        for _ in 0..200 {
            task.step(1_000, 1_000, 10_000);
        }
        for _ in 0..10 {
            task.step(1_000, 0, 30_000);
        }
        assert!((task.cost_ns() - 20.0).abs() < 0.5, "{}", task.cost_ns());
        for _ in 0..200 {
            task.step(1_000, 500, 30_000);
        }
        assert!((task.cost_ns() - 30.0).abs() < 0.01, "{}", task.cost_ns());
        assert!((task.selectivity() - 0.5).abs() < 0.01, "{}", task.selectivity());
    }

    #[test]
    fn a_window_that_closes_now_and_then_has_the_selectivity_of_whole_bursts() {
        for (rollups_per_window, bursts) in [(20, 1), (200, 1), (200, 3), (6_000, 2)] {
            let mut task = Driven::default();
            let true_selectivity = 100.0 * f64::from(bursts) / (5_000.0 * f64::from(rollups_per_window));
            for window in 0..4 {
                for rollup in 0..rollups_per_window {
                    task.step(5_000, if rollup < bursts && window > 0 { 100 } else { 0 }, 100_000);
                    if window > 1 {
                        let ratio = task.selectivity() / true_selectivity;
                        assert!((0.3..3.0).contains(&ratio), "{rollups_per_window} {rollup}: {ratio}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_silence_longer_than_the_memory_lowers_the_selectivity() {
        let mut task = Driven::default();
        for _ in 0..100 {
            task.step(1_000, 500, 10_000);
        }
        task.step(1_000, 0, 10_000);
        assert!(task.selectivity() > 0.4);
        for _ in 0..1_000 {
            task.step(1_000, 0, 10_000);
        }
        assert!(task.selectivity() < 0.01, "{}", task.selectivity());
    }

    #[test]
    fn a_long_emission_without_input_counts_what_it_emits_and_no_more() {
        let mut task = Driven::default();
        task.step(10_000, 0, 100_000);
        for _ in 0..1_000 {
            task.step(0, 5, 1_000);
        }
        assert_eq!(task.selectivity(), 0.5);
    }

    #[test]
    fn the_share_of_a_processor_scales_the_cost_within_bounds() {
        for (cpu_share, cost_ns) in
            [(0.5, 10.0), (1.0, 20.0), (7.0, 20.0), (0.0, 0.2), (-1.0, 0.2), (f64::NAN, 20.0)]
        {
            let mut task = Driven::default();
            task.step_with_share(1_000, 0, 20_000, cpu_share);
            assert_eq!(task.cost_ns(), cost_ns, "{cpu_share}");
        }
    }

    #[test]
    fn counters_that_go_back_or_jump_leave_finite_numbers() {
        let mut rollup = Rollup::default();
        let full = Reading { rows_in: u64::MAX, rows_out: u64::MAX, runs: u64::MAX, busy_ns: u64::MAX };
        for (reading, now_ns) in [(full, u64::MAX), (Reading::default(), 0), (full, u64::MAX), (full, 5)] {
            rollup.add(reading, now_ns, 1.0);
            assert!(rollup.cost_ns().unwrap().is_finite());
            assert!(rollup.selectivity().unwrap().is_finite());
        }
    }
}
