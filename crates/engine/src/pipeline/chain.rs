//! Stateless operators that run without a pause between them.

use std::sync::Arc;
use std::time::Instant;

use penstock_memory::Run;
use penstock_memory::coordinator::StateAccount;
use penstock_operators::Stage;
use penstock_scheduler::Profile;

use crate::error::RunError;
use crate::query::account::{Operator, Role};

/// Nanoseconds since `started`.
pub(super) fn elapsed_ns(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// A stateless operator and what it did.
pub(super) struct Link {
    pub(super) name: &'static str,
    pub(super) stage: Box<dyn Stage>,
    pub(super) profile: Arc<Profile>,
    /// The charge for the table that it looks rows up in, if it does.
    pub(super) _table: StateAccount,
}

/// A run, and the operators that it passes.
pub(super) struct Chain {
    pub(super) run: Run,
    pub(super) links: Vec<Link>,
}

impl Chain {
    /// Passes the present run through the operators.
    pub(super) fn process(&mut self) -> Result<(), RunError> {
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
            link.stage
                .apply(&mut self.run)
                .map_err(|error| RunError::Compute { operator: link.name.to_owned(), error })?;
            let now = Instant::now();
            let ns = u64::try_from((now - clock).as_nanos()).unwrap_or(u64::MAX);
            link.profile.record(rows, self.run.len(), ns);
            clock = now;
        }
        Ok(())
    }

    /// The operators, for the account of the query.
    pub(super) fn operators(&self, role: Role) -> impl Iterator<Item = Operator> {
        self.links.iter().map(move |link| Operator {
            name: link.name.to_owned(),
            role,
            profile: Arc::clone(&link.profile),
        })
    }
}
