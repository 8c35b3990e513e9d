//! Where results leave: blocks become Arrow batches, and batches go to whoever takes them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use penstock_memory::edge::{EdgeGauge, Next, Rows};
use penstock_memory::{EdgeReader, Exporter, Parcel, Run, Signal, SlotId};
use penstock_queue::wake::Wake;
use penstock_queue::wanted::Wanted;
use penstock_scheduler::Profile;

use super::task::Step;
use crate::clock::now_ns;
use crate::engine::bell::Bell;
use crate::error::RunError;
use crate::latency::Latencies;
use crate::query::state::State;
use crate::results::Results;
use crate::standing::Part;

/// Takes result batches.
pub trait Deliver: Send {
    /// Takes a batch, or gives it back when it has to wait. Whoever gives one back rings the [`Doorbell`] later.
    fn deliver(&mut self, batch: RecordBatch) -> Option<RecordBatch>;

    /// Whether few rows now are better than more of them later.
    fn is_hungry(&self) -> bool {
        true
    }
}

/// Tells a query that its [`Deliver`] may take a batch that it gave back.
#[derive(Clone, Default)]
pub struct Doorbell(Arc<Mutex<Option<Arc<Bell>>>>);

impl Doorbell {
    pub(crate) fn hang(&self, bell: &Arc<Bell>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(bell));
    }

    /// Rings.
    pub fn ring(&self) {
        let bell = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(bell) = bell {
            bell.ring();
        }
    }
}

/// Where results go.
pub(super) enum Taker {
    /// To a list that is handed over when the query has ended.
    Collected(Arc<Mutex<Vec<RecordBatch>>>),
    /// To whoever reads them.
    Results(Results),
    /// To the caller's own taker.
    Deliver(Box<dyn Deliver>),
    /// Nowhere.
    Nobody,
}

impl Taker {
    fn deliver(&mut self, parcel: Parcel) -> Option<Parcel> {
        match self {
            Self::Collected(batches) => {
                // Whoever wants all of it keeps it: it is the user's from now on.
                batches.lock().unwrap_or_else(PoisonError::into_inner).push(parcel.hand_out());
                None
            }
            Self::Results(results) => results.offer(parcel),
            Self::Deliver(deliver) => {
                deliver.deliver(parcel.batch().clone())?;
                Some(parcel)
            }
            Self::Nobody => None,
        }
    }

    fn is_hungry(&self) -> bool {
        match self {
            Self::Collected(_) => false,
            Self::Results(results) => results.is_empty(),
            Self::Deliver(deliver) => deliver.is_hungry(),
            Self::Nobody => true,
        }
    }
}

/// How the task before the sink says that it has no room.
pub(super) struct Press {
    pressed: AtomicBool,
    bell: Arc<Bell>,
}

impl Press {
    pub(super) fn new(bell: Arc<Bell>) -> Self {
        Self { pressed: AtomicBool::new(false), bell }
    }

    pub(super) fn press(&self) {
        self.pressed.store(true, Ordering::Release);
        self.bell.ring();
    }
}

/// The last task.
pub(crate) struct Sink {
    pub(super) reader: EdgeReader,
    pub(super) gauge: EdgeGauge,
    /// Scratch for rows that come one by one, and the slots of the edge's columns in it.
    pub(super) run: Run,
    pub(super) slots: Vec<SlotId>,
    /// Which column of the edge each column of the result is.
    pub(super) columns: Vec<usize>,
    pub(super) exporter: Exporter,
    pub(super) taker: Taker,
    /// The number of the output.
    pub(super) output: usize,
    pub(super) press: Arc<Press>,
    /// Wakes whoever writes the edge, when memory that results stood in has left its account.
    pub(super) room: Arc<Wanted>,
    pub(super) waiting: VecDeque<Parcel>,
    /// Rows handed out.
    pub(super) delivered: u64,
    pub(super) profile: Arc<Profile>,
    pub(super) ended: bool,
    /// How far event time has come.
    pub(super) watermark: i64,
    /// The part of the input that this is, and the number of the output.
    pub(super) part: Option<(Part, usize)>,
}

impl Sink {
    /// Takes what there is. Rows to which more may be added in their block are better left, to be handed out together,
    /// unless somebody is hungry for them or the task before has no room.
    pub(crate) fn step(&mut self, query: &State) -> Result<Step, RunError> {
        if !self.hand_out() {
            return Ok(Step::Blocked);
        }
        if self.ended {
            return Ok(Step::Done);
        }
        let started = now_ns();
        let hungry = self.taker.is_hungry();
        // Once for each time: a writer that still has no room after this step says so again.
        let pressed = self.press.pressed.swap(false, Ordering::AcqRel);
        let pending = self.reader.pending();
        let rows = match self.reader.peek(usize::MAX) {
            Next::Rows(rows) if matches!(self.taker, Taker::Nobody) => rows.len(),
            Next::Rows(Rows::Lease(lease)) => {
                let may_grow = pending <= lease.rows() as u64 && !lease.ends_block();
                // A signal behind them, such as the end, waits until they have gone.
                let wanted = hungry || pressed || self.gauge.work().signals > 0;
                if may_grow && !wanted {
                    return Ok(Step::Idle);
                }
                self.exporter.take(&lease, &self.columns)?;
                lease.rows()
            }
            Next::Rows(rows) => {
                let count = rows.len();
                rows.begin(&mut self.run, &self.slots);
                self.run.ready(&self.slots);
                let columns: Vec<_> =
                    self.columns.iter().map(|&column| self.run.column(self.slots[column])).collect();
                self.exporter.append(&columns, count)?;
                count
            }
            Next::Watermark(watermark) => {
                self.reader.pass();
                self.watermark = self.watermark.max(watermark);
                return Ok(Step::Worked(0));
            }
            Next::Signal(signal) => {
                self.reader.pass();
                self.note(signal, query)?;
                return Ok(Step::Worked(0));
            }
            Next::Nothing | Next::Closed => return if hungry { self.serve() } else { Ok(Step::Idle) },
        };
        self.reader.advance(rows);
        self.profile.record(rows, rows, now_ns() - started);
        self.waiting.extend(self.exporter.take_parcels());
        self.hand_out();
        Ok(Step::Worked(rows))
    }

    fn note(&mut self, signal: Signal, query: &State) -> Result<(), RunError> {
        let account = &query.account;
        match signal {
            Signal::Marker { sent_ns } => {
                account.sink_latency.record(now_ns().saturating_sub(sent_ns));
                self.record_latency(sent_ns, &account.event_latency);
            }
            Signal::Results { due_ns } => self.record_latency(due_ns, &account.output_latency),
            Signal::Arrival { .. } | Signal::Judge { .. } | Signal::Idle => {}
            Signal::End => {
                self.ended = true;
                if let Some((part, number)) = &self.part {
                    part.note_output(*number, self.watermark);
                }
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Records the time from `since_ns` until the rows up to here have been handed over.
    fn record_latency(&self, since_ns: u64, latencies: &Arc<Latencies>) {
        let held = self.waiting.len() as u64 + u64::from(self.exporter.holds_rows());
        match &self.taker {
            Taker::Results(results) => results.record_latency(since_ns, held, latencies),
            _ => latencies.record(now_ns().saturating_sub(since_ns)),
        }
    }

    /// Hands batches out. Whether none is left.
    fn hand_out(&mut self) -> bool {
        while let Some(parcel) = self.waiting.pop_front() {
            let rows = parcel.batch().num_rows() as u64;
            if let Some(back) = self.taker.deliver(parcel) {
                self.waiting.push_front(back);
                return false;
            }
            self.delivered += rows;
            self.room.wake();
        }
        true
    }

    /// Hands out what was taken so far, since nothing follows for now.
    fn serve(&mut self) -> Result<Step, RunError> {
        self.exporter.seal()?;
        self.waiting.extend(self.exporter.take_parcels());
        if self.waiting.is_empty() {
            return Ok(Step::Idle);
        }
        Ok(if self.hand_out() { Step::Worked(0) } else { Step::Blocked })
    }

    /// Hands out everything that was taken, however little it is.
    fn flush(&mut self) -> Result<(), RunError> {
        self.exporter.seal()?;
        self.waiting.extend(self.exporter.take_parcels());
        self.hand_out();
        Ok(())
    }

    /// Whether batches wait to be taken.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Rows taken in and not handed out.
    pub(crate) fn held_rows(&self) -> u64 {
        if matches!(self.taker, Taker::Nobody) { 0 } else { self.rows().saturating_sub(self.delivered) }
    }

    /// Rows taken in so far.
    pub(crate) fn rows(&self) -> u64 {
        self.profile.read().rows_in
    }
}
