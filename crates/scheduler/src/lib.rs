//! Which task runs next, for how many rows, and what it cost.
//!
//! The scheduler sees ids, counters and costs only; rows are none of its business. Time is an argument.
//!
//! - [`views`]: what a policy sees
//! - [`policy`]: from a snapshot to priorities and quanta
//! - [`decision`]: what a policy decides for a task, and who is eligible
//! - [`dispatcher`]: from decisions to ranks and levels; the rules that hold whatever the policy is
//! - [`ready`]: the order of ready tasks, in the engine and beside it
//! - [`quantum`]: rows per run, and how long until a task goes back
//! - [`arrivals`]: when rows that wait arrived
//! - [`profile`]: what an operator took in, gave out and cost
//! - [`table`]: one row per task, for workers, the planner and wakers
//! - [`worker`]: the loop of a worker
//! - [`rollup`]: cost and selectivity, smoothed from two readings of a profile

#![forbid(unsafe_code)]

pub mod arrivals;
pub mod decision;
pub mod dispatcher;
pub mod policy;
pub mod profile;
pub mod quantum;
pub mod ready;
pub mod rollup;
pub mod table;
pub mod views;
pub mod worker;

pub use arrivals::Arrivals;
pub use decision::{Decision, is_worth_running};
pub use dispatcher::{Dispatcher, Order, Rules};
pub use policy::{Parameter, ParameterError, Policy, PolicyKind, Value};
pub use profile::Profile;
pub use quantum::{Quantum, rows_per_run};
pub use ready::{ReadyTasks, SortedTasks, TakenTask};
pub use rollup::Rollup;
pub use views::{InputView, PartView, QueryView, Snapshot, SweepView, TaskView};
