//! State on its way from a lane to whoever merges: charged once, and only so much of it at a time.
//!
//! G1. What a lane splits off takes its charge along, and hands it over when it is merged: at no time is it charged twice,
//!     or not at all.
//! G2. A lane that has sent something takes no more input while what it has split off does not fit beside that. Whoever
//!     merges takes it in any case, unless the lane is ahead of others, and then these have input: nobody waits for ever.
//! G3. Rows and sessions of state that has been sent are held by nobody but its `Load`, until they are merged.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use penstock_memory::coordinator::StateAccount;
use penstock_operators::Held;
use penstock_queue::wake::Wake;
use penstock_queue::wanted::Wanted;

use crate::engine::bell::Bell;

/// What is on its way from one lane.
pub(crate) struct Load {
    bytes: AtomicUsize,
    rows: AtomicU64,
    sessions: AtomicU64,
    most: usize,
    room: Wanted,
}

impl Load {
    /// At most so many bytes, or one part; the bell is that of the lane.
    pub(crate) fn new(most: usize, bell: &Arc<Bell>) -> Arc<Self> {
        let room = Wanted::new(Arc::clone(bell) as _);
        let (bytes, rows, sessions) = Default::default();
        Arc::new(Self { bytes, rows, sessions, most, room })
    }

    /// Returns the rows and sessions of the state that is on its way.
    pub(crate) fn held(&self) -> Held {
        // Relaxed: numbers for people.
        Held { rows: self.rows.load(Ordering::Relaxed), sessions: self.sessions.load(Ordering::Relaxed) }
    }

    /// Whether so many bytes more may be sent. If not, the bell rings when that may be so.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        let fits = || {
            // Relaxed: `Wanted` hands over what has become of it.
            let sent = self.bytes.load(Ordering::Relaxed);
            (sent == 0 || sent.saturating_add(bytes) <= self.most).then_some(())
        };
        self.room.look(fits).is_some()
    }
}

/// The charge of state that is on its way.
pub(crate) struct Charged {
    account: StateAccount,
    held: Held,
    load: Option<Arc<Load>>,
}

impl Charged {
    /// The charge of a state that holds so many rows and sessions.
    pub(crate) fn new(account: StateAccount, held: Held) -> Self {
        Self { account, held, load: None }
    }

    /// Returns the rows and sessions that are not on their way yet.
    pub(crate) fn unsent(&self) -> Held {
        if self.is_sent() { Held::default() } else { self.held }
    }

    /// How much it is.
    pub(crate) fn bytes(&self) -> usize {
        self.account.bytes()
    }

    /// Whether it has left the lane.
    pub(crate) fn is_sent(&self) -> bool {
        self.load.is_some()
    }

    /// It leaves the lane.
    pub(crate) fn send(&mut self, load: &Arc<Load>) {
        load.bytes.fetch_add(self.account.bytes(), Ordering::Relaxed);
        load.rows.fetch_add(self.held.rows, Ordering::Relaxed);
        load.sessions.fetch_add(self.held.sessions, Ordering::Relaxed);
        self.load = Some(Arc::clone(load));
    }

    /// Hands it over to whoever has merged the state (G1).
    pub(in crate::pipeline) fn merge_into(mut self, account: &mut StateAccount) {
        self.arrive();
        account.absorb(&mut self.account);
    }

    fn arrive(&mut self) {
        if let Some(load) = self.load.take() {
            load.bytes.fetch_sub(self.account.bytes(), Ordering::Relaxed);
            load.rows.fetch_sub(self.held.rows, Ordering::Relaxed);
            load.sessions.fetch_sub(self.held.sessions, Ordering::Relaxed);
            load.room.wake();
        }
    }
}

impl Drop for Charged {
    fn drop(&mut self) {
        self.arrive();
    }
}
