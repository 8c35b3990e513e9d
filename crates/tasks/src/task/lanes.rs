//! A step of a task that merges the state of lanes.

use penstock_memory::Signal;

use super::OperatorTask;
use crate::context::Context;
use crate::error::RunError;
use crate::inputs::Input;
use crate::outlet::Due;
use crate::parallel::{Carried, Handover};
use crate::step::Step;

impl OperatorTask {
    /// Takes in a part of the state of a lane.
    pub(super) fn step_parts(&mut self, input: usize, context: &Context) -> Result<Step, RunError> {
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
            Handover::State { state, watermark, arrived_ns, charged } => {
                self.arrived_ns = arrived_ns;
                keyed.merge(state, charged, context.clock())?;
                self.advance_input(input, watermark);
            }
            Handover::Signal(Signal::Idle) => {
                // They are waited for until all have reached the same pause of the source: each closes windows with the
                // others, and there is one source before them.
                let pauses = |idles: &[u64]| idles.iter().min().copied();
                let before = pauses(&self.idles);
                self.idles[input] += 1;
                if pauses(&self.idles) > before {
                    self.outlet.push(Due::Signal(Signal::Idle));
                }
            }
            Handover::Signal(signal) => {
                if let Signal::Arrival { at_ns } = signal {
                    self.arrived_ns = at_ns;
                }
                self.outlet.push(Due::Signal(signal));
            }
            Handover::End { state, charged, .. } => {
                // It is of the end of its lane, which others have not reached: it waits until they have.
                self.rests.push((state, charged));
                if self.rests.len() == self.inputs.len() {
                    self.rests
                        .drain(..)
                        .try_for_each(|(rest, charged)| keyed.merge(rest, charged, context.clock()))?;
                }
                self.end(input, context);
            }
        }
        Ok(Step::Worked(usize::try_from(rows).unwrap_or(usize::MAX)))
    }
}
