//! A task: what runs without a pause, from the rows it takes in to the edge it writes to.
//!
//! A task takes one step at a time: a run, a watermark, a signal, or a piece of output that had no room before.
//!
//! T1. A step that has no room leaves everything as it is, and goes on from there the next time.
//! T2. Nothing is taken in while output of what came before is still here. What a window has closed leaves before the
//!     watermark that closed it.
//! T3. The end of the input is the last thing that leaves; then the task is done.

use std::sync::Arc;
use std::time::Instant;

use penstock_memory::coordinator::StateAccount;
use penstock_memory::edge::Next;
use penstock_memory::{EdgeReader, OpenError, Signal, SlotId};
use penstock_operators::WindowAggregate;
use penstock_queue::wake::Wake;
use penstock_scheduler::Profile;

use super::chain::{Chain, elapsed_ns};
use super::outlet::{Due, Outlet};
use super::source::{Poll, Source};
use crate::error::RunError;
use crate::query::account::{Operator, Role};
use crate::query::state::State;
use crate::share::Lag;

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Something was done, with so many rows; there may be more to do.
    Worked(usize),
    /// There is work, but no room for its output.
    Blocked,
    /// There is nothing to do now.
    Idle,
    /// There is nothing to do before that time.
    Until(u64),
    /// There will never be anything to do.
    Done,
}

/// Where the rows of a task come from.
pub(super) enum Input {
    Source(Source),
    Edge(Inlet),
}

/// An edge as input: its columns fill the slots.
pub(super) struct Inlet {
    pub(super) reader: EdgeReader,
    pub(super) slots: Vec<SlotId>,
    /// Rows of the run at hand, which the reader lets go of when they have left the task.
    pub(super) taken: usize,
    /// The other end is a shared source.
    pub(super) shared: Option<SharedInlet>,
}

/// What a query knows of the shared source that it reads.
pub(super) struct SharedInlet {
    pub(super) profile: Arc<Profile>,
    pub(super) lag: Arc<Lag>,
}

/// A window, and the operators behind it.
pub(super) struct Window {
    pub(super) operator: WindowAggregate,
    pub(super) profile: Arc<Profile>,
    pub(super) state: StateAccount,
    pub(super) tail: Chain,
    /// Rows that go through the operators behind it at a time.
    pub(super) rows_per_run: usize,
    /// When the watermark arrived that has closed what is being emitted.
    pub(super) due_ns: Option<u64>,
}

/// A task.
pub(crate) struct Task {
    pub(super) input: Input,
    pub(super) head: Chain,
    pub(super) window: Option<Box<Window>>,
    pub(super) outlet: Outlet,
    /// Whether the end of the input has come.
    pub(super) ended: bool,
    /// Rows taken in, and when the last of them arrived.
    pub(super) rows: u64,
    pub(super) arrived_ns: u64,
}

impl Task {
    /// Does one thing.
    pub(crate) fn step(&mut self, query: &State) -> Result<Step, RunError> {
        if let Input::Edge(Inlet { shared: Some(shared), .. }) = &self.input
            && shared.lag.take_request()
        {
            self.shed(query);
        }
        if self.outlet.is_writing() {
            return Ok(self.write());
        }
        if self.window.as_ref().is_some_and(|window| window.operator.has_closed()) {
            return self.emit();
        }
        if let Some(due_ns) = self.window.as_mut().and_then(|window| window.due_ns.take()) {
            self.outlet.push_first(Due::Signal(Signal::Results { due_ns }));
        }
        if self.outlet.has_due() {
            return Ok(if self.outlet.send_due() { Step::Worked(0) } else { Step::Blocked });
        }
        if self.ended {
            return Ok(Step::Done);
        }
        match &self.input {
            Input::Source(_) => self.step_source(query),
            Input::Edge(_) => self.step_edge(query),
        }
    }

    /// Lets rows leave; when all have left, lets go of the run they came from.
    fn write(&mut self) -> Step {
        let run = self.window.as_ref().map_or(&self.head.run, |window| &window.tail.run);
        if !self.outlet.write(run) {
            return Step::Blocked;
        }
        if self.window.is_none() {
            self.release();
        }
        Step::Worked(0)
    }

    /// Lets go of the rows of the run, which the task is done with.
    fn release(&mut self) {
        if let Input::Edge(inlet) = &mut self.input {
            self.head.run.close();
            inlet.reader.advance(std::mem::take(&mut inlet.taken));
        }
    }

    /// Passes the run at hand on: to the window, or out.
    fn process(&mut self, query: &State) -> Result<(), RunError> {
        self.head.process()?;
        match &mut self.window {
            Some(window) => {
                window.consume(&mut self.head, query)?;
                self.release();
            }
            None => {
                self.outlet.begin(&mut self.head.run);
                self.write();
            }
        }
        Ok(())
    }

    fn advance(&mut self, watermark: i64) {
        if let Some(window) = &mut self.window {
            window.operator.advance(watermark);
            if window.operator.has_closed() {
                window.due_ns.get_or_insert(self.arrived_ns);
            }
        }
        self.outlet.push(Due::Watermark(watermark));
    }

    fn end(&mut self) {
        if let Some(window) = &mut self.window {
            window.operator.finish();
        }
        self.outlet.push(Due::Signal(Signal::End));
        self.ended = true;
    }

    fn step_source(&mut self, query: &State) -> Result<Step, RunError> {
        let Input::Source(source) = &mut self.input else { unreachable!("the caller looked") };
        match source.poll(&mut self.head.run, query)? {
            Poll::Rows => {}
            Poll::Nothing => return Ok(Step::Idle),
            Poll::Until(ns) => return Ok(Step::Until(ns)),
            Poll::Ended => {
                self.head.run.close();
                self.end();
                return Ok(Step::Worked(0));
            }
        }
        // Rows that go into a window need no room.
        let limit = if self.window.is_some() { usize::MAX } else { self.outlet.room() };
        if limit == 0 {
            return Ok(Step::Blocked);
        }
        let rows = source.next_run(&mut self.head.run, limit)?;
        let watermark = source.watermark();
        let (arrival, marker) = source.marks();
        self.arrived_ns = source.arrived_ns();
        self.rows += rows as u64;
        self.process(query)?;
        // The mark stands before the watermark: whoever meets that knows when it arrived.
        if let Some(arrival) = arrival {
            self.outlet.push(Due::Signal(arrival));
        }
        if watermark > penstock_progress::NEVER {
            self.advance(watermark);
        }
        if let Some(marker) = marker {
            self.outlet.push(Due::Signal(marker));
        }
        Ok(Step::Worked(rows))
    }

    fn step_edge(&mut self, query: &State) -> Result<Step, RunError> {
        let Input::Edge(inlet) = &mut self.input else { unreachable!("the caller looked") };
        if inlet.shared.is_some() && query.is_draining() {
            self.end();
            return Ok(Step::Worked(0));
        }
        let watermark = inlet.reader.watermark();
        match inlet.reader.peek(usize::MAX) {
            Next::Rows(mut rows) => {
                if self.window.is_none() {
                    match self.outlet.room() {
                        0 => return Ok(Step::Blocked),
                        room => rows.truncate(room),
                    }
                }
                let count = rows.len();
                inlet.taken = count;
                rows.begin(&mut self.head.run, &inlet.slots);
                self.head.run.note_watermark(watermark);
                if let Some(shared) = &inlet.shared {
                    shared.profile.record(count, count, 0);
                }
                self.rows += count as u64;
                self.process(query)?;
                return Ok(Step::Worked(count));
            }
            Next::Watermark(watermark) => {
                inlet.reader.pass();
                self.advance(watermark);
            }
            Next::Signal(signal) => {
                inlet.reader.pass();
                if let Signal::Arrival { at_ns, .. } = signal {
                    self.arrived_ns = at_ns;
                }
                match signal {
                    Signal::End => self.end(),
                    signal => self.outlet.push(Due::Signal(signal)),
                }
            }
            Next::Nothing => return Ok(Step::Idle),
            // A writer that left without an end has failed, or was stopped.
            Next::Closed if inlet.shared.is_some() => return Err(RunError::SourceEnded),
            Next::Closed => return Ok(Step::Idle),
        }
        Ok(Step::Worked(0))
    }

    /// Skips the rows that wait, because the source would have to wait for them. Those at hand are kept.
    fn shed(&mut self, query: &State) {
        let Input::Edge(inlet) = &mut self.input else { unreachable!("the caller looked") };
        inlet.reader.advance(std::mem::take(&mut inlet.taken));
        let (mut rows, mut watermark, mut ended) = (0, None, false);
        loop {
            match inlet.reader.peek(usize::MAX) {
                Next::Rows(found) => {
                    let found = found.len();
                    rows += found as u64;
                    inlet.reader.advance(found);
                    continue;
                }
                Next::Watermark(found) => watermark = Some(found),
                Next::Signal(Signal::Arrival { at_ns, .. }) => self.arrived_ns = at_ns,
                Next::Signal(Signal::End) => ended = true,
                Next::Signal(Signal::Marker { .. } | Signal::Results { .. }) => {}
                Next::Nothing | Next::Closed => break,
            }
            inlet.reader.pass();
        }
        query.account.shed.add(rows);
        if let Some(watermark) = watermark {
            self.advance(watermark);
        }
        if ended {
            self.end();
        }
    }

    /// Lets rows of closed windows leave, as many as there is room for.
    fn emit(&mut self) -> Result<Step, RunError> {
        let room = self.outlet.room();
        if room == 0 {
            return Ok(Step::Blocked);
        }
        let window = self.window.as_mut().expect("only a window emits");
        let rows = window.emit(room)?;
        self.outlet.begin(&mut window.tail.run);
        self.write();
        Ok(Step::Worked(rows))
    }

    /// Whether output of what it has consumed is still here.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.outlet.is_writing()
            || self.outlet.has_due()
            || self.window.as_ref().is_some_and(|window| window.operator.has_closed())
    }

    /// Whether it waits for room.
    pub(crate) fn is_blocked(&self) -> bool {
        self.outlet.is_blocked()
    }

    /// Time that it had output and no room for it.
    pub(crate) fn blocked_ns(&self) -> u64 {
        self.outlet.blocked_ns()
    }

    /// Rows taken in and given out, and when the last of them arrived.
    pub(crate) fn progress(&self) -> (u64, u64, u64) {
        (self.rows, self.outlet.rows(), self.arrived_ns)
    }

    /// Gives memory back that a burst has left behind.
    pub(crate) fn trim(&mut self) {
        self.outlet.trim();
    }

    /// Lets a reader join what it writes.
    pub(crate) fn join(&mut self, wake: Arc<dyn Wake>) -> Result<EdgeReader, OpenError> {
        self.outlet.join(wake)
    }

    /// Whether it waits for memory that is under way.
    pub(crate) fn is_waiting_for_memory(&self) -> bool {
        self.outlet.is_waiting_for_memory()
    }

    /// Its operators, for the account of the query; those behind a window count differently.
    pub(super) fn operators(&self, behind_window: bool) -> Vec<Operator> {
        let named = |name: &str, role, profile: &Arc<Profile>| Operator {
            name: name.to_owned(),
            role,
            profile: Arc::clone(profile),
        };
        let mut operators = Vec::new();
        match &self.input {
            Input::Source(source) => operators.push(named("stream", Role::Source, &source.profile)),
            Input::Edge(Inlet { shared: Some(shared), .. }) => {
                operators.push(named("stream", Role::Source, &shared.profile))
            }
            Input::Edge(_) => {}
        }
        operators.extend(self.head.operators(if behind_window { Role::Tail } else { Role::Stage }));
        if let Some(window) = &self.window {
            operators.push(named("window", Role::Window, &window.profile));
            operators.extend(window.tail.operators(Role::Tail));
        }
        operators
    }

    pub(super) fn has_window(&self) -> bool {
        self.window.is_some()
    }
}

impl Window {
    fn consume(&mut self, head: &mut Chain, query: &State) -> Result<(), RunError> {
        let rows = head.run.len();
        if rows == 0 {
            return Ok(());
        }
        let started = Instant::now();
        self.operator.consume(&mut head.run);
        self.profile.record(rows, 0, elapsed_ns(started));
        let late = self.operator.late();
        if let Some(by) = late.by {
            query.account.late_by.set(by);
            query.account.late.set(late.rows);
        }
        self.charge()
    }

    /// Charges the budget for the state. Never makes it wait: without input no window would ever close.
    fn charge(&mut self) -> Result<(), RunError> {
        let bytes = self.operator.bytes();
        self.state.set(bytes).map_err(|limit| RunError::MemoryLimit {
            operator: "window".to_owned(),
            bytes,
            limit,
        })
    }

    fn emit(&mut self, room: usize) -> Result<usize, RunError> {
        let started = Instant::now();
        let rows = self
            .operator
            .emit(&mut self.tail.run, room.min(self.rows_per_run))
            .map_err(|error| RunError::Compute { operator: "window".to_owned(), error })?;
        self.profile.emitted(rows, elapsed_ns(started));
        self.charge()?;
        self.tail.process()?;
        Ok(rows)
    }
}
