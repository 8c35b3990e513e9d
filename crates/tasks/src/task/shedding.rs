//! Skips rows of inputs that have asked for that: those of a shared source that does not wait for the task.

use super::OperatorTask;
use crate::context::Context;
use crate::inputs::Input;
use crate::readers::Skipped;

impl OperatorTask {
    /// Skips what waits, of the inputs that have asked for it. Rows at hand are kept.
    pub(super) fn shed_if_asked(&mut self, context: &Context) {
        for input in 0..self.inputs.len() {
            if let Input::Source(source) = &mut self.inputs[input].0
                && let Some(skipped) = source.skip_backlog()
            {
                self.note_skipped(input, skipped, context);
            }
        }
    }

    /// Takes over what the skipped part of an input has said.
    fn note_skipped(&mut self, input: usize, skipped: Skipped, context: &Context) {
        if let Some(at_ns) = skipped.arrived_ns {
            self.arrived_ns = at_ns;
        }
        if let Some(watermark) =
            skipped.watermark.and_then(|watermark| self.frontier.advance(input, watermark))
        {
            self.advance(watermark);
        }
        match skipped.is_awake {
            Some(true) => self.frontier.wake(input),
            Some(false) => self.fall_idle(input),
            None => {}
        }
        if skipped.has_ended {
            self.end(input, context);
        }
    }
}
