//! Joins the rows of two streams whose keys are equal and which lie in the same window.
//!
//! An arriving row is stored, and finds the earlier rows of the other side: so each pair is found once, by the later
//! of its two rows, and can be emitted at once. When the watermark passes the end of a window, the outer kinds emit
//! the rows without a match, and the state of the window is dropped.
//!
//! JOIN-1. A pair is never buffered. The queue has one entry per arrived row: the row, and its position in the chain
//!     of its matches. A chain only grows at its front, so that an entry sees the rows that were there when it was
//!     made.
//! JOIN-2. A row has a match iff the other side has its key: nothing is stored per row.
//! JOIN-3. A closed window stays until its rows have left, and is first among all windows, with a row to emit, or
//!     pairs are still waiting.
//!
//! - `state`: a window, its keys and its rows
//! - `pairs`: the pairs that wait
//! - `portable`: state split, merged, written and read

mod pairs;
mod portable;
mod state;

use arrow_schema::DataType;
use penstock_memory::{Column, ColumnBuf, Physical, Run, SlotId};
use penstock_progress::aligned::WindowNumber;
use penstock_progress::{Aligned, laws};
use penstock_types::{ComputeError, KeyGroups};

use crate::contract::{HeldRows, Late, SnapshotError, StateSnapshot, Stateful};
use crate::pick::Pick;
use crate::rows::placing::{Placed, Placing};
use crate::rows::results::{put_bounds, put_time};
use crate::rows::windows::WindowMap;
use crate::rows::{any_null, borrowed, gathered, has_nulls};
use pairs::{ChosenPairs, Pairs};
use state::JoinWindow;

/// The handling of rows without a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JoinKind {
    /// They are dropped.
    Inner,
    /// Those of the left side are passed on with nulls.
    Left,
    /// Those of the right side are passed on with nulls.
    Right,
    /// Those of both sides are passed on with nulls.
    Full,
}

const KINDS: [(JoinKind, &str); 4] = [
    (JoinKind::Inner, "inner"),
    (JoinKind::Left, "left"),
    (JoinKind::Right, "right"),
    (JoinKind::Full, "full"),
];

impl JoinKind {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        KINDS
            .iter()
            .find(|(kind, _)| *kind == self)
            .map(|(_, name)| *name)
            .expect("every kind is in the table")
    }

    /// Returns the kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        KINDS.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }

    /// Returns all names.
    pub fn names() -> impl Iterator<Item = &'static str> {
        KINDS.iter().map(|(_, name)| *name)
    }

    /// Returns true if rows of that side are passed on without a match.
    fn keeps(self, side: usize) -> bool {
        match self {
            Self::Inner => false,
            Self::Left => side == 0,
            Self::Right => side == 1,
            Self::Full => true,
        }
    }
}

/// The slots of one side.
#[derive(Clone, Debug)]
pub struct JoinPort {
    /// Event time, 64 bits wide.
    pub time: SlotId,
    /// The watermark just before each row; empty in runs that cannot hold a late row.
    pub watermark: SlotId,
    /// The keys.
    pub keys: Vec<SlotId>,
    /// The other columns of the result, and their storage.
    pub columns: Vec<(SlotId, Physical)>,
}

/// The specification of a join.
#[derive(Clone, Debug)]
pub struct JoinSpec {
    /// The windows.
    pub windows: Aligned,
    /// The handling of rows without a match.
    pub kind: JoinKind,
    /// The left and the right side.
    pub ports: [JoinPort; 2],
    /// The storage of the keys, on both sides.
    pub keys: Vec<Physical>,
    /// The types of the keys.
    pub key_types: Vec<DataType>,
    /// The types of the columns of each side.
    pub column_types: [Vec<DataType>; 2],
    /// The storage of a window's bounds in the results: 64 bits, or 32 for days.
    pub bounds: Physical,
    /// True if the results end with a column of event time.
    pub emits_time: bool,
}

/// Joins two streams within windows.
///
/// The results have the bounds of the window, the keys, the columns of the left and of the right side, and event time
/// if requested. A key with a null equals nothing; NaN equals NaN, and -0.0 equals 0.0.
pub struct WindowJoin {
    spec: JoinSpec,
    /// The slots that each side reads: keys, then columns.
    reads: [Vec<SlotId>; 2],
    placing: Placing,
    windows: WindowMap<JoinWindow>,
    pairs: Pairs,
    late: Late,
    placed: Placed,
    /// The keys of the arriving rows.
    ids: Vec<u32>,
    chosen: ChosenPairs,
}

impl WindowJoin {
    /// Creates a join without state.
    pub fn new(spec: JoinSpec) -> Self {
        let reads = |port: &JoinPort| {
            port.keys.iter().copied().chain(port.columns.iter().map(|(slot, _)| *slot)).collect()
        };
        Self {
            reads: [reads(&spec.ports[0]), reads(&spec.ports[1])],
            placing: Placing::new(spec.windows),
            windows: WindowMap::new(),
            pairs: Pairs::default(),
            late: Late::default(),
            placed: Placed::default(),
            ids: Vec::new(),
            chosen: ChosenPairs::default(),
            spec,
        }
    }

    fn note_left(&mut self) {
        if laws::are_checked() && !self.has_output() {
            self.placing.note_left();
        }
    }

    /// Adds rows of one side to a window, and queues those with matches.
    fn take(
        &mut self,
        number: WindowNumber,
        side: usize,
        keys: &[Column<'_>],
        columns: &[Column<'_>],
        rows: Option<&[u32]>,
        count: usize,
    ) -> Result<(), ComputeError> {
        let Self { spec, windows, pairs, ids, .. } = self;
        windows.update(
            number,
            || JoinWindow::new(spec),
            |window| {
                window.identify(keys, count, ids)?;
                pairs.begin(number, side);
                window.link(side, keys, ids, |row, first| pairs.push(row, first))?;
                pairs.end();
                window.store(side, columns, rows, count);
                Ok(())
            },
        )
    }

    /// Drops closed windows that have nothing left to emit (JOIN-3).
    fn settle(&mut self) {
        if self.pairs.wait() {
            return;
        }
        while let Some(number) = self.closed() {
            let kind = self.spec.kind;
            if self.windows.with_first(|_, window| window.find_unmatched(kind)) == Some(true) {
                return;
            }
            self.windows.remove(number);
        }
    }

    /// Returns the first window, if it is closed.
    fn closed(&self) -> Option<WindowNumber> {
        self.windows.first().filter(|number| *number < self.placing.closed_below())
    }

    /// Gathers the chosen rows of a window into `out`.
    fn write(&self, number: WindowNumber, out: &mut Run) {
        let window = self.windows.get(number).expect("JOIN-3: a window stays until its rows have left");
        let rows = self.chosen.ids.len();
        out.begin_owned(rows);
        put_bounds(out, self.spec.windows, number, self.spec.bounds);
        let mut keys: Vec<ColumnBuf> = self.spec.keys.iter().map(|key| out.scratch(*key)).collect();
        keys.iter_mut().for_each(ColumnBuf::clear_mask);
        window.keys().write_picked(Pick::List(&self.chosen.ids), &mut keys);
        let mut slot = 2;
        for key in keys {
            out.put(slot, key);
            slot += 1;
        }
        let mut put = |column: Column<'_>, rows: Option<&[u32]>| {
            let mut gathered: ColumnBuf = out.scratch(column.values.physical());
            match rows {
                Some(rows) => gathered.gather(column, rows),
                None => gathered.fill_null(self.chosen.ids.len()),
            }
            out.put(slot, gathered);
            slot += 1;
        };
        for side in [0, 1] {
            for column in window.columns(side) {
                put(column, self.chosen.rows(side));
            }
        }
        if self.spec.emits_time {
            put_time(out, slot, self.spec.windows, number);
        }
    }
}

impl Stateful for WindowJoin {
    fn consume(&mut self, port: usize, run: &mut Run) -> Result<(), ComputeError> {
        let (time, watermark) = (self.spec.ports[port].time, self.spec.ports[port].watermark);
        let mut placed = std::mem::take(&mut self.placed);
        self.late.add(self.placing.place(run, time, watermark, &mut placed));
        if !placed.spans.is_empty() {
            run.ready(&self.reads[port]);
            let columns: Vec<Column<'_>> = self.reads[port].iter().map(|&slot| run.column(slot)).collect();
            let (keys, columns) = columns.split_at(self.spec.keys.len());
            if !self.spec.kind.keeps(port) && has_nulls(keys) {
                placed.retain(run.len(), |row| !any_null(keys, row));
            }
            for &span in &placed.spans {
                let rows = placed.rows(span);
                let cut: Option<Vec<ColumnBuf>> =
                    rows.map(|rows| keys.iter().map(|key| gathered(*key, rows)).collect());
                let cut: Option<Vec<Column<'_>>> = cut.as_deref().map(borrowed);
                let (keys, count) = (cut.as_deref().unwrap_or(keys), rows.map_or(run.len(), <[u32]>::len));
                for number in span.first..=span.last {
                    self.take(number, port, keys, columns, rows, count)?;
                }
            }
        }
        self.placed = placed;
        Ok(())
    }

    fn late_rows(&self, port: usize, run: &mut Run, rows: &mut Vec<u32>) {
        let port = &self.spec.ports[port];
        self.placing.late_rows(run, port.time, port.watermark, rows);
    }

    fn advance(&mut self, watermark: i64) {
        self.note_left();
        self.placing.advance(watermark);
        self.settle();
    }

    fn close_open(&mut self) -> Option<i64> {
        // Windows that are closed already are being emitted.
        let last = self.windows.last().filter(|last| *last >= self.placing.closed_below())?;
        self.note_left();
        let watermark = self.placing.close_through(last);
        self.settle();
        Some(watermark)
    }

    fn finish(&mut self) {
        self.close_open();
    }

    fn has_output(&self) -> bool {
        self.pairs.wait() || self.closed().is_some()
    }

    fn emit(&mut self, out: &mut Run, room: usize) -> Result<usize, ComputeError> {
        if !self.has_output() {
            out.begin_owned(0);
            return Ok(0);
        }
        let number = match self.pairs.window() {
            Some(number) => {
                let window =
                    self.windows.get(number).expect("JOIN-3: a window stays until its pairs have left");
                self.pairs.choose(window, room, &mut self.chosen);
                number
            }
            None => {
                let (kind, chosen) = (self.spec.kind, &mut self.chosen);
                let first = self.windows.with_first(|number, window| {
                    window.choose_unmatched(kind, room, chosen);
                    number
                });
                first.expect("JOIN-3: there is output")
            }
        };
        self.placing.check_result(number);
        self.write(number, out);
        self.settle();
        Ok(self.chosen.ids.len())
    }

    fn late(&self) -> Late {
        self.late
    }

    fn bytes(&self) -> usize {
        self.windows.bytes() + self.pairs.bytes()
    }

    fn held(&self) -> HeldRows {
        HeldRows { rows: self.windows.rows(), sessions: 0 }
    }

    fn snapshot(&self) -> StateSnapshot {
        self.write_snapshot()
    }

    fn restore(&mut self, snapshot: &StateSnapshot) -> Result<(), SnapshotError> {
        self.read_snapshot(snapshot)
    }

    fn extract(&mut self, groups: KeyGroups) -> Box<dyn Stateful> {
        Box::new(self.take_groups(groups))
    }

    fn split_off(&mut self, watermark: i64) -> Box<dyn Stateful> {
        Box::new(self.take_over(watermark))
    }

    fn merge(&mut self, other: Box<dyn Stateful>) {
        let other: Box<dyn std::any::Any> = other;
        let other = other.downcast::<Self>().expect("operators of one specification are merged");
        self.take_other(*other);
    }
}
