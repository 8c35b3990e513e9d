//! The Python module `penstock._penstock`: translation, and nothing else.
//!
//! Python objects become plans, expressions and Arrow batches on the way in; errors become the
//! classes of `penstock.exceptions` on the way out. The interpreter is released while Rust works.

mod errors;
mod expr;
mod foreign;
mod literal;
mod options;
mod output;
mod plan;
mod pylist;
mod run;
mod schema;
mod workloads;

use pyo3::prelude::*;

/// The native part of Penstock.
#[pymodule(gil_used = false)]
mod _penstock {
    use super::*;

    #[pymodule_export]
    use super::expr::{Aggregate, Expr};
    #[pymodule_export]
    use super::options::RunOptions;
    #[pymodule_export]
    use super::output::Output;
    #[pymodule_export]
    use super::plan::Plan;
    #[pymodule_export]
    use super::schema::Schema;
    #[pymodule_export]
    use super::workloads::{BatchStream, ysb_campaigns, ysb_generate, ysb_schema};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
