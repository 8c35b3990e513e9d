//! Lock-free primitives that carry work between threads.
//!
//! - [`ring`]: a bounded queue from one producer to one consumer
//! - [`log`]: positions, directory and signals of a stream with one writer and many readers
//! - [`pile`]: a stack that many threads push to and one thread empties at once
//! - [`listed`]: whether something is on a list of what is at work
//! - [`schedule`]: ready tasks by rank, for any number of workers
//! - [`supply`]: a background thread that makes items for customers that order ahead of need
//! - [`gate`]: a place where a thread sleeps until another thread signals it
//! - [`wake`]: how a task learns that work waits for it
//! - [`run_request`]: a request for one run of a task, for work that no counter reports
//! - [`wanted`]: a wake-up that is sent only to a side that has asked for one
//!
//! Atomics and cells come from [`sync`], which loom and shuttle replace under `--cfg loom` and `--cfg shuttle`.

pub mod gate;
pub mod listed;
pub mod log;
pub mod pile;
pub mod ring;
pub mod run_request;
pub mod schedule;
pub mod supply;
pub mod sync;
pub mod wake;
pub mod wanted;
