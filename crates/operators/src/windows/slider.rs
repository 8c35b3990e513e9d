//! Sliding windows out of panes: what the panes of a window hold together, without merging all of them each time.
//!
//! Two stacks: panes up to `boundary` are covered by suffixes, made once, of which later windows need fewer and fewer;
//! those behind it are in one running state. When no pane up to the boundary is left, the boundary moves up. So each
//! pane is merged twice, and a window costs about as much as it has keys.
//!
//! A suffix is kept only where it saves as many keys as it has: with it, the panes since the last one need not be merged
//! again. So suffixes hold at most as much as panes do, also when no key comes back.
//!
//! All of them speak of keys by the same ids, which are looked up once for each pane, mostly in the directory that panes
//! share: what a window holds is then put together cell by cell, without hashing.
//!
//! SLIDER-1. `suffixes` ascend from the back: each holds all panes from its own up to `boundary`.
//! SLIDER-2. `behind` holds the panes above `boundary` up to `reach`.
//! SLIDER-3. What is added to a pane later is added to everything that holds it.
//! SLIDER-4. `ids` has the ids of the keys of each pane up to `boundary` that has no suffix of its own.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included};
use std::sync::Arc;

use super::keyed::{Accumulators, KeyedState};
use super::spec::ResolvedSpec;
use crate::heap_bytes;
use crate::keys::KeyIndex;
use crate::pick::Pick;

/// Which keys something holds: all ids below `first`, and some that are not.
#[derive(Clone, Default)]
struct Members {
    first: usize,
    more: Vec<u32>,
    /// Whether the id `first + n` is among them.
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

/// What some panes hold together.
#[derive(Clone)]
struct MergedPanes {
    members: Members,
    states: Accumulators,
}

impl MergedPanes {
    fn new(shape: &ResolvedSpec) -> Self {
        Self { members: Members::default(), states: Accumulators::new(shape) }
    }

    /// Takes in state whose key `n` has the id `ids[n]`, out of `keys` ids.
    fn add(&mut self, states: &Accumulators, ids: &[u32], keys: usize) {
        ids.iter().for_each(|&id| self.members.insert(id));
        self.states.merge(states, ids, keys);
    }

    fn bytes(&self) -> usize {
        self.members.bytes() + self.states.bytes()
    }
}

/// What the panes of a window hold together: some keys of an index, and the state of each.
pub(super) struct Sliced {
    pub(super) keys: Arc<KeyIndex>,
    part: MergedPanes,
    /// The ids of its keys, where they are not the first ones of the index.
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

    /// The ids of its keys from the one of that number to the other.
    pub(super) fn pick(&self, from: usize, to: usize) -> Pick<'_> {
        match &self.ids {
            None => Pick::Range(from, to),
            Some(ids) => Pick::List(&ids[from..to]),
        }
    }

    /// Heap memory that is its own.
    pub(super) fn bytes(&self) -> usize {
        self.part.bytes() + self.ids.as_ref().map_or(0, heap_bytes)
    }

    /// The same with an index of its own.
    pub(super) fn into_keyed(self, shape: &ResolvedSpec) -> KeyedState {
        KeyedState::picked(shape, &self.keys, self.pick(0, self.len()), &self.part.states)
    }
}

#[derive(Default)]
pub(super) struct Slider {
    /// Every key that anything here has held since the boundary was set.
    keys: Option<Arc<KeyIndex>>,
    suffixes: Vec<(i64, MergedPanes)>,
    boundary: i64,
    behind: Option<MergedPanes>,
    reach: i64,
    ids: BTreeMap<i64, Vec<u32>>,
    /// The ids from 0 on, as far as anybody needed them.
    same: Vec<u32>,
    /// What the owner's total holds for all of this.
    counted: usize,
}

impl Slider {
    /// What the panes from `first` to `last` hold. Neither ever goes back.
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
            self.go_on(shape, panes, (first, last))
        };
        self.count(total);
        window
    }

    fn go_on(
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
                self.add_behind(shape, pane);
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
        if let Some(behind) = &self.behind {
            let known = self.same.len() as u32;
            self.same.extend(known..keys.len() as u32);
            behind.members.more.iter().for_each(|&id| part.members.insert(id));
            // A cell that nobody has put anything into adds nothing.
            part.states.merge(&behind.states, &self.same, keys.len());
        }
        Some(Sliced::new(keys, part)).filter(|window| window.len() > 0)
    }

    /// Makes suffixes of the panes of a window, and gives the whole of it.
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
                // Ids are given in the order in which panes are met: those of a suffix are the first ones.
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

    /// The ids of the keys of some state; new ones get new ids.
    fn ids_of(&mut self, shape: &ResolvedSpec, state: &KeyedState) -> Vec<u32> {
        let mut ids = Vec::new();
        if let Some(keys) = &mut self.keys {
            Arc::make_mut(keys).insert_keys(&state.keys, &shape.spec.keys, &mut ids);
        }
        ids
    }

    fn add_behind(&mut self, shape: &ResolvedSpec, state: &KeyedState) {
        let ids = self.ids_of(shape, state);
        let keys = self.keys.as_ref().map_or(0, |keys| keys.len());
        self.behind.get_or_insert_with(|| MergedPanes::new(shape)).add(&state.states, &ids, keys);
    }

    /// Something is added to a pane (SLIDER-3).
    pub(super) fn add(&mut self, shape: &ResolvedSpec, pane: i64, other: &KeyedState, total: &mut usize) {
        if self.keys.is_none() || pane > self.reach {
            return;
        }
        if pane > self.boundary {
            self.add_behind(shape, other);
        } else {
            let ids = self.ids_of(shape, other);
            let keys = self.keys.as_ref().map_or(0, |keys| keys.len());
            for (_, suffix) in self.suffixes.iter_mut().filter(|(first, _)| *first <= pane) {
                suffix.add(&other.states, &ids, keys);
            }
        }
        self.count(total);
    }

    /// A pane has more keys than before (SLIDER-4).
    pub(super) fn learn(&mut self, shape: &ResolvedSpec, pane: i64, state: &KeyedState) {
        let has_suffix = self.suffixes.iter().any(|(first, _)| *first == pane);
        if self.keys.is_some() && pane <= self.boundary && !has_suffix {
            let ids = self.ids_of(shape, state);
            self.ids.insert(pane, ids);
        }
    }

    /// Brings the owner's total up to date.
    fn count(&mut self, total: &mut usize) {
        let parts = self.suffixes.iter().map(|(_, part)| part).chain(&self.behind);
        let of_ids: usize = self.ids.values().map(heap_bytes).sum();
        let of_keys = self.keys.as_ref().map_or(0, |keys| keys.bytes());
        let bytes = parts.map(MergedPanes::bytes).sum::<usize>() + of_ids + of_keys + heap_bytes(&self.same);
        *total = *total - self.counted + bytes;
        self.counted = bytes;
    }

    /// Forgets everything: it is made anew when it is asked for.
    pub(super) fn clear(&mut self, total: &mut usize) {
        *total -= self.counted;
        *self = Self::default();
    }
}
