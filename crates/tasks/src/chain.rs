//! Stateless operators that run one after the other over a run.

use std::sync::{Arc, Mutex};

use penstock_memory::Run;
use penstock_memory::coordinator::StateAccount;
use penstock_operators::Stateless;
use penstock_scheduler::Profile;
use penstock_scheduler::profile::Counter;

use crate::clock::Clock;
use crate::error::RunError;
use crate::rejects::{Rejects, Sight};

/// A stateless operator and what it did.
pub struct Link {
    /// Its name.
    pub name: &'static str,
    /// The operator.
    pub stage: Box<dyn Stateless>,
    /// What it did.
    pub profile: Arc<Profile>,
    /// The columns that it sees, where rows that it rejects are handed out.
    pub sight: Option<Arc<Sight>>,
    /// The charge for the table that it looks rows up in, if it does: kept as long as the operator.
    pub table_charge: Option<Arc<Mutex<StateAccount>>>,
}

/// A run, and the operators that it passes.
pub struct Chain {
    /// The run.
    pub run: Run,
    /// The operators.
    pub links: Vec<Link>,
    /// Rows that they rejected.
    pub rejected: Arc<Counter>,
}

impl Chain {
    /// Passes the present run through the operators.
    ///
    /// # Errors
    /// Rows that an operator rejects, without `rejects`.
    pub fn process(&mut self, clock: &dyn Clock, mut rejects: Option<&mut Rejects>) -> Result<(), RunError> {
        if self.links.is_empty() {
            return Ok(());
        }
        // One clock reading between two operators: the end of one is the start of the next.
        let mut started_ns = clock.system_ns();
        for link in &mut self.links {
            let rows = self.run.len();
            if rows == 0 {
                return Ok(());
            }
            let failed = |error| RunError::Compute { operator: link.name.to_owned(), error };
            if let Err(error) = link.stage.apply(&mut self.run) {
                let Some(rejects) = rejects.as_deref_mut() else { return Err(failed(error)) };
                let sight = link.sight.as_ref();
                let rows = rejects.take_out((link.name, &mut *link.stage, sight), &mut self.run, error)?;
                self.rejected.add(rows);
                link.stage.apply(&mut self.run).map_err(failed)?;
            }
            let now_ns = clock.system_ns();
            link.profile.record(rows, self.run.len(), now_ns.saturating_sub(started_ns));
            started_ns = now_ns;
        }
        Ok(())
    }
}
