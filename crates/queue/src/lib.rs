//! Lock-free primitives that carry work between threads.
//!
//! - [`ring`]: a bounded queue from one producer to one consumer
//! - [`log`]: positions, directory and signals of a stream with one writer and many readers
//! - [`pile`]: values from many threads, taken all at once by one
//! - [`schedule`]: ready tasks by rank, for any number of workers
//! - [`supply`]: one thread makes things in the background for others that ask ahead of need
//! - [`gate`]: where a thread sleeps until another one has something for it
//! - [`wake`]: how a task learns that there is something for it
//! - [`run_request`]: a request for one run of a task, for work that no counter reports
//! - [`wanted`]: how a task learns of something that it rarely waits for
//!
//! Atomics and cells come from [`sync`], which loom and shuttle replace under `--cfg loom` and `--cfg shuttle`.

pub mod gate;
pub mod log;
pub mod pile;
pub mod ring;
pub mod run_request;
pub mod schedule;
pub mod supply;
pub mod sync;
pub mod wake;
pub mod wanted;
