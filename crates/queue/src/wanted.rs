//! Something that one side makes and the other one rarely waits for, such as room.
//!
//! Whoever makes some wakes the other side only if that one has asked.
//!
//! WANTED-1. The one who needs some asks, and then looks again; the one who makes some does so first, and then takes the
//!     question back. Both are a read-modify-write of one word: either the question comes later, and the second look
//!     finds what was made, or it comes before, and whoever made some wakes the one who asked.

use std::sync::Arc as StdArc;

use crate::sync::{AtomicBool, Ordering, ordering, planted};
use crate::wake::Wake;

/// Wakes whoever has asked for something. Wake it after some was made.
pub struct Wanted {
    asked: AtomicBool,
    wake: StdArc<dyn Wake>,
}

impl Wanted {
    /// Nobody has asked yet.
    pub fn new(wake: StdArc<dyn Wake>) -> Self {
        Self { asked: AtomicBool::new(false), wake }
    }

    /// What `look` finds. When it finds nothing, twice, the wake-up comes once there is some.
    pub fn look<T>(&self, mut look: impl FnMut() -> Option<T>) -> Option<T> {
        look().or_else(|| {
            // AcqRel: Acquire pairs with the Release in `wake`; whoever reads from that sees what was made.
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
