//! An operator with state inside a task, and the operators behind it.

use std::sync::Arc;
use std::time::Instant;

use penstock_memory::coordinator::StateAccount;
use penstock_memory::{ColumnBuf, Run, Signal, SlotId};
use penstock_operators::{Held, Stateful};
use penstock_progress::NEVER;
use penstock_scheduler::Profile;
use penstock_scheduler::profile::Counter;
use penstock_types::{ComputeError, PlanError};

use super::chain::{Chain, elapsed_ns};
use super::map::Mapper;
use super::outlet::{Due, Outlet};
use super::parallel::Charged;
use super::rejects::Rejects;
use super::token::Token;
use crate::clock::Timepiece;
use crate::error::RunError;
use crate::query::account::LateCount;
use crate::standing::Part;

/// Where rows go that come too late.
pub(super) struct LateWay {
    outlet: Outlet,
    /// The slots of the rows that go there.
    from: Vec<SlotId>,
    /// Copies of the rows on their way, column by column.
    run: Run,
    rows: Vec<u32>,
}

impl LateWay {
    /// Rows leave by `outlet`, whose columns are in these slots of what comes in.
    pub(super) fn new(outlet: Outlet, from: Vec<SlotId>, run: Run) -> Self {
        Self { outlet, from, run, rows: Vec::new() }
    }

    /// Copies the late rows of a run, and lets them leave.
    fn take(&mut self, operator: &dyn Stateful, port: usize, run: &mut Run) {
        self.rows.clear();
        operator.late_rows(port, run, &mut self.rows);
        if self.rows.is_empty() {
            return;
        }
        run.ready(&self.from);
        self.run.begin_owned(self.rows.len());
        for (slot, &from) in self.from.iter().enumerate() {
            let column = run.column(from);
            let mut copied = ColumnBuf::new(column.values.physical());
            copied.gather(column, &self.rows);
            self.run.put(slot, copied);
        }
        self.outlet.begin(&mut self.run);
        self.outlet.write(&self.run);
    }
}

/// What takes runs in and gives others out.
pub(super) enum Inside {
    /// An operator with state.
    Stateful(Box<dyn Stateful>),
    /// A function from outside.
    Map(Box<Mapper>),
}

/// An operator that takes runs in and gives others out.
pub(super) struct Keyed {
    name: &'static str,
    operator: Inside,
    /// The watermark that the rows at hand are judged by.
    judge: Option<i64>,
    profile: Arc<Profile>,
    /// Rows that came in by each port.
    port_rows: Vec<Arc<Counter>>,
    /// Rows of each port that were late.
    late_counts: Vec<Arc<LateCount>>,
    /// Rows that the function from outside had no answer for.
    rejected: Arc<Counter>,
    state: StateAccount,
    tail: Chain,
    /// Rows that go through the operators behind it at a time.
    rows_per_run: usize,
    /// When the watermark arrived that has closed what is being emitted.
    due_ns: Option<u64>,
    late: Option<LateWay>,
    closing: Option<Closing>,
    resumed: Option<Resumed>,
}

/// An operator that goes on where another run has stopped.
struct Resumed {
    part: Part,
    number: usize,
    /// How far event time has come: at least as far as it had then.
    watermark: i64,
}

fn failed(name: &str, error: ComputeError) -> RunError {
    RunError::Compute { operator: name.to_owned(), error }
}

/// Windows that close by the clock.
struct Closing {
    after_ns: u64,
    /// When rows came last, as long as there is something to close.
    since_ns: Option<u64>,
    /// How far event time has been taken to have come.
    watermark: i64,
    count: Arc<Counter>,
}

/// What is counted of an operator.
#[derive(Clone)]
pub(super) struct KeyedCounts {
    pub(super) profile: Arc<Profile>,
    pub(super) port_rows: Vec<Arc<Counter>>,
    pub(super) late: Vec<Arc<LateCount>>,
    pub(super) rejected: Arc<Counter>,
    pub(super) closings: Arc<Counter>,
}

impl Keyed {
    pub(super) fn new(
        (name, operator): (&'static str, Inside),
        counts: KeyedCounts,
        state: StateAccount,
        tail: Chain,
        rows_per_run: usize,
        (late, close_after_ns): (Option<LateWay>, Option<u64>),
    ) -> Self {
        let KeyedCounts { profile, port_rows, late: late_counts, rejected, closings: count } = counts;
        let closing =
            close_after_ns.map(|after_ns| Closing { after_ns, since_ns: None, watermark: NEVER, count });
        Self {
            name,
            operator,
            judge: None,
            profile,
            port_rows,
            late_counts,
            rejected,
            state,
            tail,
            rows_per_run,
            due_ns: None,
            late,
            closing,
            resumed: None,
        }
    }

    /// Goes on where the part of the input before this one has ended. It is the operator of that number.
    pub(super) fn resume(&mut self, part: &Part, number: usize) -> Result<(), PlanError> {
        let Inside::Stateful(operator) = &mut self.operator else { return Ok(()) };
        let watermark = part.resume(number, &mut **operator)?;
        self.resumed = Some(Resumed { part: part.clone(), number, watermark });
        Ok(())
    }

    /// The rows that come next arrived then.
    pub(super) fn note_arrival(&self, at_ns: u64) {
        if let Some(late) = &self.late {
            late.outlet.note_arrival(at_ns);
        }
    }

    /// Takes a run in, whole.
    pub(super) fn consume(
        &mut self,
        port: usize,
        run: &mut Run,
        clock: &Timepiece,
        rejects: Option<&mut Rejects>,
    ) -> Result<(), RunError> {
        let rows = run.len();
        if rows == 0 {
            return Ok(());
        }
        let started = Instant::now();
        if let Some(closing) = &mut self.closing {
            closing.since_ns = Some(clock.now_ns());
        }
        let mut rejected = 0;
        match &mut self.operator {
            Inside::Stateful(operator) => {
                if let Some(late) = &mut self.late {
                    late.take(&**operator, port, run);
                }
                let before = operator.late().rows;
                operator.consume(port, run).map_err(|error| failed(self.name, error))?;
                self.late_counts[port].note(before, operator.late());
            }
            Inside::Map(mapper) => {
                self.judge = run.watermark();
                rejected = mapper.consume(run, rejects)?;
            }
        }
        self.port_rows[port].add(rows as u64 - rejected);
        self.rejected.add(rejected);
        self.profile.record(rows, 0, elapsed_ns(started));
        self.charge()
    }

    /// Charges the budget for the state. Never makes it wait: without input no window would ever close.
    fn charge(&mut self) -> Result<(), RunError> {
        let Inside::Stateful(operator) = &self.operator else { return Ok(()) };
        let bytes = operator.bytes();
        self.state.set(bytes).map_err(|limit| RunError::MemoryLimit {
            operator: self.name.to_owned(),
            bytes,
            limit,
        })
    }

    /// Event time has come so far; the rows that say so arrived at `arrived_ns`. How far it has come behind the operator.
    pub(super) fn advance(&mut self, watermark: i64, arrived_ns: u64) -> i64 {
        let mut watermark =
            self.closing.as_ref().map_or(watermark, |closing| closing.watermark.max(watermark));
        if let Some(resumed) = &mut self.resumed {
            resumed.watermark = resumed.watermark.max(watermark);
            watermark = resumed.watermark;
        }
        let Inside::Stateful(operator) = &mut self.operator else { return watermark };
        operator.advance(watermark);
        if operator.has_output() {
            self.due_ns.get_or_insert(arrived_ns);
        }
        operator.watermark_behind(watermark)
    }

    /// Takes in the state of a lane, with its charge.
    pub(super) fn merge(&mut self, state: Box<dyn Stateful>, charged: Charged) -> Result<(), RunError> {
        let Inside::Stateful(operator) = &mut self.operator else { unreachable!("only state is merged") };
        let started = Instant::now();
        operator.merge(state);
        charged.merge_into(&mut self.state);
        self.profile.record(0, 0, elapsed_ns(started));
        self.charge()
    }

    /// The right to go on: whoever calls a function needs that of the interpreter. Without it, the bell rings later.
    pub(super) fn token(&mut self) -> Option<Option<Token>> {
        match &mut self.operator {
            Inside::Stateful(_) => Some(None),
            Inside::Map(mapper) => mapper.token().map(Some),
        }
    }

    /// It does something else than wait for that right.
    pub(super) fn leave_token(&mut self) {
        if let Inside::Map(mapper) = &mut self.operator {
            mapper.leave_token();
        }
    }

    /// When windows close by the clock, if no row comes before.
    pub(super) fn closes_ns(&self) -> Option<u64> {
        let closing = self.closing.as_ref()?;
        Some(closing.since_ns?.saturating_add(closing.after_ns))
    }

    /// Closes windows by the clock. How far event time is taken to have come behind the operator, if it was open.
    pub(super) fn close(&mut self) -> Option<i64> {
        let closing = self.closing.as_mut()?;
        closing.since_ns = None;
        let Inside::Stateful(operator) = &mut self.operator else { return None };
        let watermark = operator.close_open()?;
        closing.watermark = closing.watermark.max(watermark);
        closing.count.add(1);
        Some(operator.watermark_behind(closing.watermark))
    }

    /// No row follows, or none in this run.
    pub(super) fn finish(&mut self) {
        if let Inside::Stateful(operator) = &mut self.operator {
            match &self.resumed {
                Some(Resumed { part, number, watermark, .. }) if part.pauses() => {
                    part.note_operator(*number, *watermark, operator.snapshot());
                }
                _ => operator.finish(),
            }
        }
        if let Some(late) = &mut self.late {
            late.outlet.push(Due::Signal(Signal::End));
        }
    }

    /// Whether there are results to emit.
    pub(super) fn has_output(&self) -> bool {
        match &self.operator {
            Inside::Stateful(operator) => operator.has_output(),
            Inside::Map(mapper) => mapper.has_output(),
        }
    }

    /// What it has taken in and not given out.
    pub(super) fn held(&self) -> Held {
        match &self.operator {
            Inside::Stateful(operator) => operator.held(),
            Inside::Map(_) => Held::default(),
        }
    }

    /// When what was emitted last was due, once.
    pub(super) fn take_due(&mut self) -> Option<u64> {
        self.due_ns.take()
    }

    /// Makes a run of results, and passes it through the operators behind.
    pub(super) fn emit(&mut self, room: usize, mut rejects: Option<&mut Rejects>) -> Result<usize, RunError> {
        let started = Instant::now();
        let (out, room) = (&mut self.tail.run, room.min(self.rows_per_run));
        let rows = match &mut self.operator {
            Inside::Stateful(operator) => {
                operator.emit(out, room).map_err(|error| failed(self.name, error))?
            }
            Inside::Map(mapper) => {
                let (rows, rejected) = mapper.emit(out, room, rejects.as_deref_mut())?;
                self.tail.rejected.add(rejected);
                if let Some(watermark) = self.judge {
                    out.note_watermark(watermark);
                }
                rows
            }
        };
        self.profile.emitted(rows, elapsed_ns(started));
        self.charge()?;
        self.tail.process(rejects)?;
        Ok(rows)
    }

    /// The results at hand.
    pub(super) fn results(&self) -> &Run {
        &self.tail.run
    }

    pub(super) fn results_mut(&mut self) -> &mut Run {
        &mut self.tail.run
    }

    /// Whether late rows that have begun to leave are still here.
    pub(super) fn is_writing_late(&self) -> bool {
        self.late.as_ref().is_some_and(|late| late.outlet.is_writing())
    }

    /// Writes as many of them as there is room for. Whether all have left.
    pub(super) fn write_late(&mut self) -> bool {
        self.late.as_mut().is_none_or(|late| late.outlet.write(&late.run))
    }

    /// Sends what is due behind late rows. Whether all of it has left.
    pub(super) fn send_late_due(&mut self) -> bool {
        self.late.as_mut().is_none_or(|late| !late.outlet.has_due() || late.outlet.send_due())
    }

    /// Whether late rows wait for room.
    pub(super) fn is_late_blocked(&self) -> bool {
        self.late.as_ref().is_some_and(|late| late.outlet.is_blocked())
    }
}
