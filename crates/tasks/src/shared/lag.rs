//! What a shared source knows of one of its readers, and how it asks for something.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use crate::error::RunError;
use crate::waker::{RelayWaker, Waker};

/// What happens to a query that holds its shared source up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLag {
    /// The source waits for it, and with the source all other readers.
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

/// A query that reads a shared source.
pub trait Reader: Send + Sync {
    /// Returns its name.
    fn name(&self) -> &str;

    /// Fails it.
    fn fail(&self, error: RunError);
}

/// What the source knows of one reader.
pub struct Lag {
    on_lag: OnLag,
    shed: AtomicBool,
    query: OnceLock<Weak<dyn Reader>>,
    relay: Arc<RelayWaker>,
}

impl Lag {
    /// A reader that is not connected yet.
    pub fn new(on_lag: OnLag) -> Arc<Self> {
        let (shed, query, relay) = Default::default();
        Arc::new(Self { on_lag, shed, query, relay })
    }

    /// Takes the request to skip what waits, if the source has asked for that.
    pub fn take_request(&self) -> bool {
        self.shed.load(Ordering::Relaxed) && self.shed.swap(false, Ordering::AcqRel)
    }

    /// Says which task reads the source.
    pub fn connect(&self, waker: &Arc<dyn Waker>) {
        self.relay.connect(waker);
    }

    /// Says which query that is.
    ///
    /// # Panics
    /// When it was said before.
    pub fn set_query(&self, query: Weak<dyn Reader>) {
        assert!(self.query.set(query).is_ok(), "a reader belongs to one query");
    }

    /// Returns the waker of the task that reads, once it is connected.
    pub(super) fn relay(&self) -> &Arc<RelayWaker> {
        &self.relay
    }

    pub(super) fn query(&self) -> Option<Weak<dyn Reader>> {
        self.query.get().cloned()
    }

    /// Returns true if the source waits for the query as long as it takes.
    pub(super) fn may_wait(&self) -> bool {
        self.on_lag == OnLag::Wait
    }

    /// Deals with a query that holds the source up, by its `waiting_rows`.
    pub(super) fn act(&self, waiting_rows: u64) {
        match self.on_lag {
            OnLag::Wait => {}
            OnLag::Fail => {
                if let Some(query) = self.query.get().and_then(Weak::upgrade) {
                    query.fail(RunError::Lagged { rows: waiting_rows });
                }
            }
            OnLag::Shed => self.request_shed(),
        }
    }

    /// Asks the query to skip what waits.
    pub fn request_shed(&self) {
        self.shed.store(true, Ordering::Release);
        self.relay.request_run();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::waker::tests::Counting;

    #[derive(Default)]
    struct Query(Mutex<Option<RunError>>);

    impl Reader for Query {
        fn name(&self) -> &str {
            "query"
        }

        fn fail(&self, error: RunError) {
            *self.0.lock().unwrap() = Some(error);
        }
    }

    #[test]
    fn a_query_that_lags_waits_fails_or_sheds() {
        for (_, on_lag) in OnLag::NAMES {
            let (lag, query) = (Lag::new(on_lag), Arc::new(Query::default()));
            let reader: Arc<dyn Reader> = Arc::clone(&query) as _;
            lag.set_query(Arc::downgrade(&reader));
            let (counting, waker) = Counting::pair();
            lag.connect(&waker);
            lag.act(7);
            let failed = matches!(*query.0.lock().unwrap(), Some(RunError::Lagged { rows: 7 }));
            assert_eq!(failed, on_lag == OnLag::Fail);
            assert_eq!(counting.take_requests(), u64::from(on_lag == OnLag::Shed));
            assert_eq!(lag.take_request(), on_lag == OnLag::Shed);
            assert!(!lag.take_request(), "once for each request");
            assert_eq!(lag.may_wait(), on_lag == OnLag::Wait);
        }
    }
}
