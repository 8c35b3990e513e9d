//! State split, merged, written and read.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::types::{Decimal128Type, Int64Type, UInt8Type};
use arrow_array::{ArrayRef, PrimitiveArray};
use arrow_schema::DataType;
use penstock_progress::aligned::WindowNumber;
use penstock_progress::law;
use penstock_types::KeyGroups;

use super::{Final, GridWindows};
use crate::aggregates::state::{numbers, read};
use crate::contract::{SnapshotError, StateSnapshot};
use crate::windows::keyed::KeyedState;
use crate::windows::snapshot::{SnapshotReader, SnapshotWriter};

const OPERATOR: &str = "windows";

/// The owner of a row of the table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Store {
    Pane,
    Side,
    First,
    OnTime,
    Correction,
}

const STORES: [Store; 5] = [Store::Pane, Store::Side, Store::First, Store::OnTime, Store::Correction];

/// Puts a state into a map, merging it into an existing one.
fn put<K: Ord>(
    grid: &mut GridWindows,
    map: impl Fn(&mut GridWindows) -> &mut BTreeMap<K, KeyedState>,
    key: K,
    mut state: KeyedState,
) {
    let shape = Arc::clone(&grid.shape);
    let mut total = std::mem::take(&mut grid.total);
    match map(grid).entry(key) {
        std::collections::btree_map::Entry::Occupied(mut entry) => {
            entry.get_mut().merge(&shape, &state);
            entry.get_mut().count(&mut total);
        }
        std::collections::btree_map::Entry::Vacant(entry) => {
            state.count(&mut total);
            entry.insert(state);
        }
    }
    grid.total = total;
}

impl GridWindows {
    fn put(&mut self, store: Store, window: WindowNumber, pane: i64, state: KeyedState) {
        match store {
            Store::Pane => put(self, |grid| &mut grid.panes, pane, state),
            Store::Side => put(self, |grid| &mut grid.sides, (window, pane), state),
            Store::First => put(self, |grid| &mut grid.firsts, window, state),
            Store::OnTime => self.keep(window, state),
            Store::Correction => {
                let shape = Arc::clone(&self.shape);
                let state = match self.finals.entry(window).or_default().corrections.take() {
                    None => state,
                    Some(mut kept) => {
                        kept.merge(&shape, &state);
                        kept
                    }
                };
                let kept = self.finals.entry(window).or_default().corrections.insert(state);
                kept.count(&mut self.total);
            }
        }
    }

    /// Takes all state out, each with its owner.
    fn take_all(&mut self) -> Vec<(Store, WindowNumber, i64, KeyedState)> {
        self.slider.clear(&mut self.total.bytes);
        let mut all: Vec<(Store, WindowNumber, i64, KeyedState)> = Vec::new();
        let panes = std::mem::take(&mut self.panes).into_iter();
        all.extend(panes.map(|(pane, state)| (Store::Pane, 0, pane, state)));
        let sides = std::mem::take(&mut self.sides).into_iter();
        all.extend(sides.map(|((window, pane), state)| (Store::Side, window, pane, state)));
        let firsts = std::mem::take(&mut self.firsts).into_iter();
        all.extend(firsts.map(|(window, state)| (Store::First, window, 0, state)));
        for (window, Final { on_time, corrections }) in std::mem::take(&mut self.finals) {
            all.extend(on_time.map(|state| (Store::OnTime, window, 0, state)));
            all.extend(corrections.map(|state| (Store::Correction, window, 0, state)));
        }
        all.iter_mut().for_each(|(.., state)| state.discount(&mut self.total));
        all
    }

    /// Creates an operator of the same specification and watermark, without state.
    fn alike(&self) -> Self {
        Self {
            closed: self.closed,
            cursor: self.cursor,
            gone: self.gone,
            watermark: self.watermark,
            ..Self::new(Arc::clone(&self.shape), self.windows)
        }
    }

    /// Splits off the keys of these groups.
    pub(super) fn take_groups(&mut self, groups: KeyGroups) -> Self {
        let mut taken = self.alike();
        let shape = Arc::clone(&self.shape);
        for (store, window, pane, state) in self.take_all() {
            let (goes, stays) = state.split(&shape, groups);
            if let Some(state) = goes {
                taken.put(store, window, pane, state);
            }
            if let Some(state) = stays {
                self.put(store, window, pane, state);
            }
        }
        taken
    }

    /// Closes windows below these, and puts the state to be emitted into `to` instead; into its own state for `None`.
    fn close_into(&mut self, closed: WindowNumber, gone: WindowNumber, mut to: Option<&mut Self>) {
        let closed = closed.max(self.closed);
        while let Some(window) = self.next_first_of(closed, to.is_none()) {
            let own = self.take_own(window).map(|own| own.into_keyed(&self.shape));
            let other = if to.is_some() { self.firsts.remove(&window) } else { None };
            for (mut state, mine) in
                own.into_iter().map(|own| (own, true)).chain(other.map(|other| (other, false)))
            {
                if mine && self.shape.corrects() {
                    self.keep(window, state.copied());
                }
                if !mine {
                    state.discount(&mut self.total);
                }
                let target = if let Some(to) = to.as_deref_mut() { to } else { &mut *self };
                target.put(Store::First, window, 0, state);
            }
        }
        let gone = gone.max(self.gone);
        if let Some(to) = to {
            let later = self.finals.split_off(&gone);
            for (window, over) in std::mem::replace(&mut self.finals, later) {
                for (store, state) in [(Store::OnTime, over.on_time), (Store::Correction, over.corrections)] {
                    if let Some(mut state) = state {
                        state.discount(&mut self.total);
                        to.put(store, window, 0, state);
                    }
                }
            }
        }
        self.close_below(closed, gone);
    }

    /// Returns the next window below `limit` whose state has to be moved: with panes only, or any.
    fn next_first_of(&self, limit: WindowNumber, own_only: bool) -> Option<WindowNumber> {
        if own_only { self.next_own().filter(|&window| window < limit) } else { self.next_first(limit) }
    }

    /// Splits off the state that the watermark closes.
    pub(super) fn take_over(&mut self, watermark: i64) -> Self {
        law!(watermark >= self.watermark, "windows go back from {} to {watermark}", self.watermark); // CONTRACT-4
        let mut taken = Self::new(Arc::clone(&self.shape), self.windows);
        let (closed, gone) = self.over_by(watermark);
        self.close_into(closed, gone, Some(&mut taken));
        self.watermark = self.watermark.max(watermark);
        taken
    }

    /// Merges the state of another operator. The one that lags first closes what the other has closed: a window that
    /// one has emitted is not open in the other.
    pub(super) fn take_other(&mut self, mut other: Self) {
        let (closed, gone) = (self.closed.max(other.closed), self.gone.max(other.gone));
        other.close_into(closed, other.gone, None);
        self.close_into(closed, self.gone, None);
        self.watermark = self.watermark.max(other.watermark);
        self.late.rows += other.late.rows;
        self.late.by = self.late.by.max(other.late.by);
        for (store, window, pane, state) in other.take_all() {
            self.put(store, window, pane, state);
        }
        self.slider.clear(&mut self.total.bytes);
        self.cursor = closed;
        self.close_below(closed, gone);
    }

    pub(super) fn write_snapshot(&self) -> StateSnapshot {
        let mut writer = SnapshotWriter::new(&self.shape, OPERATOR, &fields());
        for (name, number) in [("closed", self.closed), ("cursor", self.cursor), ("gone", self.gone)] {
            writer.note(name, number);
        }
        writer.note("watermark", self.watermark);
        writer.note_late(self.late);
        let mut add = |store: Store, window: WindowNumber, pane: i64, state: &KeyedState| {
            let rows = state.len();
            let mut columns: Vec<ArrayRef> = vec![
                numbers::<UInt8Type>(std::iter::repeat_n(store as u8, rows)),
                Arc::new(
                    PrimitiveArray::<Decimal128Type>::from_value(window, rows)
                        .with_precision_and_scale(38, 0)
                        .expect("a number of 38 digits"),
                ),
                numbers::<Int64Type>(std::iter::repeat_n(pane, rows)),
            ];
            columns.extend(state.save(&self.shape));
            writer.add(columns);
        };
        self.panes.iter().for_each(|(&pane, state)| add(Store::Pane, 0, pane, state));
        self.sides.iter().for_each(|(&(window, pane), state)| add(Store::Side, window, pane, state));
        self.firsts.iter().for_each(|(&window, state)| add(Store::First, window, 0, state));
        for (&window, Final { on_time, corrections }) in &self.finals {
            on_time.iter().for_each(|state| add(Store::OnTime, window, 0, state));
            corrections.iter().for_each(|state| add(Store::Correction, window, 0, state));
        }
        writer.finish()
    }

    pub(super) fn read_snapshot(&self, snapshot: &StateSnapshot) -> Result<Self, SnapshotError> {
        let reader = SnapshotReader::new(&self.shape, OPERATOR, &fields(), snapshot)?;
        let mut grid = Self::new(Arc::clone(&self.shape), self.windows);
        let (lowest, highest) = (grid.closed, self.windows.last_window(i64::MAX));
        for (name, number) in
            [("closed", &mut grid.closed), ("cursor", &mut grid.cursor), ("gone", &mut grid.gone)]
        {
            let noted: WindowNumber = reader.note(name)?;
            if !(lowest..=highest + 1).contains(&noted) && noted != WindowNumber::MAX {
                return Err(reader.broken(format!("{name} is {noted}, which is no window")));
            }
            *number = noted;
        }
        if grid.gone > grid.closed {
            return Err(reader.broken("windows are gone that are not closed".to_owned()));
        }
        grid.watermark = reader.note("watermark")?;
        grid.late = reader.late()?;
        let (first_pane, last_pane) = (self.windows.pane(i64::MIN), self.windows.pane(i64::MAX));
        for table in reader.tables() {
            let (stores, panes) = (read::<UInt8Type>(&table[0]), read::<Int64Type>(&table[2]));
            let windows = read::<Decimal128Type>(&table[1]);
            let mut from = 0;
            while from < stores.len() {
                let (store, window, pane) = (stores[from], windows[from], panes[from]);
                let same = |row: &usize| (stores[*row], windows[*row], panes[*row]) == (store, window, pane);
                let rows = (from..stores.len()).take_while(same).count();
                let Some(&store) = STORES.get(usize::from(store)) else {
                    return Err(reader.broken(format!("there is no store {store}")));
                };
                let by_pane = matches!(store, Store::Pane | Store::Side);
                if by_pane && !(first_pane..=last_pane).contains(&pane) {
                    return Err(reader.broken(format!("there is no pane {pane}")));
                }
                let (first, last) = if by_pane { self.windows.windows_of(pane) } else { (lowest, highest) };
                if store != Store::Pane && !(first..=last).contains(&window) {
                    return Err(reader.broken(format!("window {window} has no part in pane {pane}")));
                }
                let columns: Vec<ArrayRef> =
                    table[3..].iter().map(|column| column.slice(from, rows)).collect();
                let state =
                    KeyedState::load(&self.shape, &columns, rows).map_err(|reason| reader.broken(reason))?;
                grid.put(store, window, pane, state);
                from += rows;
            }
        }
        grid.tidy();
        Ok(grid)
    }
}

/// Returns the columns of the table before keys and state.
fn fields() -> [(&'static str, DataType); 3] {
    [("store", DataType::UInt8), ("window", DataType::Decimal128(38, 0)), ("pane", DataType::Int64)]
}
