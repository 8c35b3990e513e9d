//! One customer's order: a slot with a state word, seen from both sides.
//!
//! | state   | meaning                     | who leaves it                         |
//! |---------|-----------------------------|---------------------------------------|
//! | IDLE    | no order is open            | the customer: ASKED                   |
//! | ASKED   | the supply has a ticket     | its holder: FILLED, REFUSED           |
//! | FILLED  | the slot holds an item      | the customer, who takes it: IDLE      |
//! | REFUSED | no item will come           | the customer, who reads it: IDLE      |
//! | CLOSED  | the customer is gone        | final; entered from any other state   |
//!
//! ORDER-1. A slot has a ticket exactly while it is ASKED, or CLOSED from ASKED; a ticket answers once. A ticket that
//!     is dropped without an answer refuses, so that no way of ending leaves a customer waiting.
//! ORDER-2. The cell belongs to the ticket's holder while there is a ticket, and to the customer otherwise. It goes to
//!     the holder with the ticket, and to the customer by the exchange into FILLED.
//! ORDER-3. When the customer leaves, exactly one side has the item: the exchange into CLOSED saw FILLED, and the
//!     customer returns the item; or the exchange into FILLED fails, and the maker keeps it.

use std::fmt;
use std::sync::Arc as StdArc;

use super::Supply;
use crate::sync::{Arc, AtomicU32, Ordering, UnsafeCell, ordering, planted};
use crate::wake::Wake;

const IDLE: u32 = 0;
const ASKED: u32 = 1;
const FILLED: u32 = 2;
const REFUSED: u32 = 3;
const CLOSED: u32 = 4;

struct OrderSlot<T> {
    state: AtomicU32,
    item: UnsafeCell<Option<T>>,
    wake: StdArc<dyn Wake>,
}

// SAFETY: by ORDER-2 the cell has one owner at a time, and changes hands with Release and Acquire; no two threads
// share a reference to the item, so `T: Send` is enough.
unsafe impl<T: Send> Sync for OrderSlot<T> {}
// SAFETY: as above; the waker is Send and Sync.
unsafe impl<T: Send> Send for OrderSlot<T> {}

impl<T> OrderSlot<T> {
    /// Takes the item out of the cell, for the side that owns it by ORDER-2.
    fn take_item(&self) -> Option<T> {
        self.item.with_mut(|item| {
            // SAFETY: the caller owns the cell by ORDER-2.
            unsafe { &mut *item }.take()
        })
    }
}

/// The answer to an order when the supply is closed, or could not make the item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the order was refused: the supply is closed, or could not make the item")
    }
}

impl std::error::Error for Refused {}

/// The customer's side: one item at a time, ordered ahead of need.
pub struct SupplyOrder<Q: Copy, T> {
    slot: Arc<OrderSlot<T>>,
    supply: Supply<Q, T>,
}

impl<Q: Copy, T> SupplyOrder<Q, T> {
    pub(super) fn new(supply: Supply<Q, T>, wake: StdArc<dyn Wake>) -> Self {
        let slot = OrderSlot { state: AtomicU32::new(IDLE), item: UnsafeCell::new(None), wake };
        Self { slot: Arc::new(slot), supply }
    }

    /// Orders an item; the waker is called when there is an answer. Returns false when an order is already open.
    pub fn ask(&mut self, question: Q) -> bool {
        if self.is_waiting() {
            return false;
        }
        // Relaxed: the ticket that follows hands the slot over.
        self.slot.state.store(ASKED, Ordering::Relaxed);
        self.supply.submit(Ticket { question, slot: Some(Arc::clone(&self.slot)) });
        true
    }

    /// Returns true while an order is open: made, and its answer not taken yet.
    pub fn is_waiting(&self) -> bool {
        self.slot.state.load(Ordering::Relaxed) != IDLE
    }

    /// Takes the answer, if there is one. After it the next order may be made.
    pub fn take(&mut self) -> Option<Result<T, Refused>> {
        // Acquire: pairs with the Release in `fill`. A customer that sees FILLED sees the item.
        let answer = match self.slot.state.load(ordering("supply.take", Ordering::Acquire)) {
            FILLED => self.slot.take_item().map(Ok),
            REFUSED => Some(Err(Refused)),
            _ => return None,
        };
        self.slot.state.store(IDLE, Ordering::Relaxed);
        answer
    }
}

impl<Q: Copy, T> Drop for SupplyOrder<Q, T> {
    fn drop(&mut self) {
        // Acquire: pairs with the Release in `fill`, as in `take`.
        let left = self.slot.state.swap(CLOSED, ordering("supply.leave", Ordering::Acquire));
        if left == FILLED && !planted("supply.leave.return") {
            // ORDER-3: the customer has the item.
            self.slot.take_item().into_iter().for_each(|item| self.supply.give_back(item));
        }
    }
}

impl<Q: Copy, T> fmt::Debug for SupplyOrder<Q, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SupplyOrder").field("waiting", &self.is_waiting()).finish_non_exhaustive()
    }
}

/// The supply's side of an order: the duty to answer it.
pub(super) struct Ticket<Q: Copy, T> {
    pub(super) question: Q,
    /// `None` once it is answered.
    slot: Option<Arc<OrderSlot<T>>>,
}

impl<Q: Copy, T> Ticket<Q, T> {
    /// Returns true while the customer is still there.
    pub(super) fn is_wanted(&self) -> bool {
        self.slot.as_ref().is_some_and(|slot| slot.state.load(Ordering::Relaxed) == ASKED)
    }

    /// Answers with an item; returns the item when the customer is gone.
    pub(super) fn fill(mut self, item: T) -> Result<(), T> {
        // ORDER-1: by the end of this call the customer may have made the next order, which this ticket must not
        // refuse.
        let answering = if planted("supply.fill.once") { self.slot.clone() } else { self.slot.take() };
        let Some(slot) = answering else { return Err(item) };
        slot.item.with_mut(|cell| {
            // SAFETY: ORDER-2: this ticket owns the cell.
            unsafe { *cell = Some(item) };
        });
        // Release: pairs with the Acquire in `take` and in the customer's drop.
        let publish = ordering("supply.fill", Ordering::Release);
        if slot.state.compare_exchange(ASKED, FILLED, publish, Ordering::Relaxed).is_ok() {
            if !planted("supply.fill.wake") {
                slot.wake.wake();
            }
            return Ok(());
        }
        // ORDER-3: the customer left before, and the maker has the item.
        slot.take_item().map_or(Ok(()), Err)
    }
}

impl<Q: Copy, T> Drop for Ticket<Q, T> {
    fn drop(&mut self) {
        let Some(slot) = self.slot.take() else { return };
        if planted("supply.refuse") {
            return;
        }
        // Relaxed: no item changes hands.
        if slot.state.compare_exchange(ASKED, REFUSED, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            slot.wake.wake();
        }
    }
}
