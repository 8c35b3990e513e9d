//! The one token of the interpreter: who has it may call into Python.
//!
//! K1. At most one task has it. A task that does not get it is rung when it is free again, and does something else, or
//!     nothing, until then: no worker waits for it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::engine::bell::Bell;

struct Held {
    is_taken: bool,
    waiting: VecDeque<Arc<Bell>>,
}

static TOKEN: Mutex<Held> = Mutex::new(Held { is_taken: false, waiting: VecDeque::new() });

fn locked() -> MutexGuard<'static, Held> {
    TOKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The token, until it is dropped.
pub(super) struct Token(());

impl Token {
    /// Takes it, if nobody has it. Otherwise `bell` rings when it is free.
    pub(super) fn take(bell: &Arc<Bell>) -> Option<Self> {
        let mut held = locked();
        if held.is_taken {
            if !held.waiting.iter().any(|waiting| Arc::ptr_eq(waiting, bell)) {
                held.waiting.push_back(Arc::clone(bell));
            }
            return None;
        }
        held.is_taken = true;
        Some(Self(()))
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        let next = {
            let mut held = locked();
            held.is_taken = false;
            held.waiting.pop_front()
        };
        if let Some(bell) = next {
            bell.call();
        }
    }
}
