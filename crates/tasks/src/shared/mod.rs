//! A source that several queries read, each at its own pace: the part of its task that deals with readers.
//!
//! A shared source is a task with a log of its own, never chained to anything. Queries join at its current position, and
//! it follows the slowest of them.
//!
//! SHARED-1. Readers join in the task of the source, between two steps: a query that wants to join leaves a request and
//!     wakes the task.
//! SHARED-2. A query that was submitted to be failed or to shed rows is dealt with once the source has waited for it for
//!     [`GRACE_NS`] since it was last seen to have caught up, and for a moment each time after that. It skips rows by
//!     itself, in its own task.
//!
//! - `lag`: what the source knows of one reader

mod lag;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak, mpsc};

use penstock_memory::edge::EdgeGauge;
use penstock_memory::{EdgeReader, OpenError};
use penstock_queue::wake::Wake;

pub use lag::{Lag, OnLag, Reader};

use crate::clock::{Clock, Until};
use crate::step::Step;

/// How long a source waits for a query that must not hold it up.
const GRACE_NS: u64 = 50_000_000;
/// And how long the next time, if it has not caught up since.
const AGAIN_NS: u64 = 1_000_000;

/// Why a query cannot join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

/// The answer to a request to join: a reader that starts at the present position.
pub type Joined = Result<EdgeReader, OpenError>;

struct Join {
    lag: Arc<Lag>,
    reply: mpsc::Sender<Joined>,
}

#[derive(Default)]
struct Requests {
    waiting: AtomicBool,
    /// `None` once the source is gone.
    joins: Mutex<Option<Vec<Join>>>,
    /// The query that the source waits for, as long as it does.
    slowest: Mutex<Option<Weak<dyn Reader>>>,
}

struct Watched {
    /// Gone when the task that reads is.
    lag: Weak<Lag>,
    gauge: EdgeGauge,
    waited_ns: u64,
}

/// The readers of a shared source, as queries that want to join see them.
#[derive(Clone)]
pub struct Entrance {
    requests: Arc<Requests>,
    begin: Arc<AtomicBool>,
}

impl Entrance {
    /// The two sides of a source. With `held` it begins when it is told to, else with its first reader.
    pub fn new(held: bool) -> (Self, Joins) {
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

    /// Returns the flag that lets the source begin.
    pub fn begin(&self) -> &Arc<AtomicBool> {
        &self.begin
    }

    /// Asks to join (SHARED-1); the answer comes once the task of the source has run.
    ///
    /// # Errors
    /// A source that is gone.
    pub fn request(&self, lag: &Arc<Lag>) -> Result<mpsc::Receiver<Joined>, Gone> {
        let (reply, answer) = mpsc::channel();
        match &mut *self.requests.joins.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(joins) => joins.push(Join { lag: Arc::clone(lag), reply }),
            None => return Err(Gone),
        }
        self.requests.waiting.store(true, Ordering::Release);
        Ok(answer)
    }

    /// Returns the query that the source waits for, if it waits for one.
    pub fn slowest(&self) -> Option<Arc<dyn Reader>> {
        self.requests.slowest.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.upgrade()
    }
}

/// The readers of a shared source, as its task sees them.
pub struct Joins {
    requests: Arc<Requests>,
    begin: Arc<AtomicBool>,
    /// Whether the source begins with its first reader.
    begins_with_reader: bool,
    watched: Vec<Watched>,
    /// Since when the source waits, and for which of the watched.
    waiting: Option<(u64, usize)>,
    /// Which of the watched is known to others as the one that the source waits for.
    named: Option<usize>,
}

impl Joins {
    /// Returns true if queries want to join.
    pub fn are_waiting(&self) -> bool {
        self.requests.waiting.load(Ordering::Acquire)
    }

    /// Lets queries join that want to: `join` makes a reader that wakes the given task. After the end of the source
    /// (`has_ended`) none does: the end may be in the log already, before a reader that joins.
    pub fn admit(&mut self, has_ended: bool, mut join: impl FnMut(Arc<dyn Wake>) -> Joined) {
        self.requests.waiting.store(false, Ordering::Relaxed);
        let joins = {
            let mut waiting = self.requests.joins.lock().unwrap_or_else(PoisonError::into_inner);
            if has_ended {
                *waiting = None;
            }
            waiting.as_mut().map(std::mem::take).unwrap_or_default()
        };
        self.forget_gone();
        for Join { lag, reply } in joins {
            let joined = join(Arc::clone(lag.relay()) as _);
            if let Ok(reader) = &joined {
                let lag = Arc::downgrade(&lag);
                self.watched.push(Watched { lag, gauge: reader.gauge(), waited_ns: 0 });
            }
            // A query that gave up waiting has dropped the other end, and the reader leaves with the reply.
            if reply.send(joined).is_ok() && self.begins_with_reader {
                self.begin.store(true, Ordering::Release);
            }
        }
    }

    /// Notes that the source goes on.
    pub fn go_on(&mut self, clock: &dyn Clock) {
        self.name_slowest(None);
        if let Some((since, slowest)) = self.waiting.take()
            && let Some(watched) = self.watched.get_mut(slowest)
        {
            watched.waited_ns += clock.system_ns().saturating_sub(since);
        }
    }

    /// Leaves out readers whose task is gone.
    fn forget_gone(&mut self) {
        let before = self.watched.len();
        self.watched.retain(|watched| watched.lag.strong_count() > 0);
        if self.watched.len() < before {
            self.waiting = None;
            self.name_slowest(None);
        }
    }

    /// Says which of the watched the source waits for, for other threads.
    fn name_slowest(&mut self, slowest: Option<usize>) {
        if slowest == self.named {
            return;
        }
        self.named = slowest;
        let query = slowest.and_then(|number| self.watched[number].lag.upgrade()?.query());
        *self.requests.slowest.lock().unwrap_or_else(PoisonError::into_inner) = query;
    }

    /// Notes that the source has no room, and deals with the reader that keeps it from going on (SHARED-2).
    pub fn wait(&mut self, now_ns: u64) -> Step {
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
        let Some(lag) = watched.lag.upgrade().filter(|lag| !lag.may_wait()) else {
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
