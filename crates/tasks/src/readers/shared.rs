//! The log of a shared source: rows that are in columns already, between signals.
//!
//! Event time was read where the rows came in, once for all queries, and watermarks are in the log. The reader skips rows
//! when the source asks for that, and leaves the source when its query is drained.

use std::sync::Arc;

use penstock_memory::edge::EdgeNext;
use penstock_memory::{EdgeReader, Run, Signal, SlotId};
use penstock_scheduler::Arrivals;
use penstock_scheduler::table::Pending;
use penstock_types::OutsideError;

use super::{Arrived, Begun, Polled, Position, SeekError, Skipped, SourceReader};
use crate::account::SourceCounts;
use crate::context::Context;
use crate::error::RunError;
use crate::pending::{EdgeLook, EdgesPending};
use crate::shared::Lag;
use crate::waker::Waker;
use penstock_plan::WatermarkFunction;

/// Reads the log of a shared source.
pub struct SharedReader {
    /// `None` once the query was drained and has left: the source goes on without it.
    edge: Option<EdgeReader>,
    look: EdgeLook,
    /// The slots that the columns of the log fill.
    slots: Vec<SlotId>,
    lag: Arc<Lag>,
    counts: Arc<SourceCounts>,
    position: Position,
    /// Rows of the run at hand.
    taken: usize,
    /// Rows that are still taken, once the query is drained: those that the source had read by then.
    last: Option<u64>,
    /// The watermark that rows are judged by, where a signal has said so.
    judge: Option<i64>,
    has_ended: bool,
}

impl SharedReader {
    /// Reads a log, whose rows arrived as `arrivals` says, into these slots.
    pub fn new(edge: EdgeReader, arrivals: Arc<Arrivals>, slots: Vec<SlotId>, lag: Arc<Lag>) -> Self {
        let look = (edge.gauge(), arrivals);
        let (counts, position, taken, last, judge) = Default::default();
        Self { edge: Some(edge), look, slots, lag, counts, position, taken, last, judge, has_ended: false }
    }

    /// Returns the rows that may still be taken.
    fn limit(&self) -> usize {
        self.last.map_or(usize::MAX, |last| usize::try_from(last).unwrap_or(usize::MAX))
    }
}

impl SourceReader for SharedReader {
    fn connect(&mut self, waker: &Arc<dyn Waker>, counts: &Arc<SourceCounts>) {
        self.lag.connect(waker);
        self.counts = Arc::clone(counts);
    }

    fn watermark_by(&mut self, _function: Option<&Arc<dyn WatermarkFunction>>) -> Result<(), OutsideError> {
        Ok(()) // the source has asked it
    }

    fn poll(&mut self, context: &Context) -> Result<Polled, RunError> {
        loop {
            let Some(edge) = &mut self.edge else { return Ok(Polled::Pending) };
            if context.is_draining() && !self.has_ended {
                // However far the source goes on.
                let last = *self.last.get_or_insert(edge.pending());
                // Signals after the last of these rows are taken: a source that has failed has nothing else after them.
                if last == 0 && matches!(edge.peek(1), EdgeNext::Rows(_) | EdgeNext::Nothing) {
                    // No run is at hand (TASK-2). Other inputs may take long to end, and the source must not wait.
                    (self.edge, self.has_ended) = (None, true);
                    return Ok(Polled::Ended);
                }
            }
            match edge.peek(1) {
                // They came just now, and are left to other readers.
                EdgeNext::Rows(_) if self.last == Some(0) => {}
                EdgeNext::Rows(_) => return Ok(Polled::Rows),
                EdgeNext::Watermark(watermark) => {
                    edge.pass();
                    return Ok(Polled::Watermark(watermark));
                }
                EdgeNext::Signal(signal) => {
                    edge.pass();
                    match signal {
                        Signal::Judge { watermark } => self.judge = Some(watermark),
                        Signal::End => {
                            self.has_ended = true;
                            return Ok(Polled::Ended);
                        }
                        Signal::Idle
                        | Signal::Arrival { .. }
                        | Signal::Marker { .. }
                        | Signal::Results { .. } => return Ok(Polled::Signal(signal)),
                    }
                }
                EdgeNext::Nothing => return Ok(Polled::Pending),
                // A writer that left without an end has failed, or was stopped.
                EdgeNext::Closed if !self.has_ended => return Err(RunError::SourceEnded),
                EdgeNext::Closed => return Ok(Polled::Pending),
            }
        }
    }

    fn begin(&mut self, run: &mut Run, limit: usize) -> Begun {
        let limit = limit.min(self.limit());
        let edge = self.edge.as_mut().expect("rows were polled");
        let watermark = self.judge.unwrap_or_else(|| edge.watermark());
        let EdgeNext::Rows(rows) = edge.peek(limit) else { unreachable!("rows were polled") };
        self.taken = rows.len();
        rows.begin(run, &self.slots);
        run.note_watermark(watermark);
        self.last = self.last.map(|last| last - self.taken as u64);
        self.position.0 += self.taken as u64;
        let (_, arrivals) = &self.look;
        let arrived_ns = arrivals.next_ns(|| edge.pending());
        let arrived = arrived_ns.map(|ns| Arrived { first_ns: ns, last_ns: ns });
        Begun { rows: self.taken, arrived }
    }

    fn acknowledge(&mut self, rows: u64) {
        let rows = usize::try_from(rows).expect("they are of one run");
        self.taken -= rows;
        if let Some(edge) = &mut self.edge {
            edge.advance(rows);
        }
    }

    fn skip_backlog(&mut self) -> Option<Skipped> {
        if !self.lag.take_request() {
            return None;
        }
        let edge = self.edge.as_mut()?;
        // The run at hand keeps its rows.
        edge.advance(std::mem::take(&mut self.taken));
        let mut skipped = Skipped::default();
        loop {
            match edge.peek(usize::MAX) {
                EdgeNext::Rows(found) => {
                    let found = found.len();
                    skipped.rows += found as u64;
                    edge.advance(found);
                    skipped.is_awake = Some(true);
                    continue;
                }
                EdgeNext::Watermark(found) => {
                    (skipped.watermark, skipped.is_awake) = (Some(found), Some(true));
                }
                EdgeNext::Signal(Signal::Idle) => skipped.is_awake = Some(false),
                EdgeNext::Signal(Signal::Arrival { at_ns }) => skipped.arrived_ns = Some(at_ns),
                EdgeNext::Signal(Signal::End) => {
                    (skipped.has_ended, self.has_ended) = (true, true);
                }
                EdgeNext::Signal(Signal::Judge { watermark }) => self.judge = Some(watermark),
                EdgeNext::Signal(Signal::Marker { .. } | Signal::Results { .. }) => {}
                EdgeNext::Nothing | EdgeNext::Closed => break,
            }
            edge.pass();
        }
        self.last = self.last.map(|last| last.saturating_sub(skipped.rows));
        self.position.0 += skipped.rows;
        self.counts.shed.add(skipped.rows);
        Some(skipped)
    }

    fn seek(&mut self, position: Position) -> Result<(), SeekError> {
        if position == self.position {
            return Ok(());
        }
        Err(SeekError::NotKept { what: "shared source" })
    }

    fn pending(&self) -> Box<dyn Pending> {
        Box::new(EdgesPending::new(vec![self.look.clone()], None))
    }

    fn watermark(&self, partition: usize) -> Option<i64> {
        self.edge.as_ref().filter(|_| partition == 0).map(EdgeReader::watermark)
    }
}

#[cfg(test)]
mod tests {
    use penstock_memory::{
        ColumnKind, Coordinator, EdgeWriter, Layout, LogOptions, MemoryKind, Physical, Values,
    };
    use penstock_queue::log::Work;
    use penstock_queue::wake::Wake;

    use super::*;
    use crate::clock::tests::Hand;
    use crate::context::Phase;
    use crate::context::tests::context;
    use crate::shared::OnLag;
    use crate::waker::tests::Counting;

    struct Reading {
        writer: EdgeWriter,
        reader: SharedReader,
        waker: Arc<Counting>,
        lag: Arc<Lag>,
        context: Context,
        run: Run,
    }

    fn reading(kind: MemoryKind) -> Reading {
        let memory = Coordinator::new(penstock_memory::coordinator::CoordinatorOptions::default()).unwrap();
        let wide = ColumnKind { physical: Physical::I64, nullable: false };
        let wake: Arc<dyn Wake> = Counting::pair().1;
        let layout = Layout::new(vec![wide]);
        let mut writer =
            EdgeWriter::new(kind, layout, &LogOptions::default(), &memory, Arc::clone(&wake)).unwrap();
        let (waker, as_waker) = Counting::pair();
        let lag = Lag::new(OnLag::Shed);
        let edge = writer.join(Arc::clone(&waker) as _).unwrap();
        let mut reader = SharedReader::new(edge, Arc::default(), vec![0], Arc::clone(&lag));
        reader.connect(&as_waker, &Arc::default());
        as_waker.set_pending(reader.pending());
        let mut run = Run::new();
        run.add_slot(Physical::I64);
        Reading { writer, reader, waker, lag, context: context(&Hand::at(0)), run }
    }

    impl Reading {
        fn write(&mut self, values: std::ops::Range<i64>) {
            let mut run = Run::new();
            run.add_slot(Physical::I64);
            let values: Vec<i64> = values.collect();
            run.begin_owned(values.len());
            let mut column = run.scratch(Physical::I64);
            column.refill::<i64>().extend(&values);
            run.put(0, column);
            run.settle(&[0]);
            assert!(self.writer.room() >= values.len());
            self.writer.append(&[run.piece(0)], 0, values.len());
        }

        /// The next rows, at most so many of them.
        fn take(&mut self, limit: usize) -> Vec<i64> {
            assert!(matches!(self.reader.poll(&self.context), Ok(Polled::Rows)));
            let begun = self.reader.begin(&mut self.run, limit);
            self.run.ready(&[0]);
            let Values::I64(values) = self.run.column(0).values else { panic!("they are wide") };
            assert_eq!(values.len(), begun.rows);
            values.to_vec()
        }

        fn acknowledge(&mut self, rows: u64) {
            self.run.close();
            self.reader.acknowledge(rows);
        }
    }

    #[test]
    fn rows_are_pending_until_they_are_acknowledged() {
        for (_, kind) in MemoryKind::NAMES {
            let mut reading = reading(kind);
            assert!(matches!(reading.reader.poll(&reading.context), Ok(Polled::Pending)));
            reading.write(0..5);
            assert!(reading.writer.watermark(40));
            assert_eq!(reading.take(3), [0, 1, 2]);
            assert_eq!(reading.waker.work().rows, 5, "what was taken is not done with");
            reading.acknowledge(3);
            assert_eq!(reading.waker.work().rows, 2);
            assert_eq!(reading.take(100), [3, 4]);
            reading.acknowledge(2);
            assert!(matches!(reading.reader.poll(&reading.context), Ok(Polled::Watermark(40))));
            assert_eq!(reading.reader.watermark(0), Some(40));
            assert_eq!(reading.waker.work(), Work::default());
            assert_eq!(reading.reader.seek(Position(5)), Ok(()));
            let gone = SeekError::NotKept { what: "shared source" };
            assert_eq!(reading.reader.seek(Position(0)), Err(gone));
        }
    }

    #[test]
    fn signals_come_in_band_and_the_end_once() {
        let mut reading = reading(MemoryKind::Blocks);
        reading.writer.signal(Signal::Idle).unwrap();
        reading.writer.signal(Signal::End).unwrap();
        assert!(matches!(reading.reader.poll(&reading.context), Ok(Polled::Signal(Signal::Idle))));
        assert!(matches!(reading.reader.poll(&reading.context), Ok(Polled::Ended)));
        drop(reading.writer);
        assert!(matches!(reading.reader.poll(&reading.context), Ok(Polled::Pending)));
    }

    #[test]
    fn a_source_that_leaves_without_an_end_has_failed() {
        let mut reading = reading(MemoryKind::Blocks);
        drop(reading.writer);
        assert!(matches!(reading.reader.poll(&reading.context), Err(RunError::SourceEnded)));
    }

    #[test]
    fn a_query_that_is_drained_takes_what_was_there_and_leaves() {
        let mut reading = reading(MemoryKind::Blocks);
        reading.write(0..3);
        reading.context.enter(Phase::Draining);
        assert_eq!(reading.take(100), [0, 1, 2]);
        reading.write(3..6);
        reading.acknowledge(3);
        assert!(matches!(reading.reader.poll(&reading.context), Ok(Polled::Ended)));
        assert!(matches!(reading.reader.poll(&reading.context), Ok(Polled::Pending)), "it ends once");
        assert_eq!(reading.reader.watermark(0), None, "it has left the source");
    }

    #[test]
    fn a_query_that_is_to_shed_skips_what_waits_and_keeps_what_is_at_hand() {
        let mut reading = reading(MemoryKind::Blocks);
        let counts: Arc<SourceCounts> = Arc::default();
        reading.reader.counts = Arc::clone(&counts);
        reading.write(0..4);
        assert_eq!(reading.take(1), [0]);
        assert!(reading.writer.watermark(7));
        assert!(reading.reader.skip_backlog().is_none(), "the source has not asked for it");
        reading.lag.request_shed();
        let skipped = reading.reader.skip_backlog().unwrap();
        assert_eq!((skipped.rows, skipped.watermark, skipped.is_awake), (3, Some(7), Some(true)));
        assert_eq!((counts.shed.get(), reading.waker.work().rows), (3, 0));
        reading.acknowledge(0);
        reading.write(4..5);
        assert_eq!(reading.take(9), [4]);
    }
}
