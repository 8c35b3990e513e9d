//! Result rows: bounds, keys, aggregates, and the other columns that the plan asks for.

use penstock_memory::{ColumnBuf, Physical, Run};
use penstock_types::ComputeError;

use super::keyed::Accumulators;
use super::spec::ResolvedSpec;
use crate::keys::KeyIndex;
use crate::pick::Pick;

/// A number per result row.
#[derive(Clone, Copy)]
pub(super) enum Each<'a> {
    Same(i64),
    List(&'a [i64]),
}

impl Each<'_> {
    fn write<T: Copy>(self, rows: usize, out: &mut Vec<T>, convert: impl Fn(i64) -> T) {
        match self {
            Self::Same(value) => out.resize(rows, convert(value)),
            Self::List(values) => out.extend(values.iter().map(|&value| convert(value))),
        }
    }
}

/// The columns of result rows besides keys and aggregates.
pub(super) struct Frame<'a> {
    pub(super) start: Each<'a>,
    pub(super) end: Each<'a>,
    pub(super) time: Each<'a>,
    pub(super) corrects: bool,
}

/// Begins a run in `out` with the results of some keys.
pub(super) fn write(
    shape: &ResolvedSpec,
    out: &mut Run,
    frame: &Frame<'_>,
    (keys, key_ids): (&KeyIndex, Pick<'_>),
    (states, state_ids): (&Accumulators, Pick<'_>),
) -> Result<usize, ComputeError> {
    let (spec, rows) = (&shape.spec, key_ids.len());
    out.begin_owned(rows);
    let mut slot = 0;
    let mut put = |out: &mut Run, column: ColumnBuf| {
        out.put(slot, column);
        slot += 1;
    };
    for bound in [frame.start, frame.end] {
        let mut column = out.scratch(spec.bounds);
        match spec.bounds {
            Physical::I32 => bound.write(rows, column.refill::<i32>(), |bound| {
                bound.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32
            }),
            _ => bound.write(rows, column.refill::<i64>(), |bound| bound),
        }
        put(out, column);
    }
    let mut columns: Vec<ColumnBuf> = spec.keys.iter().map(|physical| out.scratch(*physical)).collect();
    columns.iter_mut().for_each(ColumnBuf::clear_mask);
    keys.write_picked(key_ids, &mut columns);
    for column in columns {
        put(out, column);
    }
    for (factory, state) in spec.factories.iter().zip(&states.0) {
        let physical = Physical::of(factory.output()).expect("types are checked when the plan is built");
        let mut column = out.scratch(physical);
        state.write(state_ids, &mut column)?;
        put(out, column);
    }
    if shape.corrects() {
        let mut column = out.scratch(Physical::U8);
        column.refill::<u8>().resize(rows, u8::from(frame.corrects));
        put(out, column);
    }
    if spec.emits_time {
        let mut column = out.scratch(Physical::I64);
        frame.time.write(rows, column.refill::<i64>(), |time| time);
        put(out, column);
    }
    Ok(rows)
}
