//! Times of rows as 64 bits, whatever the type of their column.

use penstock_memory::{Column, Physical, Run, SlotId, Values};

/// Puts the times of a column, moved by `offset`, into a slot as 64 bits; of ends of windows, the last tick before.
pub fn place_time(run: &mut Run, column: usize, slot: SlotId, (offset, is_end): (i64, bool)) {
    run.ready(&[column]);
    if offset != 0 {
        let mut moved = run.scratch(Physical::I64);
        let times = run.column(column).fixed::<i64>();
        moved.refill().extend(times.iter().map(|time| time.saturating_add(offset)));
        run.put(column, moved);
    }
    if slot != column {
        let mut wide = run.scratch(Physical::I64);
        let times: &mut Vec<i64> = wide.refill();
        widen(run.column(column), times);
        if is_end {
            times.iter_mut().for_each(|time| *time = time.saturating_sub(1));
        }
        run.put(slot, wide);
    }
}

/// Appends the values of a time column.
pub fn widen(column: Column<'_>, to: &mut Vec<i64>) {
    match column.values {
        Values::I64(times) => to.extend_from_slice(times),
        Values::I8(times) => to.extend(times.iter().map(|&time| i64::from(time))),
        Values::I16(times) => to.extend(times.iter().map(|&time| i64::from(time))),
        Values::I32(times) => to.extend(times.iter().map(|&time| i64::from(time))),
        Values::U8(times) => to.extend(times.iter().map(|&time| i64::from(time))),
        Values::U16(times) => to.extend(times.iter().map(|&time| i64::from(time))),
        Values::U32(times) => to.extend(times.iter().map(|&time| i64::from(time))),
        _ => unreachable!("a time column is an integer of at most 64 bits"),
    }
}
