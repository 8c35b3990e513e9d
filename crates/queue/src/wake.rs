//! How a task learns that there is something for it.
//!
//! Whoever publishes something for a task wakes it afterwards; a task that finds nothing goes idle only in a way
//! that fails when a wake-up came in between. [`Gate`] does this for a thread of its own.

use crate::gate::Gate;

/// Something that can be woken. Waking twice is the same as waking once, and never blocks for long.
pub trait Wake: Send + Sync {
    /// Says that something was published.
    fn wake(&self);
}

impl Wake for Gate {
    fn wake(&self) {
        self.signal();
    }
}

/// Wakes nobody: for whoever looks again on its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoWake;

impl Wake for NoWake {
    fn wake(&self) {}
}
