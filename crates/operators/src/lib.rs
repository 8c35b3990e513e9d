//! Operators: state machines over runs.
//!
//! Stateless operators change a run in place: a filter produces a selection, a projection fills slots. A window
//! consumes runs, keeps columnar state, and emits result rows through a cursor, as many at a time as the reader has
//! room for.
//!
//! - [`filter`], [`project`], [`lookup`]: stateless, chained
//! - [`indexed_table`]: tables that lookups read, and that others may replace
//! - [`grouping`]: stateless, before rows that are distributed to several workers by key
//! - [`windows`]: aggregation in tumbling, sliding and session windows
//! - [`join`]: two streams, joined within windows
//! - [`top_k`]: the first rows of each key, by one column
//! - [`aggregates`]: the state that a window keeps per key
//! - [`keys`]: maps keys to dense ids
//! - [`pick`]: selects rows of columnar state
//! - [`contract`]: the contract of every operator with state

#![forbid(unsafe_code)]

pub mod aggregates;
pub mod contract;
pub mod filter;
pub mod grouping;
pub mod indexed_table;
pub mod join;
pub mod keys;
pub mod lookup;
pub mod pick;
pub mod project;
mod rows;
pub mod top_k;
pub mod windows;

pub use contract::{HeldRows, Late, SnapshotError, StateSnapshot, Stateful};
pub use filter::Filter;
pub use grouping::Grouping;
pub use indexed_table::{IndexedTable, TablePlace};
pub use join::{JoinKind, JoinPort, JoinSpec, WindowJoin};
pub use keys::KeyIndex;
pub use lookup::{Lookup, LookupKind};
pub use penstock_progress::laws;
pub use project::Project;
pub use top_k::{TopK, TopKPort, TopKSpec};
pub use windows::{WindowPort, WindowSpec, windowed};

use penstock_expr::Rejected;
use penstock_memory::Run;
use penstock_types::ComputeError;

/// Returns the heap memory of a vector, used or not.
pub(crate) fn heap_bytes<T>(vec: &Vec<T>) -> usize {
    vec.capacity() * size_of::<T>()
}

/// A stateless operator of a chain.
pub trait Stateless: Send {
    /// Changes the run in place.
    fn apply(&mut self, run: &mut Run) -> Result<(), ComputeError>;

    /// Lists the rows for which `apply` fails, each once and in order, with its error. Changes nothing.
    fn rejects(&mut self, _run: &mut Run, _rejected: &mut Vec<Rejected>) {}
}
