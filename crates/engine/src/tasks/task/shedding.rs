//! Skips rows of a shared source that does not wait for the task.

use penstock_memory::Signal;
use penstock_memory::edge::EdgeNext;

use super::OperatorTask;
use crate::tasks::context::Context;
use crate::tasks::inputs::Input;

impl OperatorTask {
    /// Skips what waits, of the shared sources that have asked for it.
    pub(super) fn shed_if_asked(&mut self, context: &Context) {
        for input in 0..self.inputs.len() {
            if let Input::Edge(inlet) = &self.inputs[input].0
                && let Some(shared) = &inlet.shared
                && shared.lag.take_request()
            {
                self.shed(input, context);
            }
        }
    }

    /// Skips the rows that wait, because the source would have to wait for them. Those at hand are kept.
    fn shed(&mut self, input: usize, context: &Context) {
        let (Input::Edge(inlet), _) = &mut self.inputs[input] else { unreachable!("the caller looked") };
        inlet.release();
        let (mut rows, mut watermark, mut ended) = (0, None, false);
        // Whether the source is awake at the end of what is skipped, if that says so.
        let mut is_awake = None;
        loop {
            match inlet.reader.peek(usize::MAX) {
                EdgeNext::Rows(found) => {
                    let found = found.len();
                    rows += found as u64;
                    inlet.reader.advance(found);
                    is_awake = Some(true);
                    continue;
                }
                EdgeNext::Watermark(found) => (watermark, is_awake) = (Some(found), Some(true)),
                EdgeNext::Signal(Signal::Idle) => is_awake = Some(false),
                EdgeNext::Signal(Signal::Arrival { at_ns }) => self.arrived_ns = at_ns,
                EdgeNext::Signal(Signal::End) => ended = true,
                EdgeNext::Signal(Signal::Judge { watermark }) => inlet.judge = Some(watermark),
                EdgeNext::Signal(Signal::Marker { .. } | Signal::Results { .. }) => {}
                EdgeNext::Nothing | EdgeNext::Closed => break,
            }
            inlet.reader.pass();
        }
        inlet.last = inlet.last.map(|last| last.saturating_sub(rows));
        if let Some(shared) = &inlet.shared {
            shared.counts.shed.add(rows);
        }
        if let Some(watermark) = watermark.and_then(|watermark| self.frontier.advance(input, watermark)) {
            self.advance(watermark);
        }
        match is_awake {
            Some(true) => self.frontier.wake(input),
            Some(false) => self.fall_idle(input),
            None => {}
        }
        if ended {
            self.end(input, context);
        }
    }
}
