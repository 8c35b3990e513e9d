//! Results on their way to whoever reads them: a bounded queue between the sink and any number of readers.
//!
//! D1. A batch is with the sink, in the queue, or with a reader: a sink that finds the queue full keeps its batch and is
//!     woken when there is room. An unread queue holds the query up, and never grows.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;

use crate::engine::bell::Bell;

/// Batches that may wait for a reader.
const MOST_BATCHES: usize = 16;

#[derive(Default)]
struct Queue {
    batches: VecDeque<RecordBatch>,
    is_closed: bool,
    bells: Vec<Arc<Bell>>,
}

/// The results of a query, batch by batch. Clones read from the same queue.
#[derive(Clone, Default)]
pub struct Results(Arc<(Mutex<Queue>, Condvar)>);

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
    fn locked(&self) -> MutexGuard<'_, Queue> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn hang(&self, bell: &Arc<Bell>) {
        self.locked().bells.push(Arc::clone(bell));
    }

    /// Takes a batch in, or gives it back when the queue is full.
    pub(crate) fn offer(&self, batch: RecordBatch) -> Option<RecordBatch> {
        let mut queue = self.locked();
        if queue.batches.len() >= MOST_BATCHES {
            return Some(batch);
        }
        queue.batches.push_back(batch);
        self.0.1.notify_all();
        None
    }

    /// Whether a reader waits for the next batch, or will as soon as it looks.
    pub(crate) fn is_empty(&self) -> bool {
        self.locked().batches.is_empty()
    }

    /// No batch follows.
    pub(crate) fn close(&self) {
        let mut queue = self.locked();
        queue.is_closed = true;
        queue.bells.clear();
        self.0.1.notify_all();
    }

    /// Waits until there is a batch or the end, or `timeout` is over. Whether there is.
    pub fn wait(&self, timeout: Duration) -> bool {
        let deadline = Instant::now().checked_add(timeout);
        let mut queue = self.locked();
        while queue.batches.is_empty() && !queue.is_closed {
            let left =
                deadline.map_or(timeout, |deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return false;
            }
            queue = self.0.1.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Takes the oldest batch.
    pub fn take(&self) -> Next {
        let mut queue = self.locked();
        match queue.batches.pop_front() {
            Some(batch) => {
                // Room, or an empty queue: either may be what the sink waits for.
                let bells = queue.bells.clone();
                drop(queue);
                bells.iter().for_each(|bell| bell.ring());
                Next::Batch(batch)
            }
            None if queue.is_closed => Next::Ended,
            None => Next::Nothing,
        }
    }
}
