//! A task: what runs without a pause, from the rows it takes in to the edges it writes to.
//!
//! A task takes one step at a time: a run, a watermark, a signal, or a piece of output that had no room before. Its inputs
//! come in by *ports*: each has slots of its own, and operators that rows pass first. With several inputs it takes from
//! any that has something, in turn, so that none waits for another.
//!
//! T1. A step that has no room leaves everything as it is, and goes on from there the next time.
//! T2. Nothing is taken in while output of what came before is still here. What an operator has closed leaves before the
//!     watermark that closed it.
//! T3. The end of all inputs is the last thing that leaves; then the task is done.

mod shedding;

use std::sync::Arc;

use penstock_memory::edge::Next;
use penstock_memory::{EdgeReader, OpenError, Signal};
use penstock_operators::{Held, Stateful};
use penstock_progress::{Frontier, NEVER};
use penstock_queue::wake::Wake;

use super::BlockedOn;
use super::chain::Chain;
use super::inputs::Input;
use super::outlet::{Due, Outlet};
use super::parallel::{Carried, Charged, Part};
use super::rejects::Rejects;
use super::source::{Poll, Quiet};
use super::stateful::Keyed;
pub(crate) use super::step::Step;
use crate::clock::Until;
use crate::error::RunError;
use crate::query::state::State;

/// A task.
pub(crate) struct Task {
    /// The inputs, and the port that each comes in by.
    inputs: Vec<(Input, usize)>,
    /// How far each input has come.
    frontier: Frontier,
    /// The input whose turn it is.
    turn: usize,
    /// The input whose rows are at hand.
    at_hand: usize,
    ports: Vec<Chain>,
    keyed: Option<Box<Keyed>>,
    outlet: Outlet,
    /// Where rows go that an operator has no answer for, unless the query fails.
    rejects: Option<Rejects>,
    /// How often each lane has come to a pause of the source.
    idles: Vec<u64>,
    /// What lanes that have ended have left.
    rests: Vec<(Box<dyn Stateful>, Charged)>,
    /// Whether the end of all inputs has come.
    pub(crate) ended: bool,
    /// Whether more will come, in another run.
    pauses: bool,
    /// Rows taken in, and when the last of them arrived.
    rows: u64,
    arrived_ns: u64,
}

impl Task {
    pub(super) fn new(
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
            ended: false,
            pauses: false,
            rows: 0,
            arrived_ns: 0,
        }
    }

    /// Goes on where its sources and its operator stand.
    pub(super) fn resume(&mut self, pauses: bool) {
        self.pauses = pauses;
        for input in 0..self.inputs.len() {
            if let Input::Source(source) = &self.inputs[input].0
                && source.watermark() > NEVER
            {
                let watermark = source.watermark();
                self.advance_input(input, watermark);
            }
        }
    }

    /// Does one thing.
    pub(crate) fn step(&mut self, query: &State) -> Result<Step, RunError> {
        self.shed_if_asked();
        if let Some(step) = self.finish_output()? {
            if let Some(keyed) = &mut self.keyed {
                keyed.leave_token(); // others may use it meanwhile
            }
            return Ok(step);
        }
        if self.ended {
            return Ok(Step::Done);
        }
        let Some(_token) = self.keyed.as_mut().map_or(Some(None), |keyed| keyed.token()) else {
            return Ok(Step::Idle);
        };
        // Each input once, from the one whose turn it is.
        let mut waits_until: Option<Until> = None;
        let or = |until: Option<Until>, other: Until| Some(until.unwrap_or_default().or(other));
        let mut blocked = false;
        for offset in 0..self.inputs.len() {
            let input = (self.turn + offset) % self.inputs.len();
            let step = match &self.inputs[input].0 {
                Input::Source(_) => self.step_source(input, query)?,
                Input::Edge(_) => self.step_edge(input, query)?,
                Input::Parts(_) => self.step_parts(input)?,
                Input::Left => Step::Idle,
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
            if query.clock.now_ns() >= closes_ns {
                self.close();
                return Ok(Step::Worked(0));
            }
            waits_until = or(waits_until, Until::clock(closes_ns));
        }
        Ok(waits_until.map_or(Step::Idle, Step::Until))
    }

    /// Closes windows by the clock.
    fn close(&mut self) {
        if let Some(watermark) = self.keyed.as_mut().and_then(|keyed| keyed.close()) {
            self.outlet.push(Due::Watermark(watermark));
        }
    }

    /// Goes on with what has begun to leave (T2); `None` when nothing is left of it.
    fn finish_output(&mut self) -> Result<Option<Step>, RunError> {
        if let Some(rejects) = self.rejects.as_mut().filter(|rejects| rejects.is_waiting()) {
            return Ok(Some(if rejects.hand_out() { Step::Worked(0) } else { Step::Blocked }));
        }
        if self.outlet.is_writing() {
            return Ok(Some(self.write()));
        }
        if let Some(keyed) = &mut self.keyed {
            if keyed.is_writing_late() {
                return Ok(Some(if keyed.write_late() { Step::Worked(0) } else { Step::Blocked }));
            }
            if keyed.has_output() {
                return self.emit().map(Some);
            }
            if let Some(due_ns) = keyed.take_due() {
                self.outlet.push_first(Due::Signal(Signal::Results { due_ns }));
            }
            if !keyed.send_late_due() {
                return Ok(Some(Step::Blocked));
            }
        }
        if self.outlet.has_due() {
            return Ok(Some(if self.outlet.send_due() { Step::Worked(0) } else { Step::Blocked }));
        }
        Ok(None)
    }

    /// Lets rows leave; when all have left, lets go of the run they came from.
    fn write(&mut self) -> Step {
        let run = match &self.keyed {
            Some(keyed) => keyed.results(),
            None => &self.ports[0].run,
        };
        if !self.outlet.write(run) {
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
            Input::Source(source) => source.release(),
            Input::Edge(inlet) => {
                self.ports[*port].run.close();
                inlet.release();
            }
            Input::Parts(_) | Input::Left => {}
        }
    }

    /// Passes the run at hand on: to the operator, or out.
    fn process(&mut self, input: usize, query: &State) -> Result<(), RunError> {
        let port = self.inputs[input].1;
        self.at_hand = input;
        let chain = &mut self.ports[port];
        chain.process(self.rejects.as_mut())?;
        match &mut self.keyed {
            Some(keyed) => {
                keyed.consume(port, &mut chain.run, &query.clock, self.rejects.as_mut())?;
                self.release();
            }
            None => {
                self.outlet.begin(&mut chain.run);
                self.write();
            }
        }
        Ok(())
    }

    /// The rows that come next arrived then.
    fn note_arrival(&self, at_ns: u64) {
        match &self.keyed {
            Some(keyed) => keyed.note_arrival(at_ns),
            None => self.outlet.note_arrival(at_ns),
        }
    }

    /// Event time has come so far.
    fn advance(&mut self, watermark: i64) {
        let behind = match &mut self.keyed {
            Some(keyed) => keyed.advance(watermark, self.arrived_ns),
            None => watermark,
        };
        if behind > NEVER {
            self.outlet.push(Due::Watermark(behind));
        }
    }

    /// Advances the watermark of one input, and with it that of the task if no other one is behind.
    fn advance_input(&mut self, input: usize, watermark: i64) {
        if let Some(watermark) = self.frontier.advance(input, watermark) {
            self.advance(watermark);
        }
    }

    /// An input has ended; with the last one the task comes to its end.
    fn end(&mut self, input: usize) {
        if self.pauses {
            self.frontier.pause(input);
        } else if let Some(watermark) = self.frontier.end(input) {
            self.advance(watermark);
        }
        if self.frontier.has_ended() {
            if let Some(keyed) = &mut self.keyed {
                keyed.finish();
            }
            self.outlet.push(Due::Signal(Signal::End));
            self.ended = true;
        } else if !self.pauses {
            self.rest();
        }
    }

    /// An input has nothing to say for now, and is not waited for.
    fn fall_idle(&mut self, input: usize) {
        if let Some(watermark) = self.frontier.rest(input) {
            self.advance(watermark);
        }
        self.rest();
    }

    /// Says so if nothing is to be waited for.
    fn rest(&mut self) {
        if self.frontier.is_idle() {
            self.outlet.push(Due::Signal(Signal::Idle));
        }
    }

    fn step_source(&mut self, input: usize, query: &State) -> Result<Step, RunError> {
        let (Input::Source(source), port) = &mut self.inputs[input] else {
            unreachable!("the caller looked")
        };
        let run = &mut self.ports[*port].run;
        match source.poll(run, query, self.rejects.as_mut())? {
            Poll::Rows => {}
            Poll::Rejected => return Ok(Step::Worked(0)),
            Poll::Watermark => {
                let watermark = source.watermark();
                self.advance_input(input, watermark);
                return Ok(Step::Worked(0));
            }
            Poll::Nothing => return Ok(self.quiet(input, query)),
            Poll::Until(until) => return Ok(self.quiet_until(input, until, query)),
            Poll::Ended => {
                run.close();
                source.note_seen();
                self.end(input);
                return Ok(Step::Worked(0));
            }
        }
        // Rows that go into an operator with state need no room.
        let limit = if self.keyed.is_some() { usize::MAX } else { self.outlet.room() };
        if limit == 0 {
            return Ok(Step::Blocked);
        }
        let rows = source.next_run(run, limit, &query.clock, self.rejects.as_mut())?;
        let watermark = source.watermark();
        let (arrival, marker) = source.marks();
        self.arrived_ns = source.arrived_ns();
        let first_ns = source.first_ns();
        self.note_arrival(first_ns);
        self.frontier.wake(input);
        self.rows += rows as u64;
        self.process(input, query)?;
        // The mark stands before the watermark: whoever meets that knows when it arrived.
        if let Some(arrival) = arrival {
            self.outlet.push(Due::Signal(arrival));
        }
        if watermark > NEVER {
            self.advance_input(input, watermark);
        }
        if let Some(marker) = marker {
            self.outlet.push(Due::Signal(marker));
        }
        Ok(Step::Worked(rows))
    }

    /// A source has no rows before `until`: the same until then.
    fn quiet_until(&mut self, input: usize, until: Until, query: &State) -> Step {
        match self.quiet(input, query) {
            Step::Idle => Step::Until(until),
            Step::Until(other) => Step::Until(until.or(other)),
            step => step,
        }
    }

    /// A source has no rows: event time may go on by the clock, or without it.
    fn quiet(&mut self, input: usize, query: &State) -> Step {
        let (Input::Source(source), _) = &mut self.inputs[input] else { unreachable!("the caller looked") };
        match source.quiet(&query.clock) {
            Quiet::Nothing => return Step::Idle,
            Quiet::Until(until) => return Step::Until(until),
            Quiet::Watermark(watermark) => self.advance_input(input, watermark),
            Quiet::Rest => {
                let risen = self.frontier.rest(input);
                self.rest();
                risen.into_iter().for_each(|watermark| self.advance(watermark));
            }
        }
        Step::Worked(0)
    }

    fn step_edge(&mut self, input: usize, query: &State) -> Result<Step, RunError> {
        let (Input::Edge(inlet), port) = &mut self.inputs[input] else { unreachable!("the caller looked") };
        if inlet.shared.is_some() && query.is_draining() && !self.frontier.has_input_ended(input) {
            // However far the source goes on.
            let last = *inlet.last.get_or_insert(inlet.reader.pending());
            // Signals behind the last of these rows are taken: a source that has failed has nothing else behind them.
            if last == 0 && matches!(inlet.reader.peek(1), Next::Rows(_) | Next::Nothing) {
                // By T2 no run of its rows is at hand. Other inputs may take long to end, and the source is not to wait.
                self.inputs[input].0 = Input::Left;
                self.end(input);
                return Ok(Step::Worked(0));
            }
        }
        let watermark = inlet.watermark();
        let limit = inlet.last.map_or(usize::MAX, |last| usize::try_from(last).unwrap_or(usize::MAX));
        match inlet.reader.peek(limit.max(1)) {
            Next::Rows(_) if limit == 0 => return Ok(Step::Worked(0)), // it came just now, and is left to others
            Next::Rows(mut rows) => {
                if self.keyed.is_none() {
                    match self.outlet.room() {
                        0 => return Ok(Step::Blocked),
                        room => rows.truncate(room),
                    }
                }
                inlet.taken = rows.len();
                inlet.last = inlet.last.map(|last| last - rows.len() as u64);
                let run = &mut self.ports[*port].run;
                rows.begin(run, &inlet.slots);
                let arrived_ns = inlet.arrived_ns();
                run.note_watermark(watermark);
                if let Some(share) = &inlet.share {
                    share.take(run);
                }
                let count = run.len();
                if let Some(shared) = &inlet.shared {
                    shared.profile.record(count, count, 0);
                }
                self.frontier.wake(input);
                self.rows += count as u64;
                self.note_arrival(arrived_ns.unwrap_or(self.arrived_ns));
                self.process(input, query)?;
                return Ok(Step::Worked(count));
            }
            Next::Watermark(watermark) => {
                inlet.reader.pass();
                self.advance_input(input, watermark);
            }
            Next::Signal(signal) => {
                inlet.reader.pass();
                match signal {
                    Signal::Judge { watermark } => inlet.judge = Some(watermark),
                    Signal::Idle => self.fall_idle(input),
                    Signal::End => self.end(input),
                    Signal::Arrival { at_ns } => {
                        self.arrived_ns = at_ns;
                        self.outlet.push(Due::Signal(signal));
                    }
                    Signal::Marker { .. } | Signal::Results { .. } => self.outlet.push(Due::Signal(signal)),
                }
            }
            Next::Nothing => return Ok(Step::Idle),
            // A writer that left without an end has failed, or was stopped.
            Next::Closed if inlet.shared.is_some() && !self.frontier.has_input_ended(input) => {
                return Err(RunError::SourceEnded);
            }
            Next::Closed => return Ok(Step::Idle),
        }
        Ok(Step::Worked(0))
    }

    /// Takes in what a lane has come to.
    fn step_parts(&mut self, input: usize) -> Result<Step, RunError> {
        // What a lane that is ahead has closed waits for the others there, and holds the lane back, instead of here.
        if self.frontier.is_ahead(input) {
            return Ok(Step::Idle);
        }
        let (Input::Parts(parts), _) = &mut self.inputs[input] else { unreachable!("the caller looked") };
        let Some(part) = parts.take() else { return Ok(Step::Idle) };
        let rows = part.work().rows;
        parts.done(rows);
        self.rows += rows;
        let keyed = self.keyed.as_mut().expect("parts are merged by an operator");
        match part {
            Part::State { state, watermark, arrived_ns, charged } => {
                self.arrived_ns = arrived_ns;
                keyed.merge(state, charged)?;
                self.advance_input(input, watermark);
            }
            Part::Signal(Signal::Idle) => {
                // They are waited for until all have come to the same pause of the source: each closes windows with the
                // others, and there is one source before them.
                let pauses = |idles: &[u64]| idles.iter().min().copied();
                let before = pauses(&self.idles);
                self.idles[input] += 1;
                if pauses(&self.idles) > before {
                    self.outlet.push(Due::Signal(Signal::Idle));
                }
            }
            Part::Signal(signal) => {
                if let Signal::Arrival { at_ns } = signal {
                    self.arrived_ns = at_ns;
                }
                self.outlet.push(Due::Signal(signal));
            }
            Part::End { state, charged, .. } => {
                // It stands where its lane has ended, and others have not come so far: it waits until they have.
                self.rests.push((state, charged));
                if self.rests.len() == self.inputs.len() {
                    self.rests.drain(..).try_for_each(|(rest, charged)| keyed.merge(rest, charged))?;
                }
                self.end(input);
            }
        }
        Ok(Step::Worked(usize::try_from(rows).unwrap_or(usize::MAX)))
    }

    /// Lets results leave, as many as there is room for.
    fn emit(&mut self) -> Result<Step, RunError> {
        let room = self.outlet.room();
        if room == 0 {
            return Ok(Step::Blocked);
        }
        // Results have arrived when what has closed them did.
        self.outlet.note_arrival(self.arrived_ns);
        let keyed = self.keyed.as_mut().expect("only an operator with state emits");
        let rows = keyed.emit(room, self.rejects.as_mut())?;
        self.outlet.begin(keyed.results_mut());
        self.write();
        Ok(Step::Worked(rows))
    }

    /// Whether output of what it has consumed is still here.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.outlet.is_writing()
            || self.outlet.has_due()
            || self.rejects.as_ref().is_some_and(Rejects::is_waiting)
            || self.keyed.as_ref().is_some_and(|keyed| keyed.has_output() || keyed.is_writing_late())
    }

    /// What its operator has taken in and not given out.
    pub(crate) fn held(&self) -> Held {
        self.keyed.as_ref().map_or_else(Held::default, |keyed| keyed.held())
    }

    /// Whether lanes hand their state to it.
    pub(crate) fn merges(&self) -> bool {
        self.inputs.iter().any(|(input, _)| matches!(input, Input::Parts(_)))
    }

    /// Whether it waits for room.
    pub(crate) fn is_blocked(&self) -> bool {
        self.outlet.is_blocked()
            || self.is_waiting_for_letters()
            || self.keyed.as_ref().is_some_and(|keyed| keyed.is_late_blocked())
    }

    /// What it waits for, if it does.
    pub(crate) fn blocked_on(&self) -> BlockedOn {
        if self.is_waiting_for_letters() {
            BlockedOn::Letters
        } else if self.is_waiting_for_memory() {
            BlockedOn::Memory
        } else {
            BlockedOn::Room
        }
    }

    /// Whether rejected rows wait for room.
    pub(crate) fn is_waiting_for_letters(&self) -> bool {
        self.rejects.as_ref().is_some_and(Rejects::is_blocked)
    }

    /// Time that it had output and no room for it.
    pub(crate) fn blocked_ns(&self) -> u64 {
        self.outlet.blocked_ns()
    }

    /// Rows taken in and given out.
    pub(crate) fn progress(&self) -> (u64, u64) {
        (self.rows, self.outlet.rows())
    }

    /// Gives memory back that a burst has left behind.
    pub(crate) fn trim(&mut self) {
        self.outlet.trim();
    }

    /// Lets a reader join what it writes. Who comes while the sources are silent is told so, too.
    pub(crate) fn join(&mut self, wake: Arc<dyn Wake>) -> Result<EdgeReader, OpenError> {
        let reader = self.outlet.join(wake)?;
        self.rest();
        Ok(reader)
    }

    /// Whether it waits for memory that is under way.
    pub(crate) fn is_waiting_for_memory(&self) -> bool {
        self.outlet.is_waiting_for_memory()
    }
}
