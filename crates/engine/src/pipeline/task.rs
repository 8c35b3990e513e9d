//! A task: what runs without a pause, from the rows it takes in to the edge it writes to.
//!
//! A task takes one step at a time: a run, a watermark, a signal, or a piece of output that had no room before.
//!
//! T1. A step that has no room leaves everything as it is, and goes on from there the next time.
//! T2. Nothing is taken in while output of what came before is still here. What a window has closed leaves before the
//!     watermark that closed it.

use std::time::Instant;

use penstock_memory::coordinator::StateAccount;
use penstock_memory::edge::Next;
use penstock_memory::{EdgeReader, Signal, SlotId};
use penstock_operators::WindowAggregate;
use penstock_operators::window::Late;
use penstock_scheduler::Profile;

use super::chain::{Chain, elapsed_ns};
use super::outlet::{Due, Outlet};
use super::source::Source;
use crate::error::RunError;
use crate::output::OperatorReport;

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Something was done; there may be more to do.
    Worked,
    /// There is work, but no room for its output.
    Blocked,
    /// There is nothing to do now.
    Idle,
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
}

/// A window, and the operators behind it.
pub(super) struct Window {
    pub(super) operator: WindowAggregate,
    pub(super) profile: Profile,
    pub(super) state: StateAccount,
    pub(super) tail: Chain,
    /// Rows that go through the operators behind it at a time.
    pub(super) rows_per_run: usize,
}

/// A task.
pub(super) struct Task {
    pub(super) input: Input,
    pub(super) head: Chain,
    pub(super) window: Option<Box<Window>>,
    pub(super) outlet: Outlet,
}

impl Task {
    /// Does one thing.
    pub(super) fn step(&mut self) -> Result<Step, RunError> {
        if self.outlet.is_writing() {
            return Ok(self.write());
        }
        if self.window.as_ref().is_some_and(|window| window.operator.has_closed()) {
            return self.emit();
        }
        if self.outlet.has_due() {
            return Ok(if self.outlet.send_due() { Step::Worked } else { Step::Blocked });
        }
        match &self.input {
            Input::Source(source) if source.has_rows() => self.step_source(),
            Input::Source(_) => Ok(self.end_source()),
            Input::Edge(_) => self.step_edge(),
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
        Step::Worked
    }

    /// Lets go of the rows of the run, which the task is done with.
    fn release(&mut self) {
        if let Input::Edge(inlet) = &mut self.input {
            self.head.run.close();
            inlet.reader.advance(std::mem::take(&mut inlet.taken));
        }
    }

    /// Passes the run at hand on: to the window, or out.
    fn process(&mut self) -> Result<(), RunError> {
        self.head.process()?;
        match &mut self.window {
            Some(window) => {
                window.consume(&mut self.head)?;
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
        }
        self.outlet.push(Due::Watermark(watermark));
    }

    fn end(&mut self) {
        if let Some(window) = &mut self.window {
            window.operator.finish();
        }
        self.outlet.push(Due::Signal(Signal::End));
    }

    fn step_source(&mut self) -> Result<Step, RunError> {
        let Input::Source(source) = &mut self.input else { unreachable!("the caller looked") };
        // Rows that go into a window need no room.
        let limit = if self.window.is_some() { usize::MAX } else { self.outlet.room() };
        if limit == 0 {
            return Ok(Step::Blocked);
        }
        source.next_run(&mut self.head.run, limit)?;
        let watermark = source.watermark();
        let marks = source.marks();
        self.process()?;
        if watermark > penstock_progress::NEVER {
            self.advance(watermark);
        }
        marks.for_each(|mark| self.outlet.push(Due::Signal(mark)));
        Ok(Step::Worked)
    }

    fn end_source(&mut self) -> Step {
        let Input::Source(source) = &mut self.input else { unreachable!("the caller looked") };
        self.head.run.close();
        if !source.take_end() {
            return Step::Idle;
        }
        self.end();
        Step::Worked
    }

    fn step_edge(&mut self) -> Result<Step, RunError> {
        let Input::Edge(inlet) = &mut self.input else { unreachable!("the caller looked") };
        let watermark = inlet.reader.watermark();
        match inlet.reader.peek(usize::MAX) {
            Next::Rows(mut rows) => {
                if self.window.is_none() {
                    match self.outlet.room() {
                        0 => return Ok(Step::Blocked),
                        room => rows.truncate(room),
                    }
                }
                inlet.taken = rows.len();
                rows.begin(&mut self.head.run, &inlet.slots);
                self.head.run.note_watermark(watermark);
                self.process()?;
            }
            Next::Watermark(watermark) => {
                inlet.reader.pass();
                self.advance(watermark);
            }
            Next::Signal(signal) => {
                inlet.reader.pass();
                match signal {
                    Signal::End => self.end(),
                    signal => self.outlet.push(Due::Signal(signal)),
                }
            }
            Next::Nothing | Next::Closed => return Ok(Step::Idle),
        }
        Ok(Step::Worked)
    }

    /// Lets rows of closed windows leave, as many as there is room for.
    fn emit(&mut self) -> Result<Step, RunError> {
        let room = self.outlet.room();
        if room == 0 {
            return Ok(Step::Blocked);
        }
        let window = self.window.as_mut().expect("only a window emits");
        window.emit(room)?;
        self.outlet.begin(&mut window.tail.run);
        self.write();
        Ok(Step::Worked)
    }

    /// Rows that came too late for the window.
    pub(super) fn late(&self) -> Late {
        self.window.as_ref().map_or_else(Late::default, |window| window.operator.late())
    }

    /// What each operator did.
    pub(super) fn reports(&self) -> Vec<OperatorReport> {
        let report = |name: &str, profile: &Profile| OperatorReport {
            name: name.to_owned(),
            profile: profile.clone(),
        };
        let mut reports = Vec::new();
        if let Input::Source(source) = &self.input {
            reports.push(report("stream", &source.profile));
        }
        reports.extend(self.head.reports());
        if let Some(window) = &self.window {
            reports.push(report("window", &window.profile));
            reports.extend(window.tail.reports());
        }
        reports
    }
}

impl Window {
    fn consume(&mut self, head: &mut Chain) -> Result<(), RunError> {
        let rows = head.run.len();
        if rows == 0 {
            return Ok(());
        }
        let started = Instant::now();
        self.operator.consume(&mut head.run);
        self.profile.record(rows, 0, elapsed_ns(started));
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

    fn emit(&mut self, room: usize) -> Result<(), RunError> {
        let started = Instant::now();
        let rows = self
            .operator
            .emit(&mut self.tail.run, room.min(self.rows_per_run))
            .map_err(|error| RunError::Compute { operator: "window".to_owned(), error })?;
        self.profile.rows_out += rows as u64;
        self.profile.busy_ns += elapsed_ns(started);
        self.charge()?;
        self.tail.process()
    }
}
