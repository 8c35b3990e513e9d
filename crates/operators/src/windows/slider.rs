//! Sliding windows out of panes: the merged state of a window's panes, without merging all of them each time.
//!
//! Two stacks: panes up to `boundary` are covered by suffixes, built once, of which later windows need fewer and
//! fewer; those above it are in one running state. When no pane up to the boundary is left, the boundary moves up. So
//! each pane is merged twice, and a window costs about as much as it has keys.
//!
//! A suffix is kept only where it saves as many keys as it has: with it, the panes since the last one need not be
//! merged again. So suffixes hold at most as much as panes do, even when no key recurs.
//!
//! All of them use the same ids of keys, which are looked up once for each pane, usually in the directory that panes
//! share: a window is then merged cell by cell, without hashing.
//!
//! SLIDER-1. `suffixes` ascend from the back: each holds all panes from its own up to `boundary`.
//! SLIDER-2. `running` holds the panes above `boundary` up to `reach`.
//! SLIDER-3. State added to a pane later is added to everything that includes the pane.
//! SLIDER-4. `ids` has the ids of the keys of each pane up to `boundary` that has no suffix of its own.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included};
use std::sync::Arc;

use super::keyed::{Accumulators, KeyedState};
use super::spec::ResolvedSpec;
use crate::heap_bytes;
use crate::keys::KeyIndex;
use crate::pick::Pick;

/// A set of ids: all below `first`, and some above.
#[derive(Clone, Default)]
struct Members {
    first: usize,
    more: Vec<u32>,
    /// True at `n` if the id `first + n` is in the set.
    is_more: Vec<bool>,
}

impl Members {
    fn insert(&mut self, id: u32) {
        let Some(place) = (id as usize).checked_sub(self.first) else { return };
        if place >= self.is_more.len() {
            self.is_more.resize(place + 1, false);
        }
        if !std::mem::replace(&mut self.is_more[place], true) {
            self.more.push(id);
        }
    }

    fn bytes(&self) -> usize {
        heap_bytes(&self.more) + heap_bytes(&self.is_more)
    }
}

/// The merged state of some panes.
#[derive(Clone)]
struct MergedPanes {
    members: Members,
    states: Accumulators,
}

impl MergedPanes {
    fn new(shape: &ResolvedSpec) -> Self {
        Self { members: Members::default(), states: Accumulators::new(shape) }
    }

    /// Merges state whose key `n` has the id `ids[n]`, out of `keys` ids.
    fn add(&mut self, states: &Accumulators, ids: &[u32], keys: usize) {
        ids.iter().for_each(|&id| self.members.insert(id));
        self.states.merge(states, ids, keys);
    }

    fn bytes(&self) -> usize {
        self.members.bytes() + self.states.bytes()
    }
}

/// The merged panes of a window: some keys of an index, and the state of each.
pub(super) struct Sliced {
    pub(super) keys: Arc<KeyIndex>,
    part: MergedPanes,
    /// The ids of its keys, unless they are the first ones of the index.
    ids: Option<Vec<u32>>,
}

impl Sliced {
    fn new(keys: Arc<KeyIndex>, mut part: MergedPanes) -> Self {
        part.states.grow(keys.len());
        let Members { first, more, .. } = &part.members;
        let ids = (!more.is_empty()).then(|| (0..*first as u32).chain(more.iter().copied()).collect());
        Self { keys, part, ids }
    }

    pub(super) fn len(&self) -> usize {
        self.ids.as_ref().map_or(self.part.members.first, Vec::len)
    }

    pub(super) fn states(&self) -> &Accumulators {
        &self.part.states
    }

    /// Returns the ids of its keys `from..to`.
    pub(super) fn pick(&self, from: usize, to: usize) -> Pick<'_> {
        match &self.ids {
            None => Pick::Range(from, to),
            Some(ids) => Pick::List(&ids[from..to]),
        }
    }

    /// Returns the heap memory that it does not share.
    pub(super) fn bytes(&self) -> usize {
        self.part.bytes() + self.ids.as_ref().map_or(0, heap_bytes)
    }

    /// Converts it to a state with an index of its own.
    pub(super) fn into_keyed(self, shape: &ResolvedSpec) -> KeyedState {
        KeyedState::picked(shape, &self.keys, self.pick(0, self.len()), &self.part.states)
    }
}

#[derive(Default)]
pub(super) struct Slider {
    /// Every key of any state here since the boundary was set.
    keys: Option<Arc<KeyIndex>>,
    suffixes: Vec<(i64, MergedPanes)>,
    boundary: i64,
    running: Option<MergedPanes>,
    reach: i64,
    ids: BTreeMap<i64, Vec<u32>>,
    /// The ids from 0 on, as far as they were needed.
    same: Vec<u32>,
    /// The share of all of this in the owner's total.
    counted: usize,
}

impl Slider {
    /// Returns the merged panes from `first` to `last`. Neither may decrease between calls.
    pub(super) fn window(
        &mut self,
        shape: &ResolvedSpec,
        panes: &BTreeMap<i64, KeyedState>,
        (first, last): (i64, i64),
        total: &mut usize,
    ) -> Option<Sliced> {
        let window = if self.keys.is_none() || first > self.boundary {
            self.begin(shape, panes, (first, last))
        } else {
            self.extend(shape, panes, (first, last))
        };
        self.count(total);
        window
    }

    fn extend(
        &mut self,
        shape: &ResolvedSpec,
        panes: &BTreeMap<i64, KeyedState>,
        (first, last): (i64, i64),
    ) -> Option<Sliced> {
        while self.suffixes.last().is_some_and(|(pane, _)| *pane < first) {
            self.suffixes.pop();
        }
        self.ids = self.ids.split_off(&first);
        if last > self.reach {
            for (_, pane) in panes.range((Excluded(self.reach), Included(last))) {
                self.add_running(shape, pane);
            }
            self.reach = last;
        }
        let (until, mut part) = match self.suffixes.last() {
            Some((pane, suffix)) => (Excluded(*pane), suffix.clone()),
            None => (Included(self.boundary), MergedPanes::new(shape)),
        };
        let keys = Arc::clone(self.keys.as_ref()?);
        for (number, pane) in panes.range((Included(first), until)) {
            part.add(&pane.states, &self.ids[number], keys.len());
        }
        if let Some(running) = &self.running {
            let known = self.same.len() as u32;
            self.same.extend(known..keys.len() as u32);
            running.members.more.iter().for_each(|&id| part.members.insert(id));
            // An untouched cell adds nothing.
            part.states.merge(&running.states, &self.same, keys.len());
        }
        Some(Sliced::new(keys, part)).filter(|window| window.len() > 0)
    }

    /// Builds suffixes of the panes of a window; returns the whole window.
    fn begin(
        &mut self,
        shape: &ResolvedSpec,
        panes: &BTreeMap<i64, KeyedState>,
        (first, last): (i64, i64),
    ) -> Option<Sliced> {
        *self = Self { boundary: last, reach: last, counted: self.counted, ..Self::default() };
        let most = panes.range(first..=last).map(|(_, pane)| pane.len()).max().unwrap_or(0);
        let directory = panes.range(first..=last).find_map(|(_, pane)| match &pane.keys {
            KeyIndex::Shared(keys) => Some(keys.directory()),
            _ => None,
        });
        let keys =
            directory.map_or_else(|| KeyIndex::expecting(&shape.spec.keys, most), |known| known.index());
        self.keys = Some(Arc::new(keys));
        let (mut states, mut keys_since) = (Accumulators::new(shape), 0);
        let mut known = 0;
        for (&number, pane) in panes.range(first..=last).rev() {
            let ids = self.ids_of(shape, pane);
            known = self.keys.as_ref().map_or(0, |keys| keys.len());
            states.merge(&pane.states, &ids, known);
            keys_since += pane.len();
            if keys_since >= known && number > first {
                // Ids are assigned in the order in which panes are visited: those of a suffix are the first ones.
                let members = Members { first: known, ..Members::default() };
                self.suffixes.push((number, MergedPanes { members, states: states.clone() }));
                keys_since = 0;
            } else {
                self.ids.insert(number, ids);
            }
        }
        let members = Members { first: known, ..Members::default() };
        let keys = Arc::clone(self.keys.as_ref()?);
        Some(Sliced::new(keys, MergedPanes { members, states })).filter(|window| window.len() > 0)
    }

    /// Returns the ids of the keys of a state; new ones get new ids.
    fn ids_of(&mut self, shape: &ResolvedSpec, state: &KeyedState) -> Vec<u32> {
        let mut ids = Vec::new();
        if let Some(keys) = &mut self.keys {
            Arc::make_mut(keys).insert_keys(&state.keys, &shape.spec.keys, &mut ids);
        }
        ids
    }

    fn add_running(&mut self, shape: &ResolvedSpec, state: &KeyedState) {
        let ids = self.ids_of(shape, state);
        let keys = self.keys.as_ref().map_or(0, |keys| keys.len());
        self.running.get_or_insert_with(|| MergedPanes::new(shape)).add(&state.states, &ids, keys);
    }

    /// Adds state to a pane (SLIDER-3).
    pub(super) fn add(&mut self, shape: &ResolvedSpec, pane: i64, other: &KeyedState, total: &mut usize) {
        if self.keys.is_none() || pane > self.reach {
            return;
        }
        if pane > self.boundary {
            self.add_running(shape, other);
        } else {
            let ids = self.ids_of(shape, other);
            let keys = self.keys.as_ref().map_or(0, |keys| keys.len());
            for (_, suffix) in self.suffixes.iter_mut().filter(|(first, _)| *first <= pane) {
                suffix.add(&other.states, &ids, keys);
            }
        }
        self.count(total);
    }

    /// Updates the ids of a pane that has more keys than before (SLIDER-4).
    pub(super) fn learn(&mut self, shape: &ResolvedSpec, pane: i64, state: &KeyedState) {
        let has_suffix = self.suffixes.iter().any(|(first, _)| *first == pane);
        if self.keys.is_some() && pane <= self.boundary && !has_suffix {
            let ids = self.ids_of(shape, state);
            self.ids.insert(pane, ids);
        }
    }

    /// Updates the owner's total.
    fn count(&mut self, total: &mut usize) {
        let parts = self.suffixes.iter().map(|(_, part)| part).chain(&self.running);
        let of_ids: usize = self.ids.values().map(heap_bytes).sum();
        let of_keys = self.keys.as_ref().map_or(0, |keys| keys.bytes());
        let bytes = parts.map(MergedPanes::bytes).sum::<usize>() + of_ids + of_keys + heap_bytes(&self.same);
        *total = *total - self.counted + bytes;
        self.counted = bytes;
    }

    /// Drops everything: it is rebuilt when needed.
    pub(super) fn clear(&mut self, total: &mut usize) {
        *total -= self.counted;
        *self = Self::default();
    }
}
