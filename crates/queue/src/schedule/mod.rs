//! Which task runs next: ready tasks by rank, for any number of workers.
//!
//! A task is a row with a state word, a rank and a payload (`table.rs`). Readiness is a bitmap over ranks, one for each
//! [`Class`] (`bits.rs`); workers that find nothing sleep (`parking.rs`). Ranks are published once per epoch, in
//! place: nothing is ever swapped for a new copy, so nothing has to be reclaimed.
//!
//! Who touches what: anybody wakes; a worker pops, runs and hands back ([`Running`]); [`ScheduleQueue::publish`],
//! [`ScheduleQueue::add`] and the end of a task share a lock, which no other call takes.
//!
//! K1. A state word is FREE, IDLE, READY, RUNNING, or RUNNING with READY beside it; FREE with READY beside it is a
//!     wake-up that came too late or too early. It changes by read-modify-writes alone, so its changes have one
//!     order, and each sees what those before it released.
//! K2. Only READY becomes RUNNING, and whoever made that change has the task alone. It becomes IDLE only by an exchange
//!     that fails if READY was set meanwhile.
//! K3. Whoever makes a state READY reads the rank *afterwards*, and sets the bit at that rank. Whoever clears a bit
//!     reads which task has the rank *afterwards*, and takes that task if it is READY, or has it already, or sets the
//!     bit again. A bit too many costs a failed exchange and no more.
//! K4. `publish` goes through the ranks. At each it stores which task has it, and in the task's row the rank; then it
//!     makes a read-modify-write of the task's state, which releases both; and if that was READY, it sets the bit.
//!
//! K5. A wake-up that finds a task READY asks for its class *afterwards*, and sets the bit of [`Class::Now`] as well if
//!     that is the class by now: what the task is woken for may be worth running it. So the class only rises until the
//!     task is taken, or `publish` says otherwise; whoever publishes a class that may be out of date by then calls
//!     `raise` behind it. A hand-back in the class [`Class::Spare`] is an exchange that fails if READY was set
//!     meanwhile, and then the class is asked for again: of the two, the later one sees what the other has
//!     released.
//!
//! So no READY is lost. Say that a task becomes READY, and look at the order of its state word:
//!
//! - The change comes after the read-modify-write of the last `publish`: by K3 the bit is set at the newest rank, which
//!   K4 has released to it.
//! - It comes before: `publish` sees READY and sets the bit at the newest rank itself, unless the task was taken.
//!
//! In both cases whoever clears that bit has seen K4's stores, so it finds this task at the rank, and takes it; or it
//! finds another one, which a next `publish` has put there. But then the read-modify-write of *that* `publish` on this
//! task is still to come, or has come already, and the same two cases hold for the rank that it gives.

mod bits;
mod parking;
mod running;
mod table;

use std::collections::VecDeque;
use std::fmt;

use self::bits::{Bits, MOST_RANKS};
use self::parking::Parking;
pub use self::running::Running;
use self::table::{FREE, IDLE, READY, RUNNING, Row, Table};
use crate::sync::{AtomicUsize, Mutex, MutexGuard, Ordering, ordering, planted};

/// Names a task as long as it lives; then another one may get the number.
pub type TaskId = u32;

/// Tasks at most.
pub const MOST_TASKS: usize = MOST_RANKS;

/// Workers at most: they are the bits of one word.
pub const MOST_WORKERS: usize = 64;

/// Whether a ready task is worth running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// It is, in the order of ranks.
    Now,
    /// Only when no task of the other class is ready.
    Spare,
}

/// How a wake-up has found the task whose class it asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Idle: it becomes ready in the class that is said.
    Idle,
    /// Ready: it is raised if [`Class::Now`] is said, and stays in its class otherwise.
    Ready,
}

/// Tasks, and which of them is to run next.
pub struct ScheduleQueue<T> {
    table: Table<T>,
    now: Bits,
    spare: Bits,
    parking: Parking,
    live: AtomicUsize,
    control: Mutex<Control>,
}

/// What is known of the rows besides their content.
#[derive(Default)]
struct Control {
    /// Rows that were ever in use; they are the first ones. Their ranks are the numbers below this one.
    made: usize,
    /// Those in use no more, the one that waits longest first: a wake-up that is late shall rather find nobody.
    free: VecDeque<TaskId>,
    /// The last arrangement, kept for its memory.
    arrangement: Vec<(TaskId, Class)>,
    placed: Vec<bool>,
}

impl Control {
    fn arrange(&mut self, order: &[(TaskId, Class)], is_live: impl Fn(TaskId) -> bool) -> &[(TaskId, Class)] {
        self.arrangement.clear();
        self.placed.clear();
        self.placed.resize(self.made, false);
        let mut place = |task: TaskId, class: Class| {
            if let Some(placed) = self.placed.get_mut(task as usize)
                && !std::mem::replace(placed, true)
            {
                self.arrangement.push((task, class));
            }
        };
        let rows = 0..self.made as TaskId;
        order.iter().filter(|(task, _)| is_live(*task)).for_each(|&(task, class)| place(task, class));
        rows.clone().filter(|task| is_live(*task)).for_each(|task| place(task, Class::Now));
        // Free rows have ranks as well: the last ones, which is where a new task starts.
        rows.for_each(|task| place(task, Class::Now));
        &self.arrangement
    }
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
    /// A queue for up to `capacity` tasks and for the workers `0..workers`. Memory grows with the tasks.
    ///
    /// # Panics
    /// When `capacity` is zero or above [`MOST_TASKS`], or `workers` above [`MOST_WORKERS`].
    pub fn new(capacity: usize, workers: usize) -> Self {
        assert!((1..=MOST_TASKS).contains(&capacity), "1 to {MOST_TASKS} tasks, not {capacity}");
        Self {
            table: Table::new(capacity),
            now: Bits::new(capacity),
            spare: Bits::new(capacity),
            parking: Parking::new(workers),
            live: AtomicUsize::new(0),
            control: Mutex::new(Control::default()),
        }
    }

    fn control(&self) -> MutexGuard<'_, Control> {
        // Nothing is left half done by a panic while it was held: only an allocation could panic, before any change.
        self.control.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn bits(&self, class: Class) -> &Bits {
        match class {
            Class::Now => &self.now,
            Class::Spare => &self.spare,
        }
    }

    fn known_row(&self, task: TaskId) -> &Row<T> {
        self.table.row(task).expect("a task has a row")
    }

    /// Makes a row for a task that is idle. It becomes ready by [`Self::wake`]. None when the queue is full.
    ///
    /// The task ranks behind all that the last [`Self::publish`] has seen; or, in the row of a task that ended since
    /// then, at the rank which that one had.
    ///
    /// `make` gets the id first and is called without any lock: it may call whatever it likes here. Wake-ups for that
    /// id count from the call of `make` on. If it panics, the row is free again.
    pub fn add(&self, make: impl FnOnce(TaskId) -> T) -> Option<TaskId> {
        let task = self.reserve()?;
        let reserved = Reserved { queue: self, task };
        let payload = make(task);
        std::mem::forget(reserved);
        let row = self.known_row(task);
        // SAFETY: R2: this call has reserved the row, and its state is FREE.
        let cell = unsafe { &mut *row.payload() };
        *cell = Some(payload);
        self.live.fetch_add(1, Ordering::Relaxed);
        // AcqRel: Release hands over the payload, and pairs with the Acquire in `pop`; Acquire as in `wake`.
        let before = row.state.fetch_and(!FREE, ordering("schedule.add", Ordering::AcqRel));
        if before & READY != 0 {
            self.push(row, Class::Now);
            self.parking.unpark_one();
        }
        Some(task)
    }

    fn reserve(&self) -> Option<TaskId> {
        let mut control = self.control();
        let task = match control.free.pop_front() {
            Some(task) => task,
            None if control.made == self.table.capacity() => return None,
            None => {
                self.table.grow(control.made);
                control.made += 1;
                control.made as TaskId - 1
            }
        };
        // Forgets wake-ups from when nobody had the row. A read-modify-write, by K1.
        self.known_row(task).state.swap(FREE, Ordering::Relaxed);
        Some(task)
    }

    /// Says that there is something to do for a task. If it was idle, it becomes ready in the class that `class` says;
    /// if it was ready, it may be raised to that class.
    ///
    /// An id that is out of use does no harm; one that another task has by now wakes that one.
    pub fn wake(&self, task: TaskId, class: impl FnOnce(Found) -> Class) {
        let Some(row) = self.table.row(task) else { return };
        // AcqRel: Release hands over what was published for the task before; it pairs with the Acquire in `pop`.
        // Acquire pairs with the Release in `publish`: the rank read below is the one given there, or a newer one.
        match row.state.fetch_or(READY, ordering("schedule.wake", Ordering::AcqRel)) {
            IDLE => {
                // In a drop, since `class` may panic and the task is READY already.
                let mut duty = Duty { queue: self, row, class: Class::Now };
                duty.class = class(Found::Idle);
            }
            READY if !planted("schedule.wake.raise") => self.lift(row, || class(Found::Ready)),
            _ => {}
        }
    }

    /// Raises a task that is ready, if `class` says [`Class::Now`]: behind a [`Self::publish`] of a class that was settled
    /// before.
    pub fn raise(&self, task: TaskId, class: impl FnOnce() -> Class) {
        let Some(row) = self.table.row(task) else { return };
        if planted("schedule.raise") {
            return;
        }
        // AcqRel: of this and a wake-up that finds the task READY, the later one sees what led to the other (K5).
        if row.state.fetch_or(0, ordering("schedule.raise.look", Ordering::AcqRel)) == READY {
            self.lift(row, class);
        }
    }

    /// K5, for a row that was found READY. Whoever made it so has woken a worker, or will.
    fn lift(&self, row: &Row<T>, class: impl FnOnce() -> Class) {
        if class() == Class::Now {
            self.push(row, Class::Now);
        }
    }

    /// K3, for a row that the caller has just made READY.
    fn push(&self, row: &Row<T>, class: Class) {
        self.bits(class).set(row.rank.load(Ordering::Relaxed) as usize);
    }

    /// Takes the ready task of the highest rank, for the caller to run. None when no task is ready; the caller may
    /// [`Self::park`] then.
    pub fn pop(&self) -> Option<Running<'_, T>> {
        let mut restored = false;
        let taken = self.take(&mut restored);
        if restored && !planted("schedule.pop.restored") {
            // A worker may have looked while they were out of sight, and have parked.
            self.parking.unpark_one();
        }
        taken
    }

    /// Takes that task, whatever its rank, if it is ready.
    pub fn pop_this(&self, task: TaskId) -> Option<Running<'_, T>> {
        let row = self.table.row(task)?;
        // Acquire: as in `take`.
        let take = ordering("schedule.pop_this", Ordering::Acquire);
        row.state.compare_exchange(READY, RUNNING, take, Ordering::Relaxed).ok()?;
        // Otherwise it would be in the class of that bit again, whatever it is handed back in.
        let rank = row.rank.load(Ordering::Relaxed) as usize;
        let forgot = [Class::Now, Class::Spare].map(|class| self.forget(class, rank, task));
        if forgot.contains(&true) {
            self.parking.unpark_one();
        }
        Some(Running::new(self, task, row))
    }

    /// Clears a bit of a task that the caller has taken, unless the rank is another's by now (K3). Whether others were out
    /// of sight for an instant.
    fn forget(&self, class: Class, rank: usize, task: TaskId) -> bool {
        let bits = self.bits(class);
        if !bits.is_set(rank) {
            return false;
        }
        let cleared = bits.clear(rank);
        // Relaxed: the Acquire on the bit made the store of K4 visible.
        let is_others = cleared.was_set && self.table.order(rank).load(Ordering::Relaxed) != task;
        if is_others && !planted("schedule.forget.again") {
            bits.set(rank);
        }
        cleared.restored || is_others
    }

    fn take(&self, restored: &mut bool) -> Option<Running<'_, T>> {
        loop {
            let (rank, other) = match self.now.take_first(restored) {
                Some(rank) => (rank, Class::Spare),
                None => (self.spare.take_first(restored)?, Class::Now),
            };
            // Relaxed: the Acquire on the bit made the store of K4 visible.
            let task = self.table.order(rank).load(Ordering::Relaxed);
            let row = self.known_row(task);
            // Acquire: pairs with the Release of whoever handed the task back or woke it (R2).
            let take = ordering("schedule.pop", Ordering::Acquire);
            if row.state.compare_exchange(READY, RUNNING, take, Ordering::Relaxed).is_ok() {
                *restored |= self.forget(other, rank, task); // it may have been raised
                return Some(Running::new(self, task, row));
            }
        }
    }

    /// Ranks the tasks anew: those of `order` first, as they stand there, and behind them all others, in the class
    /// [`Class::Now`]. Tasks that are ready are so from now on in the class given here.
    ///
    /// Ids that no task has are ignored, and so is all but the first mention of one.
    pub fn publish(&self, order: &[(TaskId, Class)]) {
        let mut control = self.control();
        // A task that comes or goes meanwhile may rank with the others or behind them: K4 holds for every row.
        let is_live =
            |task| self.table.row(task).is_some_and(|row| row.state.load(Ordering::Relaxed) & FREE == 0);
        let mut came_to_sight = 0;
        for (rank, &(task, class)) in control.arrange(order, is_live).iter().enumerate() {
            let row = self.known_row(task);
            // K4. Relaxed: the read-modify-write of `rescan` releases both.
            self.table.order(rank).store(task, Ordering::Relaxed);
            row.rank.store(rank as u32, Ordering::Relaxed);
            let (own, other) = match class {
                Class::Now => (&self.now, &self.spare),
                Class::Spare => (&self.spare, &self.now),
            };
            // Bits that were set for other tasks or in the other class go, so that workers need not find that out one
            // by one. Always before a rescan: whoever makes the task READY after it sets the bit after this.
            let clear = |bits: &Bits| bits.is_set(rank) && bits.clear(rank).restored;
            let mut restored = !planted("schedule.publish.clear") && clear(other);
            let mut ready = self.rescan(row);
            if !ready && own.is_set(rank) {
                restored |= own.clear(rank).restored;
                ready = !planted("schedule.publish.again") && self.rescan(row);
            }
            restored |= planted("schedule.publish.clear") && clear(other);
            if ready {
                own.set(rank);
            }
            came_to_sight += usize::from(ready) + usize::from(restored);
        }
        drop(control);
        for _ in 0..came_to_sight {
            if !self.parking.unpark_one() {
                break;
            }
        }
    }

    /// Whether a task is READY, found by a read-modify-write that releases its new rank (K4).
    fn rescan(&self, row: &Row<T>) -> bool {
        if planted("schedule.publish.rescan") {
            return false;
        }
        if planted("schedule.publish.write") {
            return row.state.load(Ordering::Acquire) == READY;
        }
        // Release: pairs with the Acquire in `wake`, `add` and the hand-back. The state stays as it is.
        row.state.fetch_or(0, ordering("schedule.publish", Ordering::Release)) == READY
    }

    /// Whether a task may be ready. A hint.
    pub fn has_ready(&self) -> bool {
        self.now.any() || self.spare.any()
    }

    /// How many tasks there are.
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

    /// How many workers are parked. A hint.
    pub fn parked(&self) -> usize {
        self.parking.parked()
    }

    /// Says that the end has come, for good, and wakes every worker. Tasks stay as they are.
    pub fn close(&self) {
        self.parking.close();
    }

    /// Whether somebody closed it.
    pub fn is_closed(&self) -> bool {
        self.parking.is_closed()
    }
}

/// The duty to set the bit of a row that was made READY.
struct Duty<'a, T> {
    queue: &'a ScheduleQueue<T>,
    row: &'a Row<T>,
    class: Class,
}

impl<T> Drop for Duty<'_, T> {
    fn drop(&mut self) {
        self.queue.push(self.row, self.class);
        self.queue.parking.unpark_one();
    }
}

/// A row that goes back if its task cannot be made.
struct Reserved<'a, T> {
    queue: &'a ScheduleQueue<T>,
    task: TaskId,
}

impl<T> Drop for Reserved<'_, T> {
    fn drop(&mut self) {
        self.queue.control().free.push_back(self.task);
    }
}
