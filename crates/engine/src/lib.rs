//! From a plan to its answer.
//!
//! A [`Plan`] is what a user built: immutable, checked at every step, comparable, serialisable. An [`Engine`] runs many of
//! them at a time: each becomes a [`Query`], compiled into tasks over runs with edges between them, which a few workers
//! run as a policy ranks them.
//!
//! - [`plan`]: steps, schemas, `explain()`, JSON
//! - [`options`]: how an engine runs plans
//! - `pipeline`: tasks, sources, sinks
//! - [`engine`]: workers, the epoch thread, queries that come and go
//! - [`query`]: one query; [`results`]: its results on their way out; [`output`]: what it gave
//! - [`mod@feed`], [`replay`], [`share`]: where rows come from
//! - [`standing`]: where a query stands between two parts of its input
//! - [`metrics`], [`latency`]: what all of it came to; [`clock`]: what time it is

#![forbid(unsafe_code)]

pub mod clock;
pub mod engine;
pub mod error;
pub mod feed;
mod groups;
pub mod latency;
pub mod metrics;
pub mod options;
pub mod output;
mod pipeline;
pub mod plan;
pub mod query;
pub mod replay;
pub mod results;
pub mod share;
pub mod standing;

pub use engine::{Engine, Input, QueryOptions, RunFailure, ShareOptions, Sink, push};
pub use error::{RunError, StartError, panic_text};
pub use feed::{FEED_BATCHES, Feed, FeedEnd, FeedHandle, Pushed, feed};
pub use groups::key_groups;
pub use latency::Latency;
pub use metrics::{EngineMetrics, TaskMetrics, WorkerMetrics};
pub use options::{Chaining, EngineOptions, Mode, PolicyKind, RunOptions, Strategy};
pub use output::{OperatorReport, Output};
pub use penstock_types::OutsideError;
pub use pipeline::{Deliver, Doorbell, LETTER_COLUMNS, OnError};
pub use plan::{Aggregate, Plan};
pub use query::{Query, QueryMetrics, Status, Waiting};
pub use replay::Replay;
pub use results::Results;
pub use share::{OnLag, SharedSource};
pub use standing::{Part, PartOptions, Standing, StandingError};
