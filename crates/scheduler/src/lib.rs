//! Which task runs next, for how many rows, and what it cost.
//!
//! The scheduler sees ids, counters and costs only; rows are none of its business. Time is an argument.
//!
//! - [`snapshot`]: what a policy sees
//! - [`policy`]: from a snapshot to priorities and quanta
//! - [`quantum`]: rows per run, and how long until a task goes back
//! - [`arrivals`]: when rows that wait arrived
//! - [`profile`]: what an operator took in, gave out and cost
//! - [`table`]: one row per task, for workers, the planner and whoever wakes a task
//! - [`worker`]: what a worker does all day
//! - [`rollup`]: cost and selectivity, smoothed from two readings of a profile

#![forbid(unsafe_code)]

pub mod arrivals;
pub mod policy;
pub mod profile;
pub mod quantum;
pub mod rollup;
pub mod snapshot;
pub mod table;
pub mod worker;

pub use arrivals::Arrivals;
pub use policy::{Decision, Order, Policy, PolicyKind, is_worth_running};
pub use profile::Profile;
pub use quantum::{Quantum, rows_per_run};
pub use rollup::Rollup;
pub use snapshot::{PartView, QueryView, Snapshot, TaskView};
