//! Lock-free primitives that carry work between threads.
//!
//! - [`ring`]: a bounded queue from one producer to one consumer
//! - [`gate`]: where a thread sleeps until another one has something for it
//!
//! Atomics and cells come from the `sync` module, which loom replaces under `--cfg loom`.

pub mod gate;
pub mod ring;
mod sync;
