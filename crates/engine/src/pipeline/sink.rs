//! Where results leave: blocks become Arrow batches, and batches go to whoever takes them.

use std::time::Instant;

use arrow_array::RecordBatch;
use penstock_memory::edge::{Next, Rows};
use penstock_memory::{EdgeReader, Exporter, Run, Signal, SlotId};
use penstock_scheduler::Profile;

use super::chain::elapsed_ns;
use super::task::Step;
use crate::error::RunError;
use crate::output::Latency;

/// Takes result batches.
pub trait Deliver: Send {
    /// Takes a batch, or gives it back when it has to wait. Whoever gives one back wakes the pipeline later.
    fn deliver(&mut self, batch: RecordBatch) -> Option<RecordBatch>;
}

/// Signals that may wait behind rows of a block that is not full: well below what a log has room for.
const PATIENCE: u64 = 64;

/// The last task.
pub(super) struct Sink {
    pub(super) reader: EdgeReader,
    /// Scratch for rows that come one by one, and the slots of the edge's columns in it.
    pub(super) run: Run,
    pub(super) slots: Vec<SlotId>,
    /// Which column of the edge each column of the result is.
    pub(super) columns: Vec<usize>,
    pub(super) exporter: Exporter,
    pub(super) deliver: Box<dyn Deliver>,
    pub(super) waiting: Vec<RecordBatch>,
    pub(super) profile: Profile,
    pub(super) latency: Latency,
    pub(super) started: Instant,
    pub(super) ended: bool,
}

impl Sink {
    /// Takes what there is. Rows of a block that is not full are taken only in a hurry, or when many signals wait behind
    /// them: otherwise they are better left until the block can be handed out as it stands.
    pub(super) fn step(&mut self, hurry: bool) -> Result<Step, RunError> {
        if !self.hand_out() {
            return Ok(Step::Blocked);
        }
        if self.ended {
            return Ok(Step::Idle);
        }
        let started = Instant::now();
        let hurry = hurry || self.reader.signals_waiting() > PATIENCE;
        let rows = match self.reader.peek(usize::MAX) {
            Next::Rows(Rows::Lease(lease)) => {
                if !hurry && !lease.is_whole_block() {
                    return Ok(Step::Idle);
                }
                self.exporter.take(&lease, &self.columns)?;
                lease.rows()
            }
            Next::Rows(rows) => {
                rows.begin(&mut self.run, &self.slots);
                self.run.ready(&self.slots);
                let columns: Vec<_> =
                    self.columns.iter().map(|&column| self.run.column(self.slots[column])).collect();
                self.exporter.append(&columns, 1)?;
                1
            }
            Next::Watermark(_) => {
                self.reader.pass();
                return Ok(Step::Worked);
            }
            Next::Signal(signal) => {
                self.reader.pass();
                self.note(signal)?;
                return Ok(Step::Worked);
            }
            Next::Nothing | Next::Closed => return Ok(Step::Idle),
        };
        self.reader.advance(rows);
        self.profile.record(rows, rows, elapsed_ns(started));
        self.waiting = self.exporter.take_finished();
        self.hand_out();
        Ok(Step::Worked)
    }

    fn note(&mut self, signal: Signal) -> Result<(), RunError> {
        match signal {
            Signal::Marker { sent_ns } => {
                self.latency.record(elapsed_ns(self.started).saturating_sub(sent_ns))
            }
            Signal::Arrival { .. } => {}
            Signal::End => {
                self.exporter.seal()?;
                self.waiting.extend(self.exporter.take_finished());
                self.ended = true;
                self.hand_out();
            }
        }
        Ok(())
    }

    /// Hands batches out. Whether none is left.
    fn hand_out(&mut self) -> bool {
        while !self.waiting.is_empty() {
            let batch = self.waiting.remove(0);
            if let Some(back) = self.deliver.deliver(batch) {
                self.waiting.insert(0, back);
                return false;
            }
        }
        true
    }

    /// Whether everything has been handed out, to the last row.
    pub(super) fn is_done(&self) -> bool {
        self.ended && self.waiting.is_empty()
    }
}
