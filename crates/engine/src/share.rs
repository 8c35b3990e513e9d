//! Sources that several queries read, each at its own pace.
//!
//! A shared source is a task with a log of its own, never chained to anything. Queries join at its current position, and
//! it follows the slowest of them.
//!
//! W1. Readers join in the task of the source, between two steps: whoever wants to join leaves a request and rings.
//! W2. A query that was submitted to be failed or to shed rows is dealt with once the source has waited for it for
//!     [`GRACE_NS`] since it was last seen to have caught up, and for a moment each time after that. It skips rows by itself, in its own task.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use penstock_memory::edge::EdgeGauge;
use penstock_memory::{EdgeReader, OpenError};
use penstock_types::OutsideError;

use crate::clock::{Until, now_ns};
use crate::engine::bell::{Bell, Relay};
use crate::error::{RunError, StartError};
use crate::pipeline::{SharedStream, Step, Task};
use crate::plan::Plan;
use crate::query::state::{State, Status};
use crate::query::{BlockedBy, Query};
use crate::results::Results;

/// How long a source waits for a query that is not to hold it up.
const GRACE_NS: u64 = 50_000_000;
/// And how long the next time, if it has not caught up since.
const AGAIN_NS: u64 = 1_000_000;
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

/// What happens to a query that holds its shared source up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLag {
    /// The source waits for it, and with the source all others.
    #[default]
    Wait,
    /// It fails.
    Fail,
    /// It skips the rows that wait for it. They are counted.
    Shed,
}

impl OnLag {
    /// All of them, by name.
    pub const NAMES: [(&'static str, Self); 3] =
        [("wait", Self::Wait), ("fail", Self::Fail), ("shed", Self::Shed)];
}

/// What the source knows of one reader, and how it asks for something.
pub(crate) struct Lag {
    on_lag: OnLag,
    shed: AtomicBool,
    query: OnceLock<Weak<State>>,
    relay: Arc<Relay>,
}

impl Lag {
    /// Whether the source has asked to skip what waits: true once for each time.
    pub(crate) fn take_request(&self) -> bool {
        self.shed.load(Ordering::Relaxed) && self.shed.swap(false, Ordering::AcqRel)
    }

    /// The task of that bell reads the source.
    pub(crate) fn hang(&self, bell: &Arc<Bell>) {
        self.relay.connect(bell);
    }

    pub(crate) fn set_query(&self, query: &Arc<State>) {
        assert!(self.query.set(Arc::downgrade(query)).is_ok(), "a reader belongs to one query");
    }

    fn act(&self, waiting_rows: u64) {
        match self.on_lag {
            OnLag::Wait => {}
            OnLag::Fail => {
                if let Some(query) = self.query.get().and_then(Weak::upgrade) {
                    query.fail(RunError::Lagged { rows: waiting_rows });
                }
            }
            OnLag::Shed => {
                self.shed.store(true, Ordering::Release);
                self.relay.call();
            }
        }
    }
}

struct Join {
    lag: Arc<Lag>,
    reply: mpsc::Sender<Result<EdgeReader, OpenError>>,
}

#[derive(Default)]
struct Requests {
    waiting: AtomicBool,
    /// `None` once the source is gone.
    joins: Mutex<Option<Vec<Join>>>,
    /// Whom the source waits for, as long as it does.
    slowest: Mutex<Weak<State>>,
}

struct Watched {
    /// Gone when the task that reads is.
    lag: Weak<Lag>,
    gauge: EdgeGauge,
    waited_ns: u64,
}

/// The part of a shared source's task that deals with its readers.
pub(crate) struct Joins {
    requests: Arc<Requests>,
    begin: Arc<AtomicBool>,
    /// Whether the first reader sets the source going.
    begins_with_reader: bool,
    watched: Vec<Watched>,
    /// Since when the source waits, and for which of the watched.
    waiting: Option<(u64, usize)>,
    /// Which of the watched is known to others as the one that the source waits for.
    named: Option<usize>,
}

impl Joins {
    /// One step of the source.
    pub(crate) fn step(&mut self, task: &mut Task, query: &State) -> Result<Step, RunError> {
        if self.requests.waiting.load(Ordering::Acquire) {
            self.admit(task);
        }
        let step = task.step(query)?;
        if step == Step::Blocked && !task.is_waiting_for_memory() && !task.is_waiting_for_letters() {
            return Ok(self.wait(now_ns()));
        }
        self.name_slowest(None);
        if let Some((since, slowest)) = self.waiting.take()
            && let Some(watched) = self.watched.get_mut(slowest)
        {
            watched.waited_ns += now_ns().saturating_sub(since);
        }
        Ok(step)
    }

    fn admit(&mut self, task: &mut Task) {
        self.requests.waiting.store(false, Ordering::Relaxed);
        let joins = {
            let mut waiting = self.requests.joins.lock().unwrap_or_else(PoisonError::into_inner);
            if task.ended {
                // The end may stand in the log already, before whoever joins: they are told that they come too late.
                *waiting = None;
            }
            waiting.as_mut().map(std::mem::take).unwrap_or_default()
        };
        self.forget_gone();
        for Join { lag, reply } in joins {
            let joined = task.join(Arc::clone(&lag.relay) as _);
            if let Ok(reader) = &joined {
                let lag = Arc::downgrade(&lag);
                self.watched.push(Watched { lag, gauge: reader.gauge(), waited_ns: 0 });
            }
            // Whoever gave up waiting has dropped the other end, and the reader leaves with the reply.
            if reply.send(joined).is_ok() && self.begins_with_reader {
                self.begin.store(true, Ordering::Release);
            }
        }
    }

    /// Leaves out those whose task is gone.
    fn forget_gone(&mut self) {
        let before = self.watched.len();
        self.watched.retain(|watched| watched.lag.strong_count() > 0);
        if self.watched.len() < before {
            self.waiting = None;
            self.name_slowest(None);
        }
    }

    /// Says which of the watched the source waits for, for whoever asks.
    fn name_slowest(&mut self, slowest: Option<usize>) {
        if slowest == self.named {
            return;
        }
        self.named = slowest;
        let query = slowest.and_then(|number| self.watched[number].lag.upgrade()?.query.get().cloned());
        *self.requests.slowest.lock().unwrap_or_else(PoisonError::into_inner) = query.unwrap_or_default();
    }

    /// The source has no room: looks at who is to blame.
    fn wait(&mut self, now_ns: u64) -> Step {
        self.forget_gone();
        let mut slowest: Option<(usize, u64)> = None;
        for (number, watched) in self.watched.iter_mut().enumerate() {
            let rows = watched.gauge.work().rows;
            if rows == 0 {
                watched.waited_ns = 0;
            }
            if slowest.is_none_or(|(_, most)| rows > most) {
                slowest = Some((number, rows));
            }
        }
        let Some((slowest, rows)) = slowest else { return Step::Blocked };
        let (since, before) = *self.waiting.get_or_insert((now_ns, slowest));
        if before != slowest {
            self.waiting = Some((now_ns, slowest));
            self.watched[before].waited_ns += now_ns.saturating_sub(since);
        }
        let since = if before == slowest { since } else { now_ns };
        self.name_slowest(Some(slowest));
        let watched = &mut self.watched[slowest];
        let Some(lag) = watched.lag.upgrade().filter(|lag| lag.on_lag != OnLag::Wait) else {
            return Step::Blocked;
        };
        let waited_ns = watched.waited_ns + now_ns.saturating_sub(since);
        if waited_ns < GRACE_NS {
            return Step::Until(Until::system(now_ns + (GRACE_NS - waited_ns)));
        }
        // Until it has been seen to keep up, it is not waited for that long again.
        watched.waited_ns = GRACE_NS - AGAIN_NS;
        self.waiting = Some((now_ns, slowest));
        lag.act(rows);
        // Should it not hear, it is asked again.
        Step::Until(Until::system(now_ns + GRACE_NS))
    }
}

impl Drop for Joins {
    fn drop(&mut self) {
        self.requests.joins.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// A source that queries share. Clones speak of the same one; dropping them does not stop it.
#[derive(Clone)]
pub struct SharedSource {
    pub(crate) state: Arc<State>,
    pub(crate) stream: Arc<SharedStream>,
    pub(crate) plan: Plan,
    handle: Handle,
}

/// How requests get to a shared source.
#[derive(Clone)]
pub(crate) struct Handle {
    requests: Arc<Requests>,
    pub(crate) begin: Arc<AtomicBool>,
}

impl Handle {
    /// The two sides of a source. With `held` it begins when it is told to, else with its first reader.
    pub(crate) fn new(held: bool) -> (Self, Joins) {
        let requests = Arc::new(Requests { joins: Mutex::new(Some(Vec::new())), ..Requests::default() });
        let begin = Arc::new(AtomicBool::new(false));
        let joins = Joins {
            requests: Arc::clone(&requests),
            begin: Arc::clone(&begin),
            begins_with_reader: !held,
            watched: Vec::new(),
            waiting: None,
            named: None,
        };
        (Self { requests, begin }, joins)
    }
}

impl SharedSource {
    pub(crate) fn new(state: Arc<State>, stream: SharedStream, plan: Plan, handle: Handle) -> Self {
        Self { state, stream: Arc::new(stream), plan, handle }
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
        self.handle.begin.store(true, Ordering::Release);
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
                let slowest = self.handle.requests.slowest.lock().unwrap_or_else(PoisonError::into_inner);
                slowest.upgrade().map(|query| BlockedBy::Query(query.name.clone()))
            }
            other => Some(other),
        }
    }

    /// A reader that starts at the present position. It wakes the task that the lag is told of.
    pub(crate) fn join(&self, on_lag: OnLag) -> Result<(EdgeReader, Arc<Lag>), StartError> {
        if self.state.is_run_here() {
            return Err(StartError::WaitsForItself { name: self.state.name.clone() });
        }
        let lag = Arc::new(Lag {
            on_lag,
            shed: AtomicBool::new(false),
            query: OnceLock::new(),
            relay: Arc::default(),
        });
        let (reply, answer) = mpsc::channel();
        let gone = || StartError::SourceEnded { name: self.state.name.clone() };
        match &mut *self.handle.requests.joins.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(joins) => joins.push(Join { lag: Arc::clone(&lag), reply }),
            None => return Err(gone()),
        }
        self.handle.requests.waiting.store(true, Ordering::Release);
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
