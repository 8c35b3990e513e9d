//! Zipf's law over the numbers `0..n`: number k has weight `1 / (k + 1)^exponent`, so 0 is the most frequent.
//!
//! Inversion of a cumulative table, with a guide table for the start of the search: two comparisons per draw on
//! average, whatever the exponent. The alias method would need fewer, but the pairing in its table can change with the
//! last bit of a weight, and `powf` may differ in that bit between platforms. Here such a difference moves one row in
//! 2^50.

/// The distribution, ready to be drawn from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Zipf {
    /// `last[k]` is the largest draw that selects k. The final entry is `u64::MAX`, so that a search always ends.
    last: Vec<u64>,
    /// `guide[c]` is the result for the smallest draw whose top bits are c: no draw in that cell selects a smaller
    /// one.
    guide: [u16; GUIDE_CELLS],
}

/// About one cell for each of the 1000 ads of YSB.
const GUIDE_CELLS: usize = 1 << GUIDE_BITS;
const GUIDE_BITS: u32 = 10;

impl Zipf {
    /// Creates the distribution; `n` is at least 1, `exponent` finite and not negative: the options were checked.
    pub(crate) fn new(n: u16, exponent: f64) -> Self {
        let weights: Vec<f64> = (1..=n).map(|rank| f64::from(rank).powf(-exponent)).collect();
        let total: f64 = weights.iter().sum();
        let mut sum = 0.0;
        let mut last: Vec<u64> = weights
            .iter()
            .map(|weight| {
                sum += weight;
                // Casts saturate: a share that rounds to 1 becomes `u64::MAX`.
                (sum / total * 2f64.powi(64)) as u64
            })
            .collect();
        if let Some(end) = last.last_mut() {
            *end = u64::MAX;
        }
        let mut guide = [0; GUIDE_CELLS];
        let mut answer = 0u16;
        for (cell, start) in guide.iter_mut().enumerate() {
            let smallest_draw = (cell as u64) << (64 - GUIDE_BITS);
            while last[usize::from(answer)] < smallest_draw {
                answer += 1;
            }
            *start = answer;
        }
        Self { last, guide }
    }

    /// Returns the number selected by 64 random bits.
    #[inline]
    pub(crate) fn pick(&self, draw: u64) -> u64 {
        let mut answer = usize::from(self.guide[(draw >> (64 - GUIDE_BITS)) as usize]);
        while self.last[answer] < draw {
            answer += 1;
        }
        answer as u64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_guide_never_changes_the_answer(draw: u64, exponent in 0.0..5.0, n in 1u16..2_000) {
            let zipf = Zipf::new(n, exponent);
            let searched = zipf.last.partition_point(|&last| last < draw) as u64;
            prop_assert_eq!(zipf.pick(draw), searched);
        }
    }

    #[test]
    fn the_ends_of_the_range_are_covered() {
        for exponent in [0.0, 0.5, 1.0, 30.0, 1e300] {
            let zipf = Zipf::new(1_000, exponent);
            assert_eq!(zipf.pick(0), 0);
            assert!(zipf.pick(u64::MAX) < 1_000);
        }
    }

    #[test]
    fn shares_follow_the_law() {
        let zipf = Zipf::new(1_000, 1.0);
        let harmonic: f64 = (1..=1_000).map(|k| 1.0 / f64::from(k)).sum();
        let share = |k: usize| (zipf.last[k] - zipf.last[k - 1]) as f64 / 2f64.powi(64);
        for k in [1, 9, 99, 998] {
            let expected = 1.0 / (k as f64 + 1.0) / harmonic;
            assert!((share(k) / expected - 1.0).abs() < 1e-9, "number {k}");
        }
    }
}
