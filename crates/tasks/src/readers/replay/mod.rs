//! Prepared batches, replayed, perhaps at a fixed rate.
//!
//! Rows become due one by one, at the rate that was asked for, whether the engine keeps up or not: a row that waits
//! because the engine was busy has still arrived when it was due, and its latency says so. Buffers are borrowed and
//! cannot be rewritten, so each round carries one offset, which is added to the times of its rows as runs are cut.
//!
//! - `rounds`: the batches, in order; `pacer`: when rows are due; `waiting`: what waits, for other threads

mod pacer;
mod rounds;
mod waiting;

use std::sync::Arc;

use arrow_array::RecordBatch;
use penstock_memory::SourceColumns;
use penstock_scheduler::table::Pending;
use penstock_types::OutsideError;

use super::{Arrived, Available, Polled, PolledBatch, Position, SeekError, SourceReader};
use crate::account::SourceCounts;
use crate::clock::{SharedClock, Until};
use crate::context::Context;
use crate::error::RunError;
use crate::event_time::EventClock;
use crate::waker::Waker;
use pacer::Pacer;
use penstock_plan::WatermarkFunction;
use rounds::Rounds;
use waiting::{ReplayPending, Waiting};

/// Batches to be replayed.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The batches of one round.
    pub batches: Arc<[RecordBatch]>,
    /// Rows per second; without it, as fast as the engine takes them.
    pub rows_per_second: Option<f64>,
    /// How often they are replayed; for ever without it.
    pub rounds: Option<u64>,
}

/// Reads a replay.
pub struct ReplayReader {
    rounds: Rounds,
    pacer: Option<Pacer>,
    waiting: Arc<Waiting>,
    clock: SharedClock,
    counts: Arc<SourceCounts>,
    arrived_ns: u64,
    /// Rows that were taken and are not done with.
    taken: u64,
}

impl ReplayReader {
    /// Replays batches, by the time of that clock.
    pub fn new(replay: Replay, clock: SharedClock) -> Self {
        let pacer = replay.rows_per_second.map(Pacer::new);
        let due = pacer.as_ref().map(|pacer| Arc::clone(pacer.shown()));
        let rounds = Rounds::new(replay);
        let waiting = Arc::new(Waiting::new(rounds.rows_ahead(), due));
        Self { rounds, pacer, waiting, clock, counts: Arc::default(), arrived_ns: 0, taken: 0 }
    }
}

impl SourceReader for ReplayReader {
    fn connect(&mut self, _waker: &Arc<dyn Waker>, counts: &Arc<SourceCounts>) {
        self.counts = Arc::clone(counts);
    }

    fn prepare(&mut self, columns: &SourceColumns, clock: Option<&EventClock>) {
        let ticks = clock.map_or(0, |clock| clock.round_ticks(columns, self.rounds.batches()));
        self.rounds.set_round_ticks(ticks);
    }

    fn watermark_by(&mut self, function: Option<&Arc<dyn WatermarkFunction>>) -> Result<(), OutsideError> {
        function.map_or(Ok(()), |function| self.rounds.mark(function))
    }

    fn repeats(&self) -> bool {
        self.rounds.repeats()
    }

    fn poll(&mut self, context: &Context) -> Result<Polled, RunError> {
        let Some((rows, offset)) = self.rounds.next().filter(|_| !context.is_draining()) else {
            return Ok(Polled::Ended);
        };
        self.arrived_ns = context.clock().system_ns();
        let waiting = rows.num_rows() as u64 + self.rounds.rows_ahead() + self.taken;
        self.waiting.open(waiting, self.rounds.is_last(), self.arrived_ns);
        Ok(Polled::Batch(PolledBatch {
            rows,
            position: self.rounds.position(),
            arrived_ns: self.arrived_ns,
            arrived_us: context.clock().wall_us(),
            offset,
            watermark: self.rounds.last_mark(),
        }))
    }

    fn available(&mut self, left: usize, context: &Context) -> Available {
        // A replay ends where it is.
        if context.is_draining() {
            return Available::Ended;
        }
        let Some(pacer) = &mut self.pacer else { return Available::Rows(left) };
        let due = pacer.due(context.clock().system_ns());
        self.counts.backlog_rows.set(due);
        self.counts.slipped_ns.set(pacer.slipped_ns());
        let worth = pacer.slice_rows().min(left as u64);
        if due < worth {
            return Available::Until(Until::system(pacer.due_ns(worth)));
        }
        Available::Rows(left.min(usize::try_from(due).unwrap_or(usize::MAX)))
    }

    fn take(&mut self, rows: usize) -> Arrived {
        self.taken += rows as u64;
        let Some(pacer) = &mut self.pacer else {
            return Arrived { first_ns: self.arrived_ns, last_ns: self.arrived_ns };
        };
        let arrived = Arrived { first_ns: pacer.due_ns(0), last_ns: pacer.due_ns(rows as u64) };
        pacer.take(rows as u64);
        arrived
    }

    fn refuse(&mut self, rows: u64) {
        // They were never taken, and what follows is due in their place.
        self.waiting.skip(rows);
    }

    fn acknowledge(&mut self, rows: u64) {
        self.taken -= rows;
        self.waiting.done(rows);
    }

    fn seek(&mut self, position: Position) -> Result<(), SeekError> {
        self.rounds.seek(position)?;
        self.waiting.set_rows(self.rounds.rows_ahead() + self.taken);
        Ok(())
    }

    fn pending(&self) -> Box<dyn Pending> {
        Box::new(ReplayPending::new(Arc::clone(&self.waiting), Arc::clone(&self.clock)))
    }
}

impl Drop for ReplayReader {
    fn drop(&mut self) {
        self.waiting.leave();
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;
    use penstock_queue::log::Work;

    use super::*;
    use crate::clock::tests::Hand;
    use crate::context::Phase;
    use crate::context::tests::context;
    use crate::waker::tests::Counting;

    fn reader(clock: &Arc<Hand>, rows_per_second: Option<f64>) -> ReplayReader {
        let column = Arc::new(Int64Array::from_iter_values(0..10));
        let batch = RecordBatch::try_from_iter([("x", column as _)]).unwrap();
        let replay = Replay { batches: Arc::from([batch]), rows_per_second, rounds: Some(2) };
        ReplayReader::new(replay, Arc::clone(clock) as _)
    }

    fn poll(reader: &mut ReplayReader, context: &Context) -> Option<PolledBatch> {
        match reader.poll(context).unwrap() {
            Polled::Batch(batch) => Some(batch),
            Polled::Ended => None,
            other => panic!("a replay has a batch, or has ended: {other:?}"),
        }
    }

    #[test]
    fn rows_are_pending_until_they_are_acknowledged() {
        let clock = Hand::at(1_000);
        let (mut reader, context) = (reader(&clock, None), context(&clock));
        let (counting, waker) = Counting::pair();
        reader.connect(&waker, &Arc::default());
        waker.set_pending(reader.pending());
        assert_eq!(counting.work(), Work { rows: 20, signals: 0 });
        assert_eq!(poll(&mut reader, &context).unwrap().position, Position(10));
        assert_eq!(reader.available(10, &context), Available::Rows(10));
        assert_eq!(reader.take(10), Arrived { first_ns: 1_000, last_ns: 1_000 });
        assert_eq!(poll(&mut reader, &context).unwrap().position, Position(20));
        assert_eq!(
            counting.work(),
            Work { rows: 20, signals: 1 },
            "of the last batch, the end waits as well"
        );
        reader.acknowledge(10);
        assert_eq!(counting.work().rows, 10);
        reader.refuse(10);
        assert_eq!(counting.work().rows, 0);
        assert!(poll(&mut reader, &context).is_none());
        drop(reader);
        assert_eq!(counting.work(), Work::default());
    }

    #[test]
    fn a_paced_replay_gives_rows_out_as_they_are_due() {
        let clock = Hand::at(5_000);
        let (mut reader, context) = (reader(&clock, Some(1_000.0)), context(&clock));
        let (counting, waker) = Counting::pair();
        let counts: Arc<SourceCounts> = Arc::default();
        reader.connect(&waker, &counts);
        waker.set_pending(reader.pending());
        poll(&mut reader, &context).unwrap();
        let first = 5_000 + 1_000_000;
        assert_eq!(reader.available(10, &context), Available::Until(Until::system(first)));
        clock.set(5_000 + 3_000_000);
        assert_eq!(reader.available(10, &context), Available::Rows(3));
        assert_eq!((counting.work().rows, counts.backlog_rows.get()), (3, 3));
        assert_eq!(reader.take(3), Arrived { first_ns: 5_000, last_ns: 5_000 + 3_000_000 });
        assert_eq!(counting.arrived_ns(), Some(5_000), "they wait until they are done with");
        reader.acknowledge(3);
        assert_eq!((counting.work().rows, counting.arrived_ns()), (0, Some(5_000 + 3_000_000)));
    }

    #[test]
    fn a_replay_that_is_drained_ends_where_it_is() {
        let clock = Hand::at(0);
        let (mut reader, context) = (reader(&clock, None), context(&clock));
        poll(&mut reader, &context).unwrap();
        context.enter(Phase::Draining);
        assert_eq!(reader.available(10, &context), Available::Ended);
        assert!(poll(&mut reader, &context).is_none());
    }

    #[test]
    fn a_replay_goes_on_from_another_position() {
        let clock = Hand::at(0);
        let (mut reader, context) = (reader(&clock, None), context(&clock));
        let (counting, waker) = Counting::pair();
        reader.connect(&waker, &Arc::default());
        waker.set_pending(reader.pending());
        reader.seek(Position(14)).unwrap();
        assert_eq!(counting.work().rows, 6);
        let batch = poll(&mut reader, &context).unwrap();
        assert_eq!((batch.rows.num_rows(), batch.position), (6, Position(20)));
        assert!(reader.seek(Position(21)).is_err());
        reader.seek(Position(0)).unwrap();
        assert_eq!(poll(&mut reader, &context).unwrap().position, Position(10));
    }
}
