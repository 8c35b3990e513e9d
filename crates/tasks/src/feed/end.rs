//! The end of a feed that a source reads.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow_schema::SchemaRef;
use penstock_memory::SourceColumns;
use penstock_queue::ring::{Consumer, Popped};
use penstock_scheduler::table::Pending;
use penstock_types::OutsideError;

use super::{FedBatch, FeedHandle, FeedPending, Marker, Shared, locked};
use crate::error::RunError;
use crate::waker::Waker;
use penstock_plan::WatermarkFunction;

/// The end of a feed that a source reads.
pub struct FeedEnd {
    /// The ring, once the query has taken something (FEED-5).
    consumer: Option<Consumer<FedBatch>>,
    /// `None` for the end that lends others.
    number: Option<u64>,
    shared: Arc<Shared>,
}

/// What a source finds in its feed.
pub enum Fed {
    /// A batch.
    Batch(FedBatch),
    /// Nothing now.
    Nothing,
    /// Nothing now or ever.
    Ended,
    /// The producer has failed.
    Failed(OutsideError),
}

impl FeedEnd {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { consumer: None, number: None, shared }
    }

    /// Says whom to wake when a batch comes.
    pub fn connect(&self, waker: &Arc<dyn Waker>) {
        *locked(&self.shared.waker) = Some(Arc::clone(waker));
    }

    /// Lends the feed to a query that is about to be started. If that fails, `take_back` makes it free for another one:
    /// no batch has been taken. Any end that was lent before has no part in the feed any more.
    pub fn lend(&self) -> Self {
        Self { consumer: None, number: Some(self.shared.renew()), shared: Arc::clone(&self.shared) }
    }

    /// Takes the feed back from a query that could not be started, and forgets what that has asked for. False if it has
    /// started.
    pub fn take_back(&self) -> bool {
        let is_free = !locked(&self.shared.reading).has_started;
        if is_free {
            self.shared.renew();
        }
        is_free
    }

    /// Requires batches to have these columns from now on: a push of any other is refused.
    ///
    /// # Errors
    /// A batch that was pushed before does not fit: its number, and what is wrong with it. Then nothing has changed.
    pub fn expect(&self, schema: &SchemaRef) -> Result<(), RunError> {
        let mut reading = locked(&self.shared.reading);
        for (number, batch) in reading.early.iter().enumerate() {
            SourceColumns::check(schema, batch)
                .map_err(|error| RunError::Batch { number: number as u64, error })?;
        }
        reading.expected = Some(Arc::clone(schema));
        Ok(())
    }

    /// Has that function give the watermark after each batch; also of those that are there already.
    ///
    /// # Errors
    /// What the function has raised.
    pub fn set_marker(&self, function: Option<&Arc<dyn WatermarkFunction>>) -> Result<(), OutsideError> {
        let Some(function) = function else {
            locked(&self.shared.reading).marker = Marker::None;
            return Ok(());
        };
        // Batches that come meanwhile follow those that are there: no more than there is room for.
        loop {
            let batch = {
                let mut reading = locked(&self.shared.reading);
                let Some(batch) = reading.early.get(reading.marks.len()) else {
                    reading.marker = Marker::Function(Arc::clone(function));
                    return Ok(());
                };
                batch.clone()
            };
            let mark = self.shared.ask(function, &batch)?;
            locked(&self.shared.reading).marks.push_back(mark);
        }
    }

    /// Refers to this feed.
    pub fn handle(&self) -> FeedHandle {
        FeedHandle(Arc::clone(&self.shared))
    }

    /// Returns a look at what waits in the feed.
    pub fn pending(&self) -> Box<dyn Pending> {
        Box::new(FeedPending(Arc::clone(&self.shared)))
    }

    /// Notes that so many rows of what was taken are done with: until then they are pending.
    pub fn done(&self, rows: u64) {
        self.shared.rows.fetch_sub(rows, Ordering::Relaxed);
    }

    /// Returns the ring, if this end may read it by now (FEED-5).
    fn ring(&mut self) -> Option<&mut Consumer<FedBatch>> {
        if self.consumer.is_none() {
            let mut reading = locked(&self.shared.reading);
            if reading.has_started && self.number.is_none_or(|number| number == reading.number) {
                self.consumer = reading.consumer.take();
            }
        }
        self.consumer.as_mut()
    }

    /// Takes the next batch.
    pub fn take(&mut self) -> Fed {
        let is_closed = locked(&self.shared.gate).is_closed(); // FEED-3
        let Some(ring) = self.ring() else { return Fed::Nothing };
        match ring.pop() {
            Popped::Value(mut arrived) => {
                // Those that came before the query had started are the first ones.
                if let Some(mark) = locked(&self.shared.reading).marks.pop_front() {
                    arrived.watermark = mark;
                }
                let is_empty = arrived.batch.num_rows() == 0;
                self.shared.empty.fetch_sub(u64::from(is_empty), Ordering::Relaxed);
                Fed::Batch(arrived)
            }
            Popped::Empty if is_closed => Fed::Ended,
            Popped::Empty => Fed::Nothing,
            Popped::Closed => match locked(&self.shared.failure).take() {
                Some(error) => Fed::Failed(error),
                None => Fed::Ended,
            },
        }
    }
}

impl Drop for FeedEnd {
    fn drop(&mut self) {
        let ring = {
            let mut reading = locked(&self.shared.reading);
            let is_last = match self.number {
                None => reading.number == 0 || !reading.has_started,
                Some(number) => number == reading.number && reading.has_started,
            };
            if !is_last {
                return; // another query reads the feed, or may do so later (FEED-5)
            }
            reading.consumer.take()
        };
        drop(ring);
        // Release: a producer that finds it set leaves no failure behind that was not taken out here.
        self.shared.gone.store(true, Ordering::Release);
        // The waker leads to the queue of the engine, which a feed must not keep alive; nor does it keep what only the
        // source would have asked for.
        *locked(&self.shared.waker) = None;
        let mut reading = locked(&self.shared.reading);
        let (marker, early) = (std::mem::take(&mut reading.marker), std::mem::take(&mut reading.early));
        drop(reading);
        let failure = locked(&self.shared.failure).take();
        drop((marker, early, failure)); // which may run any code
    }
}
