//! What a worker runs, one step at a time.

use std::sync::Arc;

use penstock_operators::HeldRows;

use crate::charge::Load;
use crate::clock::Until;
use crate::context::Context;
use crate::error::RunError;

/// The outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It did something, with so many rows; there may be more to do.
    Worked(usize),
    /// It has work, but no room for its output.
    Blocked,
    /// It has nothing to do now.
    Idle,
    /// It has nothing to do before that time.
    Until(Until),
    /// It will never have anything to do again.
    Done,
}

/// What a blocked task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockedOn {
    /// Room in the edge that it writes, or in the queue of results.
    Room = 0,
    /// The function that takes dead letters.
    Letters = 1,
    /// Memory of the budget.
    Memory = 2,
}

impl BlockedOn {
    /// Returns the one with that number.
    pub fn of(number: u64) -> Self {
        match number {
            1 => Self::Letters,
            2 => Self::Memory,
            _ => Self::Room,
        }
    }
}

/// Counters of a task, for its row of the task table.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    /// Rows taken in.
    pub rows_in: u64,
    /// Rows given out.
    pub rows_out: u64,
    /// Time with output and without room for it.
    pub blocked_ns: u64,
    /// Whether it waits for room now.
    pub is_blocked: bool,
    /// What it waits for.
    pub blocked_on: BlockedOn,
    /// Whether output of what it has consumed has yet to leave.
    pub is_unfinished: bool,
    /// What it has taken in and not given out: rows of a sink, or the state of an operator.
    pub held: HeldRows,
}

/// A task: what the scheduler runs. It knows its wakers and the [`Context`] of its query, never who runs it.
pub trait Task: Send {
    /// Takes one step.
    ///
    /// # Errors
    /// Whatever fails the query.
    fn step(&mut self, context: &Context) -> Result<Step, RunError>;

    /// Returns its counters at `now_ns`, a time of the system.
    fn numbers(&self, now_ns: u64) -> Numbers;

    /// Gives memory back that a burst has left behind.
    fn trim(&mut self) {}

    /// Returns the gauge of the state that it has handed to a merging task, if it is a lane.
    fn load(&self) -> Option<Arc<Load>> {
        None
    }

    /// Returns true if it merges the state of lanes: what waits for it is state, and counts as theirs.
    fn merges(&self) -> bool {
        false
    }

    /// Returns the number of the output that leaves by it, if it is a sink.
    fn output(&self) -> Option<usize> {
        None
    }
}
