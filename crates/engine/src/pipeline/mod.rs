//! A plan, compiled: tasks over runs, with edges between them.
//!
//! - `segment`: columns and operators over one set of slots; `strands`: a plan cut into such pieces
//! - `drafts`: which pieces run together; `spreading`: which operators run on several workers, and how
//! - `assemble`, `origin`, `edges`, `lanes`, `leaving`, `order`: tasks and what is between them
//! - `opening`: how streams are read; `shared`: streams that several queries read

mod assemble;
mod drafts;
mod edges;
mod lanes;
mod leaving;
mod opening;
mod order;
mod origin;
mod segment;
mod shared;
mod spreading;
mod strands;

pub(crate) use assemble::{Assembled, Assembler, Ways};
pub(crate) use origin::{Origin, OwnOrigin, SharedOrigin};
pub(crate) use shared::SharedStream;
pub(crate) use spreading::Spreading;
pub use spreading::explain;
