//! What a step knows of the query that it belongs to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::account::Account;
use crate::checkpoint::StateStore;
use crate::clock::{Clock, SharedClock};
use crate::functions::FunctionToken;

/// How far a query is on its way to its end. It only moves forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Rows may come.
    Running = 0,
    /// The input ends where it is now; what was taken in is processed.
    Draining = 1,
    /// Tasks end without processing what is left.
    Stopping = 2,
}

/// What the tasks of a query share: their clock, the phase of the query, the account of its rows, the state that it
/// restores and keeps, and the token that lets one of them call into the interpreter.
pub struct Context {
    clock: SharedClock,
    phase: AtomicU8,
    account: Arc<Account>,
    state: Option<Arc<dyn StateStore>>,
    functions: Arc<FunctionToken>,
}

impl Context {
    /// The context of a query that begins to run.
    pub fn new(
        clock: SharedClock,
        account: Arc<Account>,
        state: Option<Arc<dyn StateStore>>,
        functions: Arc<FunctionToken>,
    ) -> Self {
        Self { clock, phase: AtomicU8::new(Phase::Running as u8), account, state, functions }
    }

    /// Returns the clock.
    #[inline]
    pub fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Returns the phase of the query.
    #[inline]
    pub fn phase(&self) -> Phase {
        // Acquire: a task that acts on a phase sees what led to it, such as the error that stops the query.
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Running,
            1 => Phase::Draining,
            _ => Phase::Stopping,
        }
    }

    /// Moves the query on to `phase`, unless it is further already.
    pub fn enter(&self, phase: Phase) {
        self.phase.fetch_max(phase as u8, Ordering::AcqRel);
    }

    /// Returns true while the query drains.
    pub fn is_draining(&self) -> bool {
        self.phase() == Phase::Draining
    }

    /// Returns the account of the query.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Returns what restores and keeps state, if the query runs over a part of its input.
    pub fn state(&self) -> Option<&dyn StateStore> {
        self.state.as_deref()
    }

    /// Returns the token for calls into the interpreter.
    pub fn functions(&self) -> &Arc<FunctionToken> {
        &self.functions
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::clock::tests::Hand;

    /// A context with that clock and an empty account.
    pub fn context(clock: &Arc<Hand>) -> Context {
        Context::new(Arc::clone(clock) as _, Arc::default(), None, Arc::default())
    }

    #[test]
    fn a_phase_never_goes_back() {
        let context = context(&Hand::at(0));
        assert_eq!(context.phase(), Phase::Running);
        context.enter(Phase::Draining);
        assert!(context.is_draining());
        context.enter(Phase::Stopping);
        context.enter(Phase::Draining);
        assert_eq!(context.phase(), Phase::Stopping);
        assert!(!context.is_draining(), "a query that is stopped gives up what is on its way");
    }
}
