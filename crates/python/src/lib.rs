//! The Python module `penstock._penstock`: translation, and nothing else.
//!
//! Converts Python objects to plans, expressions and Arrow batches, and errors to the
//! classes of `penstock.exceptions`. The interpreter is released while Rust works.
//!
//! - `arrow`, `release`: imports data, and releases it to its producer
//! - `engine`, `query`, `shared`, `push`, `replay`: the objects that Python holds; `streamed`: results as an Arrow
//!   stream; `run`: runs a plan in one call
//! - `source`, `sink`, `threads`: the user's own code, on threads of its own; `foreign`: how it is called
//! - `process`: values that a forked child may not use; `wait`: waits without the interpreter

mod arrow;
mod batch;
mod border;
mod clock;
mod engine;
mod errors;
mod expr;
mod foreign;
mod function;
mod groups;
mod literal;
mod metrics;
mod options;
mod output;
mod outputs;
mod plan;
mod process;
mod push;
mod pylist;
mod query;
mod raised;
mod release;
mod replay;
mod run;
mod schema;
mod shared;
mod sink;
mod slot;
mod source;
mod streamed;
mod threads;
mod wait;
mod waiter;
mod workloads;

use pyo3::prelude::*;

/// The native part of Penstock.
#[pymodule(gil_used = false)]
mod _penstock {
    use super::*;

    #[pymodule_export]
    use super::batch::Batch;
    #[pymodule_export]
    use super::clock::ManualClock;
    #[pymodule_export]
    use super::engine::{Engine, leave};
    #[pymodule_export]
    use super::expr::{Aggregate, Expr};
    #[pymodule_export]
    use super::groups::key_groups;
    #[pymodule_export]
    use super::options::EngineOptions;
    #[pymodule_export]
    use super::output::Output;
    #[pymodule_export]
    use super::outputs::Outputs;
    #[pymodule_export]
    use super::plan::{Plan, Window};
    #[pymodule_export]
    use super::push::PushSource;
    #[pymodule_export]
    use super::query::Query;
    #[pymodule_export]
    use super::replay::Replay;
    #[pymodule_export]
    use super::schema::Schema;
    #[pymodule_export]
    use super::shared::SharedSource;
    #[pymodule_export]
    use super::waiter::Waiter;
    #[pymodule_export]
    use super::workloads::{
        BatchStream, ipq_tenants, workload, workload_options, workload_rows, workload_schema, ysb_campaigns,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        penstock_engine::share::set_interrupt(wait::interrupted);
        // Read at import, so that the environment at the start of the process decides.
        module.add("checks_laws", penstock_operators::laws::are_checked())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
