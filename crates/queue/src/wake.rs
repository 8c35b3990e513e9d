//! How a task learns that work waits for it.
//!
//! A publisher wakes the task after it has published; a task that finds nothing goes idle only by a step that fails
//! when a wake-up came in between. [`Gate`] does this for a thread of its own.

use crate::gate::Gate;

/// A target of wake-ups. Waking twice is the same as waking once, and never blocks for long.
pub trait Wake: Send + Sync {
    /// Signals that something was published.
    fn wake(&self);
}

impl Wake for Gate {
    fn wake(&self) {
        self.signal();
    }
}

/// Wakes no one: for a caller that polls on its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoWake;

impl Wake for NoWake {
    fn wake(&self) {}
}
