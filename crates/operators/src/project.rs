//! Computes new columns. A column that is only renamed or passed on keeps its slot and costs nothing.

use penstock_expr::{Expression, Rejected};
use penstock_memory::{Run, SlotId};
use penstock_types::ComputeError;

use crate::Stateless;

/// A projection: expressions and the slots of their results.
pub struct Project {
    computed: Vec<(Expression, SlotId)>,
}

impl Project {
    /// Creates a projection that computes each expression into its slot.
    pub fn new(computed: Vec<(Expression, SlotId)>) -> Self {
        Self { computed }
    }
}

impl Stateless for Project {
    fn apply(&mut self, run: &mut Run) -> Result<(), ComputeError> {
        for (expression, slot) in &self.computed {
            let column = expression.evaluate(run)?;
            run.put(*slot, column);
        }
        Ok(())
    }

    fn rejects(&mut self, run: &mut Run, rejected: &mut Vec<Rejected>) {
        for (expression, _) in &self.computed {
            let column = expression.evaluate_lenient(run, rejected);
            run.give_back(column);
        }
    }
}
