//! Where batches come in: from the thread of whoever has them to the task of the source.
//!
//! F1. A batch that was taken is processed: only a query that fails or is stopped gives it up. Dropping the feed ends
//!     the input behind the last batch.
//! F2. Whoever pushes publishes the batch first and then looks for the bell, under the lock under which the bell is
//!     hung up: a batch that finds no bell is found by the task, which is woken once it is installed.
//! F3. Whether the feed is cut off is settled under the lock under which a batch goes in: once `cut` has returned, none
//!     does, except for one that its producer had given out, or promised, before: [`Feed::hold`]. The task looks
//!     at both before it looks for a batch, so it ends behind the last one.
//! F4. The function that says how far event time has come is called once for each batch, in order, when there is room
//!     for it, without any lock, and never while it stands in a push of its own. A query that does not start leaves its
//!     answers behind: the next one asks again, from the first batch on.
//! F5. Nothing is taken from the feed before its query has started, and until then the ring belongs to the feed: a query
//!     that could not be started leaves every batch to the next one. Each end that was lent has a number, and only the
//!     last one may read.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use penstock_memory::{BatchError, SourceColumns};
use penstock_queue::log::Work;
use penstock_queue::ring::{Consumer, Popped, Producer, ring};
use penstock_scheduler::Arrivals;
use penstock_scheduler::table::Pending;
use penstock_types::OutsideError;

use crate::clock::now_ns;
use crate::engine::bell::Bell;
use crate::error::RunError;
use crate::plan::WatermarkFunction;

/// Batches that may wait for the source by default.
pub const FEED_BATCHES: usize = 4;

/// The feed was dropped.
const DROPPED: u64 = 1;
/// The query takes no more.
const CUT: u64 = 2;

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

/// Who reads the feed, and what it has said about batches.
#[derive(Default)]
struct Reading {
    /// The number of the end that may read (F5).
    number: u64,
    has_started: bool,
    /// The ring, until the end that reads it takes its first batch.
    consumer: Option<Consumer<Arrived>>,
    marker: Marker,
    /// The columns that batches must have, once a query has said so to whoever pushes.
    expected: Option<SchemaRef>,
    /// Batches that came before the query had started. Those that a function was asked about have a mark each.
    early: VecDeque<RecordBatch>,
    marks: VecDeque<Option<i64>>,
}

impl Reading {
    fn check(&self, batch: &RecordBatch) -> Result<(), BatchError> {
        self.expected.as_ref().map_or(Ok(()), |schema| SourceColumns::check(schema, batch))
    }

    /// Keeps a batch for the next query, in case that this one does not start.
    fn keep(&mut self, batch: &RecordBatch) {
        if !self.has_started {
            self.early.push_back(batch.clone());
        }
    }
}

/// Whether batches go in (F3).
#[derive(Default)]
struct Gate {
    is_cut: bool,
    /// Whether one is on its way that was given out, or promised, before the cut.
    is_held: bool,
}

impl Gate {
    fn is_closed(&self) -> bool {
        self.is_cut && !self.is_held
    }
}

#[derive(Default)]
struct Shared {
    bell: Mutex<Option<Arc<Bell>>>,
    failure: Mutex<Option<OutsideError>>,
    reading: Mutex<Reading>,
    /// The thread that stands in the function of the marker.
    asking: Mutex<Option<ThreadId>>,
    /// The thread that reads data of others into the feed.
    pulling: Mutex<Option<ThreadId>>,
    gate: Mutex<Gate>,
    /// Rows that were pushed and are not done with, also those of the batch that the source has taken.
    rows: AtomicU64,
    /// Batches without rows, which may still say how far event time has come.
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
    fn ring(&self) {
        let bell = locked(&self.bell).clone();
        if let Some(bell) = bell {
            bell.ring();
        }
    }

    /// How far event time has come behind a batch.
    fn ask(
        &self,
        function: &dyn WatermarkFunction,
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
        *locked(&self.bell) = None;
        *locked(&self.gate) = Gate::default();
        self.ended.fetch_and(!CUT, Ordering::Relaxed);
        let mut reading = locked(&self.reading);
        reading.number += 1;
        reading.marker = Marker::Unknown;
        reading.expected = None;
        reading.marks.clear();
        reading.number
    }
}

/// Speaks of a feed, whoever has its ends.
#[derive(Clone)]
pub struct FeedHandle(Arc<Shared>);

impl FeedHandle {
    /// Whether this thread stands in the function that says how far event time has come behind the batches of the feed.
    /// A push from there would wait for itself.
    pub fn is_asking_here(&self) -> bool {
        self.0.is_asking_here()
    }

    /// Whether this thread reads the data that goes into the feed: it must not wait for what comes of that.
    pub fn is_pulled_here(&self) -> bool {
        *locked(&self.0.pulling) == Some(thread::current().id())
    }

    /// Whether the producer is gone, or the input cut off.
    pub(crate) fn has_ended(&self) -> bool {
        self.0.ended.load(Ordering::Relaxed) != 0
    }

    /// Whether a batch is on its way in that was given out, or promised.
    pub(crate) fn is_held(&self) -> bool {
        locked(&self.0.gate).is_held
    }

    /// Takes no batch from now on (F3).
    pub(crate) fn cut(&self) {
        locked(&self.0.gate).is_cut = true;
        self.0.ended.fetch_or(CUT, Ordering::Relaxed);
    }

    /// Lets the query that has the end take batches: nothing can keep it from starting any more (F5).
    pub(crate) fn start(&self) {
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

/// Where batches go in. Dropping it ends the input.
pub struct Feed {
    /// `None` only while it is dropped.
    producer: Option<Producer<Arrived>>,
    shared: Arc<Shared>,
}

/// The other end, for [`crate::Engine::submit`].
pub struct FeedEnd {
    /// The ring, once the query has taken something (F5).
    consumer: Option<Consumer<Arrived>>,
    /// `None` for the end that others are lent of.
    number: Option<u64>,
    shared: Arc<Shared>,
}

/// A feed in which up to `batches` batches wait.
///
/// # Panics
/// When `batches` is zero.
pub fn feed(batches: usize) -> (Feed, FeedEnd) {
    let (producer, consumer) = ring(batches);
    let shared = Arc::new(Shared::default());
    locked(&shared.reading).consumer = Some(consumer);
    let feed = Feed { producer: Some(producer), shared: Arc::clone(&shared) };
    (feed, FeedEnd { consumer: None, number: None, shared })
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
    /// The query takes no more, and is about to end.
    Cut,
    /// The function that says how far event time has come pushes to its own feed.
    Itself,
    /// The function that says how far event time has come has failed. The batch was not taken.
    Failed(OutsideError),
    /// The batch does not have the columns that the query expects. It was not taken.
    Unfit(BatchError),
}

impl Feed {
    fn producer(&mut self) -> &mut Producer<Arrived> {
        self.producer.as_mut().expect("a feed has its ring until it is dropped")
    }

    /// Speaks of this feed.
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
            self.shared.ring();
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
        let deadline = Instant::now().checked_add(timeout);
        loop {
            if self.is_ended() {
                return Pushed::Ended;
            }
            if locked(&self.shared.gate).is_closed() {
                return Pushed::Cut;
            }
            // Nobody else pushes: room that is there stays there.
            if self.producer().room() > 0 {
                break;
            }
            let left =
                deadline.map_or(timeout, |deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Pushed::Full(batch);
            }
            self.producer().wait_for_room(left);
        }
        let watermark = match self.mark(&batch) {
            Ok(watermark) => watermark,
            Err(refused) => return refused,
        };
        self.put(Arrived { batch, arrived_ns: now_ns(), watermark })
    }

    /// Puts a batch into the room that there is for it.
    fn put(&mut self, arrived: Arrived) -> Pushed {
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
        shared.ring();
        Pushed::Taken
    }

    /// How far event time has come behind a batch, if a function says that.
    fn mark(&mut self, batch: &RecordBatch) -> Result<Option<i64>, Pushed> {
        loop {
            let (function, number) = {
                let mut reading = locked(&self.shared.reading);
                // Under the lock under which the query looks at early batches: either of them checks this one.
                reading.check(batch).map_err(Pushed::Unfit)?;
                match &reading.marker {
                    Marker::Function(function) => (Arc::clone(function), reading.number),
                    Marker::Nobody | Marker::Unknown => {
                        reading.keep(batch);
                        return Ok(None);
                    }
                }
            };
            let mark = self.shared.ask(&*function, batch).map_err(Pushed::Failed)?;
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

    /// Whether it is cut off: no batch that is given out from now on goes in (F3).
    pub fn is_cut(&self) -> bool {
        locked(&self.shared.gate).is_closed()
    }

    /// Whether the query has ended.
    pub fn is_ended(&mut self) -> bool {
        self.producer().is_closed()
    }

    /// Ends the input with an error: the query fails with it, once it has taken in what came before.
    pub fn fail(self, error: OutsideError) {
        // One that nobody reads any more has nobody to tell; the end is noted before the failure is taken out there.
        let old = locked(&self.shared.failure).replace(error);
        let unread = self.shared.gone.load(Ordering::Acquire).then(|| locked(&self.shared.failure).take());
        drop((old, unread));
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.shared.ended.fetch_or(DROPPED, Ordering::Relaxed);
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

    /// Lends the feed to a query, for [`crate::Engine::submit`]. If that fails, `take_back` makes it free for another one:
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

    /// From now on batches must have these columns: a push of any other is refused, and gives the batch back to whoever
    /// pushes.
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

    /// From now on that function says how far event time has come; also behind the batches that are there already.
    pub(crate) fn set_marker(
        &self,
        function: Option<&Arc<dyn WatermarkFunction>>,
    ) -> Result<(), OutsideError> {
        let Some(function) = function else {
            locked(&self.shared.reading).marker = Marker::Nobody;
            return Ok(());
        };
        // Batches that come meanwhile stand behind those that are there: no more than there is room for.
        loop {
            let batch = {
                let mut reading = locked(&self.shared.reading);
                let Some(batch) = reading.early.get(reading.marks.len()) else {
                    reading.marker = Marker::Function(Arc::clone(function));
                    return Ok(());
                };
                batch.clone()
            };
            let mark = self.shared.ask(&**function, &batch)?;
            locked(&self.shared.reading).marks.push_back(mark);
        }
    }

    /// Speaks of this feed.
    pub(crate) fn handle(&self) -> FeedHandle {
        FeedHandle(Arc::clone(&self.shared))
    }

    pub(crate) fn pending(&self) -> Box<dyn Pending> {
        Box::new(FeedPending(Arc::clone(&self.shared)))
    }

    /// So many rows of what was taken are done with: until then they wait.
    pub(crate) fn done(&self, rows: u64) {
        self.shared.rows.fetch_sub(rows, Ordering::Relaxed);
    }

    /// The ring, if this end may read it by now (F5).
    fn ring(&mut self) -> Option<&mut Consumer<Arrived>> {
        if self.consumer.is_none() {
            let mut reading = locked(&self.shared.reading);
            if reading.has_started && self.number.is_none_or(|number| number == reading.number) {
                self.consumer = reading.consumer.take();
            }
        }
        self.consumer.as_mut()
    }

    pub(crate) fn take(&mut self) -> Fed {
        let is_closed = locked(&self.shared.gate).is_closed(); // F3
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
                return; // another query reads the feed, or may do so later (F5)
            }
            reading.consumer.take()
        };
        drop(ring);
        // Release: who finds it set leaves no failure behind that was not taken out here.
        self.shared.gone.store(true, Ordering::Release);
        // The bell leads to the queue of the engine, which a feed must not keep alive; nor does it keep what only the
        // source would have asked for.
        *locked(&self.shared.bell) = None;
        let mut reading = locked(&self.shared.reading);
        let (marker, early) = (std::mem::take(&mut reading.marker), std::mem::take(&mut reading.early));
        drop(reading);
        let failure = locked(&self.shared.failure).take();
        drop((marker, early, failure)); // which may run any code
    }
}
