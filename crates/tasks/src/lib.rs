//! What runs: tasks, their sources and sinks, and what stands between them.
//!
//! A *task* is what runs without a pause: rows from a source or from edges pass stateless operators as selections,
//! perhaps an operator with state, and leave by the next edge. The sink after the last edge makes Arrow of them. A task
//! takes one step at a time. It knows the wakers of its neighbours and the context of its query, and nothing of what runs
//! it: no engine, no query, no thread, and no clock but the one it is given.
//!
//! - [`step`], [`context`], [`waker`], [`clock`], [`checkpoint`], [`functions`]: what a task is given, and what it gives
//! - [`task`]: tasks of operators; [`chain`], [`operator`]: their parts; [`inputs`], [`outlet`]: where rows come in and leave
//! - [`source`], [`event_time`]: the head of a stream; [`readers`]: where its batches come from; [`feed`]: pushed batches
//! - [`sink`]: the end of an output; [`writers`]: where its batches go; [`results`]: batches on their way to readers
//! - [`shared`]: streams that several queries read; [`share`], [`parallel`], [`charge`]: operators on several workers
//! - [`rejects`]: rows that an operator rejects; [`account`]: what became of every row; [`pending`]: what waits
//! - [`error`]: why a run ends without a result

#![forbid(unsafe_code)]

pub mod account;
pub mod chain;
pub mod charge;
pub mod checkpoint;
pub mod clock;
pub mod context;
pub mod error;
pub mod event_time;
pub mod feed;
pub mod functions;
pub mod inputs;
pub mod operator;
pub mod outlet;
pub mod parallel;
pub mod pending;
pub mod readers;
pub mod rejects;
pub mod results;
pub mod share;
pub mod shared;
pub mod sink;
pub mod source;
pub mod step;
pub mod task;
pub mod waker;
pub mod writers;
