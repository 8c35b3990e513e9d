//! Sliding windows out of panes: what the panes of a window hold together, without merging all of them each time.
//!
//! Two stacks: panes up to `boundary` are covered by suffixes, made once, of which later windows need fewer and fewer;
//! those behind it are in one running state. When no pane up to the boundary is left, the boundary moves up. So each
//! pane is merged twice, and a window costs about as much as it has keys.
//!
//! A suffix is kept only where it saves as many keys as it has: with it, the panes since the last one need not be merged
//! again. So suffixes hold at most as much as panes do, also when no key comes back.
//!
//! S1. `suffixes` ascend from the back: each holds all panes from its own up to `boundary`.
//! S2. `behind` holds the panes above `boundary` up to `reach`.
//! S3. What is added to a pane later is added to everything that holds it.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included};

use super::keyed::Keyed;
use super::spec::Shape;

#[derive(Default)]
pub(super) struct Slider {
    suffixes: Vec<(i64, Keyed)>,
    boundary: i64,
    behind: Option<Keyed>,
    reach: i64,
    /// Whether anything was folded yet.
    begun: bool,
}

fn add(state: &mut Option<Keyed>, shape: &Shape, other: &Keyed) {
    match state {
        Some(state) => state.merge(shape, other),
        None => *state = Some(other.copied()),
    }
}

impl Slider {
    /// What the panes from `first` to `last` hold. Neither ever goes back.
    pub(super) fn window(
        &mut self,
        shape: &Shape,
        panes: &BTreeMap<i64, Keyed>,
        (first, last): (i64, i64),
        total: &mut usize,
    ) -> Option<Keyed> {
        if !self.begun || first > self.boundary {
            return self.begin(shape, panes, (first, last), total);
        }
        while self.suffixes.last().is_some_and(|(pane, _)| *pane < first) {
            self.suffixes.pop().expect("there is one").1.discount(total);
        }
        if last > self.reach {
            for (_, pane) in panes.range(self.reach + 1..=last) {
                add(&mut self.behind, shape, pane);
            }
            self.reach = last;
            if let Some(behind) = &mut self.behind {
                behind.count(total);
            }
        }
        let (until, mut state) = match self.suffixes.last() {
            Some((pane, suffix)) => (Excluded(*pane), Some(suffix.copied())),
            None => (Included(self.boundary), None),
        };
        let between = panes.range((Included(first), until)).map(|(_, pane)| pane);
        between.chain(&self.behind).for_each(|part| add(&mut state, shape, part));
        state
    }

    /// Makes suffixes of the panes of a window, and gives the whole of it.
    fn begin(
        &mut self,
        shape: &Shape,
        panes: &BTreeMap<i64, Keyed>,
        (first, last): (i64, i64),
        total: &mut usize,
    ) -> Option<Keyed> {
        self.clear(total);
        (self.begun, self.boundary, self.reach) = (true, last, last);
        let (mut state, mut keys_since) = (None, 0);
        for (&number, pane) in panes.range(first..=last).rev() {
            add(&mut state, shape, pane);
            keys_since += pane.len();
            if let Some(state) = &state
                && keys_since >= state.len()
                && number > first
            {
                let mut suffix = state.copied();
                suffix.count(total);
                self.suffixes.push((number, suffix));
                keys_since = 0;
            }
        }
        state
    }

    /// Something is added to a pane (S3).
    pub(super) fn add(&mut self, shape: &Shape, pane: i64, other: &Keyed, total: &mut usize) {
        if !self.begun || pane > self.reach {
            return;
        }
        if pane > self.boundary {
            add(&mut self.behind, shape, other);
            self.behind.iter_mut().for_each(|behind| behind.count(total));
            return;
        }
        for (_, suffix) in self.suffixes.iter_mut().filter(|(first, _)| *first <= pane) {
            suffix.merge(shape, other);
            suffix.count(total);
        }
    }

    /// Forgets everything: it is made anew when it is asked for.
    pub(super) fn clear(&mut self, total: &mut usize) {
        let behind = self.behind.take();
        for mut state in self.suffixes.drain(..).map(|(_, state)| state).chain(behind) {
            state.discount(total);
        }
        *self = Self::default();
    }
}
