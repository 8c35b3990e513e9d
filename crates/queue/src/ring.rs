//! A bounded queue from one producer to one consumer.
//!
//! Positions are absolute and only grow; a slot is `position % capacity`.
//!
//! Q1. The producer alone writes `tail`, the consumer alone writes `head`; `head <= tail <= head + capacity`.
//! Q2. Slots in `head..tail` hold values and belong to the consumer; the others are empty and belong
//!     to the producer. A slot changes hands by the Release store of the position that covers it and
//!     the Acquire load that sees it.
//! Q3. `closed` says that one side is gone. The producer's values stay readable after it left.

use std::mem::MaybeUninit;
use std::time::Duration;

use crossbeam_utils::CachePadded;

use crate::gate::Gate;
use crate::sync::{Arc, AtomicBool, AtomicUsize, Ordering, UnsafeCell, ordering, planted};

struct Shared<T> {
    slots: Box<[UnsafeCell<MaybeUninit<T>>]>,
    head: CachePadded<AtomicUsize>,
    tail: CachePadded<AtomicUsize>,
    producer_gone: AtomicBool,
    consumer_gone: AtomicBool,
    /// The consumer waits here for values, the producer for room.
    values: Gate,
    room: Gate,
}

// SAFETY: Q2 gives every slot one owner at a time, and hands it over with Release and Acquire; a
// value moves from the producer's thread to the consumer's, hence `T: Send`.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as above; shared access goes through atomics and through slots with one owner.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // Both sides are gone, so the positions stand still.
        let (mut head, tail) = (self.head.load(Ordering::Acquire), self.tail.load(Ordering::Acquire));
        while head != tail {
            let slot = &self.slots[head % self.slots.len()];
            slot.with_mut(|slot| {
                // SAFETY: `&mut self` excludes every other access to the slot.
                let slot = unsafe { &mut *slot };
                // SAFETY: by Q2 a slot in head..tail holds a value, and nobody reads it after this.
                unsafe { slot.assume_init_drop() };
            });
            head += 1;
        }
    }
}

/// The side that pushes.
pub struct Producer<T>(Arc<Shared<T>>);

/// The side that pops.
pub struct Consumer<T>(Arc<Shared<T>>);

/// What a consumer found.
#[derive(Debug, PartialEq, Eq)]
pub enum Popped<T> {
    /// The oldest value.
    Value(T),
    /// Nothing now; more may come.
    Empty,
    /// Nothing now or ever: the producer is gone.
    Closed,
}

/// A queue that holds up to `capacity` values.
///
/// # Panics
/// When `capacity` is zero.
pub fn ring<T>(capacity: usize) -> (Producer<T>, Consumer<T>) {
    assert!(capacity > 0, "a ring needs room for a value");
    let shared = Arc::new(Shared {
        slots: (0..capacity).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect(),
        head: CachePadded::new(AtomicUsize::new(0)),
        tail: CachePadded::new(AtomicUsize::new(0)),
        producer_gone: AtomicBool::new(false),
        consumer_gone: AtomicBool::new(false),
        values: Gate::new(),
        room: Gate::new(),
    });
    (Producer(Arc::clone(&shared)), Consumer(shared))
}

impl<T> Producer<T> {
    /// Pushes a value, or gives it back when the queue is full or nobody will pop it.
    pub fn try_push(&mut self, value: T) -> Result<(), T> {
        let shared = &*self.0;
        let tail = shared.tail.load(Ordering::Relaxed); // Q1: our own position
        // Acquire: pairs with the Release in `pop`. Whoever sees the new head sees the slot emptied.
        let head = shared.head.load(ordering("ring.head.load", Ordering::Acquire));
        if tail - head == shared.slots.len() || self.is_closed() {
            return Err(value);
        }
        shared.slots[tail % shared.slots.len()].with_mut(|slot| {
            // SAFETY: by Q2 the slot at `tail` is empty and belongs to this producer.
            unsafe { (*slot).write(value) };
        });
        // Release: pairs with the Acquire in `pop`. Whoever sees the new tail sees the value.
        shared.tail.store(tail + 1, ordering("ring.tail.store", Ordering::Release));
        if !planted("ring.push.wake") {
            shared.values.signal();
        }
        Ok(())
    }

    /// Sleeps until there may be room, or the consumer left, or `timeout` is over.
    pub fn wait_for_room(&self, timeout: Duration) {
        let shared = &*self.0;
        let full =
            shared.tail.load(Ordering::Relaxed) - shared.head.load(Ordering::Acquire) == shared.slots.len();
        if full && !self.is_closed() {
            shared.room.wait(timeout);
        }
    }

    /// Values that can be pushed now; more, once the consumer goes on.
    pub fn room(&self) -> usize {
        let shared = &*self.0;
        shared.slots.len() - (shared.tail.load(Ordering::Relaxed) - shared.head.load(Ordering::Acquire))
    }

    /// Whether the consumer is gone.
    pub fn is_closed(&self) -> bool {
        self.0.consumer_gone.load(Ordering::Acquire)
    }
}

impl<T> Drop for Producer<T> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `pop`. Whoever sees this sees the last tail.
        self.0.producer_gone.store(true, ordering("ring.producer_gone.store", Ordering::Release));
        if !planted("ring.producer_gone.wake") {
            self.0.values.signal();
        }
    }
}

impl<T> Consumer<T> {
    /// Pops the oldest value.
    pub fn pop(&mut self) -> Popped<T> {
        let shared = &*self.0;
        // Before the tail: once the producer is gone, the tail read afterwards is the last one.
        let gone = shared.producer_gone.load(ordering("ring.producer_gone.load", Ordering::Acquire));
        let head = shared.head.load(Ordering::Relaxed); // Q1: our own position
        // Acquire: pairs with the Release in `try_push`.
        if head == shared.tail.load(ordering("ring.tail.load", Ordering::Acquire)) {
            return if gone { Popped::Closed } else { Popped::Empty };
        }
        let value = shared.slots[head % shared.slots.len()].with(|slot| {
            // SAFETY: by Q2 the slot at `head` holds a value that belongs to this consumer.
            let slot = unsafe { &*slot };
            // SAFETY: the value is read once; the store below gives the slot back as empty.
            unsafe { slot.assume_init_read() }
        });
        // Release: pairs with the Acquire in `try_push`.
        shared.head.store(head + 1, ordering("ring.head.store", Ordering::Release));
        if !planted("ring.pop.wake") {
            shared.room.signal();
        }
        Popped::Value(value)
    }

    /// Values that wait.
    pub fn len(&self) -> usize {
        self.0.tail.load(Ordering::Acquire) - self.0.head.load(Ordering::Relaxed)
    }

    /// Whether no value waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sleeps until there may be a value, or the producer left, or `timeout` is over.
    pub fn wait_for_value(&self, timeout: Duration) {
        let shared = &*self.0;
        let empty = shared.head.load(Ordering::Relaxed) == shared.tail.load(Ordering::Acquire);
        if empty && !shared.producer_gone.load(Ordering::Acquire) {
            shared.values.wait(timeout);
        }
    }
}

impl<T> Drop for Consumer<T> {
    fn drop(&mut self) {
        self.0.consumer_gone.store(true, Ordering::Release);
        if !planted("ring.consumer_gone.wake") {
            self.0.room.signal();
        }
    }
}
