//! Results on their way to their readers: a bounded queue between a sink and any number of readers.
//!
//! RESULTS-1. A batch is with the sink, in the queue, or with a reader: a sink that finds the queue full keeps its batch
//!     and is woken when there is room. An unread queue blocks the query, and never grows, unless its engine is left and
//!     drained: the rest of the results waits there, off the budget, and is no more than what was on its way.
//! RESULTS-2. What waits is charged to the budget until a reader has it. A queue that holds something takes no copies beyond
//!     its share, nor while the engine has little memory left; one that is empty always takes a batch, so that no reader
//!     waits for another.
//! RESULTS-3. A latency ends when the batches before its mark have been handed over: a reader has taken them, or the
//!     function that takes them has returned.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arrow_array::RecordBatch;
use penstock_memory::Parcel;
use penstock_memory::coordinator::ResultAccount;
use penstock_queue::wake::Wake;

use crate::account::Latencies;
use crate::clock::{Deadline, SharedClock};
use crate::waker::Waker;

/// Batches that may wait for a reader.
const MOST_BATCHES: usize = 16;
/// Latencies that may wait for a reader: those beyond are left out, so that unread results never hold more memory.
const MOST_TIMED: usize = 4096;

/// A latency that ends when the first `batches` batches have been handed over (RESULTS-3).
struct Timed {
    batches: u64,
    since_ns: u64,
    latencies: Arc<Latencies>,
}

#[derive(Default)]
struct Queue {
    parcels: VecDeque<Parcel>,
    /// Bytes of copies among them.
    bytes: usize,
    is_closed: bool,
    /// Whether it takes all there are, since the query is drained and may have no reader any more.
    is_open_ended: bool,
    /// The tasks that offer batches.
    wakers: Vec<Arc<dyn Waker>>,
    /// The writers of the memory that results are in.
    writers: Vec<Arc<dyn Wake>>,
    /// Batches taken in, and those of them that were handed over.
    offered: u64,
    handed_over: u64,
    timed: VecDeque<Timed>,
}

struct ResultsState {
    queue: Mutex<Queue>,
    changed: Condvar,
    account: ResultAccount,
    clock: SharedClock,
}

/// The results of a query, batch by batch. Clones read from the same queue.
#[derive(Clone)]
pub struct Results(Arc<ResultsState>);

/// What a reader finds.
#[derive(Debug)]
pub enum Next {
    /// The oldest batch.
    Batch(RecordBatch),
    /// None yet.
    Nothing,
    /// No more will come.
    Ended,
}

impl Results {
    /// An empty queue, charged to that account. Latencies go by the time of `clock`.
    pub fn new(account: ResultAccount, clock: SharedClock) -> Self {
        Self(Arc::new(ResultsState { queue: Mutex::default(), changed: Condvar::new(), account, clock }))
    }

    fn locked(&self) -> MutexGuard<'_, Queue> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the account that is charged for what waits.
    pub fn account(&self) -> &ResultAccount {
        &self.0.account
    }

    /// Wakes a task with each batch that is read: there is room.
    pub fn connect(&self, waker: &Arc<dyn Waker>) {
        self.locked().wakers.push(Arc::clone(waker));
    }

    /// Wakes the writer of the memory that results are in with each batch that is read.
    pub fn connect_writer(&self, writer: Arc<dyn Wake>) {
        self.locked().writers.push(writer);
    }

    /// Takes a batch in, or gives it back when the queue is full (RESULTS-2).
    pub fn offer(&self, parcel: Parcel) -> Option<Parcel> {
        let mut queue = self.locked();
        let parcel = if queue.is_open_ended { parcel.off_budget() } else { parcel };
        let (waiting, bytes) = (queue.parcels.len(), parcel.bytes());
        let too_much = waiting > 0 && bytes > 0 && self.0.account.is_too_much(queue.bytes, bytes);
        if !queue.is_open_ended && (waiting >= MOST_BATCHES || too_much) {
            return Some(parcel);
        }
        queue.bytes += bytes;
        queue.offered += 1;
        queue.parcels.push_back(parcel);
        self.0.changed.notify_all();
        None
    }

    /// Takes all there are from now on, to be read when the query has ended.
    pub fn keep_all(&self) {
        let mut queue = self.locked();
        queue.is_open_ended = true;
        queue.parcels = std::mem::take(&mut queue.parcels).into_iter().map(Parcel::off_budget).collect();
        queue.bytes = 0;
        let (wakers, writers) = (queue.wakers.clone(), queue.writers.clone());
        drop(queue);
        wakers.iter().for_each(|waker| waker.ring());
        writers.iter().for_each(|writer| writer.wake());
    }

    /// Returns the rows that wait for a reader.
    pub fn rows(&self) -> u64 {
        self.locked().parcels.iter().map(|parcel| parcel.batch().num_rows() as u64).sum()
    }

    /// Returns true if a reader waits for the next batch, or will as soon as it looks.
    pub fn is_empty(&self) -> bool {
        self.locked().parcels.is_empty()
    }

    /// Returns true if all of it was read, and no batch follows.
    pub fn is_over(&self) -> bool {
        let queue = self.locked();
        queue.is_closed && queue.parcels.is_empty()
    }

    /// Closes the queue: no batch follows.
    pub fn close(&self) {
        let mut queue = self.locked();
        queue.is_closed = true;
        queue.wakers.clear();
        queue.writers.clear();
        self.0.changed.notify_all();
    }

    /// Waits until there is a batch or the end, or `timeout` is over. Returns whether there is one.
    pub fn wait(&self, timeout: Duration) -> bool {
        let clock = &*self.0.clock;
        let deadline = Deadline::after(clock, timeout);
        let mut queue = self.locked();
        while queue.parcels.is_empty() && !queue.is_closed {
            let left = deadline.left(clock);
            if left.is_zero() {
                return false;
            }
            queue = self.0.changed.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Records the time from `since_ns` until all batches up to now have been handed over (RESULTS-3), with the `held` ones
    /// that the sink has yet to offer.
    pub fn record_latency(&self, since_ns: u64, held: u64, latencies: &Arc<Latencies>) {
        let mut queue = self.locked();
        let batches = queue.offered + held;
        if queue.handed_over < batches {
            if queue.timed.len() < MOST_TIMED {
                queue.timed.push_back(Timed { batches, since_ns, latencies: Arc::clone(latencies) });
            }
            return;
        }
        drop(queue);
        latencies.record(self.0.clock.system_ns().saturating_sub(since_ns));
    }

    /// Takes the oldest batch, which is handed over with that.
    pub fn take(&self) -> Next {
        let next = self.take_for_function();
        if matches!(next, Next::Batch(_)) {
            self.note_handed_over();
        }
        next
    }

    /// Notes that a function has returned from the batch of [`Results::take_for_function`].
    pub fn note_handed_over(&self) {
        let mut queue = self.locked();
        queue.handed_over += 1;
        let handed_over = queue.handed_over;
        let count = queue.timed.iter().take_while(|timed| timed.batches <= handed_over).count();
        let over: Vec<Timed> = queue.timed.drain(..count).collect();
        drop(queue);
        let now_ns = self.0.clock.system_ns();
        for timed in over {
            timed.latencies.record(now_ns.saturating_sub(timed.since_ns));
        }
    }

    /// Takes the oldest batch for a function, which is done with it at [`Results::note_handed_over`].
    pub fn take_for_function(&self) -> Next {
        let mut queue = self.locked();
        match queue.parcels.pop_front() {
            Some(parcel) => {
                queue.bytes -= parcel.bytes();
                let (wakers, writers) = (queue.wakers.clone(), queue.writers.clone());
                drop(queue);
                let batch = parcel.hand_out();
                // Room, or an empty queue: either may be what the sink waits for.
                wakers.iter().for_each(|waker| waker.ring());
                writers.iter().for_each(|writer| writer.wake());
                Next::Batch(batch)
            }
            None if queue.is_closed => Next::Ended,
            None => Next::Nothing,
        }
    }
}
