//! The contract of every operator with state.
//!
//! A task steps such an operator: the operator consumes a run, and the task then takes output until there is none
//! left, as much at a time as it has room for. Output is never produced ahead: it is a cursor over the state.
//!
//! CONTRACT-1. `consume` takes all rows of a run and needs no room. It may be called for any port at any time, except
//!     while there is output.
//! CONTRACT-2. `emit` continues where it stopped. While `has_output` is true, it emits at least one row for a room of
//!     at least one.
//! CONTRACT-3. Late rows change only the count. A row is late when its window is over by the watermark of its own
//!     source just before it, or was closed already.
//! CONTRACT-4. Event time never goes back, before the operator or after it: no result has a time below a watermark
//!     that has already left the operator.
//! CONTRACT-5. State can be split by key group and merged again in any order: the results are those of one operator
//!     that has seen all rows.

use std::any::Any;

use arrow_array::RecordBatch;
use penstock_memory::Run;
use penstock_types::{ComputeError, KeyGroups};
use thiserror::Error;

/// Late rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Late {
    /// Number of late rows.
    pub rows: u64,
    /// Largest distance, in ticks, between such a row and its watermark.
    pub by: Option<u64>,
}

/// Rows that an operator has consumed and not emitted: lost if it is dropped now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldRows {
    /// Rows of windows that were not emitted yet. A row kept by several windows counts for each.
    pub rows: u64,
    /// Sessions that were not emitted yet. Their rows are not counted: that would cost something for each row.
    pub sessions: u64,
}

impl std::ops::Add for HeldRows {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { rows: self.rows + other.rows, sessions: self.sessions + other.sessions }
    }
}

/// State in a portable form: named tables. The metadata of each schema names the operator, the version and the table.
#[derive(Clone, Debug, PartialEq)]
pub struct StateSnapshot {
    /// The tables.
    pub tables: Vec<RecordBatch>,
}

/// Why a snapshot cannot be restored.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SnapshotError {
    /// It belongs to another operator, or to another version of it.
    #[error("the state is of {found}, but {wanted} is needed")]
    Kind {
        /// The operator and version of the snapshot.
        found: String,
        /// The expected operator and version.
        wanted: String,
    },
    /// The snapshot is malformed.
    #[error("the state of {operator} cannot be read: {reason}")]
    Broken {
        /// The operator.
        operator: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

/// An operator with state.
pub trait Stateful: Any + Send {
    /// Consumes a run from that port (CONTRACT-1). Counts late rows and leaves them out (CONTRACT-3).
    fn consume(&mut self, port: usize, run: &mut Run) -> Result<(), ComputeError>;

    /// Lists the rows of a run that `consume` would find late, in order. Changes nothing.
    fn late_rows(&self, port: usize, run: &mut Run, rows: &mut Vec<u32>);

    /// Advances the watermark on all ports.
    fn advance(&mut self, watermark: i64);

    /// Closes everything that is open, by order of the clock. Returns the watermark with the same effect, if anything
    /// was open: rows for closed windows are late from now on.
    fn close_open(&mut self) -> Option<i64>;

    /// Ends the input: no row follows on any port.
    fn finish(&mut self);

    /// Returns true if there are rows to emit.
    fn has_output(&self) -> bool;

    /// Begins a run in `out` with at most `room` rows of output (CONTRACT-2); returns their number.
    fn emit(&mut self, out: &mut Run, room: usize) -> Result<usize, ComputeError>;

    /// Returns the watermark after the operator, once the watermark before it is `watermark` and all output up to it
    /// has left.
    fn output_watermark(&self, watermark: i64) -> i64 {
        watermark
    }

    /// Returns the late rows so far.
    fn late(&self) -> Late;

    /// Counts the keys of the state, once per window or pane: the cost of merging it. An operator that is never merged
    /// need not count them.
    fn keys(&self) -> usize {
        0
    }

    /// Returns the heap memory of the state. Its cost does not depend on the number of keys.
    fn bytes(&self) -> usize;

    /// Returns what was consumed and not emitted. Its cost does not depend on the number of keys or windows. State
    /// that was restored, or split by key group, counts approximately.
    fn held(&self) -> HeldRows;

    /// Returns the state in a portable form. Output that is being emitted is not part of it: the caller takes it
    /// first.
    fn snapshot(&self) -> StateSnapshot;

    /// Replaces the state by that of a snapshot.
    fn restore(&mut self, snapshot: &StateSnapshot) -> Result<(), SnapshotError>;

    /// Splits off the state of these key groups, as an operator of its own.
    fn extract(&mut self, groups: KeyGroups) -> Box<dyn Stateful>;

    /// Splits off the state that `watermark` closes, as an operator of its own, instead of closing it; also state that
    /// may have to be combined with that of another operator, such as an open session. The result is merged into an
    /// operator that then advances to the same watermark.
    fn split_off(&mut self, watermark: i64) -> Box<dyn Stateful>;

    /// Merges the state of an operator of the same specification.
    ///
    /// # Panics
    /// When it is another kind of operator.
    fn merge(&mut self, other: Box<dyn Stateful>);
}
