//! The account of a query: what became of every row, and what each operator did. Read live, from any thread.
//!
//! Rows are followed from where they come in to where they contribute: to a window, a join or another operator with
//! state, to a union with results, or to the output. Where several read the same rows, each row counts once more for each
//! reader but the first: as copied. So, once a query has ended,
//!
//! `rows_in + copied = contributed + filtered + late + shed + rejected`.

mod latency;

use std::sync::Arc;

use penstock_operators::Late;
use penstock_scheduler::Profile;
use penstock_scheduler::profile::{Counter, Reading};
use penstock_types::Tick;

pub use latency::{Latencies, Latency, SinkLatency};

/// The place of an operator in its query, which says how its rows count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Where rows come in.
    Source,
    /// Before any operator with state: a row that it drops was filtered.
    Stage,
    /// Has state.
    Keyed,
    /// Comes after one: its rows are results.
    Tail,
    /// Where results leave.
    Sink,
}

/// An operator and what it did.
#[derive(Clone)]
pub struct Operator {
    /// Its name.
    pub name: String,
    /// Its place.
    pub role: Role,
    /// One for each task that runs it.
    pub profiles: Vec<Arc<Profile>>,
}

impl Operator {
    /// Returns what it did, in all tasks together.
    pub fn read(&self) -> Reading {
        self.profiles.iter().map(|profile| profile.read()).fold(Reading::default(), |sum, read| Reading {
            rows_in: sum.rows_in + read.rows_in,
            rows_out: sum.rows_out + read.rows_out,
            runs: sum.runs + read.runs,
            busy_ns: sum.busy_ns + read.busy_ns,
        })
    }
}

/// What one source counts. It alone writes.
#[derive(Default)]
pub struct SourceCounts {
    /// Batches taken in.
    pub batches: Counter,
    /// Rows that were skipped because the query lagged behind.
    pub shed: Counter,
    /// Rows that were rejected where they came in.
    pub rejected: Counter,
    /// Rows of a replay that are due and not taken.
    pub backlog_rows: Counter,
    /// How far the schedule of a replay has given way.
    pub slipped_ns: Counter,
    /// 1 while it is idle.
    pub is_idle: Counter,
    /// How often it has become idle.
    pub idles: Counter,
}

/// Rows that one operator found late. It alone writes.
#[derive(Default)]
pub struct LateCount {
    rows: Counter,
    by: Counter,
}

impl LateCount {
    /// Adds the rows that an operator has found late since it had found `before`.
    pub fn note(&self, before: u64, late: Late) {
        if late.rows > before {
            self.by.set(late.by.unwrap_or(0));
            self.rows.add(late.rows - before);
        }
    }
}

/// The late rows of one port of an operator.
pub struct LateRows {
    /// How many there were.
    pub count: Arc<LateCount>,
    /// Whether they were as they came in.
    pub is_raw: bool,
    /// Whether they leave the operator and are read.
    pub is_read: bool,
}

/// Late rows that went nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DroppedLate {
    /// How many, with results that did not come in time for a further window.
    pub rows: u64,
    /// The largest distance between one of them and the watermark that it missed.
    pub by: u64,
    /// The unit of `by`.
    pub tick: Option<Tick>,
}

impl DroppedLate {
    /// Formats `by` for people.
    pub fn by_text(&self) -> String {
        self.tick.map_or_else(String::new, |tick| tick.describe(i128::from(self.by)))
    }
}

/// A place where rows that came in leave a task.
pub struct Exit {
    /// How many have left.
    pub rows: Arc<Counter>,
    /// Readers beyond the first.
    pub copies: u64,
    /// Readers that they contribute to.
    pub contributes: u64,
}

/// The account of a query. Tasks add, each to numbers of its own.
#[derive(Default)]
pub struct Account {
    /// The operators.
    pub operators: Vec<Operator>,
    /// The unit of event time.
    pub tick: Option<Tick>,
    /// What each source counts.
    pub sources: Vec<Arc<SourceCounts>>,
    /// Rows that came into operators with state as they came in.
    pub entered: Vec<Arc<Counter>>,
    /// Late rows of each port of each operator.
    pub late: Vec<LateRows>,
    /// Rows that operators rejected, as they came in.
    pub rejected: Vec<Arc<Counter>>,
    /// The same of the user's functions.
    pub rejected_outside: Vec<Arc<Counter>>,
    /// Results that operators and functions after others rejected.
    pub rejected_results: Vec<Arc<Counter>>,
    /// Places where rows that came in leave a task.
    pub exits: Vec<Exit>,
    /// How often windows were closed by the clock.
    pub closings: Vec<Arc<Counter>>,
    /// From the arrival of a row until its results were handed over.
    pub event_latency: Arc<Latencies>,
    /// From the arrival of the watermark that closed a window until its results were handed over.
    pub output_latency: Arc<Latencies>,
    /// From the arrival of a row up to the sink.
    pub sink_latency: SinkLatency,
}

/// Where every row went: `rows_in + copied = contributed + filtered + late + shed + rejected`, once the query has
/// ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Taken in.
    pub rows_in: u64,
    /// Counted once more, because several read them.
    pub copied: u64,
    /// Reached the result, or an operator that counted them.
    pub contributed: u64,
    /// Dropped by a filter or an inner lookup.
    pub filtered: u64,
    /// Came after their window had closed.
    pub late: u64,
    /// Results, of windows or of functions, that came after a later window had closed. They are no part of the sum.
    pub late_results: u64,
    /// Skipped because the query lagged behind a shared source, and was submitted with `shed`.
    pub shed: u64,
    /// Left out because an operator, or the source, rejected them, where that does not fail the query.
    pub rejected: u64,
    /// Results, of windows or of functions, and late rows of an output of their own, that a later operator rejected. They
    /// are no part of the sum.
    pub rejected_results: u64,
    /// Given out.
    pub rows_out: u64,
}

impl Account {
    fn of(&self, role: Role) -> impl Iterator<Item = &Operator> {
        self.operators.iter().filter(move |operator| operator.role == role)
    }

    /// Adds the rows that came to a port of an operator with state, and the late ones among them.
    pub fn count_port(&mut self, rows: &Arc<Counter>, late: LateRows) {
        if late.is_raw {
            self.entered.push(Arc::clone(rows));
        }
        self.late.push(late);
    }

    /// Adds the rows that stateless operators of that role rejected.
    pub fn count_rejected(&mut self, role: Role, rejected: &Arc<Counter>) {
        let counts = if role == Role::Stage { &mut self.rejected } else { &mut self.rejected_results };
        counts.push(Arc::clone(rejected));
    }

    /// Adds the rows that a function of the user's rejected: rows as they came in (`is_raw`), or results.
    pub fn count_rejected_outside(&mut self, is_raw: bool, rejected: &Arc<Counter>) {
        let counts = if is_raw { &mut self.rejected_outside } else { &mut self.rejected_results };
        counts.push(Arc::clone(rejected));
    }

    /// Returns where the rows went so far. While the query runs, rows on their way count nowhere yet.
    pub fn rows(&self) -> Rows {
        // Downstream first: rows that move on meanwhile are missed here rather than counted twice.
        let rows_out = self.of(Role::Sink).map(|sink| sink.read().rows_in).sum();
        let late = |raw: bool| {
            let counts = self.late.iter().filter(|late| late.is_raw == raw);
            counts.map(|late| late.count.rows.get()).sum::<u64>()
        };
        let (late, late_results) = (late(true), late(false));
        let shed: u64 = self.sources.iter().map(|source| source.shed.get()).sum();
        let entered: u64 = self.entered.iter().map(|rows| rows.get()).sum();
        let rejected: u64 = self.rejected.iter().map(|count| count.get()).sum();
        let at_source: u64 = self.sources.iter().map(|source| source.rejected.get()).sum();
        let outside: u64 = self.rejected_outside.iter().map(|count| count.get()).sum();
        let (mut copied, mut left) = (0, 0);
        for exit in &self.exits {
            let rows = exit.rows.get();
            copied += rows * exit.copies;
            left += rows * exit.contributes;
        }
        let dropped = |operator: &Operator| {
            let read = operator.read();
            read.rows_in.saturating_sub(read.rows_out)
        };
        Rows {
            rows_in: self.of(Role::Source).map(|source| source.read().rows_in).sum::<u64>() + shed,
            copied,
            contributed: (entered + left).saturating_sub(late),
            filtered: self.of(Role::Stage).map(dropped).sum::<u64>().saturating_sub(rejected),
            late,
            late_results,
            shed,
            rejected: rejected + outside + at_source,
            rejected_results: self.rejected_results.iter().map(|count| count.get()).sum(),
            rows_out,
        }
    }

    /// Returns the rows and results that came too late for an operator whose late rows are not read.
    pub fn dropped_late(&self) -> Option<DroppedLate> {
        let dropped = || self.late.iter().filter(|late| !late.is_read && late.count.rows.get() > 0);
        let by = dropped().map(|late| late.count.by.get()).max()?;
        Some(DroppedLate { rows: dropped().map(|late| late.count.rows.get()).sum(), by, tick: self.tick })
    }

    /// Returns the largest distance of a late row, once there is one.
    pub fn late_by(&self) -> Option<u64> {
        let counts = self.late.iter().map(|late| &late.count);
        counts.filter(|late| late.rows.get() > 0).map(|late| late.by.get()).max()
    }

    /// Returns the batches taken in.
    pub fn batches(&self) -> u64 {
        self.sources.iter().map(|source| source.batches.get()).sum()
    }

    /// Returns the sources that are idle now.
    pub fn idle_sources(&self) -> u64 {
        self.sources.iter().map(|source| source.is_idle.get()).sum()
    }

    /// Returns how often sources have become idle.
    pub fn idles(&self) -> u64 {
        self.sources.iter().map(|source| source.idles.get()).sum()
    }

    /// Returns how often windows were closed by the clock.
    pub fn clock_closings(&self) -> u64 {
        self.closings.iter().map(|count| count.get()).sum()
    }

    /// Returns the rows of replays that are due and not taken.
    pub fn backlog_rows(&self) -> u64 {
        self.sources.iter().map(|source| source.backlog_rows.get()).sum()
    }

    /// Returns how far the slowest replay has been slowed down.
    pub fn slipped_ns(&self) -> u64 {
        self.sources.iter().map(|source| source.slipped_ns.get()).max().unwrap_or(0)
    }
}
