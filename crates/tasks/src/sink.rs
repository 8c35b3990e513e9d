//! The task by which results leave: blocks become Arrow batches, and batches go to a [`SinkWriter`].

use std::collections::VecDeque;
use std::sync::Arc;

use penstock_memory::edge::{EdgeGauge, EdgeNext, EdgeRows};
use penstock_memory::{EdgeReader, Exporter, Parcel, Physical, Run, Signal, SlotId};
use penstock_operators::HeldRows;
use penstock_progress::NEVER;
use penstock_queue::wake::Wake;
use penstock_queue::wanted::Wanted;
use penstock_scheduler::Profile;

use crate::account::Latencies;
use crate::clock::{Clock, elapsed_ns};
use crate::context::Context;
use crate::error::RunError;
use crate::outlet::FlushRequest;
use crate::step::{BlockedOn, Numbers, Step, Task};
use crate::waker::Waker;
use crate::writers::SinkWriter;

/// What a sink is made of.
pub struct SinkParts {
    /// The number of the output.
    pub output: usize,
    /// Reads the last edge.
    pub reader: EdgeReader,
    /// How the columns of the edge are stored.
    pub stored: Vec<Physical>,
    /// Makes Arrow of the first columns of the edge, in order.
    pub exporter: Exporter,
    /// How many columns a result has. The time that others ask for comes after them.
    pub columns: usize,
    /// Where results go.
    pub writer: Box<dyn SinkWriter>,
    /// Wakes the writer of the edge when memory that results were in has left its account.
    pub room: Arc<Wanted>,
    /// How the task before says that it has no room.
    pub flush: Arc<FlushRequest>,
    /// What it did.
    pub profile: Arc<Profile>,
}

/// The last task.
pub struct Sink {
    reader: EdgeReader,
    gauge: EdgeGauge,
    /// Scratch for rows that come one by one, and the slots of the edge's columns in it.
    run: Run,
    slots: Vec<SlotId>,
    /// Which column of the edge each column of the result is.
    columns: Vec<usize>,
    exporter: Exporter,
    writer: Box<dyn SinkWriter>,
    output: usize,
    flush: Arc<FlushRequest>,
    room: Arc<Wanted>,
    waiting: VecDeque<Parcel>,
    /// Rows handed out.
    delivered: u64,
    profile: Arc<Profile>,
    has_ended: bool,
    watermark: i64,
}

impl Sink {
    /// A sink made of those parts, which `waker` wakes.
    pub fn new(parts: SinkParts, waker: &Arc<dyn Waker>) -> Self {
        let SinkParts { output, reader, stored, exporter, columns, mut writer, room, flush, profile } = parts;
        let mut run = Run::new();
        let slots = stored.into_iter().map(|physical| run.add_slot(physical)).collect();
        let room_waker: Arc<dyn Wake> = Arc::clone(&room) as _;
        writer.connect(waker, &room_waker);
        Self {
            gauge: reader.gauge(),
            reader,
            run,
            slots,
            columns: (0..columns).collect(),
            exporter,
            writer,
            output,
            flush,
            room,
            waiting: VecDeque::new(),
            delivered: 0,
            profile,
            has_ended: false,
            watermark: NEVER,
        }
    }

    /// Takes what there is. Rows to which more may be added in their block are better left, to be handed out together,
    /// unless the writer wants partial batches or the task before has no room.
    fn take(&mut self, context: &Context) -> Result<Step, RunError> {
        let clock = context.clock();
        let started_ns = clock.system_ns();
        let wants_partial = self.writer.wants_partial_batches();
        let is_pressed = self.flush.take();
        let pending = self.reader.pending();
        let rows = match self.reader.peek(usize::MAX) {
            EdgeNext::Rows(rows) if self.writer.only_counts() => rows.len(),
            EdgeNext::Rows(EdgeRows::Lease(lease)) => {
                let may_grow = pending <= lease.rows() as u64 && !lease.ends_block();
                // A signal after them, such as the end, waits until they have gone.
                let is_wanted = wants_partial || is_pressed || self.gauge.work().signals > 0;
                if may_grow && !is_wanted {
                    return Ok(Step::Idle);
                }
                self.exporter.take(&lease, &self.columns)?;
                lease.rows()
            }
            EdgeNext::Rows(rows) => {
                let count = rows.len();
                rows.begin(&mut self.run, &self.slots);
                self.run.ready(&self.slots);
                let columns: Vec<_> =
                    self.columns.iter().map(|&column| self.run.column(self.slots[column])).collect();
                self.exporter.append(&columns, count)?;
                count
            }
            EdgeNext::Watermark(watermark) => {
                self.reader.pass();
                self.watermark = self.watermark.max(watermark);
                return Ok(Step::Worked(0));
            }
            EdgeNext::Signal(signal) => {
                self.reader.pass();
                self.note(signal, context)?;
                return Ok(Step::Worked(0));
            }
            EdgeNext::Nothing | EdgeNext::Closed => {
                return if wants_partial { self.serve() } else { Ok(Step::Idle) };
            }
        };
        self.reader.advance(rows);
        self.profile.record(rows, rows, elapsed_ns(clock, started_ns));
        self.waiting.extend(self.exporter.take_parcels());
        self.hand_out()?;
        Ok(Step::Worked(rows))
    }

    fn note(&mut self, signal: Signal, context: &Context) -> Result<(), RunError> {
        let (account, clock) = (context.account(), context.clock());
        match signal {
            Signal::Marker { sent_ns } => {
                account.sink_latency.record(elapsed_ns(clock, sent_ns));
                self.record_latency(sent_ns, &account.event_latency, clock);
            }
            Signal::Results { due_ns } => self.record_latency(due_ns, &account.output_latency, clock),
            Signal::Arrival { .. } | Signal::Judge { .. } | Signal::Idle => {}
            Signal::End => {
                self.has_ended = true;
                if let Some(state) = context.state() {
                    state.keep_output(self.output, self.watermark);
                }
                // Everything that was taken, however little it is.
                self.seal()?;
                self.hand_out()?;
            }
        }
        Ok(())
    }

    /// Records the time from `since_ns` until the rows up to here have been handed over.
    fn record_latency(&mut self, since_ns: u64, latencies: &Arc<Latencies>, clock: &dyn Clock) {
        let held = self.waiting.len() as u64 + u64::from(self.exporter.holds_rows());
        self.writer.record_latency(since_ns, held, latencies, clock);
    }

    /// Hands batches out. Returns true if none is left.
    fn hand_out(&mut self) -> Result<bool, RunError> {
        while let Some(parcel) = self.waiting.pop_front() {
            let rows = parcel.batch().num_rows() as u64;
            if let Some(back) = self.writer.write(parcel)? {
                self.waiting.push_front(back);
                return Ok(false);
            }
            self.delivered += rows;
            self.room.wake();
        }
        Ok(true)
    }

    /// Makes batches of what was taken so far.
    fn seal(&mut self) -> Result<(), RunError> {
        self.exporter.seal()?;
        self.waiting.extend(self.exporter.take_parcels());
        Ok(())
    }

    /// Hands out what was taken so far, since nothing follows for now.
    fn serve(&mut self) -> Result<Step, RunError> {
        self.seal()?;
        if self.waiting.is_empty() {
            return Ok(Step::Idle);
        }
        Ok(if self.hand_out()? { Step::Worked(0) } else { Step::Blocked })
    }

    /// Returns the rows taken in so far.
    fn rows(&self) -> u64 {
        self.profile.read().rows_in
    }
}

impl Task for Sink {
    fn step(&mut self, context: &Context) -> Result<Step, RunError> {
        if !self.hand_out()? {
            return Ok(Step::Blocked);
        }
        if self.has_ended {
            return Ok(if self.writer.flush()? { Step::Done } else { Step::Blocked });
        }
        self.take(context)
    }

    fn numbers(&self, _now_ns: u64) -> Numbers {
        let (rows, is_waiting) = (self.rows(), !self.waiting.is_empty());
        let held = if self.writer.only_counts() { 0 } else { rows.saturating_sub(self.delivered) };
        Numbers {
            rows_in: rows,
            rows_out: rows,
            blocked_ns: 0,
            is_blocked: is_waiting,
            blocked_on: BlockedOn::Room,
            is_unfinished: is_waiting,
            held: HeldRows { rows: held, sessions: 0 },
        }
    }

    fn output(&self) -> Option<usize> {
        Some(self.output)
    }
}
