//! A task of operators: what runs without a pause, from the rows it takes in to the edges it writes.
//!
//! A task takes one step at a time: a run, a watermark, a signal, or a piece of output that had no room before. Its inputs
//! come in by *ports*: each has slots of its own, and operators that rows pass first. With several inputs it takes from
//! any that has something, in turn, so that none waits for another.
//!
//! TASK-1. A step that has no room leaves everything as it is, and goes on from there the next time.
//! TASK-2. Nothing is taken in while output of what came before is still here. What an operator has closed leaves before
//!     the watermark that closed it.
//! TASK-3. The end of all inputs is the last thing that leaves; then the task is done.
//!
//! - `source`, `edge`, `lanes`: a step of each kind of input
//! - `shedding`: a query that a shared source does not wait for; `shared`: the task of such a source

mod edge;
mod lanes;
mod shared;
mod shedding;
mod source;

use std::sync::Arc;

use penstock_memory::{EdgeReader, OpenError, Signal};
use penstock_operators::{HeldRows, Stateful};
use penstock_progress::{Frontier, NEVER};
use penstock_queue::wake::Wake;

pub use shared::SharedTask;

use crate::chain::Chain;
use crate::charge::Charged;
use crate::checkpoint::StateStore;
use crate::clock::{Clock, Until};
use crate::context::Context;
use crate::error::RunError;
use crate::inputs::Input;
use crate::operator::Keyed;
use crate::outlet::{Due, Outlet};
use crate::rejects::Rejects;
use crate::step::{BlockedOn, Numbers, Step, Task};

/// A task of operators.
pub struct OperatorTask {
    /// The inputs, and the port that each comes in by.
    inputs: Vec<(Input, usize)>,
    /// The watermark of each input.
    frontier: Frontier,
    /// The input whose turn it is.
    turn: usize,
    /// The input whose rows are at hand.
    at_hand: usize,
    ports: Vec<Chain>,
    keyed: Option<Box<Keyed>>,
    outlet: Outlet,
    /// Where rejected rows go, unless the query fails.
    rejects: Option<Rejects>,
    /// How often each lane has reached a pause of the source.
    idles: Vec<u64>,
    /// What lanes that have ended have left.
    rests: Vec<(Box<dyn Stateful>, Charged)>,
    /// Whether all inputs have ended.
    has_ended: bool,
    /// Whether more will come, in another run.
    pauses: bool,
    /// Rows taken in, and when the last of them arrived.
    rows: u64,
    arrived_ns: u64,
}

impl OperatorTask {
    /// Takes rows in by these inputs, each with its port, and writes them to `outlet`.
    pub fn new(
        inputs: Vec<(Input, usize)>,
        ports: Vec<Chain>,
        keyed: Option<Keyed>,
        outlet: Outlet,
        rejects: Option<Rejects>,
    ) -> Self {
        debug_assert!(keyed.is_some() || ports.len() == 1, "without an operator there is one port");
        Self {
            frontier: Frontier::new(inputs.len()),
            idles: vec![0; inputs.len()],
            inputs,
            turn: 0,
            at_hand: 0,
            ports,
            keyed: keyed.map(Box::new),
            outlet,
            rejects,
            rests: Vec::new(),
            has_ended: false,
            pauses: false,
            rows: 0,
            arrived_ns: 0,
        }
    }

    /// Goes on with the state that its sources and its operator have restored.
    pub fn restore(&mut self, state: &dyn StateStore) {
        self.pauses = state.pauses();
        for input in 0..self.inputs.len() {
            if let Input::Source(source) = &self.inputs[input].0
                && source.watermark() > NEVER
            {
                let watermark = source.watermark();
                self.advance_input(input, watermark);
            }
        }
    }

    /// Closes windows by the clock.
    fn close(&mut self) {
        if let Some(watermark) = self.keyed.as_mut().and_then(|keyed| keyed.close()) {
            self.outlet.push(Due::Watermark(watermark));
        }
    }

    /// Goes on with what has begun to leave (TASK-2); `None` when nothing is left of it.
    fn finish_output(&mut self, clock: &dyn Clock) -> Result<Option<Step>, RunError> {
        if let Some(rejects) = self.rejects.as_mut().filter(|rejects| rejects.is_waiting()) {
            return Ok(Some(if rejects.hand_out() { Step::Worked(0) } else { Step::Blocked }));
        }
        if self.outlet.is_writing() {
            return Ok(Some(self.write(clock)));
        }
        if let Some(keyed) = &mut self.keyed {
            if keyed.is_writing_late() {
                return Ok(Some(if keyed.write_late(clock) { Step::Worked(0) } else { Step::Blocked }));
            }
            if keyed.has_output() {
                return self.emit(clock).map(Some);
            }
            if let Some(due_ns) = keyed.take_due() {
                self.outlet.push_first(Due::Signal(Signal::Results { due_ns }));
            }
            if !keyed.send_late_due(clock) {
                return Ok(Some(Step::Blocked));
            }
        }
        if self.outlet.has_due() {
            return Ok(Some(if self.outlet.send_due(clock) { Step::Worked(0) } else { Step::Blocked }));
        }
        Ok(None)
    }

    /// Lets rows leave; when all have left, lets go of the run they came from.
    fn write(&mut self, clock: &dyn Clock) -> Step {
        let run = match &self.keyed {
            Some(keyed) => keyed.results(),
            None => &self.ports[0].run,
        };
        if !self.outlet.write(run, clock) {
            return Step::Blocked;
        }
        if self.keyed.is_none() {
            self.release();
        }
        Step::Worked(0)
    }

    /// Lets go of the rows of the run, which the task is done with.
    fn release(&mut self) {
        let (input, port) = &mut self.inputs[self.at_hand];
        match input {
            Input::Source(source) => source.release(&mut self.ports[*port].run),
            Input::Edge(inlet) => {
                self.ports[*port].run.close();
                inlet.release();
            }
            Input::Parts(_) => {}
        }
    }

    /// Passes the run at hand on: to the operator, or out.
    fn process(&mut self, input: usize, clock: &dyn Clock) -> Result<(), RunError> {
        let port = self.inputs[input].1;
        self.at_hand = input;
        let chain = &mut self.ports[port];
        chain.process(clock, self.rejects.as_mut())?;
        match &mut self.keyed {
            Some(keyed) => {
                keyed.consume(port, &mut chain.run, clock, self.rejects.as_mut())?;
                self.release();
            }
            None => {
                self.outlet.begin(&mut chain.run);
                self.write(clock);
            }
        }
        Ok(())
    }

    /// Notes when the rows arrived that come next.
    fn note_arrival(&self, at_ns: u64) {
        match &self.keyed {
            Some(keyed) => keyed.note_arrival(at_ns),
            None => self.outlet.note_arrival(at_ns),
        }
    }

    /// Advances the watermark of the task.
    fn advance(&mut self, watermark: i64) {
        let after = match &mut self.keyed {
            Some(keyed) => keyed.advance(watermark, self.arrived_ns),
            None => watermark,
        };
        if after > NEVER {
            self.outlet.push(Due::Watermark(after));
        }
    }

    /// Advances the watermark of one input, and with it that of the task, if no other input lags.
    fn advance_input(&mut self, input: usize, watermark: i64) {
        if let Some(watermark) = self.frontier.advance(input, watermark) {
            self.advance(watermark);
        }
    }

    /// Ends an input; the last one ends the task.
    fn end(&mut self, input: usize, context: &Context) {
        if self.pauses {
            self.frontier.pause(input);
        } else if let Some(watermark) = self.frontier.end(input) {
            self.advance(watermark);
        }
        if self.frontier.has_ended() {
            if let Some(keyed) = &mut self.keyed {
                keyed.finish(context);
            }
            self.outlet.push(Due::Signal(Signal::End));
            self.has_ended = true;
        } else if !self.pauses {
            self.rest();
        }
    }

    /// Takes a signal that comes between the rows of an input.
    fn take_signal(&mut self, input: usize, signal: Signal, context: &Context) {
        match signal {
            Signal::Judge { watermark } => {
                if let Input::Edge(inlet) = &mut self.inputs[input].0 {
                    inlet.judge = Some(watermark);
                }
            }
            Signal::Idle => self.fall_idle(input),
            Signal::End => self.end(input, context),
            Signal::Arrival { at_ns } => {
                self.arrived_ns = at_ns;
                self.outlet.push(Due::Signal(signal));
            }
            Signal::Marker { .. } | Signal::Results { .. } => self.outlet.push(Due::Signal(signal)),
        }
    }

    /// Notes that an input is idle: it is not waited for.
    fn fall_idle(&mut self, input: usize) {
        if let Some(watermark) = self.frontier.rest(input) {
            self.advance(watermark);
        }
        self.rest();
    }

    /// Sends on that all inputs are idle, if they are.
    fn rest(&mut self) {
        if self.frontier.is_idle() {
            self.outlet.push(Due::Signal(Signal::Idle));
        }
    }

    /// Lets results leave, as many as there is room for.
    fn emit(&mut self, clock: &dyn Clock) -> Result<Step, RunError> {
        let room = self.outlet.room(clock);
        if room == 0 {
            return Ok(Step::Blocked);
        }
        // Results have arrived when what has closed them did.
        self.outlet.note_arrival(self.arrived_ns);
        let keyed = self.keyed.as_mut().expect("only an operator with state emits");
        let rows = keyed.emit(room, clock, self.rejects.as_mut())?;
        self.outlet.begin(keyed.results_mut());
        self.write(clock);
        Ok(Step::Worked(rows))
    }

    /// Lets a reader join what it writes. One that joins while the sources are idle is told so, too.
    fn join(&mut self, wake: Arc<dyn Wake>) -> Result<EdgeReader, OpenError> {
        let reader = self.outlet.join(wake)?;
        self.rest();
        Ok(reader)
    }

    /// Returns true if it waits for memory that is under way.
    fn is_waiting_for_memory(&self) -> bool {
        self.outlet.is_waiting_for_memory()
    }
}

impl OperatorTask {
    /// Returns true if rejected rows wait for room.
    fn is_waiting_for_letters(&self) -> bool {
        self.rejects.as_ref().is_some_and(Rejects::is_blocked)
    }

    /// Returns what it waits for, if it does.
    fn blocked_on(&self) -> BlockedOn {
        if self.is_waiting_for_letters() {
            BlockedOn::Letters
        } else if self.is_waiting_for_memory() {
            BlockedOn::Memory
        } else {
            BlockedOn::Room
        }
    }
}

impl Task for OperatorTask {
    fn step(&mut self, context: &Context) -> Result<Step, RunError> {
        let clock = context.clock();
        self.shed_if_asked(context);
        if let Some(step) = self.finish_output(clock)? {
            if let Some(keyed) = &mut self.keyed {
                keyed.leave_token(); // other tasks may use it meanwhile
            }
            return Ok(step);
        }
        if self.has_ended {
            return Ok(Step::Done);
        }
        let functions = context.functions();
        let Some(_token) = self.keyed.as_mut().map_or(Some(None), |keyed| keyed.token(functions)) else {
            return Ok(Step::Idle);
        };
        // Each input once, from the one whose turn it is.
        let mut waits_until: Option<Until> = None;
        let or = |until: Option<Until>, other: Until| Some(until.unwrap_or_default().or(other));
        let mut blocked = false;
        for offset in 0..self.inputs.len() {
            let input = (self.turn + offset) % self.inputs.len();
            let step = match &self.inputs[input].0 {
                Input::Source(_) => self.step_source(input, context)?,
                Input::Edge(_) => self.step_edge(input, context)?,
                Input::Parts(_) => self.step_parts(input, context)?,
            };
            match step {
                Step::Idle => {}
                Step::Until(until) => waits_until = or(waits_until, until),
                Step::Blocked => blocked = true,
                Step::Worked(_) | Step::Done => {
                    self.turn = (input + 1) % self.inputs.len();
                    return Ok(step);
                }
            }
        }
        if blocked {
            return Ok(Step::Blocked);
        }
        if let Some(closes_ns) = self.keyed.as_ref().and_then(|keyed| keyed.closes_ns()) {
            if clock.now_ns() >= closes_ns {
                self.close();
                return Ok(Step::Worked(0));
            }
            waits_until = or(waits_until, Until::clock(closes_ns));
        }
        Ok(waits_until.map_or(Step::Idle, Step::Until))
    }

    fn numbers(&self, now_ns: u64) -> Numbers {
        let is_blocked = self.outlet.is_blocked()
            || self.is_waiting_for_letters()
            || self.keyed.as_ref().is_some_and(|keyed| keyed.is_late_blocked());
        let is_unfinished = self.outlet.is_writing()
            || self.outlet.has_due()
            || self.rejects.as_ref().is_some_and(Rejects::is_waiting)
            || self.keyed.as_ref().is_some_and(|keyed| keyed.has_output() || keyed.is_writing_late());
        Numbers {
            rows_in: self.rows,
            rows_out: self.outlet.rows(),
            blocked_ns: self.outlet.blocked_ns(now_ns),
            is_blocked,
            blocked_on: self.blocked_on(),
            is_unfinished,
            held: self.keyed.as_ref().map_or_else(HeldRows::default, |keyed| keyed.held()),
        }
    }

    fn trim(&mut self) {
        self.outlet.trim();
    }

    fn merges(&self) -> bool {
        self.inputs.iter().any(|(input, _)| matches!(input, Input::Parts(_)))
    }
}
