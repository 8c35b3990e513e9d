//! One thread makes things in the background for others that ask ahead of need.
//!
//! A customer has an [`SupplyOrder`] and asks for one thing at a time; the maker's thread runs [`Supply::serve`] and answers.
//! Things come back from any thread, for the maker to use again.
//!
//! Who touches what: customers push tickets on `asked` and things on `returned`, the maker takes both; the state of a
//! single order is in `order.rs`.
//!
//! SUPPLY-1. `asked` is closed when the supply is, and that is the only mark of it. A ticket is thus either seen by the
//!     maker or refused: there is no moment at which it can be left behind.
//! SUPPLY-2. `returned` is closed when the maker stops. A thing is handed to the maker, or dropped where it comes back.
//! SUPPLY-3. Giving back wakes nobody and takes no lock: nobody waits for a thing to return. The maker looks at what came
//!     back before each answer, and once a second when nobody asks.

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

/// How long a thing that came back may lie untouched while nobody asks for one.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Makes things, on its own thread.
pub trait Maker<Q, T> {
    /// Makes a thing, or refuses.
    fn make(&mut self, question: Q) -> Option<T>;

    /// Takes a thing back.
    fn returned(&mut self, thing: T);

    /// Everybody was answered: time to tidy up.
    fn idle(&mut self) {}
}

/// Where things are asked for, made and given back. A handle: clones speak of the same supply.
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
    /// A supply that nobody serves yet.
    pub fn new() -> Self {
        Self(Arc::new(SupplyShared { asked: Pile::new(), returned: Pile::new(), gate: Gate::new() }))
    }

    /// A customer's place, with the waker that is called at each answer.
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

    /// Gives a thing back to the maker; after the maker has stopped, the thing is dropped here. Never waits (SUPPLY-3).
    pub fn give_back(&self, thing: T) {
        drop(self.0.returned.push(thing));
    }

    /// Takes what has come back and the maker has not looked at yet.
    pub fn take_back(&self) -> Vec<T> {
        self.0.returned.take_all()
    }

    /// Has the maker look at what came back now, rather than when somebody asks.
    pub fn nudge(&self) {
        self.0.gate.signal();
    }

    /// Refuses the orders that wait and all that come, and lets the maker stop.
    pub fn close(&self) {
        drop(self.0.asked.close());
        if !planted("supply.close.wake") {
            self.0.gate.signal();
        }
    }

    /// Whether somebody closed it.
    pub fn is_closed(&self) -> bool {
        self.0.asked.is_closed()
    }

    /// Answers orders on this thread, the only maker, until the supply is closed.
    pub fn serve(&self, maker: &mut impl Maker<Q, T>) {
        // A maker that panics must leave no customer waiting.
        let stopping = CloseOnStop(self);
        while !self.is_closed() {
            self.take_back().into_iter().for_each(|thing| maker.returned(thing));
            let asked = self.0.asked.take_all();
            if asked.is_empty() {
                maker.idle();
                self.0.gate.wait(LOOK_AGAIN);
            }
            for ticket in asked {
                self.answer(ticket, maker);
            }
        }
        self.0.returned.close().into_iter().for_each(|thing| maker.returned(thing));
        drop(stopping);
    }

    fn answer(&self, ticket: Ticket<Q, T>, maker: &mut impl Maker<Q, T>) {
        // A ticket that is dropped here refuses its order.
        if !ticket.is_wanted() || self.is_closed() {
            return;
        }
        if let Some(thing) = maker.make(ticket.question)
            && let Err(unwanted) = ticket.fill(thing)
        {
            maker.returned(unwanted);
        }
    }
}

/// Closes the supply when the maker stops, however that happens.
struct CloseOnStop<'a, Q: Copy, T>(&'a Supply<Q, T>);

impl<Q: Copy, T> Drop for CloseOnStop<'_, Q, T> {
    fn drop(&mut self) {
        self.0.close();
        drop(self.0.0.returned.close());
    }
}
