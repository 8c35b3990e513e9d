//! A step of a task that reads an edge.

use penstock_memory::Signal;
use penstock_memory::edge::EdgeNext;

use super::OperatorTask;
use crate::tasks::context::Context;
use crate::tasks::error::RunError;
use crate::tasks::inputs::Input;
use crate::tasks::outlet::Due;
use crate::tasks::step::Step;

impl OperatorTask {
    /// Takes a step of an edge.
    pub(super) fn step_edge(&mut self, input: usize, context: &Context) -> Result<Step, RunError> {
        let clock = context.clock();
        let (Input::Edge(inlet), port) = &mut self.inputs[input] else { unreachable!("the caller looked") };
        if inlet.shared.is_some() && context.is_draining() && !self.frontier.has_input_ended(input) {
            // However far the source goes on.
            let last = *inlet.last.get_or_insert(inlet.reader.pending());
            // Signals after the last of these rows are taken: a source that has failed has nothing else after them.
            if last == 0 && matches!(inlet.reader.peek(1), EdgeNext::Rows(_) | EdgeNext::Nothing) {
                // By TASK-2 no run of its rows is at hand. Other inputs may take long to end, and the source is not to wait.
                self.inputs[input].0 = Input::Left;
                self.end(input, context);
                return Ok(Step::Worked(0));
            }
        }
        let watermark = inlet.watermark();
        let limit = inlet.last.map_or(usize::MAX, |last| usize::try_from(last).unwrap_or(usize::MAX));
        match inlet.reader.peek(limit.max(1)) {
            EdgeNext::Rows(_) if limit == 0 => return Ok(Step::Worked(0)), // they came just now, and are left to other readers
            EdgeNext::Rows(mut rows) => {
                if self.keyed.is_none() {
                    match self.outlet.room(clock) {
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
                self.process(input, clock)?;
                return Ok(Step::Worked(count));
            }
            EdgeNext::Watermark(watermark) => {
                inlet.reader.pass();
                self.advance_input(input, watermark);
            }
            EdgeNext::Signal(signal) => {
                inlet.reader.pass();
                match signal {
                    Signal::Judge { watermark } => inlet.judge = Some(watermark),
                    Signal::Idle => self.fall_idle(input),
                    Signal::End => self.end(input, context),
                    Signal::Arrival { at_ns } => {
                        self.arrived_ns = at_ns;
                        self.outlet.push(Due::Signal(signal));
                    }
                    Signal::Marker { .. } | Signal::Results { .. } => self.outlet.push(Due::Signal(signal)),
                }
            }
            EdgeNext::Nothing => return Ok(Step::Idle),
            // A writer that left without an end has failed, or was stopped.
            EdgeNext::Closed if inlet.shared.is_some() && !self.frontier.has_input_ended(input) => {
                return Err(RunError::SourceEnded);
            }
            EdgeNext::Closed => return Ok(Step::Idle),
        }
        Ok(Step::Worked(0))
    }
}
