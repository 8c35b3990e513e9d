//! Where the rows of a task leave it: a cursor over its run, and the edge behind.
//!
//! O1. Rows and signals leave in the order in which they came. What has begun to leave goes on before anything new is
//!     taken in, so a task never holds more than one run and the few signals behind it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use penstock_memory::{EdgeReader, EdgeWriter, OpenError, Run, Signal, SlotId};
use penstock_progress::watermark::min_max;
use penstock_progress::{NEVER, law, laws};
use penstock_queue::wake::Wake;
use penstock_queue::wanted::Wanted;
use penstock_scheduler::Arrivals;
use penstock_scheduler::profile::Counter;
use smallvec::SmallVec;

use super::chain::elapsed_ns;
use super::segment::ClockSlots;
use super::sink::Press;

/// Something that leaves behind the rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Due {
    Watermark(i64),
    Signal(Signal),
}

/// How those who read the edge learn which watermark a row is judged by.
#[derive(Clone, Copy)]
pub(super) enum Judging {
    /// Nobody behind asks, or the watermark at each row is right as it is.
    AsItStands,
    /// The same for results, whose time no watermark passes before they have left.
    Results {
        /// The time of each row.
        time: SlotId,
    },
    /// Rows come from their source, and may lie below the watermark before them: it is placed exactly there.
    Exact(ClockSlots),
    /// Rows of several sources come together, each judged by its own: which one is said before those that it matters for.
    Said {
        /// The time of each row.
        time: SlotId,
    },
}

/// Who reads the edge.
#[derive(Clone, Default)]
pub(super) struct Readers {
    /// Whether other tasks do. Otherwise nobody asks for anything but rows, what is timed at a sink and the end: what else
    /// stands between rows would only cut batches short.
    pub(super) has_tasks: bool,
    /// The sinks, which leave rows until more have come, unless they are pressed.
    pub(super) sinks: Vec<Arc<Press>>,
}

/// The way out of a task.
pub(super) struct Outlet {
    edge: EdgeWriter,
    /// Readers ring for every chunk that they leave, and whenever they have caught up. Most of the time nobody waits.
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
    blocked_since: Option<Instant>,
    blocked_ns: u64,
    rows: Arc<Counter>,
    /// When they arrived.
    arrivals: Arc<Arrivals>,
}

impl Outlet {
    pub(super) fn new(
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
            blocked_since: None,
            blocked_ns: 0,
            rows: Arc::default(),
            arrivals,
        }
    }

    /// Rows that begin to leave from now on arrived then.
    pub(super) fn note_arrival(&self, at_ns: u64) {
        self.arrivals.note(at_ns);
    }

    /// Rows leave from these slots.
    pub(super) fn set_slots(&mut self, slots: Vec<SlotId>) {
        self.slots = slots;
    }

    /// Rows that can leave now; 0 is backpressure.
    pub(super) fn room(&mut self) -> usize {
        let room = self.wanted.look(|| Some(self.edge.room()).filter(|room| *room > 0)).unwrap_or(0);
        if room == 0 {
            self.note_blocked()
        } else {
            self.note_moved()
        }
        room
    }

    fn note_blocked(&mut self) {
        self.blocked_since.get_or_insert_with(Instant::now);
        // Memory that is under way comes soon. Otherwise only the reader can make room: a sink from rows that it would
        // rather have left, to be handed out with others.
        if !self.edge.is_waiting_for_memory() {
            self.readers.sinks.iter().for_each(|press| press.press());
        }
    }

    fn note_moved(&mut self) {
        if let Some(since) = self.blocked_since.take() {
            let ns = elapsed_ns(since);
            self.blocked_ns += ns;
            self.edge.add_backpressure_ns(ns);
        }
    }

    /// Time that it had something to write and no room, up to now.
    pub(super) fn blocked_ns(&self) -> u64 {
        self.blocked_ns + self.blocked_since.map_or(0, elapsed_ns)
    }

    /// Whether it waits for room.
    pub(super) fn is_blocked(&self) -> bool {
        self.blocked_since.is_some()
    }

    /// Rows that have left.
    pub(super) fn rows(&self) -> u64 {
        self.rows.get()
    }

    /// Where rows that have left are counted.
    pub(super) fn counter(&self) -> Arc<Counter> {
        Arc::clone(&self.rows)
    }

    /// Lets a reader join.
    pub(super) fn join(&mut self, wake: Arc<dyn Wake>) -> Result<EdgeReader, OpenError> {
        self.edge.join(wake)
    }

    /// Lets the rows of `run` leave, from now on.
    pub(super) fn begin(&mut self, run: &mut Run) {
        debug_assert!(!self.is_writing(), "O1: one run at a time");
        (self.next, self.end) = (0, run.len());
        if run.is_empty() {
            return;
        }
        run.settle(&self.slots);
        match self.judging {
            Judging::AsItStands => {}
            Judging::Results { time } => self.check_passed(run, time, self.sent),
            Judging::Exact(clock) if run.holds(clock.watermark) => self.place_exactly(run, clock),
            Judging::Exact(clock) if run.watermark().is_none() => {
                self.check_passed(run, clock.time, self.placed)
            }
            // Rows that are judged as one, by what stands before them.
            Judging::Exact(_) => {}
            Judging::Said { time } => self.say(run, time),
        }
    }

    /// The watermark has not passed a row that was still to come.
    fn check_passed(&self, run: &mut Run, time: SlotId, watermark: i64) {
        if laws::are_checked() {
            run.ready(&[time]);
            let earliest = min_max(run.column(time).fixed()).map_or(i64::MAX, |(earliest, _)| earliest);
            law!(earliest >= watermark, "a row of {earliest} comes behind the watermark {watermark}");
        }
    }

    /// A row below the watermark needs it exactly, so that whoever counts late rows need not know about runs. Between two
    /// such rows it rises or stays: where it stays, it stands there already.
    fn place_exactly(&mut self, run: &mut Run, clock: ClockSlots) {
        run.ready(&[clock.time, clock.watermark]);
        let times = run.column(clock.time).fixed::<i64>();
        let watermarks = run.column(clock.watermark).fixed::<i64>();
        law!(watermarks.is_sorted(), "the watermarks before the rows of a run fall");
        for (row, (&time, &mark)) in times.iter().zip(watermarks).enumerate() {
            if time < mark && mark > self.placed {
                self.placed = mark;
                self.below.push_back((row, mark));
            }
        }
    }

    /// Rows that lie below neither their own watermark nor the one that was said last need not be told from each other.
    fn say(&mut self, run: &mut Run, time: SlotId) {
        let own = run.watermark().unwrap_or(NEVER);
        run.ready(&[time]);
        let Some((earliest, _)) = min_max(run.column(time).fixed()) else { return };
        if own != self.said && earliest < own.max(self.said) {
            (self.said, self.to_say) = (own, Some(own));
        }
    }

    /// Whether rows that have begun to leave are still here.
    pub(super) fn is_writing(&self) -> bool {
        self.next < self.end
    }

    /// Writes as many of them as there is room for. Whether all have left.
    pub(super) fn write(&mut self, run: &Run) -> bool {
        let wanted = Arc::clone(&self.wanted);
        let done = wanted.look(|| self.write_some(run).then_some(())).is_some();
        if done {
            self.note_moved()
        } else {
            self.note_blocked()
        }
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

    /// Lets a watermark or signal leave behind the rows.
    pub(super) fn push(&mut self, due: Due) {
        if let Due::Watermark(watermark) = due {
            law!(
                watermark >= self.placed,
                "the watermark behind a task falls from {} to {watermark}",
                self.placed
            );
            self.placed = self.placed.max(watermark);
        }
        let for_tasks = matches!(due, Due::Watermark(_) | Due::Signal(Signal::Arrival { .. } | Signal::Idle));
        if self.readers.has_tasks {
            self.due.push_back(due);
        } else if !for_tasks {
            // At the end, sinks ask how far event time has come: there is nothing left that this could cut short.
            if matches!(due, Due::Signal(Signal::End)) && self.placed > NEVER {
                self.due.push_back(Due::Watermark(self.placed));
            }
            self.due.push_back(due);
        }
    }

    /// Lets a signal leave right behind the rows, before what is due already.
    pub(super) fn push_first(&mut self, due: Due) {
        self.due.push_front(due);
    }

    /// Sends what is due. Whether all of it has left.
    pub(super) fn send_due(&mut self) -> bool {
        debug_assert!(!self.is_writing(), "O1: signals leave behind the rows");
        let wanted = Arc::clone(&self.wanted);
        let done = wanted.look(|| self.send_some().then_some(())).is_some();
        if done {
            self.note_moved()
        } else {
            self.note_blocked()
        }
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

    /// Whether a watermark or signal waits to leave.
    pub(super) fn has_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Whether it waits for memory that is under way.
    pub(super) fn is_waiting_for_memory(&self) -> bool {
        self.is_blocked() && self.edge.is_waiting_for_memory()
    }

    /// Gives memory back that a burst has left behind.
    pub(super) fn trim(&mut self) {
        self.edge.trim();
    }
}
