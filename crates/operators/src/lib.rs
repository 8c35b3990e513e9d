//! Operators: state machines over runs.
//!
//! Stateless operators change a run in place: a filter leaves a selection, a projection fills slots.
//! A window takes runs in, keeps columnar state, and gives result rows out through a cursor, as many
//! at a time as the reader has room for.
//!
//! - [`filter`], [`project`], [`lookup`]: stateless, chained
//! - [`window`]: tumbling windows
//! - [`aggregates`]: what a window keeps per key
//! - [`keys`]: keys to dense ids
//! - [`contract`]: what every operator with state promises

#![forbid(unsafe_code)]

pub mod aggregates;
pub mod contract;
pub mod filter;
pub mod keys;
pub mod lookup;
pub mod project;
pub mod window;

pub use contract::{Late, Snapshot, SnapshotError, Stateful};
pub use filter::Filter;
pub use keys::KeyIndex;
pub use lookup::{Lookup, LookupKind, LookupTable};
pub use project::Project;
pub use window::{WindowAggregate, WindowColumns};

use penstock_memory::Run;
use penstock_types::ComputeError;

/// Heap memory behind a vector, whether its room is used or not.
pub(crate) fn heap_bytes<T>(vec: &Vec<T>) -> usize {
    vec.capacity() * size_of::<T>()
}

/// A stateless operator of a chain.
pub trait Stage: Send {
    /// Changes the run in place.
    fn apply(&mut self, run: &mut Run) -> Result<(), ComputeError>;
}
