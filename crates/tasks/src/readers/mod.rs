//! Where the rows of a stream come from.
//!
//! A [`SourceReader`] delivers batches, and paces, decodes and retries as its origin needs. The source in front of it
//! matches the batches with the declared schema, reads event time off them and cuts them into runs; it knows nothing
//! of where they come from. A new kind of input is a new file here, and a constructor in the engine.
//!
//! - [`push`]: batches that another thread pushes into a feed
//! - [`pull`]: batches that a thread of their own pulls from an iterator, and how it does
//! - [`replay`]: batches in memory, given out again and again, at a rate
//! - [`shared`]: the log of a source that several queries read
//!
//! READERS-1. Rows count as pending from when they are available until they are acknowledged: also those of the batch that
//!     was polled last, and runs that the task has not finished.
//! READERS-2. A reader that has returned [`Polled::Pending`] wakes its task when that may have changed.
//! READERS-3. While the query drains, a reader gives out what it has taken in already, and then ends.

pub mod pull;
pub mod push;
pub mod replay;
pub mod shared;

use std::sync::Arc;

use arrow_array::RecordBatch;
use penstock_memory::{Run, Signal, SourceColumns};
use penstock_scheduler::table::Pending;
use penstock_types::OutsideError;
use thiserror::Error;

use crate::account::SourceCounts;
use crate::clock::Until;
use crate::context::Context;
use crate::error::RunError;
use crate::event_time::EventClock;
use crate::waker::Waker;
use penstock_plan::WatermarkFunction;

/// A place in the input of a reader: rows since its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(pub u64);

/// A batch that was polled.
#[derive(Debug)]
pub struct PolledBatch {
    /// The rows.
    pub rows: RecordBatch,
    /// The position after the batch.
    pub position: Position,
    /// When it arrived, by the time of the system.
    pub arrived_ns: u64,
    /// When it arrived, by the wall clock of the query.
    pub arrived_us: i64,
    /// What is added to the times of its rows.
    pub offset: i64,
    /// The watermark after the batch, before the offset, if a function gives one.
    pub watermark: Option<i64>,
}

/// What a reader has.
#[derive(Debug)]
pub enum Polled {
    /// The next batch.
    Batch(PolledBatch),
    /// Rows that are in columns already, for [`SourceReader::begin`].
    Rows,
    /// No rows, but the watermark has advanced.
    Watermark(i64),
    /// Another signal that stands between rows.
    Signal(Signal),
    /// Nothing now: the task is woken (READERS-2).
    Pending,
    /// Nothing now or ever.
    Ended,
}

/// How many rows of the batch at hand may be taken now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Available {
    /// So many.
    Rows(usize),
    /// None that are worth a run before that time.
    Until(Until),
    /// None any more: the input ends inside the batch.
    Ended,
}

/// When the rows of a run arrived, by the time of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// The first of them.
    pub first_ns: u64,
    /// The last of them.
    pub last_ns: u64,
}

/// A run that a reader has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// Its rows.
    pub rows: usize,
    /// When they arrived, where that is known.
    pub arrived: Option<Arrived>,
}

/// What was skipped of an input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// How many rows.
    pub rows: u64,
    /// The last watermark among them.
    pub watermark: Option<i64>,
    /// The last arrival mark among them.
    pub arrived_ns: Option<u64>,
    /// Whether the source is awake at the end of what was skipped, if that says so.
    pub is_awake: Option<bool>,
    /// Whether the end of the input was among them.
    pub has_ended: bool,
}

/// Why a reader cannot go to a position.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SeekError {
    /// The input is not kept: rows that were taken from it are gone.
    #[error("a {what} cannot be read again: what was taken from it is gone")]
    NotKept {
        /// The kind of input.
        what: &'static str,
    },
    /// The input ends before the position.
    #[error("the input ends after {rows} rows, before position {}", .position.0)]
    BehindEnd {
        /// The position that was asked for.
        position: Position,
        /// Rows of the input.
        rows: u64,
    },
}

/// Reads the rows of one stream.
pub trait SourceReader: Send {
    /// Says whom to wake when there is something to read, and where counters of the source are kept. Called once, before
    /// the first poll. Where to look for pending work is for the caller to say: a task may have several inputs.
    fn connect(&mut self, waker: &Arc<dyn Waker>, counts: &Arc<SourceCounts>);

    /// Tells the reader how the stream is read. Called once, before the first poll.
    fn prepare(&mut self, columns: &SourceColumns, clock: Option<&EventClock>) {
        let _ = (columns, clock);
    }

    /// Has `function` say the watermark after each batch, of those as well that are there already; without one, none
    /// does. Called once, before the first poll.
    ///
    /// # Errors
    /// What the function has raised.
    fn watermark_by(&mut self, function: Option<&Arc<dyn WatermarkFunction>>) -> Result<(), OutsideError>;

    /// Returns true if the input is given out more than once, with times that are moved from round to round.
    fn repeats(&self) -> bool {
        false
    }

    /// Polls the next batch and the position after it, or what else comes next.
    ///
    /// # Errors
    /// An input that has failed.
    fn poll(&mut self, context: &Context) -> Result<Polled, RunError>;

    /// Returns how many rows of the batch at hand, of which `left` were not taken, may be taken now. This is where a
    /// reader paces its rows.
    fn available(&mut self, left: usize, context: &Context) -> Available {
        let _ = context;
        Available::Rows(left)
    }

    /// Takes the next rows of the batch at hand, and returns when they arrived. Called after [`Polled::Batch`].
    fn take(&mut self, rows: usize) -> Arrived {
        unreachable!("{rows} rows of a batch are taken, and none was polled")
    }

    /// Begins a run over the next rows, at most `limit` of them. Called after [`Polled::Rows`].
    fn begin(&mut self, run: &mut Run, limit: usize) -> Begun {
        unreachable!("a run of {limit} rows begins beside {} slots, and none was polled", run.len())
    }

    /// Notes that the batch at hand was refused, all of its rows.
    fn refuse(&mut self, rows: u64) {
        self.acknowledge(rows);
    }

    /// Notes that the next rows of those taken are done with. Until then they are pending (READERS-1).
    fn acknowledge(&mut self, rows: u64);

    /// Skips what waits, if the input has asked for that, and returns what it was. The run at hand keeps its rows, which
    /// count as acknowledged.
    fn skip_backlog(&mut self) -> Option<Skipped> {
        None
    }

    /// Moves to a position of the input: the next batch begins there.
    ///
    /// # Errors
    /// An input that cannot go there. The reader stays where it is.
    fn seek(&mut self, position: Position) -> Result<(), SeekError>;

    /// Returns a look at the work that waits in the input.
    fn pending(&self) -> Box<dyn Pending>;

    /// Returns the partitions of the input.
    fn partitions(&self) -> usize {
        1
    }

    /// Returns the watermark that the reader knows of a partition, by itself, without reading event time off rows.
    fn watermark(&self, partition: usize) -> Option<i64> {
        let _ = partition;
        None
    }
}
