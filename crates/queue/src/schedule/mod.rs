//! Which task runs next: ready tasks by level and rank, for any number of workers.
//!
//! A task is a row with a state word, a rank and a payload (`table.rs`). A ready task has a [`Level`], which is kept in
//! its state word (`state.rs`). Readiness is one bitmap over pairs of level and rank, in that order (`bits.rs`), so the
//! first set bit is the first rank of the most urgent level. Workers that find nothing sleep (`parking.rs`). Ranks are
//! published once per epoch, in place: nothing is ever swapped for a new copy, so nothing has to be reclaimed.
//!
//! Who touches what: any thread wakes (`wake.rs`); a worker pops, runs and hands back (`take.rs`, [`Running`]);
//! [`ScheduleQueue::publish`], a [`Reserved`] row and the end of a task share a lock, which no other call takes.
//!
//! SCHED-1. A state word is FREE, IDLE, READY at a level, RUNNING, or RUNNING with READY beside it; FREE with READY
//!     beside it is a wake-up of a task that is gone or not there yet. It changes by read-modify-writes alone, so its
//!     changes have one order, and each sees what those before it released.
//! SCHED-2. Only READY becomes RUNNING, and the thread that made that change has the task alone. It becomes IDLE only by
//!     an exchange that fails if READY was set meanwhile.
//! SCHED-3. A thread that makes a state READY at a level, or raises or lowers it to that level, reads the rank
//!     *afterwards*, and sets the bit of that level and rank. A thread that clears a bit reads which task has the rank
//!     *afterwards*, and takes that task if it is READY at the level of the bit or a more urgent one, or has it already,
//!     or sets the bit again. A superfluous bit costs a failed exchange and no more. A task that is READY at a less
//!     urgent level than the bit says was lowered, and the thread that lowered it sets the bit of the new level.
//! SCHED-4. `publish` changes ranks by swapping two tasks. For both it stores which task has the rank, and in the task's
//!     row the rank; then it makes a read-modify-write of the task's state, which releases both; and if that was READY,
//!     it sets the bit.
//! SCHED-5. A wake-up that finds a task READY asks for its level *afterwards*, and raises the task to that level if it is
//!     more urgent. So until the task is taken its level only rises, unless `publish` says otherwise; the caller of
//!     `publish` calls `raise` afterwards for each level that may be out of date by then. A hand-back at another level
//!     than the first is an exchange that fails if READY was set meanwhile, and then the level is asked for again: of the
//!     two, the later one sees what the other has released.
//! SCHED-6. A worker that follows rows ([`ScheduleQueue::pop_this`]) leaves a task alone while a bit of a more urgent
//!     level is in sight.
//!
//! So no READY is lost. Say that a task becomes READY, and look at the order of its state word:
//!
//! - The change comes after the read-modify-write of the last `publish` that moved the task: by SCHED-3 the bit is set at
//!   the newest rank, which SCHED-4 has released to it.
//! - It comes before: `publish` sees READY and sets the bit at the newest rank itself, unless the task was taken.
//!
//! In both cases the thread that clears that bit has seen SCHED-4's stores, so it finds this task at the rank, and takes
//! it; or it finds another one, which a later swap has put there. But then the read-modify-write of *that* swap on this
//! task is still to come, or has come already, and the same two cases hold for the rank that it gives. The same holds for
//! a level: the thread that made the last change of it sets the bit after that change.

mod bits;
mod level;
mod parking;
mod publish;
mod reserve;
mod running;
mod state;
mod table;
mod take;
mod wake;

use std::collections::VecDeque;
use std::fmt;

use self::bits::{Bits, MOST_RANKS};
pub use self::level::{LEVELS, Level};
use self::parking::Parking;
pub use self::reserve::Reserved;
pub use self::running::Running;
use self::table::{Row, Table};
use crate::sync::{AtomicUsize, Mutex, MutexGuard, Ordering};

/// Names a task as long as it lives; then another one may get the number.
pub type TaskId = u32;

/// Tasks at most.
pub const MOST_TASKS: usize = MOST_RANKS;

/// Workers at most: they are the bits of one word.
pub const MOST_WORKERS: usize = 64;

/// Tasks, and which of them is to run next.
pub struct ScheduleQueue<T> {
    table: Table<T>,
    bits: Bits,
    /// The binary logarithm of the number of ranks that a level has in `bits`.
    rank_bits: u32,
    /// The least urgent level that has ranks in `bits`.
    last_level: Level,
    parking: Parking,
    live: AtomicUsize,
    control: Mutex<Control>,
}

/// What is known of the rows besides their content.
#[derive(Default)]
struct Control {
    /// Rows that were ever in use; they are the first ones. Their ranks are the numbers below this one.
    made: usize,
    /// Those in use no more, the one that waits longest first: so a late wake-up is likely to find no task.
    free: VecDeque<TaskId>,
}

impl<T> fmt::Debug for ScheduleQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScheduleQueue")
            .field("live", &self.live())
            .field("has_ready", &self.has_ready())
            .field("parked", &self.parked())
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

impl<T> ScheduleQueue<T> {
    /// Makes a queue for up to `capacity` tasks and for the workers `0..workers`. Memory grows with the tasks.
    ///
    /// # Panics
    /// When `capacity` is zero or above [`MOST_TASKS`], or `workers` above [`MOST_WORKERS`].
    pub fn new(capacity: usize, workers: usize) -> Self {
        Self::with_levels(capacity, workers, LEVELS)
    }

    /// Makes a queue that tells only the first `levels` levels apart, and takes the others for the last of these: for
    /// models, whose states multiply with each level.
    ///
    /// # Panics
    /// As [`Self::new`], and when `levels` is zero or above [`LEVELS`].
    pub fn with_levels(capacity: usize, workers: usize, levels: usize) -> Self {
        assert!((1..=MOST_TASKS).contains(&capacity), "1 to {MOST_TASKS} tasks, not {capacity}");
        let last_level = Level::all().take(levels).last().filter(|_| levels <= LEVELS);
        let last_level = last_level.unwrap_or_else(|| panic!("1 to {LEVELS} levels, not {levels}"));
        let ranks = capacity.next_power_of_two();
        Self {
            table: Table::new(capacity),
            bits: Bits::new(ranks * levels),
            rank_bits: ranks.trailing_zeros(),
            last_level,
            parking: Parking::new(workers),
            live: AtomicUsize::new(0),
            control: Mutex::new(Control::default()),
        }
    }

    fn control(&self) -> MutexGuard<'_, Control> {
        // A panic while it was held leaves nothing half done: only an allocation could panic, before any change.
        self.control.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn known_row(&self, task: TaskId) -> &Row<T> {
        self.table.row(task).expect("a task has a row")
    }

    /// Returns the bit of a level and a rank.
    fn position(&self, level: Level, rank: usize) -> usize {
        (level.number() << self.rank_bits) | rank
    }

    /// Returns the level and the rank of a bit.
    fn place_of(&self, position: usize) -> (Level, usize) {
        let level = Level::new((position >> self.rank_bits) as u8).expect("a bit has a level");
        (level, position & ((1 << self.rank_bits) - 1))
    }

    /// Sets the bit of a row that the caller has just made READY at `level`, or moved to it (SCHED-3).
    fn push(&self, row: &Row<T>, level: Level) {
        self.bits.set(self.position(level, row.rank.load(Ordering::Relaxed) as usize));
    }

    /// Returns whether a task may be ready. A hint.
    pub fn has_ready(&self) -> bool {
        self.bits.any()
    }

    /// Returns how many tasks there are.
    pub fn live(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }

    /// Sleeps until a task may be ready, or the queue is closed. `worker` is the caller's own number.
    ///
    /// May return for no reason. The caller looks again in any case.
    ///
    /// # Panics
    /// When there is no such worker.
    pub fn park(&self, worker: usize) {
        self.parking.park(worker, || self.has_ready());
    }

    /// Returns how many workers are parked. A hint.
    pub fn parked(&self) -> usize {
        self.parking.parked()
    }

    /// Closes the queue for good, and wakes every worker. Tasks stay as they are.
    pub fn close(&self) {
        self.parking.close();
    }

    /// Returns whether the queue was closed.
    pub fn is_closed(&self) -> bool {
        self.parking.is_closed()
    }
}
