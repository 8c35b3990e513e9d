//! Stateless operators that run without a pause between them.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use penstock_memory::Run;
use penstock_memory::coordinator::StateAccount;
use penstock_operators::Stage;
use penstock_scheduler::Profile;
use penstock_scheduler::profile::Counter;

use super::rejects::{Rejects, Sight};
use crate::error::RunError;

/// Nanoseconds since `started`.
pub(super) fn elapsed_ns(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// A stateless operator and what it did.
pub(super) struct Link {
    pub(super) name: &'static str,
    pub(super) stage: Box<dyn Stage>,
    pub(super) profile: Arc<Profile>,
    /// The columns that it sees, where rows that it rejects are handed out.
    pub(super) sight: Option<Arc<Sight>>,
    /// The charge for the table that it looks rows up in, if it does.
    pub(super) _table: Option<Arc<Mutex<StateAccount>>>,
}

/// A run, and the operators that it passes.
pub(super) struct Chain {
    pub(super) run: Run,
    pub(super) links: Vec<Link>,
    /// Rows that they had no answer for.
    pub(super) rejected: Arc<Counter>,
}

impl Chain {
    /// Passes the present run through the operators. Rows that one of them has no answer for are an error, or go where
    /// `rejects` says.
    pub(super) fn process(&mut self, mut rejects: Option<&mut Rejects>) -> Result<(), RunError> {
        if self.links.is_empty() {
            return Ok(());
        }
        // One clock reading between two operators: the end of one is the start of the next.
        let mut clock = Instant::now();
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
            let now = Instant::now();
            let ns = u64::try_from((now - clock).as_nanos()).unwrap_or(u64::MAX);
            link.profile.record(rows, self.run.len(), ns);
            clock = now;
        }
        Ok(())
    }
}
