//! A wake-up that is sent only to a side that has asked for one, for a resource it rarely waits for, such as room.
//!
//! WANTED-1. The side that needs the resource asks, and then looks again; the side that makes it does so first, and
//!     then withdraws the question. Both are a read-modify-write of one word: either the question comes later, and the
//!     second look finds what was made, or it comes earlier, and the maker wakes the side that asked.

use std::sync::Arc as StdArc;

use crate::sync::{AtomicBool, Ordering, ordering, planted};
use crate::wake::Wake;

/// Wakes its target if the target has asked. Call `wake` after the resource was made.
pub struct Wanted {
    asked: AtomicBool,
    wake: StdArc<dyn Wake>,
}

impl Wanted {
    /// Creates a flag without a question.
    pub fn new(wake: StdArc<dyn Wake>) -> Self {
        Self { asked: AtomicBool::new(false), wake }
    }

    /// Returns what `look` finds. When it finds nothing, twice, the wake-up comes once there is something to find.
    pub fn look<T>(&self, mut look: impl FnMut() -> Option<T>) -> Option<T> {
        look().or_else(|| {
            // AcqRel: Acquire pairs with the Release in `wake`: a swap that reads from it sees what was made.
            self.asked.swap(true, ordering("wanted.ask", Ordering::AcqRel));
            if planted("wanted.again") { None } else { look() }
        })
    }
}

impl Wake for Wanted {
    fn wake(&self) {
        // AcqRel: Release hands over what was made.
        if self.asked.swap(false, ordering("wanted.made", Ordering::AcqRel)) && !planted("wanted.wake") {
            self.wake.wake();
        }
    }
}
