//! Batches that another thread pushes: the reader at the end of a [`feed`](crate::feed).

use std::sync::Arc;

use penstock_scheduler::table::Pending;
use penstock_types::OutsideError;

use super::{Arrived, Polled, PolledBatch, Position, SeekError, SourceReader};
use crate::account::SourceCounts;
use crate::context::Context;
use crate::error::RunError;
use crate::feed::{Fed, FeedEnd, FeedHandle};
use crate::waker::Waker;
use penstock_plan::WatermarkFunction;

/// Reads a feed.
pub struct PushReader {
    end: FeedEnd,
    position: Position,
    arrived_ns: u64,
    /// The watermark after the batch that was polled last, if a function has said one.
    watermark: Option<i64>,
}

impl PushReader {
    /// Reads what comes out at `end`.
    pub fn new(end: FeedEnd) -> Self {
        Self { end, position: Position::default(), arrived_ns: 0, watermark: None }
    }

    /// Refers to the feed.
    pub fn handle(&self) -> FeedHandle {
        self.end.handle()
    }
}

impl SourceReader for PushReader {
    fn connect(&mut self, waker: &Arc<dyn Waker>, _counts: &Arc<SourceCounts>) {
        self.end.connect(waker);
    }

    fn watermark_by(&mut self, function: Option<&Arc<dyn WatermarkFunction>>) -> Result<(), OutsideError> {
        self.end.set_marker(function)
    }

    fn poll(&mut self, context: &Context) -> Result<Polled, RunError> {
        Ok(match self.end.take() {
            Fed::Batch(fed) => {
                self.position.0 += fed.batch.num_rows() as u64;
                self.arrived_ns = fed.arrived_ns;
                self.watermark = self.watermark.max(fed.watermark);
                Polled::Batch(PolledBatch {
                    rows: fed.batch,
                    position: self.position,
                    arrived_ns: fed.arrived_ns,
                    arrived_us: context.clock().wall_us_at(fed.arrived_ns),
                    offset: 0,
                    watermark: fed.watermark,
                })
            }
            Fed::Nothing => Polled::Pending,
            Fed::Ended => Polled::Ended,
            Fed::Failed(error) => return Err(RunError::Outside { what: "source", error }),
        })
    }

    fn take(&mut self, _rows: usize) -> Arrived {
        Arrived { first_ns: self.arrived_ns, last_ns: self.arrived_ns }
    }

    fn acknowledge(&mut self, rows: u64) {
        self.end.done(rows);
    }

    fn seek(&mut self, position: Position) -> Result<(), SeekError> {
        if position == self.position {
            return Ok(());
        }
        Err(SeekError::NotKept { what: "feed" })
    }

    fn pending(&self) -> Box<dyn Pending> {
        self.end.pending()
    }

    fn watermark(&self, partition: usize) -> Option<i64> {
        self.watermark.filter(|_| partition == 0)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use arrow_array::{Int64Array, RecordBatch};
    use penstock_queue::log::Work;

    use super::*;
    use crate::clock::tests::Hand;
    use crate::context::tests::context;
    use crate::feed::{Feed, Pushed, feed};
    use crate::waker::tests::Counting;

    fn batch(rows: i64) -> RecordBatch {
        RecordBatch::try_from_iter([("x", Arc::new(Int64Array::from_iter_values(0..rows)) as _)]).unwrap()
    }

    struct Pushing {
        clock: Arc<Hand>,
        context: Context,
        feed: Feed,
        reader: PushReader,
        waker: Arc<Counting>,
    }

    fn pushing() -> Pushing {
        let clock = Hand::at(1_000);
        let (feed, end) = feed(2, Arc::clone(&clock) as _);
        end.handle().start();
        let mut reader = PushReader::new(end);
        reader.watermark_by(None).unwrap();
        let (counting, waker) = Counting::pair();
        reader.connect(&waker, &Arc::default());
        waker.set_pending(reader.pending());
        Pushing { context: context(&clock), clock, feed, reader, waker: counting }
    }

    #[test]
    fn rows_are_pending_until_they_are_acknowledged() {
        let Pushing { clock, context, mut feed, mut reader, waker } = pushing();
        assert!(matches!(reader.poll(&context), Ok(Polled::Pending)));
        assert!(matches!(feed.push(batch(3), Duration::ZERO), Pushed::Taken));
        assert_eq!((waker.take(), waker.work()), (1, Work { rows: 3, signals: 0 }));
        clock.set(9_000);
        let Ok(Polled::Batch(polled)) = reader.poll(&context) else { panic!("a batch was pushed") };
        assert_eq!((polled.position, polled.arrived_ns, polled.arrived_us), (Position(3), 1_000, 1));
        assert_eq!(reader.take(2), Arrived { first_ns: 1_000, last_ns: 1_000 });
        assert_eq!(waker.work().rows, 3, "what was taken is not done with");
        reader.acknowledge(2);
        assert_eq!(waker.work().rows, 1);
        reader.refuse(1);
        assert_eq!(waker.work().rows, 0);
        drop(feed);
        assert_eq!(waker.work(), Work { rows: 0, signals: 1 }, "the end waits");
        assert!(matches!(reader.poll(&context), Ok(Polled::Ended)));
    }

    #[test]
    fn a_feed_that_fails_fails_the_query_after_its_last_batch() {
        let Pushing { context, mut feed, mut reader, .. } = pushing();
        assert!(matches!(feed.push(batch(1), Duration::ZERO), Pushed::Taken));
        feed.fail("the disk is gone".into());
        assert!(matches!(reader.poll(&context), Ok(Polled::Batch(_))));
        let failed = reader.poll(&context).unwrap_err();
        assert_eq!(failed.to_string(), "the source failed: the disk is gone");
    }

    #[test]
    fn what_was_pushed_cannot_be_read_again() {
        let Pushing { context, mut feed, mut reader, .. } = pushing();
        assert!(matches!(feed.push(batch(4), Duration::ZERO), Pushed::Taken));
        assert!(matches!(reader.poll(&context), Ok(Polled::Batch(_))));
        assert_eq!(reader.seek(Position(4)), Ok(()), "it is there");
        assert_eq!(reader.seek(Position(0)), Err(SeekError::NotKept { what: "feed" }));
        assert_eq!((reader.partitions(), reader.watermark(0)), (1, None));
    }
}
