//! The state of a query between two parts of its input, as tasks restore and keep it.
//!
//! Sources, operators and outputs are known by their numbers in the plan.

use penstock_operators::{StateSnapshot, Stateful};
use penstock_types::PlanError;

/// The state of one operator.
#[derive(Clone, Debug, PartialEq)]
pub struct OperatorState {
    /// The watermark that it had reached.
    pub watermark: i64,
    /// Its state, by its contract.
    pub snapshot: StateSnapshot,
}

/// Keeps the state of a query from one part of its input to the next.
pub trait StateStore: Send + Sync {
    /// Returns true if what is open at the end of this part stays open.
    fn pauses(&self) -> bool;

    /// Returns the largest time that a source had seen before this part.
    fn latest_of(&self, source: usize) -> Option<i64>;

    /// Returns the watermark that the caller has imposed on a source for this part, instead of one read off the rows;
    /// [`penstock_progress::NEVER`] imposes none that is new.
    fn imposed_watermark(&self, source: usize) -> Option<i64>;

    /// Keeps the largest time that a source has seen.
    fn keep_latest(&self, source: usize, latest: i64);

    /// Restores an operator, and returns the watermark that it had reached.
    ///
    /// # Errors
    /// State that the operator cannot use.
    fn restore_operator(&self, number: usize, operator: &mut dyn Stateful) -> Result<i64, PlanError>;

    /// Keeps the state of an operator.
    fn keep_operator(&self, number: usize, state: OperatorState);

    /// Keeps the watermark that an output has reached.
    fn keep_output(&self, number: usize, watermark: i64);
}
