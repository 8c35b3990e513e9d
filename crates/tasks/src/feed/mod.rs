//! Where batches come in from other threads: a bounded ring from a producer to the task of a source.
//!
//! FEED-1. A batch that was taken is processed: only a query that fails or is stopped gives it up. Dropping the feed ends
//!     the input after the last batch.
//! FEED-2. The producer publishes a batch first and then looks for the waker, under the lock under which the waker is set:
//!     a batch that finds no waker is found by the task, which is woken once it is installed.
//! FEED-3. Whether the feed is cut off is settled under the lock under which a batch goes in: once `cut` has returned, none
//!     does, except for one that its producer had given out, or promised, before: [`Feed::hold`]. The task looks
//!     at both before it looks for a batch, so it ends after the last one.
//! FEED-4. The function that gives watermarks is called once for each batch, in order, when there is room for it, without
//!     any lock, and never inside a push of its own. A query that does not start leaves its answers behind: the next one
//!     asks again, from the first batch on.
//! FEED-5. Nothing is taken from the feed before its query has started, and until then the ring belongs to the feed: a
//!     query that could not be started leaves every batch to the next one. Each end that was lent has a number, and only
//!     the last one may read.
//!
//! - `producer`: where batches go in; `end`: where the source takes them out; this file: what both share

mod end;
mod producer;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use penstock_memory::{BatchError, SourceColumns};
use penstock_queue::log::Work;
use penstock_queue::ring::{Consumer, ring};
use penstock_scheduler::Arrivals;
use penstock_scheduler::table::Pending;
use penstock_types::OutsideError;

pub use end::{Fed, FeedEnd};
pub use producer::{Feed, Pushed};

use crate::clock::SharedClock;
use crate::waker::Waker;
use penstock_plan::WatermarkFunction;

/// Batches that may wait for the source by default.
pub const FEED_BATCHES: usize = 4;

/// The feed was dropped.
const DROPPED: u64 = 1;
/// The query takes no more.
const CUT: u64 = 2;

/// A batch on its way in.
pub struct FedBatch {
    /// The rows.
    pub batch: RecordBatch,
    /// When it was pushed, by the time of the system.
    pub arrived_ns: u64,
    /// The watermark after it, if a function gives one.
    pub watermark: Option<i64>,
}

/// What gives the watermark after a batch.
#[derive(Default)]
enum Marker {
    /// Not known yet: batches that come before the query are looked at when it comes.
    #[default]
    Unknown,
    None,
    Function(Arc<dyn WatermarkFunction>),
}

/// The query that reads the feed, and what it has said about batches.
#[derive(Default)]
struct Subscription {
    /// The number of the end that may read (FEED-5).
    number: u64,
    has_started: bool,
    /// The ring, until the end that reads it takes its first batch.
    consumer: Option<Consumer<FedBatch>>,
    marker: Marker,
    /// The columns that batches must have, once a query has said so.
    expected: Option<SchemaRef>,
    /// Batches that came before the query had started. Those that a function was asked about have a mark each.
    early: VecDeque<RecordBatch>,
    marks: VecDeque<Option<i64>>,
}

impl Subscription {
    fn check(&self, batch: &RecordBatch) -> Result<(), BatchError> {
        self.expected.as_ref().map_or(Ok(()), |schema| SourceColumns::check(schema, batch))
    }

    /// Keeps a batch for the next query, in case this one does not start.
    fn keep(&mut self, batch: &RecordBatch) {
        if !self.has_started {
            self.early.push_back(batch.clone());
        }
    }
}

/// Whether batches go in (FEED-3).
#[derive(Default)]
struct Intake {
    is_cut: bool,
    /// Whether one is on its way that was given out, or promised, before the cut.
    is_held: bool,
}

impl Intake {
    fn is_closed(&self) -> bool {
        self.is_cut && !self.is_held
    }
}

#[derive(Default)]
struct Shared {
    waker: Mutex<Option<Arc<dyn Waker>>>,
    failure: Mutex<Option<OutsideError>>,
    reading: Mutex<Subscription>,
    /// The thread that is inside the function of the marker.
    asking: Mutex<Option<ThreadId>>,
    /// The thread that reads data of others into the feed.
    pulling: Mutex<Option<ThreadId>>,
    gate: Mutex<Intake>,
    /// Rows that were pushed and are not done with, also those of the batch that the source has taken.
    rows: AtomicU64,
    /// Batches without rows, which may still move the watermark.
    empty: AtomicU64,
    arrivals: Arrivals,
    /// Why no other batch comes, [`DROPPED`] or [`CUT`]: then the end waits as well.
    ended: AtomicU64,
    /// Whether the source is gone.
    gone: AtomicBool,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Wakes the source.
    fn wake(&self) {
        let waker = locked(&self.waker).clone();
        if let Some(waker) = waker {
            waker.ring();
        }
    }

    /// Asks the function for the watermark after a batch.
    fn ask(
        &self,
        function: &Arc<dyn WatermarkFunction>,
        batch: &RecordBatch,
    ) -> Result<Option<i64>, OutsideError> {
        /// Takes the note back, however the call ends.
        struct Asking<'a>(&'a Shared);

        impl Drop for Asking<'_> {
            fn drop(&mut self) {
                *locked(&self.0.asking) = None;
            }
        }

        *locked(&self.asking) = Some(thread::current().id());
        let _asking = Asking(self);
        function.call(batch)
    }

    fn is_asking_here(&self) -> bool {
        *locked(&self.asking) == Some(thread::current().id())
    }

    /// Forgets the query that the feed was lent to, and gives the number of the next end.
    fn renew(&self) -> u64 {
        *locked(&self.waker) = None;
        *locked(&self.gate) = Intake::default();
        self.ended.fetch_and(!CUT, Ordering::Relaxed);
        let mut reading = locked(&self.reading);
        reading.number += 1;
        reading.marker = Marker::Unknown;
        reading.expected = None;
        reading.marks.clear();
        reading.number
    }
}

/// Refers to a feed, whichever threads hold its ends.
#[derive(Clone)]
pub struct FeedHandle(Arc<Shared>);

impl FeedHandle {
    /// Returns true if this thread is inside the function that gives the watermarks of the feed. A push from there would
    /// wait for itself.
    pub fn is_asking_here(&self) -> bool {
        self.0.is_asking_here()
    }

    /// Returns true if this thread reads the data that goes into the feed: it must not wait for what comes of that.
    pub fn is_pulled_here(&self) -> bool {
        *locked(&self.0.pulling) == Some(thread::current().id())
    }

    /// Returns true if the producer is gone, or the input cut off.
    pub fn has_ended(&self) -> bool {
        self.0.ended.load(Ordering::Relaxed) != 0
    }

    /// Returns true if a batch is on its way in that was given out, or promised.
    pub fn is_held(&self) -> bool {
        locked(&self.0.gate).is_held
    }

    /// Takes no batch from now on (FEED-3).
    pub fn cut(&self) {
        locked(&self.0.gate).is_cut = true;
        self.0.ended.fetch_or(CUT, Ordering::Relaxed);
    }

    /// Lets the query that holds the end take batches: nothing can keep it from starting any more (FEED-5).
    pub fn start(&self) {
        let mut reading = locked(&self.0.reading);
        reading.has_started = true;
        reading.early.clear();
    }
}

/// Looks up what waits in a feed.
struct FeedPending(Arc<Shared>);

impl Pending for FeedPending {
    fn work(&self) -> Work {
        // Relaxed: numbers to decide by. The rows rise before the batch is there.
        if self.0.gone.load(Ordering::Relaxed) {
            return Work::default();
        }
        let ended = u64::from(self.0.ended.load(Ordering::Relaxed) != 0);
        let signals = ended + self.0.empty.load(Ordering::Relaxed);
        Work { rows: self.0.rows.load(Ordering::Relaxed), signals }
    }

    fn arrived_ns(&self) -> Option<u64> {
        self.0.arrivals.oldest_ns(|| self.0.rows.load(Ordering::Relaxed))
    }
}

/// Makes a feed in which up to `batches` batches wait. Batches arrive by the time of `clock`.
///
/// # Panics
/// When `batches` is zero.
pub fn feed(batches: usize, clock: SharedClock) -> (Feed, FeedEnd) {
    let (producer, consumer) = ring(batches);
    let shared = Arc::new(Shared::default());
    locked(&shared.reading).consumer = Some(consumer);
    (Feed::new(producer, Arc::clone(&shared), clock), FeedEnd::new(shared))
}
