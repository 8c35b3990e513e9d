//! A background thread that makes items for customers that order ahead of need.
//!
//! A customer has a [`SupplyOrder`] and orders one item at a time; the maker's thread runs [`Supply::serve`] and
//! answers. Any thread may return items, for the maker to use again.
//!
//! Who touches what: customers push tickets on `asked` and items on `returned`, the maker takes both; `order.rs`
//! describes the state of a single order.
//!
//! SUPPLY-1. `asked` is closed when the supply is, and that is the only mark of it. So either the maker sees a ticket
//!     or the ticket is refused: at no moment can it be left over.
//! SUPPLY-2. `returned` is closed when the maker stops. A returned item goes to the maker, or is dropped by the
//!     caller.
//! SUPPLY-3. Returning an item wakes no thread and takes no lock, since no thread waits for it. The maker looks at
//!     returned items before each answer, and once a second when there is no order.

mod order;

use std::fmt;
use std::sync::Arc as StdArc;
use std::time::Duration;

use self::order::Ticket;
pub use self::order::{Refused, SupplyOrder};
use crate::gate::Gate;
use crate::pile::Pile;
use crate::sync::{Arc, planted};
use crate::wake::Wake;

/// How long a returned item may wait for the maker while there is no order.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Makes items, on its own thread.
pub trait Maker<Q, T> {
    /// Makes an item; returns `None` to refuse.
    fn make(&mut self, question: Q) -> Option<T>;

    /// Takes a returned item back.
    fn returned(&mut self, item: T);

    /// Called when all orders are answered: time to tidy up.
    fn idle(&mut self) {}
}

/// The orders, the returned items and the maker's gate. A handle: clones share one supply.
pub struct Supply<Q: Copy, T>(Arc<SupplyShared<Q, T>>);

struct SupplyShared<Q: Copy, T> {
    asked: Pile<Ticket<Q, T>>,
    returned: Pile<T>,
    /// The maker sleeps here.
    gate: Gate,
}

impl<Q: Copy, T> Default for Supply<Q, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<Q: Copy, T> Clone for Supply<Q, T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<Q: Copy, T> fmt::Debug for Supply<Q, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supply").field("closed", &self.is_closed()).finish_non_exhaustive()
    }
}

impl<Q: Copy, T> Supply<Q, T> {
    /// Creates a supply without a maker.
    pub fn new() -> Self {
        Self(Arc::new(SupplyShared { asked: Pile::new(), returned: Pile::new(), gate: Gate::new() }))
    }

    /// Creates a customer's order; `wake` is called at each answer.
    pub fn order(&self, wake: StdArc<dyn Wake>) -> SupplyOrder<Q, T> {
        SupplyOrder::new(self.clone(), wake)
    }

    fn submit(&self, ticket: Ticket<Q, T>) {
        match self.0.asked.push(ticket) {
            Ok(()) if planted("supply.ask.wake") => {}
            Ok(()) => self.0.gate.signal(),
            // SUPPLY-1: dropping the ticket refuses the order.
            Err(ticket) => drop(ticket),
        }
    }

    /// Returns an item to the maker; after the maker has stopped, drops the item here. Never waits (SUPPLY-3).
    pub fn give_back(&self, item: T) {
        drop(self.0.returned.push(item));
    }

    /// Takes the returned items that the maker has not looked at yet.
    pub fn take_back(&self) -> Vec<T> {
        self.0.returned.take_all()
    }

    /// Makes the maker look at returned items now, rather than at the next order.
    pub fn nudge(&self) {
        self.0.gate.signal();
    }

    /// Refuses all waiting and future orders, and lets the maker stop.
    pub fn close(&self) {
        drop(self.0.asked.close());
        if !planted("supply.close.wake") {
            self.0.gate.signal();
        }
    }

    /// Returns true once the supply is closed.
    pub fn is_closed(&self) -> bool {
        self.0.asked.is_closed()
    }

    /// Answers orders on this thread, the only maker, until the supply is closed.
    pub fn serve(&self, maker: &mut impl Maker<Q, T>) {
        // A maker that panics must leave no customer waiting.
        let stopping = CloseOnStop(self);
        while !self.is_closed() {
            self.take_back().into_iter().for_each(|item| maker.returned(item));
            let asked = self.0.asked.take_all();
            if asked.is_empty() {
                maker.idle();
                self.0.gate.wait(LOOK_AGAIN);
            }
            for ticket in asked {
                self.answer(ticket, maker);
            }
        }
        self.0.returned.close().into_iter().for_each(|item| maker.returned(item));
        drop(stopping);
    }

    fn answer(&self, ticket: Ticket<Q, T>, maker: &mut impl Maker<Q, T>) {
        // A ticket that is dropped here refuses its order.
        if !ticket.is_wanted() || self.is_closed() {
            return;
        }
        if let Some(item) = maker.make(ticket.question)
            && let Err(unwanted) = ticket.fill(item)
        {
            maker.returned(unwanted);
        }
    }
}

/// Closes the supply when the maker stops, even by a panic.
struct CloseOnStop<'a, Q: Copy, T>(&'a Supply<Q, T>);

impl<Q: Copy, T> Drop for CloseOnStop<'_, Q, T> {
    fn drop(&mut self) {
        self.0.close();
        drop(self.0.0.returned.close());
    }
}
