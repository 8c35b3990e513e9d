//! Where batches come in: from the thread of whoever has them to the task of the source.
//!
//! F1. A batch that was taken is processed: only a query that fails or is stopped gives it up. Dropping the feed ends
//!     the input behind the last batch.
//! F2. Whoever pushes publishes the batch first and then looks for the bell, under the lock under which the bell is
//!     hung up: a batch that finds no bell is found by the task, which is woken once it is installed.

use std::collections::VecDeque;
use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use penstock_queue::log::Work;
use penstock_queue::ring::{Consumer, Popped, Producer, ring};
use penstock_scheduler::table::Pending;

use crate::clock::now_ns;
use crate::engine::bell::Bell;
use crate::plan::WatermarkFunction;

/// Batches that may wait for the source by default.
pub const FEED_BATCHES: usize = 4;

/// What went wrong outside of the engine.
pub type OutsideError = Box<dyn Error + Send + Sync>;

/// A batch on its way in.
pub(crate) struct Arrived {
    pub(crate) batch: RecordBatch,
    pub(crate) arrived_ns: u64,
    /// How far event time has come behind it, if a function says that.
    pub(crate) watermark: Option<i64>,
}

/// Who says how far event time has come behind a batch.
#[derive(Default)]
enum Marker {
    /// Nobody knows yet: batches that come before the query are looked at when it does.
    #[default]
    Unknown,
    Nobody,
    Function(Arc<dyn WatermarkFunction>),
}

#[derive(Default)]
struct Marking {
    marker: Marker,
    /// Batches that came before it was known, and what was said of them then.
    early: VecDeque<RecordBatch>,
    marks: VecDeque<Option<i64>>,
}

#[derive(Default)]
struct Shared {
    bell: Mutex<Option<Arc<Bell>>>,
    failure: Mutex<Option<OutsideError>>,
    marking: Mutex<Marking>,
    rows: AtomicU64,
    /// 1 once the producer has left.
    ended: AtomicU64,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn ring(&self) {
        let bell = locked(&self.bell).clone();
        if let Some(bell) = bell {
            bell.ring();
        }
    }
}

/// Looks up what waits in a feed.
struct FeedPending(Arc<Shared>);

impl Pending for FeedPending {
    fn work(&self) -> Work {
        // Relaxed: numbers to decide by. The rows rise before the batch is there.
        Work { rows: self.0.rows.load(Ordering::Relaxed), signals: self.0.ended.load(Ordering::Relaxed) }
    }
}

/// Where batches go in. Dropping it ends the input.
pub struct Feed {
    /// `None` only while it is dropped.
    producer: Option<Producer<Arrived>>,
    shared: Arc<Shared>,
}

/// The other end, for [`crate::Engine::submit`].
pub struct FeedEnd {
    consumer: Consumer<Arrived>,
    shared: Arc<Shared>,
}

/// A feed in which up to `batches` batches wait.
///
/// # Panics
/// When `batches` is zero.
pub fn feed(batches: usize) -> (Feed, FeedEnd) {
    let (producer, consumer) = ring(batches);
    let shared = Arc::new(Shared::default());
    (Feed { producer: Some(producer), shared: Arc::clone(&shared) }, FeedEnd { consumer, shared })
}

/// What became of a batch that was pushed.
#[derive(Debug)]
pub enum Pushed {
    /// The query has it.
    Taken,
    /// The feed is still full after the time allowed: here it is again.
    Full(RecordBatch),
    /// The query has ended; its outcome says why.
    Ended,
    /// The function that says how far event time has come has failed. The batch was not taken.
    Failed(OutsideError),
}

impl Feed {
    fn producer(&mut self) -> &mut Producer<Arrived> {
        self.producer.as_mut().expect("a feed has its ring until it is dropped")
    }

    /// Hands a batch over, waiting for room as long as `timeout`.
    pub fn push(&mut self, batch: RecordBatch, timeout: Duration) -> Pushed {
        let rows = batch.num_rows() as u64;
        let watermark = match self.mark(&batch) {
            Ok(watermark) => watermark,
            Err(error) => return Pushed::Failed(error),
        };
        let arrived = Arrived { batch, arrived_ns: now_ns(), watermark };
        self.shared.rows.fetch_add(rows, Ordering::Relaxed);
        let deadline = Instant::now().checked_add(timeout);
        let mut given = self.producer().try_push(arrived);
        while let Err(back) = given {
            let left =
                deadline.map_or(timeout, |deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_zero() || self.is_ended() {
                self.shared.rows.fetch_sub(rows, Ordering::Relaxed);
                self.unmark();
                return if self.is_ended() { Pushed::Ended } else { Pushed::Full(back.batch) };
            }
            self.producer().wait_for_room(left);
            given = self.producer().try_push(back);
        }
        self.shared.ring();
        Pushed::Taken
    }

    /// How far event time has come behind a batch, if a function says that.
    fn mark(&mut self, batch: &RecordBatch) -> Result<Option<i64>, OutsideError> {
        let function = {
            let mut marking = locked(&self.shared.marking);
            match &marking.marker {
                Marker::Nobody => return Ok(None),
                Marker::Function(function) => Arc::clone(function),
                Marker::Unknown => {
                    marking.early.push_back(batch.clone());
                    return Ok(None);
                }
            }
        };
        function.call(batch)
    }

    /// Forgets the batch that was marked last, since it was not taken.
    fn unmark(&mut self) {
        let mut marking = locked(&self.shared.marking);
        if matches!(marking.marker, Marker::Unknown) {
            marking.early.pop_back();
        }
    }

    /// Whether the query has ended.
    pub fn is_ended(&mut self) -> bool {
        self.producer().is_closed()
    }

    /// Ends the input with an error: the query fails with it, once it has taken in what came before.
    pub fn fail(self, error: OutsideError) {
        *locked(&self.shared.failure) = Some(error);
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.shared.ended.store(1, Ordering::Relaxed);
        // First the end, then the bell (F2).
        self.producer = None;
        self.shared.ring();
    }
}

/// What a source finds in its feed.
pub(crate) enum Fed {
    Batch(Arrived),
    Nothing,
    Ended,
    Failed(OutsideError),
}

impl FeedEnd {
    pub(crate) fn hang(&self, bell: &Arc<Bell>) {
        *locked(&self.shared.bell) = Some(Arc::clone(bell));
    }

    /// From now on that function says how far event time has come; also behind the batches that are there already.
    pub(crate) fn set_marker(
        &self,
        function: Option<&Arc<dyn WatermarkFunction>>,
    ) -> Result<(), OutsideError> {
        let mut marking = locked(&self.shared.marking);
        let early = std::mem::take(&mut marking.early);
        let Some(function) = function else {
            marking.marker = Marker::Nobody;
            return Ok(());
        };
        for batch in &early {
            let mark = function.call(batch)?;
            marking.marks.push_back(mark);
        }
        marking.marker = Marker::Function(Arc::clone(function));
        Ok(())
    }

    pub(crate) fn pending(&self) -> Box<dyn Pending> {
        Box::new(FeedPending(Arc::clone(&self.shared)))
    }

    pub(crate) fn take(&mut self) -> Fed {
        match self.consumer.pop() {
            Popped::Value(mut arrived) => {
                if arrived.watermark.is_none() {
                    arrived.watermark = locked(&self.shared.marking).marks.pop_front().flatten();
                }
                self.shared.rows.fetch_sub(arrived.batch.num_rows() as u64, Ordering::Relaxed);
                Fed::Batch(arrived)
            }
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
        // The bell leads to the queue of the engine, which a feed must not keep alive.
        *locked(&self.shared.bell) = None;
    }
}
