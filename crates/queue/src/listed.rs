//! Whether something is on a list that one thread keeps of what is at work, such as queries with ready tasks.
//!
//! LISTED-1. A thread that makes a task ready looks here *afterwards*, and adds what the task belongs to if it is not
//!     listed. The thread that keeps the list clears the mark first and looks at the tasks *afterwards*, by
//!     [`ScheduleQueue::is_idle`](crate::schedule::ScheduleQueue::is_idle), and lists it again if one of them is not idle.
//!     Both are read-modify-writes of the state of the task: the later one sees what came before the other.

use crate::sync::{AtomicBool, Ordering};

/// The mark of something that may be on a list.
#[derive(Debug)]
pub struct Listed(AtomicBool);

impl Listed {
    /// Makes the mark of something that is on the list, or is not.
    pub fn new(is_listed: bool) -> Self {
        Self(AtomicBool::new(is_listed))
    }

    /// Marks it as listed. Returns whether the caller is to put it on the list: it was not, and no other thread is at it.
    pub fn enlist(&self) -> bool {
        // Relaxed: the state of the task orders it (LISTED-1).
        !self.0.load(Ordering::Relaxed) && !self.0.swap(true, Ordering::Relaxed)
    }

    /// Marks it as not listed. The caller looks at its tasks afterwards.
    pub fn delist(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn one_caller_puts_it_on_the_list() {
        let listed = Listed::new(false);
        assert_eq!([listed.enlist(), listed.enlist()], [true, false]);
        listed.delist();
        assert!(listed.enlist());
        assert!(!Listed::new(true).enlist());
    }
}
