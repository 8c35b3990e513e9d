//! Keeps the rows for which a predicate holds. A null predicate does not hold.

use penstock_expr::{Expression, Rejected};
use penstock_memory::Run;
use penstock_types::ComputeError;

use crate::Stateless;

/// A filter.
pub struct Filter {
    predicate: Expression,
}

impl Filter {
    /// Creates a filter that keeps the rows for which `predicate`, a bool, holds.
    pub fn new(predicate: Expression) -> Self {
        Self { predicate }
    }
}

impl Stateless for Filter {
    fn apply(&mut self, run: &mut Run) -> Result<(), ComputeError> {
        let mut rows = run.selection();
        self.predicate.select(run, &mut rows)?;
        run.select(rows);
        Ok(())
    }

    fn rejects(&mut self, run: &mut Run, rejected: &mut Vec<Rejected>) {
        self.predicate.select_lenient(run, &mut Vec::new(), rejected);
    }
}
