//! A plan, compiled: tasks over runs, with edges between them.
//!
//! A *task* is what runs without a pause: rows from a source or from edges pass stateless operators as selections,
//! perhaps an operator with state, and leave by the next edge. The sink behind the last edge makes Arrow of them. Tasks
//! know nothing of who runs them: they take one step at a time, and the bells of their neighbours tell these that there
//! is something to do.
//!
//! - `segment`: columns and operators over one set of slots; `strands`: a plan cut into such pieces
//! - `drafts`: which pieces run together; `assemble`, `edges`, `leaving`, `order`: tasks and what is between them
//! - `task`, `step`, `inputs`, `chain`, `stateful`, `outlet`: a task and its parts; `source`, `screen`,
//!   `event_clock`, `times`, `waiting`, `sink`: where rows come in and leave
//! - `map`, `token`: functions from outside, and the right to call them
//! - `spreading`: one operator on several workers, and how; `parallel`, `lanes`: by merging
//! - `rejects`: rows that an operator has no answer for
//! - `keyed`: how operators with state are made; `shared`: streams that several queries read

mod assemble;
mod chain;
mod drafts;
mod edges;
mod event_clock;
mod inputs;
mod keyed;
mod lanes;
mod leaving;
mod map;
mod order;
mod outlet;
mod parallel;
mod rejects;
mod screen;
mod segment;
mod shared;
mod sink;
mod source;
mod spreading;
mod stateful;
mod step;
mod strands;
mod task;
mod times;
mod token;
mod waiting;

pub(crate) use assemble::{Assembled, Assembler, Destination, Installed, Origin, Ways};
pub(crate) use parallel::Load;
pub use rejects::{LETTER_COLUMNS, OnError};
pub(crate) use segment::Table;
pub(crate) use shared::SharedStream;
pub use sink::{Deliver, Doorbell};
pub(crate) use source::Intake;
pub(crate) use spreading::{ShareGauge, Spreading, strategies};
pub(crate) use step::Step;
pub(crate) use task::Task;
pub(crate) use token::Interpreter;

use std::sync::Arc;

use penstock_operators::Held;

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

/// What a blocked task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockedOn {
    /// Room in the edge that it writes, or in the queue of results.
    Room = 0,
    /// The function that takes dead letters.
    Letters = 1,
    /// Memory of the budget.
    Memory = 2,
}

impl BlockedOn {
    /// The one with that number.
    pub(crate) fn of(number: u64) -> Self {
        match number {
            1 => Self::Letters,
            2 => Self::Memory,
            _ => Self::Room,
        }
    }
}

/// Numbers of a task, for its row of the table.
pub(crate) struct Numbers {
    pub(crate) rows_in: u64,
    pub(crate) rows_out: u64,
    pub(crate) blocked_ns: u64,
    pub(crate) is_blocked: bool,
    pub(crate) blocked_on: BlockedOn,
    pub(crate) is_unfinished: bool,
    /// What it has taken in and not given out: rows of a sink, or what an operator with state holds.
    pub(crate) held: Held,
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
                let (rows_in, rows_out) = task.progress();
                Numbers {
                    rows_in,
                    rows_out,
                    blocked_ns: task.blocked_ns(),
                    is_blocked: task.is_blocked(),
                    blocked_on: task.blocked_on(),
                    is_unfinished: task.is_unfinished(),
                    held: task.held(),
                }
            }
            Self::Splitter(splitter) => {
                let (rows, blocked_ns) = splitter.progress();
                Numbers {
                    rows_in: rows,
                    rows_out: rows,
                    blocked_ns,
                    is_blocked: splitter.is_blocked(),
                    blocked_on: splitter.blocked_on(),
                    is_unfinished: splitter.is_unfinished(),
                    held: Held::default(),
                }
            }
            Self::Lane(lane) => {
                let (rows_in, rows_out) = lane.progress();
                Numbers {
                    rows_in,
                    rows_out,
                    blocked_ns: 0,
                    is_blocked: lane.is_blocked(),
                    blocked_on: lane.blocked_on(),
                    is_unfinished: lane.is_unfinished(),
                    held: lane.held(),
                }
            }
            Self::Sink(sink) => Numbers {
                rows_in: sink.rows(),
                rows_out: sink.rows(),
                blocked_ns: 0,
                is_blocked: sink.is_waiting(),
                blocked_on: BlockedOn::Room,
                is_unfinished: sink.is_waiting(),
                held: Held { rows: sink.held_rows(), sessions: 0 },
            },
        }
    }

    /// Returns the gauge of what it has handed to whoever merges.
    pub(crate) fn load(&self) -> Option<Arc<Load>> {
        match self {
            Self::Lane(lane) => Some(Arc::clone(lane.load())),
            _ => None,
        }
    }

    /// Whether it merges what lanes hand to it: what waits for it is state, and counts as that of the lanes.
    pub(crate) fn merges(&self) -> bool {
        matches!(self, Self::Task(task) if task.merges())
    }

    /// The output whose results leave by it, if they do.
    pub(crate) fn output(&self) -> Option<usize> {
        match self {
            Self::Sink(sink) => Some(sink.output),
            _ => None,
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
