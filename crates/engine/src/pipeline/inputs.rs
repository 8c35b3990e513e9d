//! Where the rows of a task come from: a source, or any number of edges, read in turn.

use std::sync::Arc;

use penstock_memory::{EdgeReader, SlotId};
use penstock_progress::NEVER;
use penstock_scheduler::{Arrivals, Profile};

use super::parallel::{Part, WayOut};
use super::source::Source;
use super::spreading::Share;
use crate::query::account::SourceCounts;
use crate::share::Lag;

/// One input of a task.
pub(super) enum Input {
    Source(Box<Source>),
    Edge(Inlet),
    /// What a lane has come to.
    Parts(WayOut<Part>),
    /// A shared source that goes on without the query, which was drained: its reader is gone, so that nothing waits for it.
    Left,
}

/// An edge as input: its columns fill the slots.
pub(super) struct Inlet {
    pub(super) reader: EdgeReader,
    pub(super) slots: Vec<SlotId>,
    /// When its rows arrived.
    arrivals: Arc<Arrivals>,
    /// Rows of the run at hand, which the reader lets go of when they have left the task.
    pub(super) taken: usize,
    /// The watermark that rows are judged by, where rows of several sources come by this edge.
    pub(super) judge: Option<i64>,
    /// The other end is a shared source.
    pub(super) shared: Option<SharedInlet>,
    /// The rows that are taken, where others take the rest.
    pub(super) share: Option<Box<Share>>,
    /// Rows that are still taken, once the query is drained: those that its shared source had read by then.
    pub(super) last: Option<u64>,
}

/// What a query knows of the shared source that it reads.
pub(super) struct SharedInlet {
    pub(super) profile: Arc<Profile>,
    pub(super) counts: Arc<SourceCounts>,
    pub(super) lag: Arc<Lag>,
}

impl Inlet {
    /// An edge that fills these slots. Where it is `mixed`, rows of several sources come by it.
    pub(super) fn new(
        (reader, arrivals): (EdgeReader, Arc<Arrivals>),
        slots: Vec<SlotId>,
        mixed: bool,
        shared: Option<SharedInlet>,
    ) -> Self {
        let judge = mixed.then_some(NEVER);
        Self { reader, slots, arrivals, taken: 0, judge, shared, share: None, last: None }
    }

    /// The watermark of their own source just before the rows that come next.
    pub(super) fn watermark(&self) -> i64 {
        self.judge.unwrap_or_else(|| self.reader.watermark())
    }

    /// When the rows that come next arrived, where that can be told.
    pub(super) fn arrived_ns(&self) -> Option<u64> {
        self.arrivals.next_ns(|| self.reader.pending())
    }

    /// Lets go of the rows at hand.
    pub(super) fn release(&mut self) {
        self.reader.advance(std::mem::take(&mut self.taken));
    }
}
