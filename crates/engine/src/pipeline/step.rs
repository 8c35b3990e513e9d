//! One step of a task.

use crate::clock::Until;

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Something was done, with so many rows; there may be more to do.
    Worked(usize),
    /// There is work, but no room for its output.
    Blocked,
    /// There is nothing to do now.
    Idle,
    /// There is nothing to do before that time.
    Until(Until),
    /// There will never be anything to do.
    Done,
}
