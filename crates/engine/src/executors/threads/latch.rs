//! A latch at which the threads of a query wait for each other.

use std::sync::{Condvar, Mutex, PoisonError};

/// Opens once, with the word whether to go on.
#[derive(Default)]
pub(super) struct Latch {
    opened: Mutex<Option<bool>>,
    changed: Condvar,
}

impl Latch {
    /// Waits until it opens. Returns whether to go on.
    pub(super) fn wait(&self) -> bool {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = self.changed.wait_while(opened, |opened| opened.is_none());
        opened.unwrap_or_else(PoisonError::into_inner).unwrap_or(false)
    }

    /// Opens it.
    pub(super) fn open(&self, goes_on: bool) {
        *self.opened.lock().unwrap_or_else(PoisonError::into_inner) = Some(goes_on);
        self.changed.notify_all();
    }
}
