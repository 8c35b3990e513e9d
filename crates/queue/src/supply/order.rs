//! One customer's order: a slot with a state word, seen from both sides.
//!
//! | state   | means                       | who leaves it                      |
//! |---------|-----------------------------|------------------------------------|
//! | IDLE    | nothing is under way        | the customer: ASKED                |
//! | ASKED   | a ticket is with the supply | its holder: FILLED, REFUSED        |
//! | FILLED  | a thing lies in the slot    | the customer, who takes it: IDLE   |
//! | REFUSED | no thing will come          | the customer, who learns it: IDLE  |
//! | CLOSED  | the customer is gone        | nobody; entered from any other one |
//!
//! ORDER-1. A slot has a ticket exactly while it is ASKED, or CLOSED out of ASKED; a ticket answers once. A ticket that is
//!     dropped without an answer refuses, so that no way of ending leaves a customer waiting.
//! ORDER-2. The cell belongs to the ticket's holder while there is a ticket, and to the customer otherwise. It goes to
//!     the holder with the ticket, and to the customer by the exchange into FILLED.
//! ORDER-3. When the customer leaves, exactly one side has the thing: the exchange into CLOSED saw FILLED, and it is
//!     the customer's to give back; or the exchange into FILLED fails, and it is the maker's.

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
    thing: UnsafeCell<Option<T>>,
    wake: StdArc<dyn Wake>,
}

// SAFETY: by ORDER-2 the cell has one owner at a time, and changes hands with Release and Acquire; nobody shares a
// reference to the thing, so `T: Send` is enough.
unsafe impl<T: Send> Sync for OrderSlot<T> {}
// SAFETY: as above; the waker is Send and Sync.
unsafe impl<T: Send> Send for OrderSlot<T> {}

impl<T> OrderSlot<T> {
    /// Takes what lies in the cell, for the side that owns it by ORDER-2.
    fn take_thing(&self) -> Option<T> {
        self.thing.with_mut(|thing| {
            // SAFETY: the caller owns the cell by ORDER-2.
            unsafe { &mut *thing }.take()
        })
    }
}

/// What an order comes to when the supply is closed, or could not make the thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the order was refused: the supply is closed, or could not make the thing")
    }
}

impl std::error::Error for Refused {}

/// The customer's side: one thing at a time, asked for ahead of need.
pub struct SupplyOrder<Q: Copy, T> {
    slot: Arc<OrderSlot<T>>,
    supply: Supply<Q, T>,
}

impl<Q: Copy, T> SupplyOrder<Q, T> {
    pub(super) fn new(supply: Supply<Q, T>, wake: StdArc<dyn Wake>) -> Self {
        let slot = OrderSlot { state: AtomicU32::new(IDLE), thing: UnsafeCell::new(None), wake };
        Self { slot: Arc::new(slot), supply }
    }

    /// Asks for a thing; the waker is called when there is an answer. False when an order is under way already.
    pub fn ask(&mut self, question: Q) -> bool {
        if self.is_waiting() {
            return false;
        }
        // Relaxed: the ticket that follows hands the slot over.
        self.slot.state.store(ASKED, Ordering::Relaxed);
        self.supply.submit(Ticket { question, slot: Some(Arc::clone(&self.slot)) });
        true
    }

    /// Whether an order is under way: asked for, and its answer not taken yet.
    pub fn is_waiting(&self) -> bool {
        self.slot.state.load(Ordering::Relaxed) != IDLE
    }

    /// Takes the answer, if there is one. After it the next order may be made.
    pub fn take(&mut self) -> Option<Result<T, Refused>> {
        // Acquire: pairs with the Release in `fill`. Whoever sees FILLED sees the thing.
        let answer = match self.slot.state.load(ordering("supply.take", Ordering::Acquire)) {
            FILLED => self.slot.take_thing().map(Ok),
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
            // ORDER-3: the thing is ours.
            self.slot.take_thing().into_iter().for_each(|thing| self.supply.give_back(thing));
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
    /// None once it is answered.
    slot: Option<Arc<OrderSlot<T>>>,
}

impl<Q: Copy, T> Ticket<Q, T> {
    /// Whether the customer is still there.
    pub(super) fn is_wanted(&self) -> bool {
        self.slot.as_ref().is_some_and(|slot| slot.state.load(Ordering::Relaxed) == ASKED)
    }

    /// Answers with a thing. Gives it back when the customer is gone.
    pub(super) fn fill(mut self, thing: T) -> Result<(), T> {
        // ORDER-1: by the end of this call the customer may have asked again, and this ticket must not refuse that.
        let answering = if planted("supply.fill.once") { self.slot.clone() } else { self.slot.take() };
        let Some(slot) = answering else { return Err(thing) };
        slot.thing.with_mut(|cell| {
            // SAFETY: ORDER-2: this ticket owns the cell.
            unsafe { *cell = Some(thing) };
        });
        // Release: pairs with the Acquire in `take` and in the customer's drop.
        let publish = ordering("supply.fill", Ordering::Release);
        if slot.state.compare_exchange(ASKED, FILLED, publish, Ordering::Relaxed).is_ok() {
            if !planted("supply.fill.wake") {
                slot.wake.wake();
            }
            return Ok(());
        }
        // ORDER-3: the customer left before, and the thing is ours.
        slot.take_thing().map_or(Ok(()), Err)
    }
}

impl<Q: Copy, T> Drop for Ticket<Q, T> {
    fn drop(&mut self) {
        let Some(slot) = self.slot.take() else { return };
        if planted("supply.refuse") {
            return;
        }
        // Relaxed: no thing changes hands.
        if slot.state.compare_exchange(ASKED, REFUSED, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            slot.wake.wake();
        }
    }
}
