//! Sources that several queries read, each at its own pace, as their users see them.

use std::sync::atomic::Ordering;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use penstock_memory::EdgeReader;
use penstock_types::OutsideError;

use crate::error::{RunError, StartError};
use crate::instantiate::SharedStream;
use crate::query::state::State;
use crate::query::{BlockedBy, Query, Status};
use penstock_plan::Plan;
use penstock_tasks::context::Phase;
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

/// What depends on the shared sources that a query reads.
impl Query {
    /// Returns whether this thread is in a watermark function of its feeds, or of those of the shared sources that it reads, and
    /// the query does not end before that returns.
    pub fn is_asking_here<'a>(&self, mut sources: impl Iterator<Item = &'a SharedSource>) -> bool {
        self.state.context.phase() != Phase::Stopping
            && (self.state.is_asking_here() || sources.any(|source| source.state.is_asking_here()))
    }

    /// Returns whether this thread reads the data of its feeds, or of those of the shared sources that it reads.
    pub fn is_pulled_here<'a>(&self, mut sources: impl Iterator<Item = &'a SharedSource>) -> bool {
        self.state.is_pulled_here() || sources.any(|source| source.state.is_pulled_here())
    }

    /// Returns how often its tasks have run, if it has one input only and no result comes before that gives more; `None`
    /// otherwise, or if that cannot be told yet. The shared sources that it reads are its input. Ask twice: two equal
    /// answers are of one moment.
    pub fn runs_at_rest<'a>(&self, sources: impl Iterator<Item = &'a SharedSource>) -> Option<u64> {
        sources.map(|source| source.state.runs_at_rest()).chain([self.state.runs_at_rest()]).sum()
    }

    /// Returns what it waits for, if it does: something of its own, or another query that holds up one of the shared sources
    /// that it reads.
    pub fn blocked_by<'a>(&self, sources: impl IntoIterator<Item = &'a SharedSource>) -> Option<BlockedBy> {
        if self.state.has_ended() {
            return None;
        }
        let outside = |source: &SharedSource| match source.blocked_by()? {
            BlockedBy::Query(name) if name == self.state.name => None,
            other => Some(other),
        };
        self.state.blocked_by().or_else(|| sources.into_iter().find_map(outside))
    }
}
