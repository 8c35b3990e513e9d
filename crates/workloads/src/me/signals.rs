//! The values of a sensor over time: a level, a slow drift around it, noise, and occasional surges.
//!
//! Time is the row id. A drift is linear between random points, so that the value at a row can be computed from the
//! two points around it.

use std::ops::Range;

use crate::Buffers;
use crate::random::RandomLane;

/// Rows between two points of a drift, as a power of two.
const SPAN_BITS: u32 = 6;
const SPAN: u64 = 1 << SPAN_BITS;

/// Rows of a stretch, as a power of two. A stretch may have one surge: a sudden rise that fades.
const STRETCH_BITS: u32 = 10;
/// One stretch in this many has a surge.
const STRETCHES_PER_SURGE: u64 = 4;
/// Rows in which a surge fades. It is over before the stretch is.
const FADING_ROWS: u64 = 64;

/// Computes a drift of at most `reach` up and down.
pub(super) fn drift(lane: RandomLane, reach: u64, rows: Range<u64>, buffers: &mut Buffers) -> Vec<i32> {
    let point = |n: u64| lane.below(n, 2 * reach + 1) as i64 - reach as i64;
    let between = |row: u64| {
        let (n, into) = (row >> SPAN_BITS, (row % SPAN) as i64);
        // Floor division by shifting also holds for negative values.
        ((point(n) * (SPAN as i64 - into) + point(n + 1) * into) >> SPAN_BITS) as i32
    };
    buffers.filled(rows.map(between))
}

/// Computes surges of at most `reach`, and 0 between them.
pub(super) fn surge(lane: RandomLane, reach: u64, rows: Range<u64>, buffers: &mut Buffers) -> Vec<i32> {
    const STRETCH: u64 = 1 << STRETCH_BITS;
    let surge = |row: u64| {
        let (stretch, into) = (row >> STRETCH_BITS, row % STRETCH);
        // The upper bits of a draw decide whether there is a surge and its height, the lower ones its start.
        let draw = lane.below(stretch, reach * STRETCHES_PER_SURGE);
        let height = if draw < reach { draw } else { 0 };
        let start = lane.bits(stretch) % (STRETCH - FADING_ROWS);
        // Before its start, this is longer than any surge.
        let since = into.wrapping_sub(start);
        (height * FADING_ROWS.saturating_sub(since) / FADING_ROWS) as i32
    };
    buffers.filled(rows.map(surge))
}

/// Computes noise with a standard deviation of 4, from -32 to 32: the number of set bits.
pub(super) fn noise(lane: RandomLane, rows: Range<u64>, buffers: &mut Buffers) -> Vec<i32> {
    buffers.filled(rows.map(|row| lane.bits(row).count_ones() as i32 - 32))
}
