//! The logical plan: a pipeline as it was written.
//!
//! A [`Plan`] is a graph of steps, each checked when it is added. What a step means is in one file of [`steps`]; nothing
//! else in the workspace knows the steps one by one.
//!
//! PLAN-1. A plan that exists can run: names, types, durations and tables were checked by the builder.
//! PLAN-2. Plans are immutable. Every method returns a new plan that shares its steps with the old one.
//!
//! - [`step`]: the questions that every step answers, and how steps form a graph
//! - [`steps`]: the steps, one file each, with the builders on [`Plan`]
//! - [`scope`], [`bound`], [`resources`], [`made`]: from a step to what runs: `bind` assigns slots, `make` builds
//! - [`plan`], [`outputs`]: one plan, and several that run as one query
//! - [`stream`], [`time`], [`window`], [`aggregate`], [`function`], [`table`]: what steps are made of; `event_time`: where a
//!   plan has it
//! - [`json`], [`text`]: plans as JSON; [`explain`]: plans in words
//! - [`stages`]: a plan cut for many machines

#![forbid(unsafe_code)]

pub mod aggregate;
pub mod bound;
pub mod check;
mod event_time;
pub mod explain;
pub mod expression;
pub mod function;
pub mod json;
pub mod made;
pub mod outputs;
pub mod plan;
pub mod resources;
pub mod scope;
pub mod stages;
pub mod step;
pub mod steps;
pub mod stream;
pub mod table;
mod text;
pub mod time;
pub mod window;

pub use aggregate::Aggregate;
pub use bound::Bound;
pub use function::{BatchFunction, Function, WatermarkFunction, Watermarks};
pub use made::{BoundFunction, Made};
pub use outputs::{Outputs, RESULT};
pub use plan::Plan;
pub use resources::Resources;
pub use scope::{ClockSlots, Columns, Place, Scope};
pub use step::{Form, Graph, Node, Partitioning, Step, StepOutput, Times};
pub use steps::join::join_kind;
pub use steps::lookup::lookup_kind;
pub use steps::stream::StreamOptions;
pub use stream::{STREAM, StreamStep};
pub use table::KeyedTable;
pub use time::{Arrival, EventTime};
pub use window::{CORRECTION, RANK, WINDOW_BOUNDS, WindowKind, WindowSpan};
