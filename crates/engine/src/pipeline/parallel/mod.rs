//! One operator on several workers, by merging: each *lane* aggregates the rows that it gets, whatever their key, and what
//! a watermark closes is merged behind them.
//!
//! - `splitter`: hands portions of batches to the lane that has least to do, and watermarks to all
//! - `lane`: the stateless operators and one part of the state
//! - `way`, `charged`: bounded queues between them, and the charge of what is on its way
//!
//! L1. A row goes to one lane, a watermark to all, behind the rows before it. So when a lane has come to a watermark, it
//!     holds everything of its rows that the watermark closes.
//! L2. Rows are judged where they come in: late or not does not depend on the lane.

mod charged;
mod lane;
mod splitter;
mod way;

pub(super) use charged::Charged;
pub(crate) use charged::Load;
pub(crate) use lane::Lane;
pub(super) use lane::{LaneClock, LaneParts, Part};
pub(crate) use splitter::Splitter;
pub(super) use splitter::{Item, PORTION_ROWS, Piece};
pub(super) use way::{Carried, WayIn, WayOut, WayPending, way};
