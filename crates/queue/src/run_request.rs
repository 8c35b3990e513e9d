//! A request for one run of a task, for work that no counter reports.
//!
//! REQUEST-1. A requester changes the state to be looked at before it calls `request_run`; the task looks at that state
//!     after it calls `clear_request`. Both are read-modify-writes of one word: either the clear comes first, and the
//!     request stays for the next run, or the clear removes the request, and then the task sees the changes of every
//!     requester before it.

use crate::sync::{AtomicBool, Ordering, ordering};

/// A flag: set while a run is requested and not yet granted.
pub struct RunRequest(AtomicBool);

impl Default for RunRequest {
    /// Returns a flag without a request.
    fn default() -> Self {
        Self(AtomicBool::new(false))
    }
}

impl RunRequest {
    /// Requests a run that looks at what the requester has changed.
    #[inline]
    pub fn request_run(&self) {
        // Release: pairs with the Acquire in `clear_request`. A read-modify-write, so that it also hands over the
        // changes of earlier requesters.
        self.0.swap(true, ordering("run_request.set", Ordering::Release));
    }

    /// Removes the request, if there is one: the task looks at the state afterwards.
    #[inline]
    pub fn clear_request(&self) {
        // Most runs were not requested and leave the word alone. A request that this load misses stays.
        if self.is_waiting() {
            self.0.swap(false, ordering("run_request.clear", Ordering::Acquire));
        }
    }

    /// Returns true while a request waits for its run.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
