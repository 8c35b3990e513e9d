//! From a plan to its answer.
//!
//! A [`Plan`] is what a user built: immutable, checked at every step, comparable, serialisable. A
//! [`Pipeline`] is the plan compiled into tasks over runs, with edges between them. A [`Job`] is a
//! pipeline on a worker thread, fed through a bounded queue.
//!
//! - [`plan`]: steps, schemas, `explain()`, JSON
//! - [`options`]: how a plan is run
//! - [`pipeline`]: tasks, sources, sinks
//! - [`job`]: the worker and its feed
//! - [`output`]: results and counters

#![forbid(unsafe_code)]

pub mod error;
pub mod job;
pub mod options;
pub mod output;
pub mod pipeline;
pub mod plan;

pub use error::{RunError, StartError};
pub use job::{Feed, Job};
pub use options::{Chaining, RunOptions};
pub use output::{OperatorReport, Output};
pub use pipeline::{Deliver, Pipeline};
pub use plan::{Aggregate, Plan};
