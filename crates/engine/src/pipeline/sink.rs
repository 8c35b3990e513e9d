//! Where results leave: blocks become Arrow batches, and batches go to whoever takes them.

use std::collections::VecDeque;
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
    pub(super) waiting: VecDeque<RecordBatch>,
    pub(super) profile: Profile,
    pub(super) latency: Latency,
    pub(super) started: Instant,
    pub(super) ended: bool,
}

impl Sink {
    /// Takes what there is. Rows to which more may be added in their block are taken only in a hurry: otherwise they are
    /// better left, to be handed out together.
    pub(super) fn step(&mut self, hurry: bool) -> Result<Step, RunError> {
        if !self.hand_out() {
            return Ok(Step::Blocked);
        }
        if self.ended {
            return Ok(Step::Idle);
        }
        let started = Instant::now();
        let pending = self.reader.pending();
        let rows = match self.reader.peek(usize::MAX) {
            Next::Rows(Rows::Lease(lease)) => {
                let may_grow = pending <= lease.rows() as u64 && !lease.ends_block();
                if may_grow && !hurry {
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
        self.waiting.extend(self.exporter.take_finished());
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
                self.ended = true;
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Hands batches out. Whether none is left.
    fn hand_out(&mut self) -> bool {
        while let Some(batch) = self.waiting.pop_front() {
            if let Some(back) = self.deliver.deliver(batch) {
                self.waiting.push_front(back);
                return false;
            }
        }
        true
    }

    /// Hands out everything that was taken, however little it is. Whether none is left.
    pub(super) fn flush(&mut self) -> Result<bool, RunError> {
        self.exporter.seal()?;
        self.waiting.extend(self.exporter.take_finished());
        Ok(self.hand_out())
    }

    /// Whether everything has been handed out, to the last row.
    pub(super) fn is_done(&self) -> bool {
        self.ended && self.waiting.is_empty()
    }
}
