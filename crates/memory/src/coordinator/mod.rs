//! The memory of the engine: its budget and its supply.
//!
//! Logs get memory in pieces for their chunks. Each log has a [`LogAccount`], charged before it takes memory; state
//! has a [`StateAccount`]. Pieces come from a pool of returned ones, or are mapped: in the background by one allocator
//! thread, for a log that orders ahead with a [`ChunkOrder`], or in the caller's thread by [`LogAccount::allocate`].
//!
//! COORDINATOR-1. A piece is with one [`Memory`], in the pool, or on its way between them; never in two of these.
//! COORDINATOR-2. A charge rises before memory leaves and falls after it returns: it may read high for an instant,
//!     never low. At rest `used_bytes` is the sum of all charges: per log `max(reserved, held) + payload`, or `held +
//!     payload` once its account is gone, the bytes of state, and of copied results that wait.
//! COORDINATOR-3. Only payload, and results that wait, take `used_bytes` beyond the budget: they are already in memory
//!     when they are counted.
//! COORDINATOR-4. A log's reservation is charged for as long as it has its account, so growth of others cannot take it
//!     away.
//! COORDINATOR-5. Dropping memory never waits: it takes no lock and needs no thread. In a forked child, where there is
//!     no allocator thread and a lock may be held for ever, the memory goes to the system directly.
//! COORDINATOR-6. The pool is memory too: what it keeps fits into the budget next to `used_bytes`, once the allocator
//!     has run.
//!
//! - `budget`, `limit`: `used_bytes`, and the refusal of requests that do not fit
//! - `account`, `charge`, `state`: charges of logs and of state
//! - `results`: results that wait to be read
//! - `memory`, `order`: one piece of memory, and the order for the next
//! - `pool`, `allocator`: pieces for reuse, and the thread that maps and unmaps
//! - `counters`: the numbers of all of these

mod account;
mod allocator;
mod budget;
mod charge;
mod counters;
mod limit;
mod memory;
mod options;
mod order;
mod pool;
mod results;
mod state;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

pub use self::account::{Inline, LogAccount};
pub use self::counters::Counters;
pub use self::limit::MemoryLimit;
pub use self::memory::{Claim, Memory};
pub use self::options::CoordinatorOptions;
pub use self::order::ChunkOrder;
pub use self::pool::chunk_bytes;
pub use self::results::{Hold, ResultAccount};
pub use self::state::StateAccount;
pub use penstock_queue::supply::Refused;

use self::allocator::{Allocator, CoordinatorCore};

/// Gives out memory within a budget. A handle: clones share one budget, and the allocator thread ends with the last of
/// them, if it was not closed before. Accounts of logs count as handles.
#[derive(Clone, Debug)]
pub struct Coordinator(Arc<CoordinatorHandle>);

#[derive(Debug)]
struct CoordinatorHandle {
    core: Arc<CoordinatorCore>,
    /// `None` once it is closed.
    allocator: Mutex<Option<JoinHandle<()>>>,
}

impl Coordinator {
    /// Creates a budget with nothing in use, and an allocator thread that waits for orders.
    pub fn new(options: CoordinatorOptions) -> io::Result<Self> {
        let core = Arc::new(CoordinatorCore::new(options));
        let serving = Arc::clone(&core);
        let allocator = thread::Builder::new().name("penstock-allocator".to_owned()).spawn(move || {
            serving.supply.serve(&mut Allocator(&serving));
            serving.clear();
        })?;
        Ok(Self(Arc::new(CoordinatorHandle { core, allocator: Mutex::new(Some(allocator)) })))
    }

    /// Opens an account for a log that can always have `bytes` for its first chunks: they are in use from now on
    /// (COORDINATOR-4).
    pub fn reserve(&self, bytes: usize) -> Result<LogAccount, MemoryLimit> {
        LogAccount::open(self.clone(), bytes)
    }

    /// Opens an account for the state of an operator.
    pub fn state_account(&self) -> StateAccount {
        StateAccount::new(Arc::clone(&self.0.core))
    }

    /// Opens an account for results that wait to be read.
    pub fn result_account(&self) -> ResultAccount {
        ResultAccount::new(Arc::clone(&self.0.core))
    }

    /// Returns the options it was created with.
    pub fn options(&self) -> &CoordinatorOptions {
        &self.0.core.options
    }

    /// Returns the counters. Each number is right by itself; together they are not of one instant.
    pub fn snapshot(&self) -> Counters {
        self.0.core.tally.snapshot(&self.0.core.budget)
    }

    /// Ends the allocator thread before the last handle is gone, when no log is left. Orders are refused from now on.
    pub fn close(&self) {
        self.0.close();
    }

    fn core(&self) -> &Arc<CoordinatorCore> {
        &self.0.core
    }
}

impl CoordinatorHandle {
    fn close(&self) {
        self.core.supply.close();
        let allocator = self.allocator.lock().unwrap_or_else(PoisonError::into_inner).take();
        // If the allocator thread itself dropped the last handle, with a waker, it ends by itself.
        if let Some(allocator) = allocator.filter(|thread| thread.thread().id() != thread::current().id()) {
            // A panic there has been reported, and refused every order: no log waits for memory.
            let _ = allocator.join();
        }
    }
}

impl Drop for CoordinatorHandle {
    fn drop(&mut self) {
        if self.core.is_of_this_process() {
            return self.close();
        }
        // A forked child has no such thread: there is nothing to stop, and joining it would never end.
        std::mem::forget(self.allocator.get_mut().unwrap_or_else(PoisonError::into_inner).take());
    }
}
