//! What became of every row of a query, and what each operator did: live, from any thread.

use std::sync::Arc;

use penstock_scheduler::Profile;
use penstock_scheduler::profile::Counter;
use penstock_types::Tick;

use crate::latency::Latencies;

/// Where an operator stands, which says how its rows count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Where rows come in.
    Source,
    /// Before the window: a row that it drops was filtered.
    Stage,
    /// Decides which rows are late.
    Window,
    /// Behind the window: its rows are results.
    Tail,
    /// Where results leave.
    Sink,
}

/// An operator and what it did.
#[derive(Clone)]
pub(crate) struct Operator {
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) profile: Arc<Profile>,
}

/// The account of a query. Tasks add, each to numbers of its own.
#[derive(Default)]
pub(crate) struct Account {
    pub(crate) operators: Vec<Operator>,
    pub(crate) tick: Option<Tick>,
    pub(crate) batches: Counter,
    pub(crate) shed: Counter,
    pub(crate) late: Counter,
    /// The largest distance of a late row, once there is one.
    pub(crate) late_by: Counter,
    /// Rows that are due and not taken, and how far the schedule of a replay has given way.
    pub(crate) backlog_rows: Counter,
    pub(crate) slipped_ns: Counter,
    pub(crate) event_latency: Latencies,
    pub(crate) output_latency: Latencies,
}

/// Where every row went: `rows_in = contributed + filtered + late + shed`, once the query has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Taken in.
    pub rows_in: u64,
    /// Reached the result, or a window that counted them.
    pub contributed: u64,
    /// Dropped by a filter or an inner lookup.
    pub filtered: u64,
    /// Came after their window had closed.
    pub late: u64,
    /// Skipped because the query lagged behind a shared source, and was submitted with `shed`.
    pub shed: u64,
    /// Given out.
    pub rows_out: u64,
}

impl Account {
    fn of(&self, role: Role) -> impl Iterator<Item = &Operator> {
        self.operators.iter().filter(move |operator| operator.role == role)
    }

    /// Where the rows went so far. While the query runs, rows on their way count nowhere yet.
    pub(crate) fn rows(&self) -> Rows {
        // Downstream first: rows that move on meanwhile are missed here rather than counted twice.
        let rows_out = self.of(Role::Sink).map(|sink| sink.profile.read().rows_in).sum();
        let (late, shed) = (self.late.get(), self.shed.get());
        let reached = match self.of(Role::Window).next() {
            Some(window) => window.profile.read().rows_in,
            None => rows_out,
        };
        let dropped = |operator: &Operator| {
            let read = operator.profile.read();
            read.rows_in.saturating_sub(read.rows_out)
        };
        Rows {
            rows_in: self.of(Role::Source).map(|source| source.profile.read().rows_in).sum::<u64>() + shed,
            contributed: reached.saturating_sub(late),
            filtered: self.of(Role::Stage).map(dropped).sum(),
            late,
            shed,
            rows_out,
        }
    }

    pub(crate) fn late_by(&self) -> Option<u64> {
        (self.late.get() > 0).then(|| self.late_by.get())
    }
}
