//! Prices: `round(100 * 10^(6u))` for a uniform u, from 100 to 100,000,000 and as often below 1,000 as above
//! 10,000,000.
//!
//! The power is computed here and not by `powf`, whose last bit differs between platforms (WORKLOAD-3): only
//! additions, multiplications and square roots, which round the same everywhere. It is faster as well.

use std::sync::LazyLock;

use crate::Buffers;
use crate::random::RandomLane;

/// The leading bits of a draw choose a step of the table, the others the position beyond it.
const STEP_BITS: u32 = 10;
const STEPS: usize = 1 << STEP_BITS;
/// As many of the other bits as an `f64` holds.
const REST_BITS: u32 = 53;

/// `10^(6k / STEPS)` for each step k.
static POWERS: LazyLock<[f64; STEPS]> = LazyLock::new(|| {
    let mut powers = [1.0; STEPS];
    let mut factor: f64 = 1e6;
    for bit in (0..STEP_BITS).rev() {
        // The factor of this bit: the root of that of the next higher one.
        factor = factor.sqrt();
        for (step, power) in powers.iter_mut().enumerate() {
            *power *= if step >> bit & 1 == 1 { factor } else { 1.0 };
        }
    }
    powers
});

/// Computes one price per event.
pub(super) fn prices(lane: RandomLane, events: &[u64], buffers: &mut Buffers) -> Vec<i64> {
    let powers: &[f64; STEPS] = &POWERS;
    buffers.filled(events.iter().map(|&event| price(powers, lane.bits(event))))
}

/// Returns the price for 64 random bits.
#[inline(always)]
fn price(powers: &[f64; STEPS], draw: u64) -> i64 {
    /// Powers of ten are powers of e with this much larger exponents.
    const EXPONENT: f64 = 6.0 * std::f64::consts::LN_10 / STEPS as f64;
    let step = (draw >> (64 - STEP_BITS)) as usize;
    let rest = (draw << STEP_BITS >> (64 - REST_BITS)) as f64 / (1u64 << REST_BITS) as f64;
    let x = rest * EXPONENT;
    // e^x for x below 0.0135: the first term left out is below 10^-14.
    let power = 1.0 + x * (1.0 + x * (0.5 + x * (1.0 / 6.0 + x * (1.0 / 24.0 + x * (1.0 / 120.0)))));
    (100.0 * powers[step] * power + 0.5) as i64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn prices_are_the_rounded_powers(draw: u64) {
            let exact = 100.0 * 10f64.powf(6.0 * draw as f64 / 2f64.powi(64));
            let price = price(&POWERS, draw) as f64;
            prop_assert!((price - exact).abs() <= 0.500_01, "{price} for {exact}");
        }
    }

    #[test]
    fn prices_grow_with_the_draw_and_reach_both_ends() {
        let of = |draw| price(&POWERS, draw);
        assert_eq!((of(0), of(u64::MAX)), (100, 100_000_000));
        let steps: Vec<i64> = (0..100_000u64).map(|n| of(n * (u64::MAX / 100_000))).collect();
        assert!(steps.is_sorted());
        // Half-way through the draws is half-way through the exponents.
        assert_eq!(of(1 << 63), 100_000);
    }
}
