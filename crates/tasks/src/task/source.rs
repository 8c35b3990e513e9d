//! A step of a task that reads a stream.

use penstock_progress::NEVER;

use super::OperatorTask;
use crate::clock::{Clock, Until};
use crate::context::Context;
use crate::error::RunError;
use crate::inputs::Input;
use crate::outlet::Due;
use crate::source::{Found, Quiet};
use crate::step::Step;

impl OperatorTask {
    /// Takes a step of a stream.
    pub(super) fn step_source(&mut self, input: usize, context: &Context) -> Result<Step, RunError> {
        let clock = context.clock();
        let (Input::Source(source), port) = &mut self.inputs[input] else {
            unreachable!("the caller looked")
        };
        let run = &mut self.ports[*port].run;
        match source.poll(run, context, self.rejects.as_mut())? {
            Found::Rows => {}
            Found::Rejected => return Ok(Step::Worked(0)),
            Found::Watermark(watermark) => {
                self.advance_input(input, watermark);
                return Ok(Step::Worked(0));
            }
            Found::Signal(signal) => {
                self.take_signal(input, signal, context);
                return Ok(Step::Worked(0));
            }
            Found::Nothing => return Ok(self.quiet(input, clock)),
            Found::Until(until) => return Ok(self.quiet_until(input, until, clock)),
            Found::Ended => {
                run.close();
                source.keep(context);
                self.end(input, context);
                return Ok(Step::Worked(0));
            }
        }
        // Rows that go into an operator with state need no room.
        let limit = if self.keyed.is_some() { usize::MAX } else { self.outlet.room(clock) };
        if limit == 0 {
            return Ok(Step::Blocked);
        }
        let rows = source.next_run(run, limit, clock, self.rejects.as_mut())?;
        let (watermark, arrived) = (source.watermark(), source.arrived());
        let (arrival, marker) = source.marks(clock);
        if let Some(arrived) = arrived.filter(|_| !source.is_in_columns()) {
            self.arrived_ns = arrived.last_ns;
        }
        self.note_arrival(arrived.map_or(self.arrived_ns, |arrived| arrived.first_ns));
        self.frontier.wake(input);
        self.rows += rows as u64;
        self.process(input, clock)?;
        // The mark comes before the watermark: a reader that meets that knows when it arrived.
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

    /// Goes on without rows until `until`.
    fn quiet_until(&mut self, input: usize, until: Until, clock: &dyn Clock) -> Step {
        match self.quiet(input, clock) {
            Step::Idle => Step::Until(until),
            Step::Until(other) => Step::Until(until.or(other)),
            step => step,
        }
    }

    /// Goes on without rows: event time may advance by the clock, or without this source.
    fn quiet(&mut self, input: usize, clock: &dyn Clock) -> Step {
        let (Input::Source(source), _) = &mut self.inputs[input] else { unreachable!("the caller looked") };
        match source.quiet(clock) {
            Quiet::Nothing => return Step::Idle,
            Quiet::Until(until) => return Step::Until(until),
            Quiet::Watermark(watermark) => self.advance_input(input, watermark),
            Quiet::Idle => {
                let risen = self.frontier.rest(input);
                self.rest();
                risen.into_iter().for_each(|watermark| self.advance(watermark));
            }
        }
        Step::Worked(0)
    }
}
