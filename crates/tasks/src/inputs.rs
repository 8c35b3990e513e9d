//! Where the rows of a task come from: a source, or any number of edges, read in turn.

use std::sync::Arc;

use penstock_memory::{EdgeReader, SlotId};
use penstock_progress::NEVER;
use penstock_scheduler::Arrivals;

use crate::parallel::{Handover, WayOut};
use crate::share::Share;
use crate::source::Source;

/// One input of a task.
pub enum Input {
    /// A stream.
    Source(Box<Source>),
    /// What another task writes.
    Edge(Box<Inlet>),
    /// Parts of the state of a lane.
    Parts(WayOut<Handover>),
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
    /// The rows that are taken, where others take the rest.
    pub share: Option<Box<Share>>,
}

impl Inlet {
    /// An edge that fills these slots. Where it is `mixed`, rows of several sources come by it.
    pub fn new((reader, arrivals): (EdgeReader, Arc<Arrivals>), slots: Vec<SlotId>, mixed: bool) -> Self {
        let judge = mixed.then_some(NEVER);
        Self { reader, slots, arrivals, taken: 0, judge, share: None }
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
