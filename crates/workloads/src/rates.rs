//! The rows per second of event time: constant, or changing in steps.
//!
//! All steps have the same length in seconds, and the steps of a round have [`STEPS`] times as many rows per second.
//! Any row is found by division: first its round, which all have the same number of rows, then its step, then its
//! position in there (WORKLOAD-1). A step begins on a whole second with a row, so that no time is lost or gained where
//! the rate changes.

use crate::{WorkloadError, bounds};

/// The factors of the rate, from one step to the next; then from the start again.
pub const STEPS: [u64; 4] = [1, 2, 6, 12];
/// The largest `step_every_s` of any workload: a year.
pub const MAX_STEP_EVERY_S: u64 = 365 * 24 * 60 * 60;

/// The largest rate of any step: half the range of u64, so that adding to a smaller remainder cannot overflow.
const MAX_RATE: u64 = i64::MAX as u64;
const MAX_STEP: u64 = STEPS[STEPS.len() - 1];

/// Rows per second of event time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rates {
    /// The rate of the first step, or of all time.
    pub(crate) rate: u64,
    /// The length of a step; 0 where there are none.
    pub(crate) step_every_s: u64,
}

/// Rows that come at one rate: those of a step, or all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stretch {
    first_row: u128,
    /// The first row after it, far beyond all row ids where there is none.
    pub(crate) end_row: u128,
    /// The time of the first row, in milliseconds since row 0.
    start_ms: u128,
    pub(crate) rate: u64,
    /// Its index in [`STEPS`].
    pub(crate) step: usize,
}

impl Rates {
    pub(crate) fn check(&self) -> Result<(), WorkloadError> {
        bounds::within("step_every_s", self.step_every_s, 0, MAX_STEP_EVERY_S)?;
        let most = if self.step_every_s == 0 { MAX_RATE } else { MAX_RATE / MAX_STEP };
        bounds::within("rate", self.rate, 1, most)
    }

    /// Returns the rows around this one that come at the same rate.
    pub(crate) fn stretch(&self, row: u128) -> Stretch {
        let rate = self.rate;
        if self.step_every_s == 0 {
            return Stretch { first_row: 0, end_row: u128::MAX, start_ms: 0, rate, step: 0 };
        }
        let (round, mut into) = (row / self.round_rows(), row % self.round_rows());
        let mut first_row = round * self.round_rows();
        let mut step = 0;
        while into >= self.step_rows(step) {
            into -= self.step_rows(step);
            first_row += self.step_rows(step);
            step += 1;
        }
        let steps_before = round * STEPS.len() as u128 + step as u128;
        Stretch {
            first_row,
            end_row: first_row + self.step_rows(step),
            start_ms: steps_before * u128::from(self.step_every_s) * 1_000,
            rate: rate * STEPS[step],
            step,
        }
    }

    /// Returns the time of a row, in whole milliseconds since row 0, rounded down.
    pub(crate) fn since_ms(&self, row: u128) -> u128 {
        self.stretch(row).since_ms(row)
    }

    /// Returns the number of rows before this second: the number of its first row. Beyond all row ids it may be too
    /// small.
    pub(crate) fn rows_before_second(&self, second: u128) -> u128 {
        if self.step_every_s == 0 {
            return second.saturating_mul(self.rate.into());
        }
        let step_s = u128::from(self.step_every_s);
        let (steps, seconds) = (second / step_s, second % step_s);
        let (rounds, step) = (steps / STEPS.len() as u128, (steps % STEPS.len() as u128) as usize);
        let of_round: u128 = (0..step).map(|step| self.step_rows(step)).sum();
        let of_step = seconds * u128::from(self.rate * STEPS[step]);
        rounds.saturating_mul(self.round_rows()).saturating_add(of_round + of_step)
    }

    // Checked options keep both below 2^93.
    fn step_rows(&self, step: usize) -> u128 {
        u128::from(self.rate * STEPS[step]) * u128::from(self.step_every_s)
    }

    fn round_rows(&self) -> u128 {
        (0..STEPS.len()).map(|step| self.step_rows(step)).sum()
    }
}

impl Stretch {
    /// Like [`Rates::since_ms`], for a row of this stretch.
    pub(crate) fn since_ms(&self, row: u128) -> u128 {
        self.start_ms + (row - self.first_row) * 1_000 / u128::from(self.rate)
    }

    /// Returns the remainder of the division in [`Self::since_ms`].
    pub(crate) fn remainder(&self, row: u128) -> u64 {
        ((row - self.first_row) * 1_000 % u128::from(self.rate)) as u64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stepped() -> impl Strategy<Value = Rates> {
        (
            prop_oneof![1..50u64, 1..2_000_000u64, 1..=MAX_RATE / MAX_STEP],
            prop_oneof![1..5u64, 1..=MAX_STEP_EVERY_S],
        )
            .prop_map(|(rate, step_every_s)| Rates { rate, step_every_s })
    }

    proptest! {
        #[test]
        fn a_second_has_the_rows_of_its_step(rate in 1..3_000u64, step_every_s in 1..4u64, round in 0..1u128 << 30) {
            let rates = Rates { rate, step_every_s };
            let (rate, step_s) = (u128::from(rate), u128::from(step_every_s));
            let first_s = round * 4 * step_s;
            let mut row = round * 21 * rate * step_s;
            for second in first_s..first_s + 5 * step_s {
                let expected = rate * [1, 2, 6, 12][(second / step_s % 4) as usize];
                prop_assert_eq!(rates.rows_before_second(second), row);
                // The first and the last of its rows: the others lie between them.
                prop_assert_eq!(rates.since_ms(row), second * 1_000);
                prop_assert_eq!(rates.since_ms(row + expected - 1) / 1_000, second);
                row += expected;
            }
        }

        #[test]
        fn times_never_fall_and_stretches_follow_each_other(rates in stepped(), row in prop_oneof![0..=1_000_000_000_000u128, 0..=u128::from(u64::MAX)]) {
            let stretch = rates.stretch(row);
            prop_assert!((stretch.first_row..stretch.end_row).contains(&row));
            prop_assert_eq!(stretch.rate, rates.rate * STEPS[stretch.step]);
            prop_assert!(rates.since_ms(row) <= rates.since_ms(row + 1));
            let ends_ms = stretch.start_ms + u128::from(rates.step_every_s) * 1_000;
            prop_assert!(rates.since_ms(stretch.end_row - 1) < ends_ms);
            let next = rates.stretch(stretch.end_row);
            prop_assert_eq!((next.first_row, next.start_ms), (stretch.end_row, ends_ms));
            prop_assert_eq!(next.step, (stretch.step + 1) % STEPS.len());
        }

        #[test]
        fn seconds_and_rows_agree_up_to_the_last_row(rates in stepped(), row: u64, is_steady: bool) {
            let rates = if is_steady { Rates { step_every_s: 0, ..rates } } else { rates };
            let row = u128::from(row);
            let second = rates.since_ms(row) / 1_000;
            prop_assert!(rates.rows_before_second(second) <= row);
            prop_assert!(rates.rows_before_second(second + 1) > row);
        }
    }

    #[test]
    fn without_steps_there_is_one_stretch() {
        let rates = Rates { rate: 3, step_every_s: 0 };
        for row in [0, 7, 1 << 40, u128::from(u64::MAX)] {
            assert_eq!(rates.since_ms(row), row * 1_000 / 3);
            assert_eq!((rates.stretch(row).first_row, rates.stretch(row).end_row), (0, u128::MAX));
        }
    }

    #[test]
    fn rates_are_bounded_in_every_step() {
        let refused = |rate, step_every_s| Rates { rate, step_every_s }.check().err().map(|e| e.to_string());
        assert_eq!(refused(MAX_RATE, 0), None);
        assert_eq!(refused(MAX_RATE / 12, MAX_STEP_EVERY_S), None);
        let most = MAX_RATE / 12;
        assert_eq!(
            refused(most + 1, 1),
            Some(format!("rate must be between 1 and {most}, got {}", most + 1))
        );
        assert_eq!(
            refused(1, MAX_STEP_EVERY_S + 1).as_deref(),
            Some("step_every_s must be between 0 and 31536000, got 31536001")
        );
    }
}
