//! Closes windows and emits them, one at a time.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use penstock_memory::Run;
use penstock_progress::aligned::WindowNumber;
use penstock_progress::law;
use penstock_types::ComputeError;

use super::{Final, GridWindows, SPARE_KEYS};
use crate::keys::KeyIndex;
use crate::keys::shared::Directory;
use crate::pick::Pick;
use crate::windows::keyed::{Accumulators, KeyedState, StateTotals};
use crate::windows::output::{Each, Frame, write};
use crate::windows::slider::Sliced;
use crate::windows::spec::ResolvedSpec;

/// The result of a window's panes.
pub(super) enum PaneResult {
    /// A window of one pane.
    Pane(KeyedState),
    /// Several merged panes.
    Sliced { sliced: Sliced, counted: usize },
}

impl PaneResult {
    pub(super) fn into_keyed(self, shape: &ResolvedSpec) -> KeyedState {
        match self {
            Self::Pane(state) => state,
            Self::Sliced { sliced, .. } => sliced.into_keyed(shape),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Pane(state) => state.len(),
            Self::Sliced { sliced, .. } => sliced.len(),
        }
    }

    /// Returns keys and states, and the ids of the keys `from..to`.
    fn parts(&self, from: usize, to: usize) -> (&KeyIndex, &Accumulators, Pick<'_>) {
        match self {
            Self::Pane(state) => (&state.keys, &state.states, Pick::Range(from, to)),
            Self::Sliced { sliced, .. } => (&sliced.keys, sliced.states(), sliced.pick(from, to)),
        }
    }

    /// Adds its size to the owner's total.
    fn count(&mut self, total: &mut StateTotals) {
        match self {
            Self::Pane(state) => state.count(total),
            Self::Sliced { sliced, counted } => {
                *counted = sliced.bytes();
                total.bytes += *counted;
            }
        }
    }

    fn discount(&mut self, total: &mut StateTotals) {
        match self {
            Self::Pane(state) => state.discount(total),
            Self::Sliced { counted, .. } => total.bytes -= std::mem::take(counted),
        }
    }
}

/// A window that is being emitted.
pub(super) struct Emission {
    window: WindowNumber,
    state: PaneResult,
    given: usize,
    corrects: bool,
    /// True if its state is kept for corrections (GRID-4).
    kept: bool,
}

impl GridWindows {
    /// Returns the first window that is not over, and the first that is not gone, by that watermark.
    pub(super) fn over_by(&self, watermark: i64) -> (WindowNumber, WindowNumber) {
        let gone = watermark.saturating_sub(self.shape.spec.allowed_lateness);
        (self.windows.first_window(watermark), self.windows.first_window(gone))
    }

    /// Closes windows below these.
    pub(super) fn close_below(&mut self, closed: WindowNumber, gone: WindowNumber) {
        self.closed = self.closed.max(closed);
        self.gone = self.gone.max(gone);
        self.tidy();
    }

    /// Drops state that belongs to no remaining window.
    pub(super) fn tidy(&mut self) {
        if self.next_first(self.closed).is_none() {
            self.cursor = self.cursor.max(self.closed);
        }
        while let Some(entry) = self.panes.first_entry() {
            if self.windows.windows_of(*entry.key()).1 >= self.cursor {
                break;
            }
            entry.remove().discount(&mut self.total);
        }
        if self.panes.is_empty() {
            self.slider.clear(&mut self.total.bytes);
            self.directories.clear();
        }
        self.directories.retain(Directory::is_shared);
        self.forget_keys();
        // Windows without corrections end here, once they have been emitted.
        if self.shape.corrects() && self.next_first(self.closed).is_none() {
            let over = self.finals.range(..self.gone).filter(|(_, state)| state.corrections.is_none());
            let over: Vec<WindowNumber> = over.map(|(&window, _)| window).collect();
            for window in over {
                if let Some(mut state) = self.finals.remove(&window).and_then(|last| last.on_time) {
                    state.discount(&mut self.total);
                }
            }
        }
    }

    /// Rebuilds the directories when most of their keys are in no pane any more (GRID-5).
    fn forget_keys(&mut self) {
        let known: usize = self.directories.iter().map(Directory::len).sum();
        let live = |panes: &BTreeMap<i64, KeyedState>| panes.values().map(KeyedState::len).sum::<usize>();
        if known <= SPARE_KEYS || known <= live(&self.panes) * 2 + SPARE_KEYS {
            return;
        }
        self.slider.clear(&mut self.total.bytes);
        let directory = Directory::new(&self.shape.spec.keys);
        for pane in self.panes.values_mut() {
            pane.move_to(&self.shape, &directory);
            pane.count(&mut self.total);
        }
        self.directories = vec![directory];
    }

    /// Returns the last window with any state.
    pub(super) fn last_window(&self) -> Option<WindowNumber> {
        let pane =
            self.panes.keys().next_back().into_iter().chain(self.sides.keys().map(|(_, pane)| pane)).max();
        let windows = [
            pane.map(|&pane| self.windows.windows_of(pane).1),
            self.firsts.keys().next_back().copied(),
            self.finals.keys().next_back().copied(),
        ];
        windows.into_iter().flatten().max()
    }

    /// Returns the next window below `limit` to be emitted for the first time.
    pub(super) fn next_first(&self, limit: WindowNumber) -> Option<WindowNumber> {
        let own = self.next_own();
        let next = own.into_iter().chain(self.firsts.keys().next().copied()).min();
        next.filter(|&window| window < limit)
    }

    /// Returns the next window that has panes.
    pub(super) fn next_own(&self) -> Option<WindowNumber> {
        let of_panes = self
            .panes
            .keys()
            .map(|&pane| self.windows.windows_of(pane))
            .find(|(_, last)| *last >= self.cursor)
            .map(|(first, _)| first);
        let of_sides = self.sides.keys().next().map(|(first, _)| *first);
        of_panes.into_iter().chain(of_sides).min().map(|window| window.max(self.cursor))
    }

    /// Returns the next window to be emitted with corrections.
    pub(super) fn next_final(&self) -> Option<WindowNumber> {
        let mut over = self.finals.range(..self.gone);
        over.find(|(_, state)| state.corrections.is_some()).map(|(&window, _)| window)
    }

    /// Takes the pane state of a window, the next one that has panes; the caller emits it or stores it elsewhere.
    pub(super) fn take_own(&mut self, window: WindowNumber) -> Option<PaneResult> {
        if self.next_own() != Some(window) {
            return None;
        }
        while let Some(entry) = self.sides.first_entry().filter(|entry| entry.key().0 <= window) {
            let ((_, pane), mut side) = entry.remove_entry();
            side.discount(&mut self.total);
            self.slider.add(&self.shape, pane, &side, &mut self.total.bytes);
            let state = match self.panes.entry(pane) {
                Entry::Occupied(held) => {
                    let state = held.into_mut();
                    state.merge(&self.shape, &side);
                    state
                }
                Entry::Vacant(free) => free.insert(side),
            };
            state.count(&mut self.total);
            self.slider.learn(&self.shape, pane, state);
        }
        self.cursor = window + 1;
        let panes = self.windows.panes_of(window);
        if self.windows.is_tumbling() {
            let mut state = self.panes.remove(&panes.0)?;
            state.discount(&mut self.total);
            return Some(PaneResult::Pane(state));
        }
        let sliced = self.slider.window(&self.shape, &self.panes, panes, &mut self.total.bytes);
        self.tidy();
        sliced.map(|sliced| PaneResult::Sliced { sliced, counted: 0 })
    }

    /// Prepares the next window for emission; returns false when there is none.
    fn begin(&mut self) -> bool {
        if let Some(window) = self.next_first(self.closed) {
            let own = self.take_own(window);
            let other = self.firsts.remove(&window);
            let (mut state, kept) = match (own, other) {
                (Some(own), None) => (own, self.shape.corrects()),
                (None, Some(mut other)) => {
                    other.discount(&mut self.total);
                    (PaneResult::Pane(other), false)
                }
                (Some(own), Some(mut other)) => {
                    let own = own.into_keyed(&self.shape);
                    other.discount(&mut self.total);
                    other.merge(&self.shape, &own);
                    if self.shape.corrects() {
                        self.keep(window, own);
                    }
                    (PaneResult::Pane(other), false)
                }
                (None, None) => unreachable!("the window has state"),
            };
            state.count(&mut self.total);
            self.emission = Some(Emission { window, state, given: 0, corrects: false, kept });
            return true;
        }
        let Some(window) = self.next_final() else { return false };
        let Final { on_time, corrections } = self.finals.remove(&window).unwrap_or_default();
        let mut state = corrections.expect("only windows with corrections are corrected");
        if let Some(mut on_time) = on_time {
            on_time.discount(&mut self.total);
            state.merge_known(&self.shape, &on_time);
        }
        state.count(&mut self.total);
        let state = PaneResult::Pane(state);
        self.emission = Some(Emission { window, state, given: 0, corrects: true, kept: false });
        true
    }

    /// Keeps the emitted state of a window (GRID-4).
    pub(super) fn keep(&mut self, window: WindowNumber, mut state: KeyedState) {
        state.forget_rows();
        let kept = &mut self.finals.entry(window).or_default().on_time;
        if let Some(kept) = kept {
            kept.merge(&self.shape, &state);
            kept.count(&mut self.total);
        } else {
            state.count(&mut self.total);
            *kept = Some(state);
        }
    }

    pub(super) fn emit_some(&mut self, out: &mut Run, room: usize) -> Result<usize, ComputeError> {
        if room == 0 || (self.emission.is_none() && !self.begin()) {
            return Ok(0);
        }
        let Some(emission) = &mut self.emission else { return Ok(0) };
        let (from, to) = (emission.given, emission.state.len().min(emission.given + room));
        let (start, end) = self.windows.bounds(emission.window);
        let time = self.windows.last_tick(emission.window);
        law!(
            emission.corrects || time >= self.left,
            "a window of {time} comes after the watermark {}",
            self.left
        ); // CONTRACT-4
        let frame = Frame {
            start: Each::Same(start),
            end: Each::Same(end),
            time: Each::Same(time),
            corrects: emission.corrects,
        };
        let (keys, states, pick) = emission.state.parts(from, to);
        let rows = write(&self.shape, out, &frame, (keys, pick), (states, pick))?;
        emission.given = to;
        if to == emission.state.len()
            && let Some(Emission { window, mut state, kept, .. }) = self.emission.take()
        {
            state.discount(&mut self.total);
            // A window that can no longer be corrected and has no pending corrections is done.
            if kept {
                self.keep(window, state.into_keyed(&self.shape));
            }
            self.tidy();
        }
        Ok(rows)
    }
}
