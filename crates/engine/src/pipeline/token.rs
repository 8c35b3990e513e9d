//! The right of an engine's tasks to call into the interpreter.
//!
//! K1. At most one task of an engine has it. A task that does not get it is rung when it is free again, and does
//!     something else, or nothing, until then: no worker waits for another of its engine. Each engine has a right of its
//!     own, so that a function that runs a pipeline itself, on another engine, does not wait for what it has.
//! K2. While it is free and somebody waits, one of those who wait has been rung and has not answered. Each answers: its
//!     task takes the right, or asks for it in vain because another was faster and so will give it back, or leaves
//!     the queue, by its end if not before; and then the next one is rung.
//! K3. While one that was rung has not answered, only those that were rung take it: a task that gives it back cannot
//!     have it again before the next in the queue has woken up, however often it asks.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::engine::bell::Bell;

struct Waiting {
    bell: Arc<Bell>,
    /// Whether it has been rung, and has not answered.
    is_rung: bool,
}

#[derive(Default)]
struct Held {
    is_taken: bool,
    /// Who has waited longest comes first.
    waiting: VecDeque<Waiting>,
}

impl Held {
    /// Whether the one at that place in the queue, or one that is not in it, may take it (K1, K3).
    fn is_free_for(&self, place: Option<usize>) -> bool {
        let is_rung = |place: usize| self.waiting[place].is_rung;
        !self.is_taken && (place.is_some_and(is_rung) || !self.waiting.iter().any(|waiting| waiting.is_rung))
    }

    /// Whom to ring, if it is free (K2).
    fn next(&mut self) -> Option<Arc<Bell>> {
        if self.is_taken {
            return None;
        }
        let next = self.waiting.iter_mut().find(|waiting| !waiting.is_rung)?;
        next.is_rung = true;
        Some(Arc::clone(&next.bell))
    }
}

/// Who may call into the interpreter, and who waits for that.
#[derive(Default)]
pub(crate) struct Interpreter(Mutex<Held>);

impl Interpreter {
    fn locked(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes who has it or who waits, and rings whoever is to be rung after that.
    fn change(&self, change: impl FnOnce(&mut Held)) {
        let next = {
            let mut held = self.locked();
            change(&mut held);
            held.next()
        };
        if let Some(bell) = next {
            bell.call();
        }
    }
}

/// The place of one task among those who want the right.
pub(super) struct Turn {
    interpreter: Arc<Interpreter>,
    bell: Arc<Bell>,
    waits: bool,
}

impl Turn {
    /// For the task of that bell.
    pub(super) fn new(interpreter: Arc<Interpreter>, bell: Arc<Bell>) -> Self {
        Self { interpreter, bell, waits: false }
    }

    /// Takes the right, if no task has it or comes before this one. Otherwise the bell rings when it is free.
    pub(super) fn take(&mut self) -> Option<Token> {
        let mut held = self.interpreter.locked();
        let place = held.waiting.iter().position(|waiting| Arc::ptr_eq(&waiting.bell, &self.bell));
        self.waits = !held.is_free_for(place);
        if !self.waits {
            place.map(|place| held.waiting.remove(place));
            held.is_taken = true;
            return Some(Token(Arc::clone(&self.interpreter)));
        }
        match place {
            Some(place) => held.waiting[place].is_rung = false,
            None => held.waiting.push_back(Waiting { bell: Arc::clone(&self.bell), is_rung: false }),
        }
        None
    }

    /// Leaves the queue, if it stands there.
    pub(super) fn leave(&mut self) {
        if std::mem::take(&mut self.waits) {
            let bell = &self.bell;
            self.interpreter.change(|held| held.waiting.retain(|waiting| !Arc::ptr_eq(&waiting.bell, bell)));
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.leave();
    }
}

/// The right, until it is dropped.
pub(super) struct Token(Arc<Interpreter>);

impl Drop for Token {
    fn drop(&mut self) {
        self.0.change(|held| held.is_taken = false);
    }
}

#[cfg(test)]
mod tests {
    use penstock_queue::schedule::Level;

    use super::*;

    fn turns<const N: usize>() -> [Turn; N] {
        let interpreter: Arc<Interpreter> = Arc::default();
        std::array::from_fn(|_| Turn::new(Arc::clone(&interpreter), Bell::new()))
    }

    /// Whether it was rung since it was last asked.
    fn was_rung(turn: &Turn) -> bool {
        let was_rung = turn.bell.row.level() == Level::FIRST;
        turn.bell.row.answer();
        was_rung
    }

    #[test]
    fn who_gives_it_back_comes_behind_those_that_were_rung() {
        let [mut first, mut second, mut third] = turns();
        let token = first.take();
        assert!(token.is_some() && second.take().is_none() && third.take().is_none());
        drop(token);
        assert!(was_rung(&second) && !was_rung(&third));
        assert!(first.take().is_none(), "it was not the turn of the first again");
        assert!(third.take().is_none(), "nor that of the third");
        let token = second.take();
        assert!(token.is_some() && !was_rung(&third));
        drop(token);
        assert!(was_rung(&third) && !was_rung(&first));
        drop(third.take());
        assert!(was_rung(&first));
        assert!(first.take().is_some());
    }

    #[test]
    fn who_was_refused_is_rung_when_the_one_in_front_leaves_instead() {
        for is_dropped in [false, true] {
            let [mut first, mut second] = turns();
            let token = first.take();
            assert!(second.take().is_none());
            drop(token);
            assert!(first.take().is_none() && was_rung(&second) && !was_rung(&first));
            if is_dropped {
                drop(second);
            } else {
                second.leave();
            }
            assert!(was_rung(&first), "the right is free, and the first waits for it");
            assert!(first.take().is_some());
        }
    }

    #[test]
    fn of_two_that_were_rung_either_takes_it() {
        let [mut first, mut second, mut third, mut fourth] = turns();
        let token = first.take();
        assert!(second.take().is_none() && third.take().is_none() && fourth.take().is_none());
        drop(token);
        // One that leaves without its turn has the next one rung beside the one that was rung before.
        fourth.leave();
        assert!(was_rung(&second) && was_rung(&third));
        let token = third.take();
        assert!(token.is_some() && second.take().is_none());
        drop(token);
        assert!(was_rung(&second) && second.take().is_some());
    }
}
