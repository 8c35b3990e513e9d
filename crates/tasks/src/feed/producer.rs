//! The end of a feed where batches go in.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use arrow_array::RecordBatch;
use penstock_memory::BatchError;
use penstock_queue::ring::Producer;
use penstock_types::OutsideError;

use super::{DROPPED, FedBatch, FeedHandle, Marker, Shared, locked};
use crate::clock::{Deadline, SharedClock};

/// Where batches go in. Dropping it ends the input.
pub struct Feed {
    /// `None` only while it is dropped.
    producer: Option<Producer<FedBatch>>,
    shared: Arc<Shared>,
    clock: SharedClock,
}

/// The outcome of a push.
#[derive(Debug)]
pub enum Pushed {
    /// The query has the batch.
    Taken,
    /// The feed is still full after the time allowed: the batch comes back.
    Full(RecordBatch),
    /// The query has ended; its outcome says why.
    Ended,
    /// The query takes no more, and is about to end.
    Cut,
    /// The function that gives watermarks pushes to its own feed.
    Itself,
    /// The function that gives watermarks has failed. The batch was not taken.
    Failed(OutsideError),
    /// The batch does not have the columns that the query expects. It was not taken.
    Unfit(BatchError),
}

impl Feed {
    pub(super) fn new(producer: Producer<FedBatch>, shared: Arc<Shared>, clock: SharedClock) -> Self {
        Self { producer: Some(producer), shared, clock }
    }

    fn producer(&mut self) -> &mut Producer<FedBatch> {
        self.producer.as_mut().expect("a feed has its ring until it is dropped")
    }

    /// Refers to this feed.
    pub fn handle(&self) -> FeedHandle {
        FeedHandle(Arc::clone(&self.shared))
    }

    /// Notes that this thread reads the data that goes in.
    pub fn note_puller(&self) {
        *locked(&self.shared.pulling) = Some(thread::current().id());
    }

    /// Notes that the next batch is about to be given out, or was: it is to be pushed even if the input is cut off
    /// meanwhile. False if that has been, unless it was noted before: the batch comes too late.
    pub fn hold(&self) -> bool {
        let mut gate = locked(&self.shared.gate);
        gate.is_held |= !gate.is_cut;
        gate.is_held
    }

    /// Takes the note back, if no batch has followed it: the source may end.
    pub fn release(&self) {
        let was_held = std::mem::take(&mut locked(&self.shared.gate).is_held);
        if was_held {
            self.shared.wake();
        }
    }

    /// Hands a batch over, waiting for room as long as `timeout`.
    pub fn push(&mut self, batch: RecordBatch, timeout: Duration) -> Pushed {
        if self.shared.is_asking_here() {
            return Pushed::Itself;
        }
        // Before it waits for room that it would not use.
        if let Err(error) = locked(&self.shared.reading).check(&batch) {
            return Pushed::Unfit(error);
        }
        let deadline = Deadline::after(&*self.clock, timeout);
        loop {
            if self.is_ended() {
                return Pushed::Ended;
            }
            if locked(&self.shared.gate).is_closed() {
                return Pushed::Cut;
            }
            // No other thread pushes: room that is there stays there.
            if self.producer().room() > 0 {
                break;
            }
            let left = deadline.left(&*self.clock);
            if left.is_zero() {
                return Pushed::Full(batch);
            }
            self.producer().wait_for_room(left);
        }
        let watermark = match self.mark(&batch) {
            Ok(watermark) => watermark,
            Err(refused) => return refused,
        };
        self.put(FedBatch { batch, arrived_ns: self.clock.system_ns(), watermark })
    }

    /// Puts a batch into the room that there is for it.
    fn put(&mut self, arrived: FedBatch) -> Pushed {
        let shared = Arc::clone(&self.shared);
        let rows = arrived.batch.num_rows() as u64;
        let mut gate = locked(&shared.gate);
        if gate.is_closed() {
            return Pushed::Cut;
        }
        shared.arrivals.note(arrived.arrived_ns);
        shared.rows.fetch_add(rows, Ordering::Relaxed);
        shared.empty.fetch_add(u64::from(rows == 0), Ordering::Relaxed);
        if self.producer().try_push(arrived).is_err() {
            shared.rows.fetch_sub(rows, Ordering::Relaxed);
            shared.empty.fetch_sub(u64::from(rows == 0), Ordering::Relaxed);
            return Pushed::Ended;
        }
        shared.arrivals.wrote(rows);
        gate.is_held = false;
        drop(gate);
        shared.wake();
        Pushed::Taken
    }

    /// Returns the watermark after a batch, if a function gives one.
    fn mark(&mut self, batch: &RecordBatch) -> Result<Option<i64>, Pushed> {
        loop {
            let (function, number) = {
                let mut reading = locked(&self.shared.reading);
                // Under the lock under which the query looks at early batches: either of them checks this one.
                reading.check(batch).map_err(Pushed::Unfit)?;
                match &reading.marker {
                    Marker::Function(function) => (Arc::clone(function), reading.number),
                    Marker::None | Marker::Unknown => {
                        reading.keep(batch);
                        return Ok(None);
                    }
                }
            };
            let mark = self.shared.ask(&function, batch).map_err(Pushed::Failed)?;
            let mut reading = locked(&self.shared.reading);
            if reading.number != number {
                continue; // that query did not start, and its function says nothing of this batch
            }
            if !reading.has_started {
                reading.keep(batch);
                reading.marks.push_back(mark);
            }
            return Ok(mark);
        }
    }

    /// Returns true if it is cut off: no batch that is given out from now on goes in (FEED-3).
    pub fn is_cut(&self) -> bool {
        locked(&self.shared.gate).is_closed()
    }

    /// Returns true if the query has ended.
    pub fn is_ended(&mut self) -> bool {
        self.producer().is_closed()
    }

    /// Ends the input with an error: the query fails with it, once it has taken in what came before.
    pub fn fail(self, error: OutsideError) {
        // A feed without a reader has no query to fail; the end is noted before the failure is taken out there.
        let old = locked(&self.shared.failure).replace(error);
        let unread = self.shared.gone.load(Ordering::Acquire).then(|| locked(&self.shared.failure).take());
        drop((old, unread));
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.shared.ended.fetch_or(DROPPED, Ordering::Relaxed);
        // First the end, then the waker (FEED-2).
        self.producer = None;
        self.shared.wake();
    }
}
