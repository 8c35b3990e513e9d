//! Results that go to code of the caller's.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use penstock_memory::Parcel;
use penstock_queue::wake::Wake;

use super::SinkWriter;
use crate::error::RunError;
use crate::waker::Waker;

/// Takes result batches.
pub trait Deliver: Send {
    /// Takes a batch, or gives it back when it has to wait. One that gives a batch back rings the [`Doorbell`] later.
    fn deliver(&mut self, batch: RecordBatch) -> Option<RecordBatch>;

    /// Returns true if few rows now are better than more of them later.
    fn wants_partial_batches(&self) -> bool {
        true
    }
}

/// Tells a query that its [`Deliver`] may take a batch that it gave back.
#[derive(Clone, Default)]
pub struct Doorbell(Arc<Mutex<Option<Arc<dyn Waker>>>>);

impl Doorbell {
    /// Wakes that task.
    pub fn connect(&self, waker: &Arc<dyn Waker>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(waker));
    }

    /// Wakes the task of the sink.
    pub fn ring(&self) {
        let waker = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(waker) = waker {
            waker.ring();
        }
    }
}

/// Hands batches to a [`Deliver`].
pub struct FunctionWriter {
    deliver: Box<dyn Deliver>,
    doorbell: Doorbell,
}

impl FunctionWriter {
    /// Hands batches to `deliver`, which rings `doorbell`.
    pub fn new(deliver: Box<dyn Deliver>, doorbell: Doorbell) -> Self {
        Self { deliver, doorbell }
    }
}

impl SinkWriter for FunctionWriter {
    fn connect(&mut self, waker: &Arc<dyn Waker>, _room: &Arc<dyn Wake>) {
        self.doorbell.connect(waker);
    }

    fn write(&mut self, parcel: Parcel) -> Result<Option<Parcel>, RunError> {
        let back = self.deliver.deliver(parcel.batch().clone());
        Ok(back.map(|_| parcel))
    }

    fn wants_partial_batches(&self) -> bool {
        self.deliver.wants_partial_batches()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{coordinator, parcel};
    use super::*;
    use crate::waker::tests::Counting;

    /// Takes every other batch.
    struct Reluctant {
        seen: Arc<Mutex<Vec<usize>>>,
        refuses: bool,
    }

    impl Deliver for Reluctant {
        fn deliver(&mut self, batch: RecordBatch) -> Option<RecordBatch> {
            self.refuses = !self.refuses;
            if self.refuses {
                return Some(batch);
            }
            self.seen.lock().unwrap().push(batch.num_rows());
            None
        }

        fn wants_partial_batches(&self) -> bool {
            false
        }
    }

    #[test]
    fn a_batch_that_comes_back_is_written_again_once_the_doorbell_rings() {
        let memory = coordinator();
        let (seen, doorbell) = (Arc::default(), Doorbell::default());
        let reluctant = Reluctant { seen: Arc::clone(&seen), refuses: false };
        let mut writer = FunctionWriter::new(Box::new(reluctant), doorbell.clone());
        let (counting, waker) = Counting::pair();
        doorbell.ring();
        let room: Arc<dyn Wake> = Counting::pair().1;
        writer.connect(&waker, &room);
        let back = writer.write(parcel(&memory, 3)).unwrap().expect("it is refused");
        assert!(memory.snapshot().used_bytes > 0, "what waits is charged");
        doorbell.ring();
        assert_eq!(counting.take(), 1);
        assert!(writer.write(back).unwrap().is_none());
        assert_eq!((&*seen.lock().unwrap(), memory.snapshot().used_bytes), (&vec![3], 0));
        assert!(!writer.wants_partial_batches() && writer.flush().unwrap());
    }
}
