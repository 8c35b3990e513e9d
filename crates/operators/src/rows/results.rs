//! The columns that the results of all windows have.

use penstock_memory::{Physical, Run, SlotId};
use penstock_progress::Aligned;
use penstock_progress::aligned::WindowNumber;

/// Puts start and end of a window into the first two slots. A bound beyond 32 bits is given as the last representable
/// day.
pub(crate) fn put_bounds(out: &mut Run, windows: Aligned, window: WindowNumber, bounds: Physical) {
    let (start, end) = windows.bounds(window);
    for (slot, bound) in [(0, start), (1, end)] {
        let rows = out.len();
        let mut column = out.scratch(bounds);
        match bounds {
            Physical::I32 => {
                let bound = bound.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
                column.refill::<i32>().resize(rows, bound);
            }
            _ => column.refill::<i64>().resize(rows, bound),
        }
        out.put(slot, column);
    }
}

/// Puts the event time of a window's results into a slot: the last time in the window.
pub(crate) fn put_time(out: &mut Run, slot: SlotId, windows: Aligned, window: WindowNumber) {
    let rows = out.len();
    let mut column = out.scratch(Physical::I64);
    column.refill::<i64>().resize(rows, windows.last_tick(window));
    out.put(slot, column);
}
