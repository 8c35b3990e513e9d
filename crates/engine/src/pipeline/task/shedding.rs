//! A task that a shared source does not wait for skips the rows that it has not read.

use penstock_memory::Signal;
use penstock_memory::edge::Next;

use super::Task;
use crate::pipeline::inputs::Input;

impl Task {
    /// Skips what waits, of the shared sources that have asked for it.
    pub(super) fn shed_if_asked(&mut self) {
        for input in 0..self.inputs.len() {
            if let Input::Edge(inlet) = &self.inputs[input].0
                && let Some(shared) = &inlet.shared
                && shared.lag.take_request()
            {
                self.shed(input);
            }
        }
    }

    /// Skips the rows that wait, because the source would have to wait for them. Those at hand are kept.
    fn shed(&mut self, input: usize) {
        let (Input::Edge(inlet), _) = &mut self.inputs[input] else { unreachable!("the caller looked") };
        inlet.release();
        let (mut rows, mut watermark, mut ended) = (0, None, false);
        // Whether the source speaks at the end of what is skipped, if it has said anything.
        let mut speaks = None;
        loop {
            match inlet.reader.peek(usize::MAX) {
                Next::Rows(found) => {
                    let found = found.len();
                    rows += found as u64;
                    inlet.reader.advance(found);
                    speaks = Some(true);
                    continue;
                }
                Next::Watermark(found) => (watermark, speaks) = (Some(found), Some(true)),
                Next::Signal(Signal::Idle) => speaks = Some(false),
                Next::Signal(Signal::Arrival { at_ns }) => self.arrived_ns = at_ns,
                Next::Signal(Signal::End) => ended = true,
                Next::Signal(Signal::Judge { watermark }) => inlet.judge = Some(watermark),
                Next::Signal(Signal::Marker { .. } | Signal::Results { .. }) => {}
                Next::Nothing | Next::Closed => break,
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
        match speaks {
            Some(true) => self.frontier.wake(input),
            Some(false) => self.fall_idle(input),
            None => {}
        }
        if ended {
            self.end(input);
        }
    }
}
