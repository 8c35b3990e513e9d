//! An operator with state inside a task, and the stateless operators after it.
//!
//! - `late`: where late rows leave; `map`: functions of the user's

mod late;
mod map;

use std::sync::Arc;

use penstock_memory::coordinator::StateAccount;
use penstock_memory::{Run, Signal};
use penstock_operators::{HeldRows, Stateful};
use penstock_progress::NEVER;
use penstock_scheduler::Profile;
use penstock_scheduler::profile::Counter;
use penstock_types::{ComputeError, PlanError};

pub use late::LateWay;
pub use map::{MappedTime, Mapper};

use crate::account::LateCount;
use crate::chain::Chain;
use crate::charge::Charged;
use crate::checkpoint::{OperatorState, StateStore};
use crate::clock::{Clock, elapsed_ns};
use crate::context::Context;
use crate::error::RunError;
use crate::functions::{FunctionToken, Token};
use crate::outlet::Due;
use crate::rejects::Rejects;

/// What takes runs in and gives others out.
pub enum Inside {
    /// An operator with state.
    Stateful(Box<dyn Stateful>),
    /// A function of the user's.
    Map(Box<Mapper>),
}

/// An operator that takes runs in and gives others out.
pub struct Keyed {
    name: &'static str,
    operator: Inside,
    /// The watermark that the rows at hand are judged by.
    judge: Option<i64>,
    profile: Arc<Profile>,
    /// Rows that came in by each port.
    port_rows: Vec<Arc<Counter>>,
    /// Rows of each port that were late.
    late_counts: Vec<Arc<LateCount>>,
    /// Rows that the function rejected.
    rejected: Arc<Counter>,
    state: StateAccount,
    tail: Chain,
    /// Rows that go through the operators after it at a time.
    rows_per_run: usize,
    /// When the watermark arrived that has closed what is being emitted.
    due_ns: Option<u64>,
    late: Option<LateWay>,
    closing: Option<Closing>,
    restored: Option<Restored>,
}

/// An operator whose state is kept from one part of the input to the next.
struct Restored {
    number: usize,
    /// The watermark: at least the one that was restored.
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
    /// The watermark that it has closed them with.
    watermark: i64,
    count: Arc<Counter>,
}

/// What is counted of an operator.
#[derive(Clone)]
pub struct KeyedCounts {
    /// What it did.
    pub profile: Arc<Profile>,
    /// Rows that came in by each port.
    pub port_rows: Vec<Arc<Counter>>,
    /// Those of them that were late.
    pub late: Vec<Arc<LateCount>>,
    /// Rows that it rejected.
    pub rejected: Arc<Counter>,
    /// How often windows were closed by the clock.
    pub closings: Arc<Counter>,
}

impl Keyed {
    /// Puts an operator in front of the operators in `tail`.
    pub fn new(
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
            restored: None,
        }
    }

    /// Restores the state of the operator of that number, and keeps it at the end.
    ///
    /// # Errors
    /// State that the operator cannot use.
    pub fn restore(&mut self, state: &dyn StateStore, number: usize) -> Result<(), PlanError> {
        let Inside::Stateful(operator) = &mut self.operator else { return Ok(()) };
        let watermark = state.restore_operator(number, &mut **operator)?;
        self.restored = Some(Restored { number, watermark });
        Ok(())
    }

    /// Notes when the rows arrived that come next.
    pub fn note_arrival(&self, at_ns: u64) {
        if let Some(late) = &self.late {
            late.outlet.note_arrival(at_ns);
        }
    }

    /// Takes a run in, whole.
    ///
    /// # Errors
    /// A value that cannot be computed, or state that does not fit the budget.
    pub fn consume(
        &mut self,
        port: usize,
        run: &mut Run,
        clock: &dyn Clock,
        rejects: Option<&mut Rejects>,
    ) -> Result<(), RunError> {
        let rows = run.len();
        if rows == 0 {
            return Ok(());
        }
        let started_ns = clock.system_ns();
        if let Some(closing) = &mut self.closing {
            closing.since_ns = Some(clock.now_ns());
        }
        let mut rejected = 0;
        match &mut self.operator {
            Inside::Stateful(operator) => {
                if let Some(late) = &mut self.late {
                    late.take(&**operator, port, run, clock);
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
        self.profile.record(rows, 0, elapsed_ns(clock, started_ns));
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

    /// Advances the watermark, which was read off rows that arrived at `arrived_ns`. Returns the watermark after the
    /// operator.
    pub fn advance(&mut self, watermark: i64, arrived_ns: u64) -> i64 {
        let mut watermark =
            self.closing.as_ref().map_or(watermark, |closing| closing.watermark.max(watermark));
        if let Some(restored) = &mut self.restored {
            restored.watermark = restored.watermark.max(watermark);
            watermark = restored.watermark;
        }
        let Inside::Stateful(operator) = &mut self.operator else { return watermark };
        operator.advance(watermark);
        if operator.has_output() {
            self.due_ns.get_or_insert(arrived_ns);
        }
        operator.output_watermark(watermark)
    }

    /// Takes in the state of a lane, with its charge.
    ///
    /// # Errors
    /// State that does not fit the budget.
    pub fn merge(
        &mut self,
        state: Box<dyn Stateful>,
        charged: Charged,
        clock: &dyn Clock,
    ) -> Result<(), RunError> {
        let Inside::Stateful(operator) = &mut self.operator else { unreachable!("only state is merged") };
        let started_ns = clock.system_ns();
        operator.merge(state);
        charged.merge_into(&mut self.state);
        self.profile.record(0, 0, elapsed_ns(clock, started_ns));
        self.charge()
    }

    /// Takes what it needs to go on: to call a function, the token for the interpreter. Without it (`None`), the task is
    /// woken later.
    pub fn token(&mut self, functions: &Arc<FunctionToken>) -> Option<Option<Token>> {
        match &mut self.operator {
            Inside::Stateful(_) => Some(None),
            Inside::Map(mapper) => mapper.token(functions).map(Some),
        }
    }

    /// Stops waiting for the token, since it has something else to do.
    pub fn leave_token(&mut self) {
        if let Inside::Map(mapper) = &mut self.operator {
            mapper.leave_token();
        }
    }

    /// Returns when windows close by the clock, if no row comes before.
    pub fn closes_ns(&self) -> Option<u64> {
        let closing = self.closing.as_ref()?;
        Some(closing.since_ns?.saturating_add(closing.after_ns))
    }

    /// Closes windows by the clock. Returns the watermark after the operator, if it had open windows.
    pub fn close(&mut self) -> Option<i64> {
        let closing = self.closing.as_mut()?;
        closing.since_ns = None;
        let Inside::Stateful(operator) = &mut self.operator else { return None };
        let watermark = operator.close_open()?;
        closing.watermark = closing.watermark.max(watermark);
        closing.count.add(1);
        Some(operator.output_watermark(closing.watermark))
    }

    /// Ends the input: no row follows, or none in this part of it.
    pub fn finish(&mut self, context: &Context) {
        if let Inside::Stateful(operator) = &mut self.operator {
            match (&self.restored, context.state()) {
                (Some(Restored { number, watermark }), Some(state)) if state.pauses() => {
                    let kept = OperatorState { watermark: *watermark, snapshot: operator.snapshot() };
                    state.keep_operator(*number, kept);
                }
                _ => operator.finish(),
            }
        }
        if let Some(late) = &mut self.late {
            late.outlet.push(Due::Signal(Signal::End));
        }
    }

    /// Returns true if there are results to emit.
    pub fn has_output(&self) -> bool {
        match &self.operator {
            Inside::Stateful(operator) => operator.has_output(),
            Inside::Map(mapper) => mapper.has_output(),
        }
    }

    /// Returns what it has taken in and not given out.
    pub fn held(&self) -> HeldRows {
        match &self.operator {
            Inside::Stateful(operator) => operator.held(),
            Inside::Map(_) => HeldRows::default(),
        }
    }

    /// Returns when what was emitted last was due, once.
    pub fn take_due(&mut self) -> Option<u64> {
        self.due_ns.take()
    }

    /// Makes a run of results, and passes it through the operators after it.
    ///
    /// # Errors
    /// A value that cannot be computed, or state that does not fit the budget.
    pub fn emit(
        &mut self,
        room: usize,
        clock: &dyn Clock,
        mut rejects: Option<&mut Rejects>,
    ) -> Result<usize, RunError> {
        let started_ns = clock.system_ns();
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
        self.profile.emitted(rows, elapsed_ns(clock, started_ns));
        self.charge()?;
        self.tail.process(clock, rejects)?;
        Ok(rows)
    }

    /// Returns the results at hand.
    pub fn results(&self) -> &Run {
        &self.tail.run
    }

    /// Returns the results at hand, to be written.
    pub fn results_mut(&mut self) -> &mut Run {
        &mut self.tail.run
    }

    /// Returns true if late rows that have begun to leave are still here.
    pub fn is_writing_late(&self) -> bool {
        self.late.as_ref().is_some_and(|late| late.outlet.is_writing())
    }

    /// Writes as many of them as there is room for. Returns true if all have left.
    pub fn write_late(&mut self, clock: &dyn Clock) -> bool {
        self.late.as_mut().is_none_or(|late| late.outlet.write(&late.run, clock))
    }

    /// Sends what is due after late rows. Returns true if all of it has left.
    pub fn send_late_due(&mut self, clock: &dyn Clock) -> bool {
        self.late.as_mut().is_none_or(|late| !late.outlet.has_due() || late.outlet.send_due(clock))
    }

    /// Returns true if late rows wait for room.
    pub fn is_late_blocked(&self) -> bool {
        self.late.as_ref().is_some_and(|late| late.outlet.is_blocked())
    }
}
