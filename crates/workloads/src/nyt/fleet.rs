//! The taxis and their drivers. A taxi has one vendor's meter, and its drivers drive no other taxi.

use std::ops::Range;

use arrow_array::StringArray;

use super::lanes;
use super::{DRIVERS_PER_TAXI, NytOptions, TAXIS};
use crate::Buffers;
use crate::random::RandomLane;
use crate::shapes::{draws_of, is_among};
use crate::texts::{Hex, TextColumn, Words};

#[derive(Debug, Clone)]
pub(super) struct Fleet {
    seed: u64,
    vts: u64,
}

impl Fleet {
    pub(super) fn new(options: &NytOptions) -> Self {
        Self { seed: options.seed, vts: draws_of(options.vts_share) }
    }

    /// Draws the taxi of each trip, by number.
    pub(super) fn taxis(&self, rows: Range<u64>) -> Vec<u32> {
        let lane = self.lane(lanes::TAXI);
        rows.map(|row| lane.below(row, u64::from(TAXIS)) as u32).collect()
    }

    pub(super) fn medallion(&self, taxis: &[u32], buffers: &mut Buffers) -> StringArray {
        let (high, low) = (self.lane(lanes::TAXI_HIGH), self.lane(lanes::TAXI_LOW));
        names(high, low, taxis.iter().map(|&taxi| taxi.into()), buffers)
    }

    pub(super) fn hack_license(&self, taxis: &[u32], rows: Range<u64>, buffers: &mut Buffers) -> StringArray {
        let which = self.lane(lanes::DRIVER);
        let (high, low) = (self.lane(lanes::DRIVER_HIGH), self.lane(lanes::DRIVER_LOW));
        let of_taxi = u64::from(DRIVERS_PER_TAXI);
        let drivers =
            taxis.iter().zip(rows).map(|(&taxi, row)| u64::from(taxi) * of_taxi + which.below(row, of_taxi));
        names(high, low, drivers, buffers)
    }

    pub(super) fn vendor_id(&self, taxis: &[u32], buffers: &mut Buffers) -> StringArray {
        let lane = self.lane(lanes::VENDOR);
        let is_vts = |&taxi: &u32| usize::from(is_among(lane.bits(taxi.into()), self.vts));
        Words::<3>::new(["CMT", "VTS"]).column(taxis.iter().map(is_vts), buffers)
    }

    fn lane(&self, lane: u64) -> RandomLane {
        RandomLane::new(self.seed, lane)
    }
}

/// Writes hexadecimal names, as long as those of the published data. A lane never repeats a number, so names are
/// unique.
fn names(
    high: RandomLane,
    low: RandomLane,
    numbers: impl Iterator<Item = u64>,
    buffers: &mut Buffers,
) -> StringArray {
    let mut texts = TextColumn::with_room(numbers.size_hint().0, 32, buffers);
    for number in numbers {
        texts.push(&Hex::Upper.digits(high.bits(number), low.bits(number)), 32);
    }
    texts.finish()
}
