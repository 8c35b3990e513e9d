//! The charge of state on its way from a lane to the task that merges.
//!
//! CHARGE-1. State that a lane splits off takes its charge along, and hands it over when it is merged: at no time is it
//!     charged twice, or not at all.
//! CHARGE-2. A lane that has sent state takes no more input while what it has split off does not fit beside that. The
//!     merging task takes it in any case, unless the lane is ahead of others, and then these have input: no task waits for
//!     ever.
//! CHARGE-3. Rows and sessions of state that was sent are counted by its [`Load`] alone, until they are merged.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use penstock_memory::coordinator::StateAccount;
use penstock_operators::HeldRows;
use penstock_queue::wake::Wake;
use penstock_queue::wanted::Wanted;

use crate::waker::Waker;

/// The state that is on its way from one lane.
pub struct Load {
    bytes: AtomicUsize,
    rows: AtomicU64,
    sessions: AtomicU64,
    most: usize,
    room: Wanted,
}

impl Load {
    /// The gauge of a lane that may send so many bytes, or one part; the waker is that of the lane.
    pub fn new(most: usize, waker: &Arc<dyn Waker>) -> Arc<Self> {
        let room = Wanted::new(Arc::clone(waker) as _);
        let (bytes, rows, sessions) = Default::default();
        Arc::new(Self { bytes, rows, sessions, most, room })
    }

    /// Returns the rows and sessions of the state that is on its way.
    pub fn held(&self) -> HeldRows {
        // Relaxed: numbers for people.
        HeldRows { rows: self.rows.load(Ordering::Relaxed), sessions: self.sessions.load(Ordering::Relaxed) }
    }

    /// Returns true if so many bytes more may be sent. If not, the lane is woken when that may be so.
    pub fn has_room(&self, bytes: usize) -> bool {
        let fits = || {
            // Relaxed: `Wanted` orders it.
            let sent = self.bytes.load(Ordering::Relaxed);
            (sent == 0 || sent.saturating_add(bytes) <= self.most).then_some(())
        };
        self.room.look(fits).is_some()
    }
}

/// The charge of state that was split off.
pub struct Charged {
    account: StateAccount,
    held: HeldRows,
    load: Option<Arc<Load>>,
}

impl Charged {
    /// The charge of a state that holds so many rows and sessions.
    pub fn new(account: StateAccount, held: HeldRows) -> Self {
        Self { account, held, load: None }
    }

    /// Returns the rows and sessions that are not on their way yet.
    pub fn unsent(&self) -> HeldRows {
        if self.is_sent() { HeldRows::default() } else { self.held }
    }

    /// Returns the bytes charged.
    pub fn bytes(&self) -> usize {
        self.account.bytes()
    }

    /// Returns true once it has left the lane.
    pub fn is_sent(&self) -> bool {
        self.load.is_some()
    }

    /// Notes that it leaves the lane.
    pub fn send(&mut self, load: &Arc<Load>) {
        load.bytes.fetch_add(self.account.bytes(), Ordering::Relaxed);
        load.rows.fetch_add(self.held.rows, Ordering::Relaxed);
        load.sessions.fetch_add(self.held.sessions, Ordering::Relaxed);
        self.load = Some(Arc::clone(load));
    }

    /// Hands the charge over to the account of the task that has merged the state (CHARGE-1).
    pub fn merge_into(mut self, account: &mut StateAccount) {
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
