//! A bounded queue from one producer to one consumer.
//!
//! Positions are absolute and only grow; value number `n` is in slot `n & mask`.
//!
//! RING-1. Only the producer writes `tail`, only the consumer writes `head`; `head <= tail <= head + capacity`.
//! RING-2. Slots in `head..tail` hold values and belong to the consumer; the others are empty and belong to the
//!     producer. A slot changes hands by the Release store of the position that covers it and the Acquire load that
//!     sees it. One store may cover any number of slots.
//! RING-3. `producer_gone` and `consumer_gone` say that a side is gone. The producer's values stay readable after it
//!     has left.
//!
//! [`frames`] combines such queues: rows of words, the signals between them and the values they keep alive.

mod batch;
mod ends;
pub mod frames;

use std::mem::MaybeUninit;
use std::time::Duration;

use self::ends::Ends;
use crate::gate::Gate;
use crate::sync::{Arc, UnsafeCell, planted};

pub use self::batch::{PopBatch, PushBatch};

struct RingShared<T> {
    /// Apart from the values, so that a gauge keeps none of them alive.
    ends: Arc<Ends>,
    slots: Box<[UnsafeCell<MaybeUninit<T>>]>,
    capacity: usize,
    /// The consumer waits at `values`, the producer at `room`.
    values: Gate,
    room: Gate,
}

// SAFETY: RING-2 gives every slot one owner at a time, and hands it over with Release and Acquire; a value moves from
// the producer's thread to the consumer's, hence `T: Send`.
unsafe impl<T: Send> Send for RingShared<T> {}
// SAFETY: as above; shared access goes through atomics and through slots with one owner. A method that lets several
// threads look at one value at once asks for `T: Sync`.
unsafe impl<T: Send> Sync for RingShared<T> {}

impl<T> RingShared<T> {
    /// Returns the slot of value number `position`. The number of slots is a power of two, so no division is needed.
    fn slot(&self, position: usize) -> &UnsafeCell<MaybeUninit<T>> {
        &self.slots[position & (self.slots.len() - 1)]
    }
}

impl<T> Drop for RingShared<T> {
    fn drop(&mut self) {
        // Both sides are gone, so the positions do not change any more.
        for position in self.ends.head()..self.ends.known_tail() {
            self.slot(position).with_mut(|slot| {
                // SAFETY: `&mut self` excludes every other access to the slot.
                let slot = unsafe { &mut *slot };
                // SAFETY: by RING-2 a slot in head..tail holds a value, and it is not read after this.
                unsafe { slot.assume_init_drop() };
            });
        }
    }
}

/// The producing side.
pub struct Producer<T>(Arc<RingShared<T>>);

/// The consuming side.
pub struct Consumer<T> {
    shared: Arc<RingShared<T>>,
    /// The oldest value that was not popped; `head`, except for values that a [`PopBatch`] has popped and not
    /// released.
    next: usize,
}

/// What a consumer finds.
#[derive(Debug, PartialEq, Eq)]
pub enum Popped<T> {
    /// The oldest value.
    Value(T),
    /// Nothing now; more may come.
    Empty,
    /// Nothing now or ever: the producer is gone.
    Closed,
}

/// Returns the bytes of the slots of a queue that holds up to `capacity` values.
pub const fn slot_bytes<T>(capacity: usize) -> usize {
    capacity.next_power_of_two() * size_of::<T>()
}

/// Creates a queue that holds up to `capacity` values.
///
/// # Panics
/// When `capacity` is zero.
pub fn ring<T>(capacity: usize) -> (Producer<T>, Consumer<T>) {
    assert!(capacity > 0, "a ring needs room for a value");
    let slots = capacity.next_power_of_two();
    let shared = Arc::new(RingShared {
        ends: Arc::new(Ends::new()),
        slots: (0..slots).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect(),
        capacity,
        values: Gate::new(),
        room: Gate::new(),
    });
    (Producer(Arc::clone(&shared)), Consumer { shared, next: 0 })
}

impl<T> Producer<T> {
    /// Pushes a value, or returns it when the queue is full or the consumer is gone.
    pub fn try_push(&mut self, value: T) -> Result<(), T> {
        if self.is_closed() {
            return Err(value);
        }
        self.batch().push(value)
    }

    /// Sleeps until there may be room, the consumer may be gone, or `timeout` has passed.
    pub fn wait_for_room(&self, timeout: Duration) {
        if self.room() == 0 && !self.is_closed() {
            self.0.room.wait(timeout);
        }
    }

    /// Returns the number of values that can be pushed now; more, once the consumer pops.
    pub fn room(&self) -> usize {
        self.0.ends.room(self.0.capacity)
    }

    /// Returns true once the consumer is gone.
    pub fn is_closed(&self) -> bool {
        self.0.ends.is_consumer_gone()
    }
}

impl<T> Drop for Producer<T> {
    fn drop(&mut self) {
        self.0.ends.leave_as_producer();
        if !planted("ring.producer_gone.wake") {
            self.0.values.signal();
        }
    }
}

impl<T> Consumer<T> {
    /// Pops the oldest value.
    pub fn pop(&mut self) -> Popped<T> {
        // Loaded before the tail: once the producer is gone, the tail loaded afterwards is the last one.
        let gone = self.shared.ends.is_producer_gone();
        match self.take(1).next() {
            Some(value) => Popped::Value(value),
            None if gone => Popped::Closed,
            None => Popped::Empty,
        }
    }

    /// Returns the number of the oldest waiting value, or of the next one to come.
    pub fn position(&self) -> usize {
        self.next
    }

    /// Returns the number of waiting values.
    pub fn len(&self) -> usize {
        self.shared.ends.known_tail() - self.next
    }

    /// Returns true if no value waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the positions alone, for a gauge.
    fn ends(&self) -> Arc<Ends> {
        Arc::clone(&self.shared.ends)
    }

    /// Sleeps until there may be a value, the producer may be gone, or `timeout` has passed.
    pub fn wait_for_value(&self, timeout: Duration) {
        if self.is_empty() && !self.shared.ends.is_producer_gone() {
            self.shared.values.wait(timeout);
        }
    }
}

impl<T: Sync> Consumer<T> {
    /// Calls `look` with value number `position` in its slot, if it waits.
    pub fn see<R>(&self, position: usize, look: impl FnOnce(&T) -> R) -> Option<R> {
        if !(self.next..self.shared.ends.known_tail()).contains(&position) {
            return None;
        }
        let seen = self.shared.slot(position).with(|slot| {
            // SAFETY: by RING-2 the slot belongs to this consumer; its calls that empty a slot take `&mut self`, and
            // the others, from any thread, only look, as `T: Sync` allows.
            let slot = unsafe { &*slot };
            // SAFETY: by RING-2 the slot holds a value.
            look(unsafe { slot.assume_init_ref() })
        });
        Some(seen)
    }
}

impl<T> Drop for Consumer<T> {
    fn drop(&mut self) {
        // Popped values are not dropped here, even if a `PopBatch` was forgotten.
        self.shared.ends.release(self.next);
        self.shared.ends.leave_as_consumer();
        if !planted("ring.consumer_gone.wake") {
            self.shared.room.signal();
        }
    }
}
