//! A step of a task that reads an edge.

use penstock_memory::edge::EdgeNext;

use super::OperatorTask;
use crate::context::Context;
use crate::error::RunError;
use crate::inputs::Input;
use crate::step::Step;

impl OperatorTask {
    /// Takes a step of an edge.
    pub(super) fn step_edge(&mut self, input: usize, context: &Context) -> Result<Step, RunError> {
        let clock = context.clock();
        let (Input::Edge(inlet), port) = &mut self.inputs[input] else { unreachable!("the caller looked") };
        let watermark = inlet.watermark();
        match inlet.reader.peek(usize::MAX) {
            EdgeNext::Rows(mut rows) => {
                if self.keyed.is_none() {
                    match self.outlet.room(clock) {
                        0 => return Ok(Step::Blocked),
                        room => rows.truncate(room),
                    }
                }
                inlet.taken = rows.len();
                let run = &mut self.ports[*port].run;
                rows.begin(run, &inlet.slots);
                let arrived_ns = inlet.arrived_ns();
                run.note_watermark(watermark);
                if let Some(share) = &inlet.share {
                    share.take(run);
                }
                let count = run.len();
                self.frontier.wake(input);
                self.rows += count as u64;
                self.note_arrival(arrived_ns.unwrap_or(self.arrived_ns));
                self.process(input, clock)?;
                return Ok(Step::Worked(count));
            }
            EdgeNext::Watermark(watermark) => {
                inlet.reader.pass();
                self.advance_input(input, watermark);
            }
            EdgeNext::Signal(signal) => {
                inlet.reader.pass();
                self.take_signal(input, signal, context);
            }
            // A writer that left without an end has failed, or was stopped, and the query with it.
            EdgeNext::Nothing | EdgeNext::Closed => return Ok(Step::Idle),
        }
        Ok(Step::Worked(0))
    }
}
