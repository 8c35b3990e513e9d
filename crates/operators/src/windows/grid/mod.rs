//! Tumbling and sliding windows.
//!
//! Rows go into panes, each of which has keys and accumulators of its own; a window is the merged state of its panes.
//! A tumbling window is one pane, and its results are written straight from it.
//!
//! Windows end in order of their numbers:
//!
//! - those below `closed` are closed; later rows are late for them,
//! - those below `cursor` have been emitted, or are being emitted,
//! - those below `gone` can no longer be corrected. Without allowed lateness that is `closed`.
//!
//! GRID-1. A row that was on time for all of its windows is in `panes`; one that was too late for the first of them is
//!     in `sides` under the first it counts in, until that window is emitted.
//! GRID-2. A pane of an emitted window is not updated by rows, only by state from `sides`.
//! GRID-3. `firsts[n]` is a part of window `n` besides its panes: state that was split off another operator.
//! GRID-4. With allowed lateness, `finals[n]` holds the emitted state of window `n` and, separately, the rows that
//!     arrived for it since. Both are dropped when `gone` passes.
//! GRID-5. The panes of sliding windows look their keys up in `directories`, new panes in the last of them. A
//!     directory with more than twice the keys of a pane, plus a margin, is followed by a new one, and is dropped with
//!     the last pane that uses it. All of them together have at most twice the keys of all panes, plus a margin.
//! GRID-6. `total` is the size of all states, each as it was after its last change, without directories.

mod emission;
mod lateness;
mod portable;

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use penstock_memory::Run;
use penstock_progress::aligned::WindowNumber;
use penstock_progress::watermark::{NEVER, min_max};
use penstock_progress::{Aligned, law, laws};
use penstock_types::{ComputeError, KeyGroups};

use super::keyed::{KeyedState, StateTotals};
use super::slider::Slider;
use super::spec::{PortRows, ResolvedSpec};
use crate::contract::{HeldRows, Late, SnapshotError, StateSnapshot, Stateful};
use crate::keys::shared::Directory;
use emission::Emission;
pub(super) use lateness::each_below;

/// A window that may still be corrected (GRID-4).
#[derive(Default)]
struct Final {
    on_time: Option<KeyedState>,
    corrections: Option<KeyedState>,
}

/// Aggregation in windows on a grid.
pub(super) struct GridWindows {
    shape: Arc<ResolvedSpec>,
    windows: Aligned,
    panes: BTreeMap<i64, KeyedState>,
    sides: BTreeMap<(WindowNumber, i64), KeyedState>,
    firsts: BTreeMap<WindowNumber, KeyedState>,
    finals: BTreeMap<WindowNumber, Final>,
    slider: Slider,
    emission: Option<Emission>,
    closed: WindowNumber,
    cursor: WindowNumber,
    gone: WindowNumber,
    /// The largest watermark, received or implied by closing.
    watermark: i64,
    /// A lower bound of the watermark after the operator (CONTRACT-4). Only kept where laws are checked.
    left: i64,
    late: Late,
    total: StateTotals,
    ids: Vec<u32>,
    /// The number of keys of the pane that was filled last.
    usual_keys: usize,
    directories: Vec<Directory>,
}

/// The margin of keys of a directory (GRID-5).
const SPARE_KEYS: usize = 256;

impl GridWindows {
    pub(super) fn new(shape: Arc<ResolvedSpec>, windows: Aligned) -> Self {
        // The first window that contains any time.
        let first = windows.first_window(NEVER);
        Self {
            shape,
            windows,
            panes: BTreeMap::new(),
            sides: BTreeMap::new(),
            firsts: BTreeMap::new(),
            finals: BTreeMap::new(),
            slider: Slider::default(),
            emission: None,
            closed: first,
            cursor: first,
            gone: first,
            watermark: NEVER,
            left: NEVER,
            late: Late::default(),
            total: StateTotals::default(),
            ids: Vec::new(),
            usual_keys: 0,
            directories: Vec::new(),
        }
    }

    /// Stores the watermark after the operator, before it advances.
    fn note_left(&mut self) {
        if laws::are_checked() && !self.has_output() {
            self.left = self.watermark;
        }
    }

    fn update_pane(&mut self, pane: i64, rows: &PortRows<'_>) {
        let (usual, directories) = (self.usual_keys, &mut self.directories);
        let state = self.panes.entry(pane).or_insert_with(|| {
            if self.windows.is_tumbling() || self.shape.spec.keys.is_empty() {
                return KeyedState::expecting(&self.shape, usual);
            }
            if directories.last().is_none_or(|last| last.len() > usual * 2 + SPARE_KEYS) {
                directories.push(Directory::new(&self.shape.spec.keys));
            }
            let keys = directories.last().map(Directory::index);
            KeyedState::with_keys(&self.shape, keys.expect("one was pushed"))
        });
        state.update(&self.shape, rows, &mut self.ids);
        self.usual_keys = state.len();
        state.count(&mut self.total);
    }

    /// Returns the pane that contains all rows of the run, if there is one. Times are read only where the range stored
    /// by the source does not suffice.
    fn common_pane(&self, port: usize, run: &mut Run) -> Option<i64> {
        let of_range = |(earliest, latest): (i64, i64)| {
            let pane = self.windows.pane(earliest);
            (pane == self.windows.pane(latest)).then_some(pane)
        };
        let time = self.shape.spec.ports[port].time;
        run.range_of(time).and_then(of_range).or_else(|| {
            run.ready(&[time]);
            min_max(run.column(time).fixed()).and_then(of_range)
        })
    }

    /// Consumes a run whose rows lie in several panes.
    fn consume_by_pane(&mut self, port: usize, run: &Run) {
        let mut panes = Vec::new();
        self.windows.panes(run.column(self.shape.spec.ports[port].time).fixed(), &mut panes);
        let shape = Arc::clone(&self.shape);
        for rows in in_order(&panes).chunk_by(|&left, &right| panes[left as usize] == panes[right as usize]) {
            let gathered = shape.gather(port, run, rows);
            self.update_pane(panes[rows[0] as usize], &shape.gathered(port, &gathered));
        }
    }
}

/// Returns row numbers by pane; rows of a pane stay in order of arrival.
fn in_order(panes: &[i64]) -> Vec<u32> {
    /// Number of panes up to which counting is used instead of sorting.
    const FEW: u64 = 4096;
    let (smallest, largest) = min_max(panes).unwrap_or_default();
    let span = largest.wrapping_sub(smallest).cast_unsigned();
    if span >= FEW {
        let mut order: Vec<u32> = (0..panes.len() as u32).collect();
        order.sort_by_key(|&row| panes[row as usize]);
        return order;
    }
    let place = |pane: i64| pane.wrapping_sub(smallest) as usize;
    let mut starts = vec![0_u32; span as usize + 2];
    panes.iter().for_each(|&pane| starts[place(pane) + 1] += 1);
    for pane in 1..starts.len() {
        starts[pane] += starts[pane - 1];
    }
    let mut order = vec![0; panes.len()];
    for (row, &pane) in panes.iter().enumerate() {
        let next = &mut starts[place(pane)];
        order[*next as usize] = row as u32;
        *next += 1;
    }
    order
}

impl Stateful for GridWindows {
    fn consume(&mut self, port: usize, run: &mut Run) -> Result<(), ComputeError> {
        debug_assert!(!self.has_output(), "CONTRACT-1: output is taken before rows are consumed");
        if run.is_empty() {
            return Ok(());
        }
        self.set_late_apart(port, run);
        if run.is_empty() {
            return Ok(());
        }
        run.ready(&self.shape.reads[port]);
        match self.common_pane(port, run) {
            Some(pane) => {
                let shape = Arc::clone(&self.shape);
                self.update_pane(pane, &shape.rows(port, run));
            }
            None => self.consume_by_pane(port, run),
        }
        Ok(())
    }

    fn late_rows(&self, port: usize, run: &mut Run, rows: &mut Vec<u32>) {
        self.list_late(port, run, rows);
    }

    fn advance(&mut self, watermark: i64) {
        law!(watermark >= self.watermark, "windows go back from {} to {watermark}", self.watermark); // CONTRACT-4
        self.note_left();
        self.watermark = self.watermark.max(watermark);
        let (closed, gone) = self.over_by(watermark);
        self.close_below(closed, gone);
    }

    fn close_open(&mut self) -> Option<i64> {
        let last = self.last_window()?;
        // A window that was emitted and can no longer be corrected is not open.
        if last < self.gone {
            return None;
        }
        self.note_left();
        self.close_below(last + 1, last + 1);
        let end = self.windows.end_of(last) + i128::from(self.shape.spec.allowed_lateness);
        self.watermark = self.watermark.max(end.min(i128::from(i64::MAX)) as i64);
        Some(self.watermark)
    }

    fn finish(&mut self) {
        self.close_below(WindowNumber::MAX, WindowNumber::MAX);
    }

    fn has_output(&self) -> bool {
        self.emission.is_some() || self.next_first(self.closed).is_some() || self.next_final().is_some()
    }

    fn emit(&mut self, out: &mut Run, room: usize) -> Result<usize, ComputeError> {
        self.emit_some(out, room)
    }

    fn late(&self) -> Late {
        self.late
    }

    fn keys(&self) -> usize {
        self.panes.values().chain(self.sides.values()).chain(self.firsts.values()).map(KeyedState::len).sum()
    }

    fn bytes(&self) -> usize {
        // The nodes of maps are at least half full.
        self.total.bytes
            + self.directories.iter().map(Directory::bytes).sum::<usize>()
            + self.panes.len() * size_of::<(i64, KeyedState)>() * 2
            + self.sides.len() * size_of::<((WindowNumber, i64), KeyedState)>() * 2
            + self.firsts.len() * size_of::<(WindowNumber, KeyedState)>() * 2
            + self.finals.len() * size_of::<(WindowNumber, Final)>() * 2
    }

    fn held(&self) -> HeldRows {
        HeldRows { rows: self.total.rows, sessions: 0 }
    }

    fn snapshot(&self) -> StateSnapshot {
        self.write_snapshot()
    }

    fn restore(&mut self, snapshot: &StateSnapshot) -> Result<(), SnapshotError> {
        *self = self.read_snapshot(snapshot)?;
        Ok(())
    }

    fn extract(&mut self, groups: KeyGroups) -> Box<dyn Stateful> {
        Box::new(self.take_groups(groups))
    }

    fn split_off(&mut self, watermark: i64) -> Box<dyn Stateful> {
        Box::new(self.take_over(watermark))
    }

    fn merge(&mut self, other: Box<dyn Stateful>) {
        let other: Box<dyn Any> = other;
        self.take_other(*other.downcast::<Self>().expect("operators of one specification are merged"));
    }
}
