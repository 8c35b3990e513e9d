//! The right of an engine's tasks to call into the interpreter.
//!
//! K1. At most one task of an engine has it. A task that does not get it is rung when it is free again, and does
//!     something else, or nothing, until then: no worker waits for another of its engine. Each engine has a right of its
//!     own, so that a function that runs a pipeline itself, on another engine, does not wait for what it has.
//! K2. While it is free and somebody waits, one of those who wait has been rung and has not answered. Each answers: its
//!     task takes the right, or asks for it in vain because another was faster and so will give it back, or leaves
//!     the queue, by its end if not before; and then the next one is rung.

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

    /// Takes the right, if nobody has it. Otherwise the bell rings when it is free.
    pub(super) fn take(&mut self) -> Option<Token> {
        let mut held = self.interpreter.locked();
        let place = held.waiting.iter().position(|waiting| Arc::ptr_eq(&waiting.bell, &self.bell));
        self.waits = held.is_taken;
        if !held.is_taken {
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
