//! The watermark where several inputs meet.
//!
//! FRONTIER-1. The watermark never falls.
//! FRONTIER-2. It is the smallest watermark of the inputs that have neither ended nor gone idle. While all of them are
//!     idle it does not change. An input that pauses has ended for now, and still holds the watermark.

use crate::watermark::NEVER;
use crate::{law, laws};

/// The state of one input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    watermark: i64,
    is_idle: bool,
    has_ended: bool,
    has_paused: bool,
}

/// The watermarks of several inputs, and the combined one.
#[derive(Clone, Debug)]
pub struct Frontier {
    inputs: Vec<Known>,
    watermark: i64,
}

impl Frontier {
    /// Creates a frontier of inputs without a watermark.
    pub fn new(inputs: usize) -> Self {
        let silent = Known { watermark: NEVER, is_idle: false, has_ended: false, has_paused: false };
        Self { inputs: vec![silent; inputs], watermark: NEVER }
    }

    /// Returns the combined watermark.
    pub fn watermark(&self) -> i64 {
        self.watermark
    }

    /// Returns true if every input has ended, if only for now.
    pub fn has_ended(&self) -> bool {
        self.inputs.iter().all(|input| input.has_ended || input.has_paused)
    }

    /// Returns true if that input has ended, if only for now.
    pub fn has_input_ended(&self, input: usize) -> bool {
        self.inputs[input].has_ended || self.inputs[input].has_paused
    }

    /// Returns true if every input that has not ended is idle, and there is one.
    pub fn is_idle(&self) -> bool {
        !self.has_ended() && self.inputs.iter().all(|input| input.is_idle || input.has_ended)
    }

    /// Returns true if that input is ahead of an active one that may still advance.
    pub fn is_ahead(&self, input: usize) -> bool {
        let own = self.inputs[input].watermark;
        let waits = |other: &Known| !other.is_idle && !other.has_ended && !other.has_paused;
        self.inputs.iter().any(|other| waits(other) && other.watermark < own)
    }

    /// Advances the watermark of an input; returns the combined watermark if it has risen.
    pub fn advance(&mut self, input: usize, watermark: i64) -> Option<i64> {
        let known = &mut self.inputs[input];
        law!(
            watermark >= known.watermark,
            "the watermark of input {input} falls from {} to {watermark}",
            known.watermark
        );
        known.watermark = known.watermark.max(watermark);
        known.is_idle = false;
        self.settle()
    }

    /// Marks an input as active again.
    pub fn wake(&mut self, input: usize) {
        self.inputs[input].is_idle = false;
    }

    /// Marks an input as idle: it does not hold the watermark. Returns the combined watermark if it has risen.
    pub fn rest(&mut self, input: usize) -> Option<i64> {
        self.inputs[input].is_idle = true;
        self.settle()
    }

    /// Marks an input as ended; returns the combined watermark if it has risen.
    pub fn end(&mut self, input: usize) -> Option<i64> {
        self.inputs[input].has_ended = true;
        self.settle()
    }

    /// Marks an input as ended for now: more will come later, so its watermark still counts.
    pub fn pause(&mut self, input: usize) {
        self.inputs[input].has_paused = true;
    }

    fn settle(&mut self) -> Option<i64> {
        let before = self.watermark;
        let heard = self.inputs.iter().filter(|input| !input.is_idle && !input.has_ended);
        if let Some(least) = heard.map(|input| input.watermark).min() {
            self.watermark = before.max(least); // FRONTIER-1, FRONTIER-2
        }
        if laws::are_checked() {
            self.check(before);
        }
        (self.watermark > before).then_some(self.watermark)
    }

    /// Checks FRONTIER-1 and FRONTIER-2 against every input; `before` is the watermark before the change.
    fn check(&self, before: i64) {
        let mut least = None;
        for input in &self.inputs {
            if !input.is_idle && !input.has_ended && least.is_none_or(|least| input.watermark < least) {
                least = Some(input.watermark);
            }
        }
        let after = self.watermark;
        law!(after >= before, "the watermark of all inputs falls from {before} to {after}"); // FRONTIER-1
        // An input that wakes up may lag: then the watermark stays.
        let expected = least.map_or(before, |least| least.max(before));
        law!(
            after == expected,
            "the smallest input is at {least:?}, and the combined watermark goes from {before} to {after}"
        ); // FRONTIER-2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Creates two inputs, the first with watermark 5, the second with 3.
    fn two_inputs() -> Frontier {
        let mut frontier = Frontier::new(2);
        assert_eq!(frontier.advance(0, 5), None);
        assert_eq!(frontier.advance(1, 3), Some(3));
        frontier
    }

    #[test]
    #[cfg_attr(debug_assertions, should_panic(expected = "the watermark of input 1 falls from 3 to 2"))]
    fn an_input_that_falls_is_found_out() {
        two_inputs().advance(1, 2);
    }

    #[test]
    #[cfg_attr(debug_assertions, should_panic(expected = "the watermark of all inputs falls from 4 to 3"))]
    fn a_watermark_that_falls_is_found_out() {
        two_inputs().check(4);
    }

    #[test]
    #[cfg_attr(
        debug_assertions,
        should_panic(expected = "is at Some(3), and the combined watermark goes from 3 to 4")
    )]
    fn a_watermark_beyond_an_input_that_is_waited_for_is_found_out() {
        Frontier { watermark: 4, ..two_inputs() }.check(3);
    }

    #[test]
    #[cfg_attr(
        debug_assertions,
        should_panic(expected = "is at Some(5), and the combined watermark goes from 3 to 3")
    )]
    fn a_watermark_that_waits_for_an_idle_input_is_found_out() {
        let mut frontier = two_inputs();
        frontier.inputs[1].is_idle = true;
        frontier.check(3);
    }

    #[test]
    fn an_input_that_wakes_up_may_lag() {
        let mut frontier = two_inputs();
        assert_eq!(frontier.rest(1), Some(5));
        assert_eq!(frontier.advance(1, 4), None);
        assert_eq!(frontier.watermark(), 5);
    }

    #[derive(Clone, Copy, Debug)]
    enum Event {
        Advance(i64),
        Rest,
        End,
    }

    fn any_event() -> impl Strategy<Value = (usize, Event)> {
        let event = prop_oneof![6 => (0_i64..50).prop_map(Event::Advance), 2 => Just(Event::Rest), 1 => Just(Event::End)];
        (0_usize..3, event)
    }

    proptest! {
        #[test]
        fn it_is_the_least_of_those_that_speak_and_never_falls(events in prop::collection::vec(any_event(), 0..60)) {
            let mut frontier = Frontier::new(3);
            let mut known = [(NEVER, false, false); 3];
            let mut before = NEVER;
            for (input, event) in events {
                if known[input].2 { continue; }
                let risen = match event {
                    Event::Advance(by) => {
                        let watermark = known[input].0.max(by);
                        known[input] = (watermark, false, false);
                        frontier.advance(input, watermark)
                    }
                    Event::Rest => { known[input].1 = true; frontier.rest(input) }
                    Event::End => { known[input].2 = true; frontier.end(input) }
                };
                let least = known.iter().filter(|one| !one.1 && !one.2).map(|one| one.0).min();
                let expected = least.map_or(before, |least| least.max(before));
                prop_assert_eq!(frontier.watermark(), expected);
                prop_assert_eq!(risen, (expected > before).then_some(expected));
                before = expected;
            }
            prop_assert_eq!(frontier.has_ended(), known.iter().all(|one| one.2));
        }
    }
}
