//! The token that lets one task of an engine call into the interpreter.
//!
//! FUNCTIONS-1. At most one task of an engine holds the token. A task that does not get it is woken when the token is free
//!     again, and does something else, or nothing, until then: no worker waits for another of its engine. Each engine has
//!     a token of its own, so that a function that runs a pipeline on another engine does not wait for the token that
//!     its own task holds.
//! FUNCTIONS-2. While the token is free and tasks wait, one of them has been woken and has not answered. Each answers: its
//!     task takes the token, or asks in vain because another task was faster and will give it back, or leaves the queue,
//!     by its end if not before; and then the next one is woken.
//! FUNCTIONS-3. While a task that was woken has not answered, only tasks that were woken take the token: one that gives it
//!     back cannot have it again before the next in the queue has woken up, however often it asks.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::waker::Waker;

struct QueuedTask {
    waker: Arc<dyn Waker>,
    /// Whether it has been woken, and has not answered.
    is_woken: bool,
}

#[derive(Default)]
struct TokenState {
    is_taken: bool,
    /// The task that has waited longest comes first.
    waiting: VecDeque<QueuedTask>,
}

impl TokenState {
    /// Returns true if the task at that place in the queue, or one that is not in it, may take the token (FUNCTIONS-1,
    /// FUNCTIONS-3).
    fn is_free_for(&self, place: Option<usize>) -> bool {
        let is_woken = |place: usize| self.waiting[place].is_woken;
        !self.is_taken
            && (place.is_some_and(is_woken) || !self.waiting.iter().any(|waiting| waiting.is_woken))
    }

    /// Returns the task to wake, if the token is free (FUNCTIONS-2).
    fn next(&mut self) -> Option<Arc<dyn Waker>> {
        if self.is_taken {
            return None;
        }
        let next = self.waiting.iter_mut().find(|waiting| !waiting.is_woken)?;
        next.is_woken = true;
        Some(Arc::clone(&next.waker))
    }
}

/// The token, and the queue of tasks that wait for it.
#[derive(Default)]
pub struct FunctionToken(Mutex<TokenState>);

impl FunctionToken {
    fn locked(&self) -> MutexGuard<'_, TokenState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the holder or the queue, and wakes the task that is next after that.
    fn change(&self, change: impl FnOnce(&mut TokenState)) {
        let next = {
            let mut held = self.locked();
            change(&mut held);
            held.next()
        };
        if let Some(waker) = next {
            waker.request_run();
        }
    }
}

/// The place of one task in the queue for the token.
pub struct Turn {
    waker: Arc<dyn Waker>,
    /// The token that the task waits for, if it does.
    waits_for: Option<Arc<FunctionToken>>,
}

impl Turn {
    /// The place of the task of that waker.
    pub fn new(waker: Arc<dyn Waker>) -> Self {
        Self { waker, waits_for: None }
    }

    /// Takes the token, unless another task holds it or comes first. Then the task is woken when it is free.
    pub fn take(&mut self, token: &Arc<FunctionToken>) -> Option<Token> {
        let mut held = token.locked();
        let place = held.waiting.iter().position(|waiting| Arc::ptr_eq(&waiting.waker, &self.waker));
        if held.is_free_for(place) {
            self.waits_for = None;
            place.map(|place| held.waiting.remove(place));
            held.is_taken = true;
            return Some(Token(Arc::clone(token)));
        }
        self.waits_for = Some(Arc::clone(token));
        match place {
            Some(place) => held.waiting[place].is_woken = false,
            None => held.waiting.push_back(QueuedTask { waker: Arc::clone(&self.waker), is_woken: false }),
        }
        None
    }

    /// Leaves the queue, if the task is in it.
    pub fn leave(&mut self) {
        if let Some(token) = self.waits_for.take() {
            let waker = &self.waker;
            token.change(|held| held.waiting.retain(|waiting| !Arc::ptr_eq(&waiting.waker, waker)));
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Holds the token until it is dropped.
pub struct Token(Arc<FunctionToken>);

impl Drop for Token {
    fn drop(&mut self) {
        self.0.change(|held| held.is_taken = false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waker::tests::Counting;

    struct Asking {
        token: Arc<FunctionToken>,
        waker: Arc<Counting>,
        turn: Turn,
    }

    impl Asking {
        fn take(&mut self) -> Option<Token> {
            self.turn.take(&self.token)
        }

        /// Whether it was woken since it was last asked.
        fn was_woken(&self) -> bool {
            self.waker.take_requests() > 0
        }
    }

    fn turns<const N: usize>() -> [Asking; N] {
        let token: Arc<FunctionToken> = Arc::default();
        std::array::from_fn(|_| {
            let (counting, waker) = Counting::pair();
            Asking { token: Arc::clone(&token), waker: counting, turn: Turn::new(waker) }
        })
    }

    #[test]
    fn a_task_that_gives_it_back_comes_after_those_that_were_woken() {
        let [mut first, mut second, mut third] = turns();
        let token = first.take();
        assert!(token.is_some() && second.take().is_none() && third.take().is_none());
        drop(token);
        assert!(second.was_woken() && !third.was_woken());
        assert!(first.take().is_none(), "it was not the turn of the first again");
        assert!(third.take().is_none(), "nor that of the third");
        let token = second.take();
        assert!(token.is_some() && !third.was_woken());
        drop(token);
        assert!(third.was_woken() && !first.was_woken());
        drop(third.take());
        assert!(first.was_woken());
        assert!(first.take().is_some());
    }

    #[test]
    fn a_task_that_was_refused_is_woken_when_the_one_in_front_leaves() {
        for is_dropped in [false, true] {
            let [mut first, mut second] = turns();
            let token = first.take();
            assert!(second.take().is_none());
            drop(token);
            assert!(first.take().is_none() && second.was_woken() && !first.was_woken());
            if is_dropped {
                drop(second);
            } else {
                second.turn.leave();
            }
            assert!(first.was_woken(), "the token is free, and the first waits for it");
            assert!(first.take().is_some());
        }
    }

    #[test]
    fn of_two_that_were_woken_either_takes_it() {
        let [mut first, mut second, mut third, mut fourth] = turns();
        let token = first.take();
        assert!(second.take().is_none() && third.take().is_none() && fourth.take().is_none());
        drop(token);
        // One that leaves without its turn has the next one woken beside the one that was woken before.
        fourth.turn.leave();
        assert!(second.was_woken() && third.was_woken());
        let token = third.take();
        assert!(token.is_some() && second.take().is_none());
        drop(token);
        assert!(second.was_woken() && second.take().is_some());
    }
}
