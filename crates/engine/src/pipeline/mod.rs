//! A plan, compiled: tasks over runs, with edges between them.
//!
//! A *task* is what runs without a pause: rows from a source or from edges pass stateless operators as selections,
//! perhaps an operator with state, and leave by the next edge. The sink behind the last edge makes Arrow of them. Tasks
//! know nothing of who runs them: they take one step at a time, and the bells of their neighbours tell these that there
//! is something to do.
//!
//! - `segment`: columns and operators over one set of slots; `strands`: a plan cut into such pieces
//! - `drafts`: which pieces run together; `assemble`, `edges`, `leaving`: tasks and what is between them
//! - `task`, `inputs`, `chain`, `stateful`, `outlet`: a task and its parts; `source`, `times`, `sink`: where rows come in and leave
//! - `map`, `token`: functions from outside, and the right to call them
//! - `spreading`: one operator on several workers, and how; `parallel`, `lanes`: by merging
//! - `rejects`: rows that an operator has no answer for
//! - `keyed`: how operators with state are made; `shared`: streams that several queries read

mod assemble;
mod chain;
mod drafts;
mod edges;
mod inputs;
mod keyed;
mod lanes;
mod leaving;
mod map;
mod outlet;
mod parallel;
mod rejects;
mod segment;
mod shared;
mod sink;
mod source;
mod spreading;
mod stateful;
mod strands;
mod task;
mod times;
mod token;

pub(crate) use assemble::{Assembled, Assembler, Destination, Installed, Origin, Ways};
pub use rejects::{LETTER_COLUMNS, OnError};
pub(crate) use segment::Table;
pub(crate) use shared::SharedStream;
pub use sink::{Deliver, Doorbell};
pub(crate) use source::Intake;
pub(crate) use spreading::{Spreading, strategies};
pub(crate) use task::{Step, Task};

use crate::error::RunError;
use crate::query::state::State;
use crate::share::Joins;
use parallel::{Lane, Splitter};
use sink::Sink;

/// What a worker runs.
pub(crate) enum Body {
    /// Operators.
    Task(Box<Task>),
    /// A source that queries read from.
    Shared(Box<Task>, Joins),
    /// Reads a source for several lanes.
    Splitter(Box<Splitter>),
    /// One of several workers on the same operator.
    Lane(Box<Lane>),
    /// Where results leave.
    Sink(Box<Sink>),
}

/// Numbers of a task, for its row of the table.
pub(crate) struct Numbers {
    pub(crate) rows_in: u64,
    pub(crate) rows_out: u64,
    /// When the last of its input arrived; `None` for a sink, which is not told.
    pub(crate) arrived_ns: Option<u64>,
    pub(crate) blocked_ns: u64,
    pub(crate) is_blocked: bool,
    pub(crate) is_unfinished: bool,
}

impl Body {
    /// Does one thing.
    pub(crate) fn step(&mut self, query: &State) -> Result<Step, RunError> {
        match self {
            Self::Task(task) => task.step(query),
            Self::Shared(task, joins) => joins.step(task, query),
            Self::Splitter(splitter) => splitter.step(query),
            Self::Lane(lane) => lane.step(),
            Self::Sink(sink) => sink.step(query),
        }
    }

    pub(crate) fn numbers(&self) -> Numbers {
        match self {
            Self::Task(task) | Self::Shared(task, _) => {
                let (rows_in, rows_out, arrived_ns) = task.progress();
                Numbers {
                    rows_in,
                    rows_out,
                    arrived_ns: Some(arrived_ns),
                    blocked_ns: task.blocked_ns(),
                    is_blocked: task.is_blocked(),
                    is_unfinished: task.is_unfinished(),
                }
            }
            Self::Splitter(splitter) => {
                let (rows, arrived_ns, blocked_ns) = splitter.progress();
                Numbers {
                    rows_in: rows,
                    rows_out: rows,
                    arrived_ns: Some(arrived_ns),
                    blocked_ns,
                    is_blocked: splitter.is_blocked(),
                    is_unfinished: splitter.is_blocked(),
                }
            }
            Self::Lane(lane) => {
                let (rows, arrived_ns) = lane.progress();
                Numbers {
                    rows_in: rows,
                    rows_out: rows,
                    arrived_ns: Some(arrived_ns),
                    blocked_ns: 0,
                    is_blocked: lane.is_blocked(),
                    is_unfinished: lane.is_unfinished(),
                }
            }
            Self::Sink(sink) => Numbers {
                rows_in: sink.rows(),
                rows_out: sink.rows(),
                arrived_ns: None,
                blocked_ns: 0,
                is_blocked: sink.is_waiting(),
                is_unfinished: sink.is_waiting(),
            },
        }
    }

    /// Gives memory back that a burst has left behind.
    pub(crate) fn trim(&mut self) {
        match self {
            Self::Task(task) | Self::Shared(task, _) => task.trim(),
            Self::Splitter(_) | Self::Lane(_) | Self::Sink(_) => {}
        }
    }
}
