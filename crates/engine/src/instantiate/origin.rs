//! Where the rows of a stream come from, while the tasks of a query are made.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use penstock_graph::SharedLog;
use penstock_memory::{EdgeReader, Physical, SlotId, SourceColumns};
use penstock_plan::StreamStep;
use penstock_types::{PlanError, TypeName};

use super::shared::SharedStream;
use crate::error::StartError;
use penstock_tasks::event_time::EventClock;
use penstock_tasks::readers::SourceReader;
use penstock_tasks::readers::shared::SharedReader;
use penstock_tasks::shared::Lag;
use penstock_tasks::source::Source;

/// A stream whose source is to be made.
pub(crate) struct StreamHead {
    /// How its batches are read.
    pub(crate) columns: SourceColumns,
    /// Its event time.
    pub(crate) clock: Option<EventClock>,
    pub(crate) idle_after_ns: Option<u64>,
    pub(crate) rows_per_run: usize,
    /// Set once the source may begin.
    pub(crate) begin: Arc<AtomicBool>,
    /// The slots that the columns of a shared source fill; none for a source of its own.
    pub(crate) fills: Vec<SlotId>,
}

/// Makes the source of a stream.
pub(crate) trait Origin {
    /// Returns the log of the shared source that it reads, if it does: others read that, too.
    fn shared(&self) -> Option<SharedLog> {
        None
    }

    /// Refuses a stream that it cannot give rows for.
    fn check(&self, _stream: &StreamStep) -> Result<(), StartError> {
        Ok(())
    }

    /// Makes the source.
    fn open(self: Box<Self>, stream: StreamHead) -> Result<Source, StartError>;
}

/// A stream with a reader of its own.
pub(crate) struct OwnOrigin(pub(crate) Box<dyn SourceReader>);

impl Origin for OwnOrigin {
    fn check(&self, stream: &StreamStep) -> Result<(), StartError> {
        check_repeats(&*self.0, stream)
    }

    fn open(self: Box<Self>, stream: StreamHead) -> Result<Source, StartError> {
        let StreamHead { columns, clock, idle_after_ns, rows_per_run, begin, .. } = stream;
        Ok(Source::new(columns, (clock, idle_after_ns), rows_per_run, self.0, begin))
    }
}

/// A stream that reads the log of a shared source.
pub(crate) struct SharedOrigin {
    pub(crate) reader: EdgeReader,
    pub(crate) stream: Arc<SharedStream>,
    pub(crate) lag: Arc<Lag>,
    pub(crate) id: u64,
}

impl Origin for SharedOrigin {
    fn shared(&self) -> Option<SharedLog> {
        Some(self.stream.log(self.id))
    }

    fn open(self: Box<Self>, stream: StreamHead) -> Result<Source, StartError> {
        let StreamHead { columns, rows_per_run, begin, fills, .. } = stream;
        let arrivals = Arc::clone(self.stream.arrivals());
        let reader = Box::new(SharedReader::new(self.reader, arrivals, fills, self.lag));
        Ok(Source::new(columns, (None, None), rows_per_run, reader, begin))
    }
}

/// Refuses input that is given out more than once, if its times cannot be moved from round to round.
fn check_repeats(reader: &dyn SourceReader, stream: &StreamStep) -> Result<(), StartError> {
    let Some((_, field)) = stream.time.as_ref().and_then(|time| stream.schema.fields().find(time)) else {
        return Ok(());
    };
    if reader.repeats() && Physical::of(field.data_type()) != Some(Physical::I64) {
        return Err(StartError::Plan(PlanError::Invalid(format!(
            "data that is replayed more than once needs times of 64 bits, to be moved on from round to round; \"{}\" is {}",
            field.name(),
            TypeName(field.data_type())
        ))));
    }
    Ok(())
}
