//! What every operator with state promises.
//!
//! A task steps such an operator: it takes a run in, and then asks for output until there is none left, as much at a
//! time as it has room for. Output is never made ahead: it is a cursor over the state.
//!
//! CONTRACT-1. `consume` takes all rows of a run in and needs no room. It may be called for any port at any time, except while
//!     there is output.
//! CONTRACT-2. `emit` goes on where it stopped. As long as `has_output`, it gives at least one row for a room of at least one.
//! CONTRACT-3. Late rows change nothing but the count. A row is late when its window is over by the watermark of its own source
//!     just before it, or was closed already.
//! CONTRACT-4. Event time never goes back, before the operator or behind it: no result is of a time that a watermark has passed
//!     which has left before it.
//! CONTRACT-5. State can be taken apart by key group and put together again in any order: the results are those of one operator
//!     that has seen all rows.

use std::any::Any;

use arrow_array::RecordBatch;
use penstock_memory::Run;
use penstock_types::{ComputeError, KeyGroups};
use thiserror::Error;

/// Rows that came too late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Late {
    /// How many.
    pub rows: u64,
    /// Largest distance, in ticks, between such a row and its watermark.
    pub by: Option<u64>,
}

/// What an operator has taken in and not given out: lost if it is dropped now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldRows {
    /// Rows of windows that have not been given out. One that several of them keep a copy of counts for each.
    pub rows: u64,
    /// Sessions that have not been given out. Their rows are not counted: that would cost something for each row.
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

/// Why a snapshot does not fit.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SnapshotError {
    /// It is of another operator, or of another version of it.
    #[error("the state is of {found}, and {wanted} is wanted")]
    Kind {
        /// What it is of.
        found: String,
        /// What it would have to be of.
        wanted: String,
    },
    /// Something in it is not as it should be.
    #[error("the state of {operator} cannot be read: {reason}")]
    Broken {
        /// The operator.
        operator: &'static str,
        /// What is wrong.
        reason: String,
    },
}

/// An operator with state.
pub trait Stateful: Any + Send {
    /// Takes a run in from that port (CONTRACT-1). Rows that are late are counted and left out (CONTRACT-3).
    fn consume(&mut self, port: usize, run: &mut Run) -> Result<(), ComputeError>;

    /// Lists the rows of a run that `consume` would find late, in order. Changes nothing.
    fn late_rows(&self, port: usize, run: &mut Run, rows: &mut Vec<u32>);

    /// Event time has come so far, on all ports.
    fn advance(&mut self, watermark: i64);

    /// Closes everything that is open, because the clock says so. The watermark that this amounts to, if there was
    /// anything: rows for what was closed are late from now on.
    fn close_open(&mut self) -> Option<i64>;

    /// No row follows on any port.
    fn finish(&mut self);

    /// Whether there are rows to emit.
    fn has_output(&self) -> bool;

    /// Begins a run in `out` with at most `room` rows of output (CONTRACT-2). How many.
    fn emit(&mut self, out: &mut Run, room: usize) -> Result<usize, ComputeError>;

    /// How far event time has come behind the operator, once it has come to `watermark` before it and all output of that
    /// has left.
    fn watermark_behind(&self, watermark: i64) -> i64 {
        watermark
    }

    /// Rows that came too late so far.
    fn late(&self) -> Late;

    /// Keys that the state holds, each as often as there are windows or pieces of windows with it: what it takes to merge
    /// it. An operator that nobody merges need not count them.
    fn keys(&self) -> usize {
        0
    }

    /// Heap memory that the state holds. Takes no longer with more keys.
    fn bytes(&self) -> usize;

    /// What it has taken in and not given out. Takes no longer with more keys or windows. State that was restored, or
    /// cut by key group, counts approximately.
    fn held(&self) -> HeldRows;

    /// The state, in a portable form. Output that has begun to leave is not part of it: the caller takes it first.
    fn snapshot(&self) -> StateSnapshot;

    /// Puts the state of a snapshot in the place of its own.
    fn restore(&mut self, snapshot: &StateSnapshot) -> Result<(), SnapshotError>;

    /// Takes the state of these key groups out, as an operator of its own.
    fn extract(&mut self, groups: KeyGroups) -> Box<dyn Stateful>;

    /// Takes what `watermark` closes out, as an operator of its own, instead of closing it; also what could belong
    /// together with it in the part of another operator, such as a session that is still open. It is merged into an
    /// operator that then advances as far.
    fn split_off(&mut self, watermark: i64) -> Box<dyn Stateful>;

    /// Takes in the state of an operator that was made alike.
    ///
    /// # Panics
    /// When it is another kind of operator.
    fn merge(&mut self, other: Box<dyn Stateful>);
}
