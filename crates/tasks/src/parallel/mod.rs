//! One operator on several workers, by merging: each *lane* aggregates the rows that it gets, whatever their key, and what
//! a watermark closes is merged after them.
//!
//! - `splitter`: hands portions of batches to the lane that has least to do, and watermarks to all
//! - `lane`: the stateless operators and one part of the state
//! - `item`, `handover`: what goes from the splitter to lanes, and from lanes to the merging task
//! - `way`: bounded queues between them
//!
//! What a watermark closes leaves when the slowest lane has reached it. A lane that is ahead waits with what it has closed
//! (CHARGE-2), so lanes need little more memory than one operator.
//!
//! LANES-1. A row goes to one lane, a watermark to all, after the rows before it. So when a lane has reached a watermark, it
//!     holds everything of its rows that the watermark closes.
//! LANES-2. Rows are judged where they come in: late or not does not depend on the lane.

mod handover;
mod item;
mod lane;
mod splitter;
mod way;

pub use handover::Handover;
pub use item::{Item, PORTION_ROWS, Portion};
pub use lane::{Lane, LaneParts};
pub use splitter::Splitter;
pub use way::{Carried, WayIn, WayOut, WayPending, way};
