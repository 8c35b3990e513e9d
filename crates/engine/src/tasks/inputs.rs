//! Where the rows of a task come from: a source, or any number of edges, read in turn.

use std::sync::Arc;

use penstock_memory::{EdgeReader, SlotId};
use penstock_progress::NEVER;
use penstock_scheduler::{Arrivals, Profile};

use crate::tasks::account::SourceCounts;
use crate::tasks::parallel::{Part, WayOut};
use crate::tasks::share::Share;
use crate::tasks::shared::Lag;
use crate::tasks::source::Source;

/// One input of a task.
pub enum Input {
    /// A stream.
    Source(Box<Source>),
    /// What another task writes.
    Edge(Box<Inlet>),
    /// Parts of the state of a lane.
    Parts(WayOut<Part>),
    /// A shared source that goes on without the query, which was drained: its reader is gone, so that the source does not
    /// wait for it.
    Left,
}

/// An edge as input: its columns fill the slots.
pub struct Inlet {
    /// Reads the edge.
    pub reader: EdgeReader,
    /// The slots that its columns fill.
    pub slots: Vec<SlotId>,
    /// When its rows arrived.
    arrivals: Arc<Arrivals>,
    /// Rows of the run at hand, which the reader lets go of when they have left the task.
    pub taken: usize,
    /// The watermark that rows are judged by, where rows of several sources come by this edge.
    pub judge: Option<i64>,
    /// What is known of the shared source that writes the edge, if one does.
    pub shared: Option<SharedInlet>,
    /// The rows that are taken, where others take the rest.
    pub share: Option<Box<Share>>,
    /// Rows that are still taken, once the query is drained: those that its shared source had read by then.
    pub last: Option<u64>,
}

/// What a query knows of the shared source that it reads.
pub struct SharedInlet {
    /// What it has read.
    pub profile: Arc<Profile>,
    /// What it counts.
    pub counts: Arc<SourceCounts>,
    /// How the source asks it for something.
    pub lag: Arc<Lag>,
}

impl Inlet {
    /// An edge that fills these slots. Where it is `mixed`, rows of several sources come by it.
    pub fn new(
        (reader, arrivals): (EdgeReader, Arc<Arrivals>),
        slots: Vec<SlotId>,
        mixed: bool,
        shared: Option<SharedInlet>,
    ) -> Self {
        let judge = mixed.then_some(NEVER);
        Self { reader, slots, arrivals, taken: 0, judge, shared, share: None, last: None }
    }

    /// Returns the watermark of their own source just before the rows that come next.
    pub fn watermark(&self) -> i64 {
        self.judge.unwrap_or_else(|| self.reader.watermark())
    }

    /// Returns when the rows that come next arrived, where that is known.
    pub fn arrived_ns(&self) -> Option<u64> {
        self.arrivals.next_ns(|| self.reader.pending())
    }

    /// Lets go of the rows at hand.
    pub fn release(&mut self) {
        self.reader.advance(std::mem::take(&mut self.taken));
    }
}
