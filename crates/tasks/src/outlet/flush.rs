//! How a task tells the sink after it that it has no room.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::waker::Waker;

/// Asks a sink to take rows that it would rather leave until more have come.
pub struct FlushRequest {
    requested: AtomicBool,
    sink: Arc<dyn Waker>,
}

impl FlushRequest {
    /// Asks the sink of that waker.
    pub fn new(sink: Arc<dyn Waker>) -> Self {
        Self { requested: AtomicBool::new(false), sink }
    }

    /// Asks the sink, and wakes it.
    pub fn request(&self) {
        self.requested.store(true, Ordering::Release);
        self.sink.ring();
    }

    /// Takes the request, if there is one: a writer that still has no room after that asks again.
    pub fn take(&self) -> bool {
        self.requested.swap(false, Ordering::AcqRel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waker::tests::Counting;

    #[test]
    fn a_request_wakes_the_sink_and_is_taken_once() {
        let (counting, waker) = Counting::pair();
        let flush = FlushRequest::new(waker);
        assert!(!flush.take());
        flush.request();
        flush.request();
        assert_eq!(counting.take(), 2);
        assert!(flush.take() && !flush.take());
    }
}
