//! Random numbers by position: they depend on the seed, the lane and the row id alone.
//!
//! Each column draws from a lane of its own, so that two columns are independent of each other. A lane is the sequence
//! of SplitMix64 from a starting point determined by the seed and the lane; SplitMix64 steps by addition, so its n-th
//! number can be computed at once.

/// The step between two states: 2^64 over the golden ratio, made odd.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// The random numbers of one lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RandomLane {
    origin: u64,
}

impl RandomLane {
    pub(crate) fn new(seed: u64, lane: u64) -> Self {
        // Mixed twice: neighbouring seeds and neighbouring lanes must not be shifted copies of each other.
        Self { origin: mix(mix(seed.wrapping_add(STEP)) ^ lane.wrapping_mul(STEP)) }
    }

    /// Returns 64 well-mixed bits for this row.
    #[inline(always)]
    pub(crate) fn bits(self, row: u64) -> u64 {
        mix(self.origin.wrapping_add(row.wrapping_mul(STEP)))
    }

    /// Returns a number in `0..bound` for this row; off from uniform by less than `bound / 2^64`.
    #[inline(always)]
    pub(crate) fn below(self, row: u64, bound: u64) -> u64 {
        ((u128::from(self.bits(row)) * u128::from(bound)) >> 64) as u64
    }
}

/// The finaliser of SplitMix64: a bijection in which each input bit flips each output bit about half the
/// time.
#[inline(always)]
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mix_gives_the_published_sequence() {
        // The first outputs of SplitMix64 from state 0.
        let first = [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4, 0x06C4_5D18_8009_454F];
        for (n, expected) in (1u64..).zip(first) {
            assert_eq!(mix(n.wrapping_mul(STEP)), expected);
        }
    }

    #[test]
    fn each_row_bit_flips_about_half_of_the_output() {
        let lane = RandomLane::new(7, 3);
        for bit in 0..64 {
            let flipped: u32 =
                (0..1_000).map(|row| (lane.bits(row) ^ lane.bits(row ^ (1 << bit))).count_ones()).sum();
            let mean = f64::from(flipped) / 1_000.0;
            assert!((31.0..33.0).contains(&mean), "bit {bit}: {mean} of 64 flip");
        }
    }

    #[test]
    fn lanes_and_seeds_are_independent() {
        let (a, b, c) = (RandomLane::new(7, 0), RandomLane::new(7, 1), RandomLane::new(8, 0));
        for other in [b, c] {
            let agreeing: u32 = (0..1_000).map(|row| (!(a.bits(row) ^ other.bits(row))).count_ones()).sum();
            let mean = f64::from(agreeing) / 1_000.0;
            assert!((31.0..33.0).contains(&mean), "{mean} of 64 agree");
        }
    }

    #[test]
    fn below_stays_below_and_reaches_every_value() {
        let lane = RandomLane::new(1, 1);
        let mut seen = [0u32; 5];
        for row in (0..5_000).chain(u64::MAX - 5_000..u64::MAX) {
            seen[lane.below(row, 5) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| (1_800..2_200).contains(&n)), "{seen:?}");
    }
}
