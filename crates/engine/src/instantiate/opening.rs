//! How a stream is read: which columns of its batches, and where event time comes from.

use std::sync::Arc;

use penstock_graph::strands::Stream;
use penstock_memory::SourceColumns;
use penstock_plan::{StreamStep, Watermarks};
use penstock_progress::{BoundedDelay, WatermarkSide};

use penstock_tasks::event_time::{EventClock, Ticking, TimeFrom};

/// Returns the columns that a stream reads of its batches.
pub(super) fn columns(stream: &Stream) -> SourceColumns {
    SourceColumns::new(Arc::clone(&stream.step().schema), stream.reads.clone())
}

/// Makes the clock of a stream, if it has event time.
pub(super) fn clock(stream: &Stream) -> Option<EventClock> {
    let (slots, step) = (stream.clock?, stream.step());
    let name = step.time.as_ref()?;
    let ticks = stream.ticks.clone();
    Some(EventClock {
        name: name.clone(),
        from: time_from(step, name),
        ticking: ticks.map(|ticks| Ticking { windows: ticks.windows, linger_us: ticks.linger_us }),
        slot: slots.time,
        watermark_slot: slots.watermark,
        is_imposed: false,
        max_ahead: step.max_ahead,
        progress: BoundedDelay::new(step.delay),
    })
}

fn time_from(stream: &StreamStep, time: &str) -> TimeFrom {
    if let Some(arrival) = stream.arrival {
        return TimeFrom::Wall(arrival);
    }
    let time = stream.column(time);
    let marks = match &stream.watermark {
        Some(Watermarks::Function(_)) => return TimeFrom::Marked { time },
        Some(Watermarks::Column(marks)) => Some((stream.column(marks), WatermarkSide::After)),
        Some(Watermarks::Before(marks)) => Some((stream.column(marks), WatermarkSide::Before)),
        None => None,
    };
    TimeFrom::Columns { time, marks, is_end: stream.is_end }
}
