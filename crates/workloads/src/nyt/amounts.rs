//! The cost of a trip and its payment. All amounts are whole cents until they are written.

use std::ops::Range;

use arrow_array::StringArray;

use super::{NytOptions, lanes};
use crate::Buffers;
use crate::random::RandomLane;
use crate::texts::Words;

/// Payment types, and their trips in a thousand.
const PAYMENTS: [(&str, u64); 5] = [("CRD", 540), ("CSH", 454), ("NOC", 3), ("UNK", 2), ("DIS", 1)];
/// The index of `CRD` in the list. The meter records tips only for payments by card.
const CARD: u8 = 0;

/// A fare: its base, and the price of each unit.
const FIRST_CENTS: u32 = 250;
const UNIT_CENTS: u32 = 50;
const TAX_CENTS: u32 = 50;
/// Surcharges, and their trips in a hundred.
const SURCHARGES: [(u32, u64); 3] = [(0, 55), (50, 33), (100, 12)];
/// Three long trips in five pass one tolled bridge or tunnel.
const TOLL_CENTS: u32 = 533;
const TOLL_FROM_HUNDREDTHS: u32 = 800;
/// Card payments in a hundred without a tip. The others have 10 to 30 percent.
const NO_TIP: u64 = 4;

/// The amounts of some trips, in cents.
pub(super) struct Amounts {
    pub(super) fare: Vec<u32>,
    pub(super) surcharge: Vec<u32>,
    pub(super) tax: Vec<u32>,
    pub(super) tip: Vec<u32>,
    pub(super) tolls: Vec<u32>,
    pub(super) total: Vec<u32>,
}

#[derive(Debug, Clone)]
pub(super) struct Cashier {
    /// One for each thousandth of the trips: an index into the payment types.
    payments: Vec<u8>,
    /// One for each hundredth.
    surcharges: Vec<u32>,
    payment: RandomLane,
    surcharge: RandomLane,
    tip: RandomLane,
    toll: RandomLane,
}

impl Cashier {
    pub(super) fn new(options: &NytOptions) -> Self {
        let lane = |lane| RandomLane::new(options.seed, lane);
        let payments = (0u8..).zip(PAYMENTS);
        Self {
            payments: payments.flat_map(|(place, (_, trips))| (0..trips).map(move |_| place)).collect(),
            surcharges: SURCHARGES
                .into_iter()
                .flat_map(|(cents, trips)| (0..trips).map(move |_| cents))
                .collect(),
            payment: lane(lanes::PAYMENT),
            surcharge: lane(lanes::SURCHARGE),
            tip: lane(lanes::TIP),
            toll: lane(lanes::TOLL),
        }
    }

    /// Draws the payment type of each trip, as an index.
    pub(super) fn payments(&self, rows: Range<u64>) -> Vec<u8> {
        rows.map(|row| self.payments[self.payment.below(row, 1_000) as usize]).collect()
    }

    pub(super) fn payment_type(payments: &[u8], buffers: &mut Buffers) -> StringArray {
        let words = Words::<3>::new(PAYMENTS.map(|(word, _)| word));
        words.column(payments.iter().map(|&place| place.into()), buffers)
    }

    /// Computes the amounts of trips with these distances, durations and payments.
    pub(super) fn amounts(
        &self,
        hundredths: &[u32],
        seconds: &[i64],
        payments: &[u8],
        rows: Range<u64>,
    ) -> Amounts {
        let trips = || hundredths.iter().copied().zip(rows.clone());
        let fare: Vec<u32> = hundredths
            .iter()
            .zip(seconds)
            .map(|(&hundredths, &seconds)| fare(hundredths, seconds as u32))
            .collect();
        let surcharge: Vec<u32> =
            rows.clone().map(|row| self.surcharges[self.surcharge.below(row, 100) as usize]).collect();
        let tolls: Vec<u32> = trips()
            .map(|(hundredths, row)| {
                let passes = hundredths >= TOLL_FROM_HUNDREDTHS && self.toll.below(row, 5) < 3;
                u32::from(passes) * TOLL_CENTS
            })
            .collect();
        let tip: Vec<u32> = fare
            .iter()
            .zip(&surcharge)
            .zip(payments)
            .zip(rows)
            .map(|(((fare, surcharge), &payment), row)| {
                let percent = self.tip_percent(row) * u32::from(payment == CARD);
                ((fare + surcharge + TAX_CENTS) * percent + 50) / 100
            })
            .collect();
        let total = (0..fare.len()).map(|n| fare[n] + surcharge[n] + TAX_CENTS + tip[n] + tolls[n]).collect();
        Amounts { tax: vec![TAX_CENTS; fare.len()], fare, surcharge, tip, tolls, total }
    }

    #[inline(always)]
    fn tip_percent(&self, row: u64) -> u32 {
        // 21 rates of equal probability, after the trips without a tip.
        let draw = self.tip.below(row, 2_100);
        if draw < NO_TIP * 21 { 0 } else { 10 + (draw % 21) as u32 }
    }
}

/// Counts a unit for each fifth of a mile and for each minute, of which three in five are charged: the meter goes by
/// distance while the taxi moves fast, and by time while it does not.
#[inline(always)]
fn fare(hundredths: u32, seconds: u32) -> u32 {
    let fifths_and_minutes_by_600 = hundredths * 30 + seconds * 10;
    FIRST_CENTS + UNIT_CENTS * (fifths_and_minutes_by_600 * 3 / (5 * 600))
}
