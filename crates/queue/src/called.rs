//! A request that somebody looks at something, of which no counter tells.
//!
//! C1. Whoever calls changes what is to be looked at first; whoever answers looks afterwards. Both are read-modify-writes
//!     of one word: either the answer comes first, and the call stays for the next one, or it takes the call away, and
//!     then it sees what each of those who had called before it has changed.

use crate::sync::{AtomicBool, Ordering, ordering};

/// Whether somebody has called and had no answer.
pub struct Called(AtomicBool);

impl Default for Called {
    /// Nobody has called yet.
    fn default() -> Self {
        Self(AtomicBool::new(false))
    }
}

impl Called {
    /// Asks for a look at what the caller has changed.
    #[inline]
    pub fn call(&self) {
        // Release: pairs with the Acquire in `answer`. A read-modify-write, so that it hands over what those have changed
        // who called before, too.
        self.0.swap(true, ordering("called.call", Ordering::Release));
    }

    /// Takes the call away, if there is one: the caller looks afterwards.
    #[inline]
    pub fn answer(&self) {
        // Most runs were not called for, and leave the word alone. A call that this load misses stays.
        if self.is_waiting() {
            self.0.swap(false, ordering("called.answer", Ordering::Acquire));
        }
    }

    /// Whether a call waits for its answer.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
