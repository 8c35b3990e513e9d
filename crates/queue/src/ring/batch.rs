//! Many values at a time, with one store of a position and one wake-up for all of them.

use super::{Consumer, Producer};
use crate::sync::planted;

/// Values that are pushed together: the consumer sees none of them before the batch is dropped, and then all.
pub struct PushBatch<'a, T> {
    producer: &'a mut Producer<T>,
    /// The position of the next value, and the end of the known room.
    next: usize,
    end: usize,
}

impl<T> Producer<T> {
    /// Starts a batch of pushes.
    pub fn batch(&mut self) -> PushBatch<'_, T> {
        let next = self.0.ends.tail();
        PushBatch { next, end: next + self.room(), producer: self }
    }
}

impl<T> PushBatch<'_, T> {
    /// Returns the number of the next value.
    pub fn position(&self) -> usize {
        self.next
    }

    /// Pushes a value, or returns it when the queue was full at the start of the batch.
    pub fn push(&mut self, value: T) -> Result<(), T> {
        if self.next == self.end {
            return Err(value);
        }
        self.producer.0.slot(self.next).with_mut(|slot| {
            // SAFETY: by RING-2 the slots in next..end are empty and belong to this producer.
            unsafe { (*slot).write(value) };
        });
        self.next += 1;
        Ok(())
    }
}

impl<T> Drop for PushBatch<'_, T> {
    fn drop(&mut self) {
        let shared = &self.producer.0;
        if self.next == shared.ends.tail() {
            return;
        }
        shared.ends.publish(self.next);
        if !planted("ring.push.wake") {
            shared.values.signal();
        }
    }
}

/// Values that are popped together: the producer gets their room back when this is dropped. Values that the iterator
/// has not yielded stay in the queue.
pub struct PopBatch<'a, T> {
    consumer: &'a mut Consumer<T>,
    end: usize,
}

impl<T> Consumer<T> {
    /// Pops up to `most` of the waiting values.
    pub fn take(&mut self, most: usize) -> PopBatch<'_, T> {
        PopBatch { end: self.next + self.len().min(most), consumer: self }
    }
}

impl<T> Iterator for PopBatch<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let Consumer { shared, next } = &mut *self.consumer;
        if *next == self.end {
            return None;
        }
        let value = shared.slot(*next).with(|slot| {
            // SAFETY: by RING-2 the slot holds a value that belongs to this consumer.
            let slot = unsafe { &*slot };
            // SAFETY: the value is read once: `next` passes it here, and `head` never passes `next`.
            unsafe { slot.assume_init_read() }
        });
        *next += 1;
        Some(value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.end - self.consumer.next;
        (left, Some(left))
    }
}

impl<T> Drop for PopBatch<'_, T> {
    fn drop(&mut self) {
        let Consumer { shared, next } = &*self.consumer;
        if *next == shared.ends.head() {
            return;
        }
        shared.ends.release(*next);
        if !planted("ring.pop.wake") {
            shared.room.signal();
        }
    }
}
