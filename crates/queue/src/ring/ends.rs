//! The positions of the two sides of a queue, and whether each is still there.

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicBool, AtomicUsize, Ordering, ordering};

/// The positions and flags of rules RING-1 to RING-3.
pub(super) struct Ends {
    head: CachePadded<AtomicUsize>,
    tail: CachePadded<AtomicUsize>,
    producer_gone: AtomicBool,
    consumer_gone: AtomicBool,
}

impl Ends {
    pub(super) fn new() -> Self {
        Self {
            head: CachePadded::new(AtomicUsize::new(0)),
            tail: CachePadded::new(AtomicUsize::new(0)),
            producer_gone: AtomicBool::new(false),
            consumer_gone: AtomicBool::new(false),
        }
    }

    /// Producer: returns its own position.
    #[inline]
    pub(super) fn tail(&self) -> usize {
        self.tail.load(Ordering::Relaxed)
    }

    /// Producer: returns the number of empty slots out of `capacity`.
    #[inline]
    pub(super) fn room(&self, capacity: usize) -> usize {
        // Acquire: pairs with the Release in `release`. A producer that sees the new head finds the slots below it
        // empty.
        capacity - (self.tail() - self.head.load(ordering("ring.head.load", Ordering::Acquire)))
    }

    /// Producer: hands over the slots below `tail`.
    #[inline]
    pub(super) fn publish(&self, tail: usize) {
        // Release: pairs with the Acquire in `known_tail`. A consumer that sees the new tail sees the values.
        self.tail.store(tail, ordering("ring.tail.store", Ordering::Release));
    }

    /// Consumer: returns its own position, as the producer may know it.
    #[inline]
    pub(super) fn head(&self) -> usize {
        self.head.load(Ordering::Relaxed)
    }

    /// Consumer: returns the end of the waiting values.
    #[inline]
    pub(super) fn known_tail(&self) -> usize {
        // Acquire: pairs with the Release in `publish`.
        self.tail.load(ordering("ring.tail.load", Ordering::Acquire))
    }

    /// Consumer: hands back the slots below `head`.
    #[inline]
    pub(super) fn release(&self, head: usize) {
        // Release: pairs with the Acquire in `room`.
        self.head.store(head, ordering("ring.head.store", Ordering::Release));
    }

    /// Any thread: returns the number of waiting values. While both sides work it may read high, never low.
    #[inline]
    pub(super) fn len(&self) -> usize {
        // Acquire: pairs with the Release in `release`. The consumer knew the tail that it emptied slots up to, so the
        // load below returns that tail or a newer one, and the difference cannot be negative.
        let head = self.head.load(ordering("ring.gauge.head", Ordering::Acquire));
        self.tail.load(Ordering::Relaxed) - head
    }

    pub(super) fn leave_as_producer(&self) {
        // Release: pairs with the Acquire in `is_producer_gone`. A consumer that sees this sees the last tail.
        self.producer_gone.store(true, ordering("ring.producer_gone.store", Ordering::Release));
    }

    #[inline]
    pub(super) fn is_producer_gone(&self) -> bool {
        self.producer_gone.load(ordering("ring.producer_gone.load", Ordering::Acquire))
    }

    pub(super) fn leave_as_consumer(&self) {
        self.consumer_gone.store(true, Ordering::Release);
    }

    #[inline]
    pub(super) fn is_consumer_gone(&self) -> bool {
        self.consumer_gone.load(Ordering::Acquire)
    }
}
