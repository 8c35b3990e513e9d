//! Where the rows of a task leave it: a cursor over its run, and the edge that it writes.
//!
//! OUTLET-1. Rows and signals leave in the order in which they came. What has begun to leave goes on before anything new is
//!     taken in, so a task never holds more than one run and the few signals after it.

mod flush;
mod judging;

use std::collections::VecDeque;
use std::sync::Arc;

use penstock_memory::{EdgeReader, EdgeWriter, OpenError, Run, Signal, SlotId};
use penstock_progress::watermark::min_max;
use penstock_progress::{NEVER, law, laws};
use penstock_queue::wake::Wake;
use penstock_queue::wanted::Wanted;
use penstock_scheduler::Arrivals;
use penstock_scheduler::profile::Counter;
use smallvec::SmallVec;

pub use flush::FlushRequest;
pub use judging::Judging;

use crate::clock::{Clock, elapsed_ns};

/// Something that leaves after the rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Due {
    /// A watermark.
    Watermark(i64),
    /// Any other signal.
    Signal(Signal),
}

/// The readers of an edge.
#[derive(Clone, Default)]
pub struct Readers {
    /// Whether other tasks read it. Sinks ask for rows, what is timed there and the end only: any other signal between rows
    /// would cut batches short.
    pub has_tasks: bool,
    /// The sinks, which leave rows until more have come, unless they are asked to flush.
    pub sinks: Vec<Arc<FlushRequest>>,
}

/// The way out of a task.
pub struct Outlet {
    edge: EdgeWriter,
    /// Readers report every chunk that they leave, and whenever they have caught up. Most of the time the task does not
    /// wait for that.
    wanted: Arc<Wanted>,
    /// The columns that go on.
    slots: Vec<SlotId>,
    judging: Judging,
    readers: Readers,
    /// The largest watermark that was placed, or is about to be.
    placed: i64,
    /// The last watermark that has left.
    sent: i64,
    /// The watermark that readers judge rows by, where they are told, and the one that they have to be told next.
    said: i64,
    to_say: Option<i64>,
    /// Rows of the run that are still to be written, from here.
    next: usize,
    end: usize,
    /// Rows that need a watermark right before them, and which.
    below: VecDeque<(usize, i64)>,
    due: VecDeque<Due>,
    blocked_since_ns: Option<u64>,
    blocked_ns: u64,
    rows: Arc<Counter>,
    /// When they arrived.
    arrivals: Arc<Arrivals>,
}

impl Outlet {
    /// Writes the columns in `slots` to an edge.
    pub fn new(
        (edge, wanted): (EdgeWriter, Arc<Wanted>),
        slots: Vec<SlotId>,
        judging: Judging,
        readers: Readers,
        arrivals: Arc<Arrivals>,
    ) -> Self {
        Self {
            edge,
            wanted,
            slots,
            judging,
            readers,
            placed: NEVER,
            sent: NEVER,
            said: NEVER,
            to_say: None,
            next: 0,
            end: 0,
            below: VecDeque::new(),
            due: VecDeque::new(),
            blocked_since_ns: None,
            blocked_ns: 0,
            rows: Arc::default(),
            arrivals,
        }
    }

    /// Notes when the rows arrived that begin to leave from now on.
    pub fn note_arrival(&self, at_ns: u64) {
        self.arrivals.note(at_ns);
    }

    /// Lets rows leave from these slots.
    pub fn set_slots(&mut self, slots: Vec<SlotId>) {
        self.slots = slots;
    }

    /// Returns the rows that can leave now; 0 is backpressure.
    pub fn room(&mut self, clock: &dyn Clock) -> usize {
        let room = self.wanted.look(|| Some(self.edge.room()).filter(|room| *room > 0)).unwrap_or(0);
        self.note_moved(room > 0, clock);
        room
    }

    /// Notes whether there was room.
    fn note_moved(&mut self, has_moved: bool, clock: &dyn Clock) {
        if has_moved {
            if let Some(since_ns) = self.blocked_since_ns.take() {
                let ns = elapsed_ns(clock, since_ns);
                self.blocked_ns += ns;
                self.edge.add_backpressure_ns(ns);
            }
            return;
        }
        self.blocked_since_ns.get_or_insert_with(|| clock.system_ns());
        // Memory that is under way comes soon. Otherwise only the reader can make room: a sink by taking rows that it
        // would rather leave, to be handed out with others.
        if !self.edge.is_waiting_for_memory() {
            self.readers.sinks.iter().for_each(|sink| sink.request());
        }
    }

    /// Returns the time that it had something to write and no room, up to `now_ns`.
    pub fn blocked_ns(&self, now_ns: u64) -> u64 {
        self.blocked_ns + self.blocked_since_ns.map_or(0, |since_ns| now_ns.saturating_sub(since_ns))
    }

    /// Returns true if it waits for room.
    pub fn is_blocked(&self) -> bool {
        self.blocked_since_ns.is_some()
    }

    /// Returns the rows that have left.
    pub fn rows(&self) -> u64 {
        self.rows.get()
    }

    /// Returns the counter of rows that have left.
    pub fn counter(&self) -> Arc<Counter> {
        Arc::clone(&self.rows)
    }

    /// Lets a reader join.
    ///
    /// # Errors
    /// An edge that takes no more readers.
    pub fn join(&mut self, wake: Arc<dyn Wake>) -> Result<EdgeReader, OpenError> {
        self.edge.join(wake)
    }

    /// Lets the rows of `run` leave, from now on.
    pub fn begin(&mut self, run: &mut Run) {
        debug_assert!(!self.is_writing(), "OUTLET-1: one run at a time");
        (self.next, self.end) = (0, run.len());
        if run.is_empty() {
            return;
        }
        run.settle(&self.slots);
        match self.judging {
            Judging::AsItStands => {}
            Judging::Results { time } => self.check_passed(run, time, self.sent),
            Judging::Exact { time, watermark } if run.holds(watermark) => {
                self.place_exactly(run, time, watermark);
            }
            Judging::Exact { time, .. } if run.watermark().is_none() => {
                self.check_passed(run, time, self.placed);
            }
            // Rows that are judged as one, by the watermark before them.
            Judging::Exact { .. } => {}
            Judging::Said { time } => self.say(run, time),
        }
    }

    /// Checks that the watermark has not passed a row that was still to come.
    fn check_passed(&self, run: &mut Run, time: SlotId, watermark: i64) {
        if laws::are_checked() {
            run.ready(&[time]);
            let earliest = min_max(run.column(time).fixed()).map_or(i64::MAX, |(earliest, _)| earliest);
            law!(earliest >= watermark, "a row of {earliest} comes behind the watermark {watermark}");
        }
    }

    /// Places the watermark exactly before each row below it, so that counting late rows does not depend on runs. Between
    /// two such rows it rises or stays: where it stays, it was placed already.
    fn place_exactly(&mut self, run: &mut Run, time: SlotId, watermark: SlotId) {
        run.ready(&[time, watermark]);
        let times = run.column(time).fixed::<i64>();
        let watermarks = run.column(watermark).fixed::<i64>();
        law!(watermarks.is_sorted(), "the watermarks before the rows of a run fall");
        for (row, (&time, &mark)) in times.iter().zip(watermarks).enumerate() {
            if time < mark && mark > self.placed {
                self.placed = mark;
                self.below.push_back((row, mark));
            }
        }
    }

    /// Says which watermark the rows of a run are judged by. Rows that lie below neither their own watermark nor the one that
    /// was said last need not be told from each other.
    fn say(&mut self, run: &mut Run, time: SlotId) {
        let own = run.watermark().unwrap_or(NEVER);
        run.ready(&[time]);
        let Some((earliest, _)) = min_max(run.column(time).fixed()) else { return };
        if own != self.said && earliest < own.max(self.said) {
            (self.said, self.to_say) = (own, Some(own));
        }
    }

    /// Returns true if rows that have begun to leave are still here.
    pub fn is_writing(&self) -> bool {
        self.next < self.end
    }

    /// Writes as many of them as there is room for. Returns true if all have left.
    pub fn write(&mut self, run: &Run, clock: &dyn Clock) -> bool {
        let wanted = Arc::clone(&self.wanted);
        let done = wanted.look(|| self.write_some(run).then_some(())).is_some();
        self.note_moved(done, clock);
        done
    }

    fn write_some(&mut self, run: &Run) -> bool {
        if !self.is_writing() {
            return true;
        }
        if let Some(watermark) = self.to_say {
            if self.edge.signal(Signal::Judge { watermark }).is_err() {
                return false;
            }
            self.to_say = None;
        }
        let pieces: SmallVec<[_; 8]> = self.slots.iter().map(|&slot| run.piece(slot)).collect();
        while self.next < self.end {
            let below = self.below.front().copied();
            if let Some((row, watermark)) = below
                && row == self.next
                && !self.edge.watermark(watermark)
            {
                break;
            }
            let until = match below {
                Some((row, _)) if row > self.next => row,
                Some(_) => self.below.get(1).map_or(self.end, |(row, _)| *row),
                None => self.end,
            };
            let rows = self.edge.room().min(until - self.next);
            if rows == 0 {
                break;
            }
            if below.is_some_and(|(row, _)| row == self.next) {
                self.below.pop_front();
            }
            self.edge.append(&pieces, self.next, rows);
            self.next += rows;
            self.rows.add(rows as u64);
            self.arrivals.wrote(rows as u64);
        }
        !self.is_writing()
    }

    /// Lets a watermark or signal leave after the rows.
    pub fn push(&mut self, due: Due) {
        if let Due::Watermark(watermark) = due {
            law!(
                watermark >= self.placed,
                "the watermark after a task falls from {} to {watermark}",
                self.placed
            );
            self.placed = self.placed.max(watermark);
        }
        let for_tasks = matches!(due, Due::Watermark(_) | Due::Signal(Signal::Arrival { .. } | Signal::Idle));
        if self.readers.has_tasks {
            self.due.push_back(due);
        } else if !for_tasks {
            // At the end, sinks ask for the watermark: there is nothing left that this could cut short.
            if matches!(due, Due::Signal(Signal::End)) && self.placed > NEVER {
                self.due.push_back(Due::Watermark(self.placed));
            }
            self.due.push_back(due);
        }
    }

    /// Lets a signal leave right after the rows, before what is due already.
    pub fn push_first(&mut self, due: Due) {
        self.due.push_front(due);
    }

    /// Sends what is due. Returns true if all of it has left.
    pub fn send_due(&mut self, clock: &dyn Clock) -> bool {
        debug_assert!(!self.is_writing(), "OUTLET-1: signals leave after the rows");
        let wanted = Arc::clone(&self.wanted);
        let done = wanted.look(|| self.send_some().then_some(())).is_some();
        self.note_moved(done, clock);
        done
    }

    fn send_some(&mut self) -> bool {
        while let Some(due) = self.due.front() {
            let sent = match *due {
                Due::Watermark(watermark) => self.edge.watermark(watermark),
                Due::Signal(signal) => self.edge.signal(signal).is_ok(),
            };
            if !sent {
                return false;
            }
            if let Some(Due::Watermark(watermark)) = self.due.pop_front() {
                self.sent = watermark;
            }
        }
        true
    }

    /// Returns true if a watermark or signal waits to leave.
    pub fn has_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Returns true if it waits for memory that is under way.
    pub fn is_waiting_for_memory(&self) -> bool {
        self.is_blocked() && self.edge.is_waiting_for_memory()
    }

    /// Gives memory back that a burst has left behind.
    pub fn trim(&mut self) {
        self.edge.trim();
    }
}
