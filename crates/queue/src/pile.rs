//! A stack that many threads push to and one thread empties at once.
//!
//! A pile is one word, `top`, and the nodes below it form a linked list.
//!
//! PILE-1. `top` is null (empty), the address of CLOSED, or the newest node. CLOSED is final.
//! PILE-2. The thread that pushes a node writes it, until the exchange that makes it the top; from then on no thread
//!     touches it before an exchange takes it out together with all nodes below it. The thread that made that exchange
//!     owns them all.
//! PILE-3. A node stores the address of the node below it: whichever node is the top of the pile, under that address,
//!     at the exchange. Between the load of the top and the exchange, the loaded node may have been taken and freed,
//!     and another one allocated at its address and pushed. Values are never taken singly, so the list is right either
//!     way; but a pointer kept from the load would be one to the freed node. So every node is exposed before it can be
//!     the top, and its owner makes the pointer to it anew.

use std::fmt;
use std::marker::PhantomData;
use std::ptr;

use crate::sync::{AtomicPtr, Ordering, UnsafeCell, ordering};

struct PileNode<T> {
    value: UnsafeCell<Option<T>>,
    /// Address of the next older node, or 0 (PILE-3).
    below: usize,
}

/// `top` of a closed pile holds its address. No node is allocated where a static is.
static CLOSED: u8 = 0;

/// Returns the `top` of a closed pile. It is never read through, whatever it points to.
fn closed<T>() -> *mut PileNode<T> {
    (&raw const CLOSED).cast_mut().cast()
}

/// A stack that any thread pushes to and any thread empties. No call waits for another one.
pub struct Pile<T> {
    top: AtomicPtr<PileNode<T>>,
    owns: PhantomData<*mut T>,
}

// SAFETY: a pile owns its values (PILE-2), and they may move to another thread with it.
unsafe impl<T: Send> Send for Pile<T> {}
// SAFETY: by PILE-2 one thread at a time owns a value, and Release and Acquire hand it over; no thread gets a
// reference to a value in the pile, so `T: Send` is enough.
unsafe impl<T: Send> Sync for Pile<T> {}

impl<T> Default for Pile<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Pile<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pile").field("closed", &self.is_closed()).finish_non_exhaustive()
    }
}

impl<T> Pile<T> {
    /// Creates an empty pile.
    pub fn new() -> Self {
        Self { top: AtomicPtr::new(ptr::null_mut()), owns: PhantomData }
    }

    /// Pushes a value, or returns it when the pile is closed.
    pub fn push(&self, value: T) -> Result<(), T> {
        let mut node = Box::new(PileNode { value: UnsafeCell::new(Some(value)), below: 0 });
        let mut top = self.top.load(Ordering::Relaxed);
        while top != closed() {
            node.below = top.addr();
            let raw = Box::into_raw(node);
            // PILE-3, for the node above this one.
            raw.expose_provenance();
            // Release: pairs with the Acquire in `take_all` and `close`. The thread that takes the node sees its
            // value, and the nodes below it as well, since the exchange continues their release sequence.
            let publish = ordering("pile.push", Ordering::Release);
            match self.top.compare_exchange(top, raw, publish, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(now) => top = now,
            }
            // SAFETY: the exchange failed, so this thread still owns the node (PILE-2).
            node = unsafe { Box::from_raw(raw) };
        }
        match take_value(&node) {
            Some(value) => Err(value),
            None => unreachable!("the value was put into the node above"),
        }
    }

    /// Takes all values, oldest first; returns none when the pile is closed.
    pub fn take_all(&self) -> Vec<T> {
        let mut top = self.top.load(Ordering::Relaxed);
        while !top.is_null() && top != closed() {
            // Acquire: pairs with the Release in `push`.
            let see = ordering("pile.take", Ordering::Acquire);
            match self.top.compare_exchange(top, ptr::null_mut(), see, Ordering::Relaxed) {
                // PILE-2: this thread owns the list from this exchange on.
                Ok(top) => return unpile(top),
                Err(now) => top = now,
            }
        }
        Vec::new()
    }

    /// Closes the pile for good and takes all values, oldest first.
    pub fn close(&self) -> Vec<T> {
        // Acquire: pairs with the Release in `push`.
        let top = self.top.swap(closed(), ordering("pile.close", Ordering::Acquire));
        if top == closed() { Vec::new() } else { unpile(top) }
    }

    /// Returns true once the pile is closed.
    pub fn is_closed(&self) -> bool {
        self.top.load(Ordering::Relaxed) == closed()
    }
}

impl<T> Drop for Pile<T> {
    fn drop(&mut self) {
        drop(self.close());
    }
}

fn take_value<T>(node: &PileNode<T>) -> Option<T> {
    node.value.with_mut(|value| {
        // SAFETY: by PILE-2 the caller owns the node: it was never pushed, or it has been taken out.
        unsafe { &mut *value }.take()
    })
}

/// Returns the values of a list that the caller owns by PILE-2.
fn unpile<T>(mut top: *mut PileNode<T>) -> Vec<T> {
    let mut values = Vec::new();
    while !top.is_null() {
        // SAFETY: by PILE-2 the node came out of a Box in `push` and the caller owns it.
        let node = unsafe { Box::from_raw(top) };
        // PILE-3: null, or a node that was exposed and is not freed yet, since the caller owns it.
        top = ptr::with_exposed_provenance_mut(node.below);
        values.extend(take_value(&node));
    }
    values.reverse();
    values
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    #[test]
    fn gives_the_oldest_first() {
        let pile = Pile::new();
        assert_eq!(pile.take_all(), [0; 0]);
        for number in 0..3 {
            pile.push(number).unwrap();
        }
        assert_eq!(pile.take_all(), [0, 1, 2]);
        assert_eq!(pile.take_all(), [0; 0]);
    }

    #[test]
    fn a_closed_pile_gives_values_back() {
        let pile = Pile::new();
        pile.push("in").unwrap();
        assert_eq!(pile.close(), ["in"]);
        assert!(pile.is_closed());
        assert_eq!(pile.push("late"), Err("late"));
        assert!(pile.take_all().is_empty());
        assert!(pile.close().is_empty());
    }

    #[test]
    fn what_is_left_in_a_pile_is_dropped_with_it() {
        let value = Arc::new(());
        let pile = Pile::new();
        pile.push(Arc::clone(&value)).unwrap();
        pile.push(Arc::clone(&value)).unwrap();
        drop(pile);
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[test]
    fn every_value_of_every_thread_arrives_once() {
        const EACH: u64 = 10_000;
        let pile = Arc::new(Pile::new());
        let pushing: Vec<_> = (0..3)
            .map(|thread| {
                let pile = Arc::clone(&pile);
                thread::spawn(move || {
                    for number in 0..EACH {
                        pile.push((thread, number)).unwrap();
                    }
                })
            })
            .collect();
        let mut next = [0; 3];
        while next != [EACH; 3] {
            for (thread, number) in pile.take_all() {
                assert_eq!(number, next[thread], "one thread's values keep their order");
                next[thread] += 1;
            }
            thread::yield_now();
        }
        for thread in pushing {
            thread.join().unwrap();
        }
    }
}
