//! Sources that several queries read, each at its own pace, as their users see them.

use std::sync::atomic::Ordering;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use penstock_memory::EdgeReader;
use penstock_types::OutsideError;

use crate::error::{RunError, StartError};
use crate::pipeline::SharedStream;
use crate::plan::Plan;
use crate::query::state::{State, Status};
use crate::query::{BlockedBy, Query};
use penstock_tasks::results::Results;
use penstock_tasks::shared::{Entrance, Lag};

pub use penstock_tasks::shared::OnLag;

/// How long a request waits before it is checked whether the source still runs.
const GLANCE: Duration = Duration::from_millis(20);

/// Tells whether the thread that waits was interrupted, and with what.
pub type Interrupted = fn() -> Option<OutsideError>;

static INTERRUPT: OnceLock<Interrupted> = OnceLock::new();

/// Has that asked, time and again, by every thread of the process that waits for a shared source to let a query in. The
/// first one counts.
pub fn set_interrupt(interrupted: Interrupted) {
    let _ = INTERRUPT.set(interrupted);
}

/// A source that queries share. Clones speak of the same one; dropping them does not stop it.
#[derive(Clone)]
pub struct SharedSource {
    pub(crate) state: Arc<State>,
    pub(crate) stream: Arc<SharedStream>,
    pub(crate) plan: Plan,
    entrance: Entrance,
}

impl SharedSource {
    pub(crate) fn new(state: Arc<State>, stream: SharedStream, plan: Plan, entrance: Entrance) -> Self {
        Self { state, stream: Arc::new(stream), plan, entrance }
    }

    /// Its name, unique among the queries and sources that run.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// The plan that does nothing but read it.
    pub fn stream(&self) -> &Plan {
        &self.plan
    }

    /// What it is doing.
    pub fn status(&self) -> Status {
        self.state.status()
    }

    /// Lets rows come, if it was held back.
    pub fn begin(&self) {
        self.entrance.begin().store(true, Ordering::Release);
        self.state.call_all();
    }

    /// Whether this thread runs tasks of its engine: whoever waits here for the source may wait for ever.
    pub fn is_run_here(&self) -> bool {
        self.state.is_run_here()
    }

    /// Ends it: the queries that read it come to their end as well.
    pub fn drain(&self) {
        self.state.drain();
    }

    /// Why it has failed, if it did.
    pub fn error(&self) -> Option<Arc<RunError>> {
        self.state.error()
    }

    /// The rows that it did not take, if it was started so that somebody reads them.
    pub fn letters(&self) -> Option<&Results> {
        self.state.letters.as_ref()
    }

    /// The same as a query without outputs: for whoever looks after its dead letters.
    pub fn as_query(&self) -> Query {
        Query { state: Arc::clone(&self.state) }
    }

    /// Waits until it has ended, or `timeout` is over. Whether it has ended.
    pub fn wait(&self, timeout: Duration) -> bool {
        self.state.wait(timeout)
    }

    /// What it has come to so far.
    pub fn metrics(&self) -> crate::query::QueryMetrics {
        self.state.metrics()
    }

    /// What it waits for, if it has rows and no room for them.
    pub fn blocked_by(&self) -> Option<BlockedBy> {
        match self.state.blocked_by()? {
            BlockedBy::Operator(_) => {
                self.entrance.slowest().map(|query| BlockedBy::Query(query.name().to_owned()))
            }
            other => Some(other),
        }
    }

    /// A reader that starts at the present position. It wakes the task that the lag is told of.
    pub(crate) fn join(&self, on_lag: OnLag) -> Result<(EdgeReader, Arc<Lag>), StartError> {
        if self.state.is_run_here() {
            return Err(StartError::WaitsForItself { name: self.state.name.clone() });
        }
        let lag = Lag::new(on_lag);
        let gone = || StartError::SourceEnded { name: self.state.name.clone() };
        let answer = self.entrance.request(&lag).map_err(|_| gone())?;
        self.state.call_all();
        loop {
            match answer.recv_timeout(GLANCE) {
                Ok(joined) => return Ok((joined?, lag)),
                Err(RecvTimeoutError::Timeout) => {
                    // The request is left behind: the source finds that nobody waits for the reply.
                    if let Some(error) = INTERRUPT.get().and_then(|interrupted| interrupted()) {
                        return Err(StartError::Outside { what: "submit", error });
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Err(gone()),
            }
        }
    }
}
